"""Reading a file: find the manifest, check what it lists, then take it apart."""

from __future__ import annotations

import numpy as np

from memsift.errors import CorruptStore
from memsift.formats.rvf import chain, columns, documents, manifest, private, vec
from memsift.formats.rvf.files import Path, Source, opened
from memsift.formats.rvf.manifest import Manifest, read_listed
from memsift.formats.rvf.private import Kind
from memsift.formats.rvf.segments import BRANCH, HEADER, PRIVATE, VEC
from memsift.formats.rvf.snapshot import RvfSnapshot


def read_rvf(path: Path) -> RvfSnapshot:
    """What the file holds. It is opened read-only, not through a symbolic link, and never changed.

    Nothing is allocated for a length before the file is known to be that long, and nothing is used before its
    checksum was found right. A file of the official tools gives ids and vectors alone.

    Raises
    ------
    CorruptStore
        Anything in the file is not as it should be; names the section and the offset.
    OSError
        The file cannot be opened or read.
    """
    with opened(path) as source:
        found = manifest.find(source)
        _check_directory(found, source.size)
        parts = private.read_parts(source, found)
        private.check_seal(source, found, parts)
        ids, vectors = _read_vectors(source, found)
    state, context, entries = (
        parts.get(kind, [None])[0] for kind in (Kind.STATE, Kind.CONTEXT, Kind.CHAIN)
    )
    return RvfSnapshot(
        ids,
        vectors,
        columns.decode(parts[Kind.COLUMNS], ids) if Kind.COLUMNS in parts else None,
        documents.decode_metadata(parts[Kind.METADATA], ids) if Kind.METADATA in parts else None,
        documents.decode_state(state) if state else None,
        vec.decode_context(context, found.dim) if context else None,
        chain.decode(parts[Kind.AUDIT], entries) if Kind.AUDIT in parts else None,
    )


def _check_directory(found: Manifest, size: int) -> None:
    """That the file stands alone, and that what is to be read lies in it, side by side."""
    for entry in found.entries(list(BRANCH)):
        raise CorruptStore(
            "directory",
            f"a file that stands alone was expected, a branch with {BRANCH[entry.type]} came",
            found.offset,
        )
    used = found.rows([VEC, *PRIVATE])
    used = used[np.argsort(used["offset"], kind="stable")]
    starts, lengths = used["offset"], used["length"]
    ends = starts + HEADER.size + lengths  # right wherever both are within the file
    outside = (starts > size) | (lengths > size) | (ends > size)
    if outside.any():
        _, offset, length, _ = used[outside][0].item()
        raise CorruptStore(
            "directory",
            f"segments within {size} bytes were expected, {length} at {offset} came",
            found.offset,
        )
    if (ends[:-1] > starts[1:]).any():
        row = int(np.flatnonzero(ends[:-1] > starts[1:])[0])
        raise CorruptStore(
            "directory",
            f"segments side by side were expected, that at {starts[row]} runs into {starts[row + 1]}",
            found.offset,
        )


def _read_vectors(source: Source, found: Manifest) -> tuple[vec.Ids, vec.Vectors]:
    """Ids and vectors of the live rows, in the order of the file."""
    # As many rows as the bytes of these segments can hold.
    room = int((found.rows([VEC])["length"] // vec.row_dtype(found.dim).itemsize).sum())
    ids = np.empty(room, np.uint64)
    vectors = np.empty((room, found.dim), np.float32)
    stop = 0
    for entry in found.entries([VEC]):
        payload, _ = read_listed(source, entry, vec.SECTION)
        rows = vec.checked(vec.decode(payload, found.dim, entry.offset), entry.offset)
        start, stop = stop, stop + len(rows)
        ids[start:stop] = rows["id"]
        vectors[start:stop] = rows["vector"]
    ids, vectors = ids[:stop], vectors[:stop]
    keep = vec.live(ids, found)
    if keep is not None:
        ids, vectors = ids[keep], vectors[keep]
    if ids.size and ids.max() >= 2**63:
        raise CorruptStore(vec.SECTION, f"ids below 2^63 were expected, {ids.max()} came", 0)
    return ids.astype(np.int64), vectors
