"""The MANIFEST segment (type 0x05): what the file holds. The last one that can be read is the file's state.

| at | size | field                                             | written     | a reader                             |
|----|------|---------------------------------------------------|-------------|--------------------------------------|
| 0  | 4    | epoch                                             | 1           | MAY ignore (the seal binds to it)    |
| 4  | 2    | dim                                               |             | MUST refuse 0                        |
| 6  | 8    | vectors stored, deleted ones included             |             | MAY ignore                           |
| 14 | 4    | directory entries, s                              |             | MUST bound by the payload            |
| 18 | 1    | profile                                           | 0           | MAY ignore                           |
| 19 | 1    | metric: 0 L2², 1 product, 2 cosine                | 2           | MAY ignore                           |
| 20 | 2    | reserved                                          | 0           | MAY ignore                           |
| 22 | 25 s | segment id 8, offset 8, length 8, type 1          |             | MUST bound; MAY skip unknown types   |
|    | 4    | deleted ids, d                                    | 0           | MUST bound by the payload            |
|    | 8 d  | deleted ids                                       |             | MUST leave these ids out             |
|    | 4    | "IDIF"                                            |             | MAY be absent, with all that follows |
|    | 68   | file id 16, parent id 16, parent hash 32, depth 4 | parent zero | MAY ignore                           |
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memsift.errors import CorruptStore
from memsift.formats.rvf.files import Source
from memsift.formats.rvf.segments import (
    HEADER,
    LARGEST_PAYLOAD,
    MAGIC,
    MANIFEST,
    NOT_SET,
    read_header,
    read_payload,
)

SECTION = "manifest"
COSINE = 2
ENTRY = np.dtype([("id", "<u8"), ("offset", "<u8"), ("length", "<u8"), ("type", "u1")])
_HEAD = struct.Struct("<IHQIBBH")
_IDENTITY = b"IDIF"
# The tail first: a manifest is at the end of a file that is whole.
_FIRST_STEP, _STEP = 64 * 1024, 1024 * 1024


class Entry(NamedTuple):
    """One segment as the directory names it."""

    id: int
    offset: int
    length: int
    type: int


class Manifest(NamedTuple):
    """`offset`: of its header in the file. `hashed`: whether it carried a content hash (which was then checked)."""

    epoch: int
    dim: int
    metric: int
    directory: npt.NDArray[np.void]
    deleted: npt.NDArray[np.uint64]
    file_id: bytes
    offset: int
    hashed: bool

    def rows(self, types: npt.ArrayLike) -> npt.NDArray[np.void]:
        """The directory's rows of some types, in its order."""
        return self.directory[np.isin(self.directory["type"], types)]

    def entries(self, types: npt.ArrayLike) -> Iterator[Entry]:
        """The same one by one."""
        return (Entry(*row.item()) for row in self.rows(types))


def encode(
    *, dim: int, total: int, directory: list[Entry], file_id: bytes, epoch: int = 1
) -> bytes:
    """A root file's manifest without deletions."""
    return b"".join(
        (
            _HEAD.pack(epoch, dim, total, len(directory), 0, COSINE, 0),
            np.array(directory, ENTRY).tobytes(),
            struct.pack("<I", 0),
            _IDENTITY,
            file_id,
            bytes(16 + 32 + 4),
        )
    )


def find(source: Source) -> Manifest:
    """The last manifest, sought from the end backwards byte by byte, as the official reader does.

    One whose payload does not fit into the file is a torn write and passed over for an older one. One that fits
    but belies its content hash is an error: an older state must not come back unasked.
    """
    stop, step = source.size - HEADER.size + 1, _FIRST_STEP  # places from `stop` on are done
    while stop > 0:
        start = max(0, stop - step)
        # As much more as the header and the fixed part of a manifest that starts at the last place need.
        room = min(stop + HEADER.size + _HEAD.size, source.size) - start
        chunk = source.read(start, room, SECTION)
        place = chunk.rfind(MAGIC, 0, stop - start + len(MAGIC) - 1)
        while place >= 0:
            if chunk[place + 5] == MANIFEST and _fits(chunk, place, source.size - start):
                return _decode(source, start + place)
            place = chunk.rfind(MAGIC, 0, place + len(MAGIC) - 1)
        stop, step = start, _STEP
    raise CorruptStore(SECTION, "a manifest was expected, none is in the file", source.size)


def _fits(chunk: bytearray, place: int, room: int) -> bool:
    """Whether a manifest can start at `place`, with `room` bytes from the chunk's start to the file's end."""
    (length,) = struct.unpack_from("<Q", chunk, place + 0x10)
    if not _HEAD.size <= length <= min(LARGEST_PAYLOAD, room - place - HEADER.size):
        return False
    (segments,) = struct.unpack_from("<I", chunk, place + HEADER.size + 14)
    return bool(_HEAD.size + segments * ENTRY.itemsize <= length)


def _decode(source: Source, offset: int) -> Manifest:
    header = read_header(source, offset, SECTION)
    payload = read_payload(source, header, SECTION)
    epoch, dim, _, segments, _, metric, _ = _HEAD.unpack_from(payload)
    if dim == 0:
        raise CorruptStore(SECTION, "a dimension of at least 1 was expected, 0 came", offset)
    directory = np.frombuffer(payload, ENTRY, segments, _HEAD.size)
    at = _HEAD.size + directory.nbytes
    count = 0
    if at < len(payload):
        count = _count(payload, at, offset)
        at += 4
    deleted = np.frombuffer(payload, "<u8", count, at).astype(np.uint64)
    identity = bytes(payload[at + deleted.nbytes :][:72])
    file_id = identity[4:20] if len(identity) == 72 and identity[:4] == _IDENTITY else bytes(16)
    hashed = header.content_hash != NOT_SET
    return Manifest(epoch, dim, metric, directory, deleted, file_id, offset, hashed)


def _count(payload: memoryview, at: int, offset: int) -> int:
    """The number of deleted ids at `at`, which must lie in the payload."""
    rest = len(payload) - at - 4
    count = struct.unpack_from("<I", payload, at)[0] if rest >= 0 else 1
    if 8 * count > rest:
        raise CorruptStore(
            SECTION, f"{count} deleted ids were expected, {max(rest, 0)} bytes came", offset
        )
    return int(count)


def read_listed(source: Source, entry: Entry, section: str) -> tuple[memoryview, bool]:
    """The payload of a segment, which must be what the directory says, and whether it carried a content hash."""
    header = read_header(source, entry.offset, section)
    if (header.type, header.length) != (entry.type, entry.length):
        raise CorruptStore(
            section,
            f"type {entry.type:#x} with {entry.length} bytes was expected, as the directory says,"
            f" type {header.type:#x} with {header.length} came",
            entry.offset,
        )
    return read_payload(source, header, section), header.content_hash != NOT_SET
