"""Reading a file: find the manifest, check what it lists, then take it apart."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from memsift.errors import CorruptStore
from memsift.formats.rvf import chain, columns, documents, manifest, private, vec
from memsift.formats.rvf.files import Path, Source, opened
from memsift.formats.rvf.manifest import Entry, Manifest, read_listed
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
        listed = _usable(found, source.size)
        parts = private.read_parts(source, found)
        private.check_seal(source, found, parts)
        ids, vectors = _read_vectors(source, found, listed)
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


def _usable(found: Manifest, size: int) -> list[Entry]:
    """The VEC segments; the file must not be a branch, and what is read must not be read twice."""
    for entry in found.entries(list(BRANCH)):
        raise CorruptStore(
            "directory",
            f"a file that stands alone was expected, a branch with {BRANCH[entry.type]} came",
            found.offset,
        )
    used = sorted(found.entries([VEC, *PRIVATE]), key=lambda entry: entry.offset)
    for entry in used:
        if entry.offset + HEADER.size + entry.length > size:
            raise CorruptStore(
                "directory",
                f"segments within {size} bytes were expected, {entry.length} at {entry.offset} came",
                found.offset,
            )
    for entry, after in pairwise(used):
        if entry.offset + HEADER.size + entry.length > after.offset:
            raise CorruptStore(
                "directory",
                f"segments side by side were expected, that at {entry.offset} runs into {after.offset}",
                found.offset,
            )
    return found.entries([VEC])


def _read_vectors(
    source: Source, found: Manifest, listed: list[Entry]
) -> tuple[vec.Ids, vec.Vectors]:
    """Ids and vectors of the live rows, in the order of the file."""
    row = vec.row_dtype(found.dim).itemsize
    room = sum(entry.length // row for entry in listed)  # as many rows as these bytes can hold
    ids = np.empty(room, np.uint64)
    vectors = np.empty((room, found.dim), np.float32)
    stop = 0
    for entry in listed:
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
        raise CorruptStore(
            vec.SECTION, f"ids below 2^63 were expected, {ids.max()} came", listed[0].offset
        )
    return ids.astype(np.int64), vectors
