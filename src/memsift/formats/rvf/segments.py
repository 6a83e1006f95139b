"""A file is segments: a 64-byte header and a payload, one after the other. All integers are little-endian.

| at   | size | field             | written | a reader                                                  |
|------|------|-------------------|---------|-----------------------------------------------------------|
| 0x00 | 4    | magic "SFVR"      |         | MUST check                                                |
| 0x04 | 1    | version           | 1       | MUST refuse others                                        |
| 0x05 | 1    | segment type      |         | MUST find the type that the directory names               |
| 0x06 | 2    | flags             | 0       | MUST refuse bit 0 (compressed) and bit 1 (encrypted)      |
| 0x08 | 8    | segment id        | 1, 2, … | MAY ignore; ids repeat in files of the official tools     |
| 0x10 | 8    | payload length    |         | MUST bound by the file, by 256 MiB and by the directory   |
| 0x18 | 8    | timestamp         | 0       | MAY ignore                                                |
| 0x20 | 1    | checksum algo     | 0       | MUST ignore: the hash below is always the same algorithm  |
| 0x21 | 1    | compression       | 0       | MUST refuse others                                        |
| 0x22 | 6    | reserved          | 0       | MAY ignore                                                |
| 0x28 | 16   | content hash      |         | MUST check over the payload; sixteen zeros mean "not set" |
| 0x38 | 8    | lengths, reserved | 0       | MAY ignore                                                |
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from memsift.errors import CorruptStore
from memsift.formats.rvf.files import Buffer, Source

HEADER = struct.Struct("<4sBBHQQQBBHI16sII")
MAGIC = b"SFVR"
# The largest payload that the official reader accepts.
LARGEST_PAYLOAD = 256 * 1024 * 1024

VEC, MANIFEST = 0x01, 0x05
# A file with one of these is a branch: some of its vectors lie in another file.
BRANCH = {0x03: "OVERLAY", 0x20: "COW_MAP", 0x22: "MEMBERSHIP", 0x23: "DELTA"}
PRIVATE = range(0xF0, 0x100)

NOT_SET = bytes(16)
_UNREADABLE_FLAGS = 0b11


class Header(NamedTuple):
    """What a reader needs of a segment header; `offset` is where the header starts in the file."""

    offset: int
    type: int
    length: int
    content_hash: bytes

    @property
    def payload(self) -> int:
        return self.offset + HEADER.size


def content_hash(parts: Iterable[Buffer]) -> bytes:
    """CRC-32 of the payload, four times, each turned left by another byte: 16 bytes.

    >>> content_hash([b"1234", b"56789"]).hex()
    '2639f4cbcb2639f4f4cb263939f4cb26'
    """
    crc = 0
    for part in parts:
        crc = zlib.crc32(part, crc)
    turned = ((crc << turn | crc >> (32 - turn)) & 0xFFFFFFFF for turn in (0, 8, 16, 24))
    return struct.pack("<4I", *turned)


def encode_header(type_: int, segment_id: int, parts: Iterable[Buffer]) -> bytes:
    """The 64 bytes before a payload that is given in parts (of bytes, not of wider items)."""
    parts = list(parts)
    length = sum(len(part) for part in parts)
    hash_ = content_hash(parts)
    return HEADER.pack(MAGIC, 1, type_, 0, segment_id, length, 0, 0, 0, 0, 0, hash_, 0, 0)


def read_header(source: Source, offset: int, section: str) -> Header:
    """The header at `offset`, with a length that lies within the file and the largest payload."""
    fields = HEADER.unpack(source.read(offset, HEADER.size, section))
    magic, version, type_, flags, _, length, _, _, compression, _, _, hash_, _, _ = fields
    if magic != MAGIC:
        raise CorruptStore(section, f"a segment header was expected, {magic!r} came", offset)
    if version != 1:
        raise CorruptStore(section, f"segment version 1 was expected, {version} came", offset)
    if flags & _UNREADABLE_FLAGS or compression:
        raise CorruptStore(
            section,
            f"plain bytes were expected, flags {flags:#x} and compression {compression} came",
            offset,
        )
    room = min(source.size - offset - HEADER.size, LARGEST_PAYLOAD)
    if length > room:
        raise CorruptStore(
            section, f"a payload of at most {room} bytes was expected, {length} came", offset
        )
    return Header(offset, type_, length, hash_)


def read_payload(source: Source, header: Header, section: str) -> memoryview:
    """The payload, with its content hash checked."""
    payload = source.read(header.payload, header.length, section)
    if header.content_hash not in (NOT_SET, content_hash([payload])):
        raise CorruptStore(
            section,
            "a payload that fits its content hash was expected, another came",
            header.offset,
        )
    return memoryview(payload)
