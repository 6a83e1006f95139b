"""The VEC segment (type 0x01): rows of id and vector.

| at | size  | field   | a reader                                      |
|----|-------|---------|-----------------------------------------------|
| 0  | 2     | dim     | MUST find the manifest's                      |
| 2  | 4     | count   | MUST find a payload of exactly that many rows |
| 6  | 8     | id      | MUST refuse 2^63 and above                    |
| 14 | 4 dim | float32 | MUST refuse NaN and infinity                  |
|    |       |         | … id and vector again, count times            |

A file may hold several segments. Where an id repeats, the last row in the order of the directory counts.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from memsift.errors import CorruptStore
from memsift.formats.rvf.files import Buffer
from memsift.formats.rvf.manifest import Manifest
from memsift.formats.rvf.private import Part

Ids = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]

SECTION = "vectors"
# Payloads are cut near this size, far below what the official reader accepts.
CHUNK = 64 * 1024 * 1024
_HEAD = struct.Struct("<HI")
_CONTEXT = struct.Struct("<II")


def row_dtype(dim: int) -> np.dtype[np.void]:
    return np.dtype([("id", "<u8"), ("vector", "<f4", (dim,))])


def encode(ids: Ids, vectors: Vectors) -> Iterator[list[Buffer]]:
    """Payloads, each in parts, of (n,) ids and (n, dim) vectors; none if n is 0."""
    dtype = row_dtype(vectors.shape[1])
    step = max(1, CHUNK // dtype.itemsize)
    for start in range(0, len(ids), step):
        rows = np.empty(min(step, len(ids) - start), dtype)
        rows["id"] = ids[start : start + step]
        rows["vector"] = vectors[start : start + step]
        yield [_HEAD.pack(vectors.shape[1], len(rows)), rows.view(np.uint8).data]


def decode(payload: memoryview, dim: int, offset: int) -> npt.NDArray[np.void]:
    """The rows of one payload, (count,) of `row_dtype`, as they lie there."""
    if len(payload) < _HEAD.size:
        raise CorruptStore(
            SECTION, f"at least {_HEAD.size} bytes were expected, {len(payload)} came", offset
        )
    got, count = _HEAD.unpack_from(payload)
    if got != dim:
        raise CorruptStore(
            SECTION, f"{dim} dimensions were expected, as the manifest says, {got} came", offset
        )
    dtype = row_dtype(dim)
    if _HEAD.size + count * dtype.itemsize != len(payload):
        raise CorruptStore(
            SECTION,
            f"{count} rows of {dtype.itemsize} bytes were expected, {len(payload) - _HEAD.size} bytes came",
            offset,
        )
    return np.frombuffer(payload, dtype, count, _HEAD.size)


def checked(rows: npt.NDArray[np.void], offset: int) -> npt.NDArray[np.void]:
    """The rows, if all their vectors are finite."""
    # A sum in float64 is finite exactly if all its float32 terms are; it needs no array of flags.
    with np.errstate(invalid="ignore"):
        sums = rows["vector"].sum(axis=1, dtype=np.float64)
    if not np.isfinite(sums).all():
        bad = int(rows["id"][np.flatnonzero(~np.isfinite(sums))[0]])
        raise CorruptStore(
            SECTION, f"finite vectors were expected, that of id {bad} is not", offset
        )
    return rows


def live(ids: npt.NDArray[np.uint64], manifest: Manifest) -> npt.NDArray[np.intp] | None:
    """Places of the rows that count: the last of each id, without the deleted; None if that is all of them."""
    keep = None
    if not bool((ids[1:] > ids[:-1]).all()):
        _, last = np.unique(ids[::-1], return_index=True)
        if last.size < ids.size:
            keep = np.sort(ids.size - 1 - last)
    if manifest.deleted.size:
        gone = np.isin(ids if keep is None else ids[keep], manifest.deleted)
        if gone.any():
            keep = np.flatnonzero(~gone) if keep is None else keep[~gone]
    return keep


def encode_context(context: Vectors) -> list[Buffer]:
    """The context segment's body of (w, dim) queries, in parts."""
    return [_CONTEXT.pack(*context.shape), context.astype("<f4").tobytes()]


def decode_context(part: Part, dim: int) -> Vectors:
    """(w, dim) float32 of a context segment."""
    body, offset = part
    count, got = _CONTEXT.unpack_from(body) if len(body) >= _CONTEXT.size else (0, 0)
    if got != dim or len(body) != _CONTEXT.size + 4 * count * dim:
        raise CorruptStore(
            "context",
            f"{count} queries of {dim} dimensions were expected, {len(body)} bytes for {got} came",
            offset,
        )
    context = np.frombuffer(body, "<f4", count * dim, _CONTEXT.size).astype(np.float32)
    if not np.isfinite(context).all():
        raise CorruptStore("context", "finite queries were expected, others came", offset)
    return context.reshape(count, dim)
