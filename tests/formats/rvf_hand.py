"""Files as the official tools write them, put together by `struct` from the format's description alone."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from memsift.formats.rvf import RvfSnapshot, write_rvf
from memsift.view import COLUMNS

VEC, JOURNAL, MANIFEST, WITNESS = 1, 4, 5, 10
HEADER, ENTRY = 64, 25

Row = tuple[int, Sequence[float]]


def content_hash(payload: bytes) -> bytes:
    crc = zlib.crc32(payload)
    lanes = [(crc << turn | crc >> (32 - turn)) & 0xFFFFFFFF for turn in (0, 8, 16, 24)]
    return b"".join(lane.to_bytes(4, "little") for lane in lanes)


def header(type_: int, payload: bytes, segment_id: int, hashed: bool = True) -> bytes:
    return (
        b"SFVR"
        + bytes([1, type_, 0, 0])
        + struct.pack("<QQ", segment_id, len(payload))
        + bytes(16)
        + (content_hash(payload) if hashed else bytes(16))
        + bytes(8)
    )


def vec(rows: Sequence[Row], dim: int | None = None) -> bytes:
    dim = len(rows[0][1]) if dim is None else dim
    packed = b"".join(struct.pack(f"<Q{len(v)}f", id_, *v) for id_, v in rows)
    return struct.pack("<HI", dim, len(rows)) + packed


def private(kind: int, body: bytes, version: int = 1, required: bool = True) -> bytes:
    head = struct.pack("<8sHHIQQ", b"MEMSIFT\0", version, kind, int(required), len(body), 0)
    return head + hashlib.sha256(head + body).digest() + body


class Hand:
    """A file that grows as the official one does: segments, then a manifest over all of them."""

    def __init__(self, dim: int, aligned: bool = False) -> None:
        self.dim, self.aligned = dim, aligned
        self.data = b""
        self.directory: list[tuple[int, int, int, int]] = []
        self.epoch = 0
        self.manifest()

    def add(self, type_: int, payload: bytes, hashed: bool = True) -> Hand:
        if self.aligned:
            self.data += bytes(-len(self.data) % 64)
        number = len(self.directory) + 1
        self.directory.append((number, len(self.data), len(payload), type_))
        self.data += header(type_, payload, number, hashed) + payload
        return self

    def rows(self, *rows: Row) -> Hand:
        return self.add(VEC, vec(rows))

    def journal(self, ids: Iterable[int]) -> Hand:
        ids = list(ids)
        entries = b"".join(struct.pack("<BBHQ", 1, 0, 8, id_) for id_ in ids)
        return self.add(JOURNAL, struct.pack("<IIQ", len(ids), self.epoch + 1, 0) + entries)

    def witness(self, action: str) -> Hand:
        text = action.encode()
        return self.add(WITNESS, struct.pack("<BQI", 1, 0, len(text)) + text + bytes(32))

    def manifest(self, deleted: Sequence[int] = (), trailer: bool = True) -> Hand:
        payload = struct.pack("<IHQIBBH", self.epoch, self.dim, 0, len(self.directory), 0, 2, 0)
        payload += b"".join(struct.pack("<QQQB", *entry) for entry in self.directory)
        payload += struct.pack(f"<I{len(deleted)}Q", len(deleted), *deleted)
        payload += b"IDIF" + bytes(range(16)) + bytes(52) if trailer else b""
        self.epoch += 1
        return self.add(MANIFEST, payload)

    def save(self, folder: Path) -> Path:
        path = folder / "hand.rvf"
        path.write_bytes(self.data)
        return path


def official() -> Hand:
    """Three rows; id 2 again with another vector; id 3 deleted; three manifests in all."""
    hand = Hand(2).rows((1, (1.0, 0.0)), (2, (0.0, 1.0)), (3, (0.6, 0.8)))
    hand.witness("ingest:count=3,epoch=1").manifest()
    hand.rows((2, (0.8, 0.6))).journal([3]).witness("delete:count=1,epoch=2")
    return hand.manifest(deleted=[3])


def full(n: int = 12, dim: int = 4, seed: int = 0) -> RvfSnapshot:
    """A snapshot with everything in it."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n + 3, dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    columns = {
        "created_tick": np.arange(n),
        "accessed_tick": np.arange(n) * 2,
        "created_at": 1.7e9 + np.arange(n) / 8,
        "accessed_at": 1.8e9 + np.arange(n) / 8,
        "access_count": rng.integers(0, 9, n),
        "use_count": rng.integers(0, 3, n),
        "cost": rng.integers(1, 99, n),
        "importance": np.where(np.arange(n) % 2, np.float32(0.5), np.float32(np.nan)),
        "nearest": np.where(np.arange(n) % 3, np.float32(0.5), np.float32(np.nan)),
        "typicality": np.linspace(-1, 1, n, dtype=np.float32),
        "adjacency": np.full(n, np.nan, np.float32),
        "cluster": np.arange(n) // 4,
        "attention": rng.random(n, dtype=np.float32),
        "heat": rng.random(n, dtype=np.float32) * 9,
        "pinned": np.arange(n) % 5 == 0,
    }
    notes = [
        {"kind": "fact", "row": row, "ö": [None, 1.5]} if row % 3 else None for row in range(n)
    ]
    bodies = [b'{"seq":%d,"time":%d}' % (seq, 1_700_000_000_000_000_000 + seq) for seq in range(3)]
    return RvfSnapshot(
        ids=np.arange(n) * 3 + 1,
        vectors=vectors[:n],
        columns=columns,
        metadata=notes,
        state={"policy": {"name": "lru", "configuration": {}}, "tick": 77, "next_id": 3 * n + 5},
        context=vectors[n:],
        chain=bodies,
    )


def written(folder: Path, snapshot: RvfSnapshot) -> bytes:
    path = folder / "written.rvf"
    write_rvf(path, snapshot)
    return path.read_bytes()


def segments(data: bytes) -> list[tuple[int, int, int]]:
    """(offset, type, payload length) of each segment of a file without gaps."""
    found, at = [], 0
    while at < len(data):
        length = struct.unpack_from("<Q", data, at + 16)[0]
        found.append((at, data[at + 5], length))
        at += HEADER + length
    return found


def rehashed(data: bytes) -> bytes:
    """The file with every checksum made right again: private SHA-256, content hashes, the seal and its file id."""
    fresh = bytearray(data)
    sealed = bytes(32)
    for at, type_, length in segments(data):
        start, stop = at + HEADER, at + HEADER + length
        if type_ == 0xFF:
            sealed = hashlib.sha256(fresh[:at]).digest()
            fresh[start + 80 : start + 112] = sealed
        if type_ == MANIFEST and fresh[stop - 72 : stop - 68] == b"IDIF":
            fresh[stop - 68 : stop - 52] = sealed[:16]
        if type_ >= 0xF0:
            parts = fresh[start : start + 32] + fresh[start + 64 : stop]
            fresh[start + 32 : start + 64] = hashlib.sha256(parts).digest()
        fresh[at + 40 : at + 56] = content_hash(bytes(fresh[start:stop]))
    return bytes(fresh)


def difference(got: RvfSnapshot, wanted: RvfSnapshot) -> str | None:
    """Where two snapshots differ, bit for bit; None where they do not."""
    for name in ("ids", "vectors", "context"):
        a, b = getattr(got, name), getattr(wanted, name)
        if (a is None) != (b is None):
            return name
        if a is not None and (a.dtype, a.shape, a.tobytes()) != (b.dtype, b.shape, b.tobytes()):
            return name
    if (got.columns is None) != (wanted.columns is None):
        return "columns"
    for name, column in (wanted.columns or {}).items():
        assert got.columns is not None
        other = got.columns[name]
        if other.dtype != COLUMNS[name][0] or other.tobytes() != column.tobytes():
            return name
    for name in ("state", "chain"):
        if getattr(got, name) != getattr(wanted, name):
            return name
    notes = None if wanted.metadata is None else [note or None for note in wanted.metadata]
    return None if got.metadata == notes else "metadata"
