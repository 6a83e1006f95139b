"""Private segments (types 0xF0 to 0xFF): what memsift keeps beside the vectors. Other tools skip them.

A payload is a header of 64 bytes and a body. This header is the same in every version:

| at | size | field                              | a reader                                                          |
|----|------|------------------------------------|-------------------------------------------------------------------|
| 0  | 8    | magic "MEMSIFT" and a zero         | MUST ignore the segment if another comes, it is not ours;         |
|    |      |                                    | beside segments of ours its content hash MUST be set              |
| 8  | 2    | version of the body, 1             | if it knows no such kind or version, it MUST refuse               |
| 10 | 2    | kind = the segment's type          | the file if `required` is set, and MUST ignore the segment if not |
| 12 | 4    | flags: bit 0 `required`            | MUST ignore other bits                                            |
| 16 | 8    | body length                        | MUST find exactly the rest of the payload                         |
| 24 | 8    | reserved, 0                        | MAY ignore                                                        |
| 32 | 32   | SHA-256 of bytes 0-31 and the body | MUST check before it uses anything else of the segment            |

| kind | name     | required | times | body                                                                    |
|------|----------|----------|-------|-------------------------------------------------------------------------|
| 0xF0 | columns  | yes      | any   | see `columns`                                                           |
| 0xF1 | metadata | yes      | any   | JSON lines `{"id":7,"metadata":{…}}`, only for entries that have some   |
| 0xF2 | state    | yes      | once  | one JSON object                                                         |
| 0xF3 | context  | no       | once  | count u32, dim u32, count × dim float32                                 |
| 0xF4 | audit    | yes      | any   | JSON lines: the audit records' bodies, byte for byte, oldest first      |
| 0xF5 | chain    | no       | once  | 73-byte witness entries of these bodies, see `chain`                    |
| 0xFF | seal     | no       | once  | epoch u32, zero u32, length u64, SHA-256 of that many bytes of the file |

The seal covers everything before its own segment. It binds while the manifest has its epoch: another tool that
changes the file raises the epoch, and from then on each segment stands for itself. While it binds, the manifest's
file id is the first 16 bytes of the seal's SHA-256. A file with a seal MUST have a content hash on its manifest.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from memsift.errors import CorruptStore
from memsift.formats.rvf.files import Buffer, Source
from memsift.formats.rvf.manifest import Entry, Manifest, read_listed
from memsift.formats.rvf.segments import PRIVATE

VERSION = 1


class Kind(IntEnum):
    """The segment types that this version knows."""

    COLUMNS = 0xF0
    METADATA = 0xF1
    STATE = 0xF2
    CONTEXT = 0xF3
    AUDIT = 0xF4
    CHAIN = 0xF5
    SEAL = 0xFF


class Part(NamedTuple):
    """The body of one private segment; `offset` is where the segment's header starts in the file."""

    body: memoryview
    offset: int


_HEAD = struct.Struct("<8sHHIQQ")
_SIZE = _HEAD.size + 32
_MAGIC = b"MEMSIFT\0"
_REQUIRED = 1
_MAY_BE_IGNORED = {Kind.CONTEXT, Kind.CHAIN, Kind.SEAL}
_MAY_REPEAT = {Kind.COLUMNS, Kind.METADATA, Kind.AUDIT}
_SEAL = struct.Struct("<IIQ32s")


def encode(kind: Kind, body: list[Buffer], version: int = VERSION) -> list[Buffer]:
    """The payload, in parts, of a body in parts."""
    flags = 0 if kind in _MAY_BE_IGNORED else _REQUIRED
    head = _HEAD.pack(_MAGIC, version, kind, flags, sum(len(part) for part in body), 0)
    return [head + _digest([head, *body]), *body]


def encode_seal(epoch: int, length: int, digest: bytes) -> list[Buffer]:
    """The seal's payload over the first `length` bytes, whose SHA-256 is `digest`."""
    return encode(Kind.SEAL, [_SEAL.pack(epoch, 0, length, digest)])


def read_parts(source: Source, manifest: Manifest) -> dict[Kind, list[Part]]:
    """The checked bodies that the directory lists, by kind, in its order."""
    parts: dict[Kind, list[Part]] = {}
    unhashed: Entry | None = None
    for entry in manifest.entries(list(PRIVATE)):
        section = Kind(entry.type).name.lower() if entry.type in set(Kind) else "private"
        payload, hashed = read_listed(source, entry, section)
        unhashed = unhashed if hashed else entry
        body = _body(payload, entry, section)
        if body is None:
            continue
        known = parts.setdefault(Kind(entry.type), [])
        if known and entry.type not in _MAY_REPEAT:
            raise CorruptStore(section, "one such segment was expected, another came", entry.offset)
        known.append(Part(body, entry.offset))
    if parts and unhashed:
        # One of ours may have lost its magic together with its hash, and pass for somebody else's.
        raise CorruptStore("private", "a content hash was expected, none came", unhashed.offset)
    return parts


def check_seal(source: Source, manifest: Manifest, parts: dict[Kind, list[Part]]) -> None:
    """That the file up to the seal is what was written, if the seal still binds."""
    if Kind.SEAL not in parts:
        return
    body, offset = parts[Kind.SEAL][0]
    if len(body) != _SEAL.size:
        raise CorruptStore("seal", f"{_SEAL.size} bytes were expected, {len(body)} came", offset)
    epoch, _, length, digest = _SEAL.unpack(body)
    if not manifest.hashed:  # then the epoch, too, is anybody's
        raise CorruptStore("manifest", "a content hash was expected, none came", manifest.offset)
    if epoch != manifest.epoch:
        return
    if manifest.file_id != digest[:16]:
        raise CorruptStore(
            "manifest", "the seal's file id was expected, another came", manifest.offset
        )
    if length != offset:
        raise CorruptStore(
            "seal", f"a seal over {offset} bytes was expected, one over {length} came", offset
        )
    if _digest(source.pieces(length, "seal")) != digest:
        raise CorruptStore(
            "seal", "the bytes that were sealed were expected before it, others came", offset
        )


def _body(payload: memoryview, entry: Entry, section: str) -> memoryview | None:
    """The body, checked; None if the segment is not ours or is to be ignored."""
    if len(payload) < _SIZE or payload[: len(_MAGIC)] != _MAGIC:
        return None
    head, digest, body = payload[: _HEAD.size], payload[_HEAD.size : _SIZE], payload[_SIZE:]
    if _digest([head, body]) != digest:
        raise CorruptStore(
            section, "a body that fits its SHA-256 was expected, another came", entry.offset
        )
    _, version, kind, flags, length, _ = _HEAD.unpack(head)
    if kind != entry.type or length != len(body):
        raise CorruptStore(
            section,
            f"kind {entry.type:#x} of {len(body)} bytes was expected, kind {kind:#x} of {length} came",
            entry.offset,
        )
    if version == VERSION and kind in set(Kind):
        return body
    if flags & _REQUIRED:
        raise CorruptStore(
            section,
            f"version {VERSION} of a known kind was expected, version {version} of kind {kind:#x} came,"
            " which this memsift cannot read and must not ignore",
            entry.offset,
        )
    return None


def _digest(pieces: Iterable[Buffer]) -> bytes:
    state = hashlib.sha256()
    for piece in pieces:
        state.update(piece)
    return state.digest()
