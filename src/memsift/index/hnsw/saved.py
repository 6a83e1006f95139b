"""The file beside a store that holds its graph: all of it checked before usearch sees a byte, or it is as if not there.

    "MSFTHNSW"  u32 version  u32 length of header  header  ids (n, i64)  sums (n, u32)  graph  HMAC-SHA256 of all before

Numbers are little-endian. The header is JSON: whose graph it is, and how it was made. Node i stands for the entry of
the i-th id, -1 if dead, as long as that entry's vector has the i-th sum. The key of the HMAC is the namespace's secret,
so that nobody who cannot read the store can write a graph that is believed.

Int8 rows are in it, of dead entries as well. Therefore an erasure removes it, and whoever writes one looks, between
making the new file and filling it, whether there was an erasure that the graph does not know of: a file made before the
erasure's removal is found by it, one made after it is never filled.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import struct
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.errors import CorruptStore
from memsift.formats.rvf.files import opened, replacing, write_all
from memsift.index.hnsw import graph as made

MAGIC, VERSION = b"MSFTHNSW", 1
START = struct.Struct("<8sII")
HEADER_BYTES, NODE, MAC_BYTES = 4096, 12, 32
# A graph is rebuilt long before it has so many nodes: what is larger is none of ours.
MOST_NODES = 3, 100_000
SQLITE = b"SQLite format 3\0"
STALE_SECONDS = 3600.0
Ids = npt.NDArray[np.int64]
Sums = npt.NDArray[np.uint32]


class Saved(NamedTuple):
    """A graph: the id of each node's entry (n,), -1 if dead, the sum of its vector (n,), and the graph's own bytes."""

    ids: Ids
    sums: Sums
    graph: bytes | bytearray | memoryview


def sums(rows: npt.NDArray[np.float32]) -> Sums:
    """A number for each row, (n, dim) float32, that another row hardly has: (n,) uint32."""
    odd = kernels.spread(np.arange(rows.shape[1]), seed=VERSION).astype(np.uint32) | np.uint32(1)
    found: Sums = np.vecdot(rows.view(np.uint32), odd)
    return found


class Companion:
    """The file of one namespace.

    Parameters
    ----------
    path : Path
        Of the store.
    name, store_id : str
        Of the namespace.
    secret : bytes
        Of the namespace.
    erasures : callable
        How many erasures the file of the store has seen by now. It may raise.
    """

    def __init__(
        self, path: Path, name: str, store_id: str, secret: bytes, erasures: Callable[[], int]
    ) -> None:
        self.path = beside(path, name)
        self.erasures = erasures
        self._whose = {"store": store_id, "namespace": name}
        self._key = hmac.digest(secret, MAGIC, hashlib.sha256)

    def write(self, saved: Saved, dim: int, epoch: int) -> bool:
        """Write a graph that knows of `epoch` erasures; whether it was written.

        Raises
        ------
        OSError
        """
        header = json.dumps(self._header(dim, epoch, len(saved.ids)), sort_keys=True).encode()
        parts: list[Any] = [
            START.pack(MAGIC, VERSION, len(header)),
            header,
            saved.ids.astype("<i8").tobytes(),
            saved.sums.astype("<u4").tobytes(),
            saved.graph,
        ]
        if _is_sqlite(self.path):
            return False
        for new in _new_files(self.path):
            if new.stat().st_mtime < time.time() - STALE_SECONDS:
                _remove(new)  # its writer was killed
        temp = f"{self.path}.{secrets.token_hex(8)}.tmp"
        with replacing(self.path, temp) as fd:
            if self.erasures() != epoch:
                raise FileNotFoundError("an erasure came in between")
            mac = hmac.new(self._key, digestmod=hashlib.sha256)
            for part in parts:
                mac.update(part)
                write_all(fd, part)
            write_all(fd, mac.digest())
        return True

    def read(self, dim: int, epoch: int, entries: int) -> Saved | None:
        """What was written, if it is whole, ours, of this dimension, and knows of all `epoch` erasures; else None."""
        factor, beyond = MOST_NODES
        most = factor * entries + beyond
        try:
            with opened(self.path) as file:
                largest = START.size + HEADER_BYTES + most * (NODE + dim + made.NODE_BYTES)
                if not START.size + MAC_BYTES <= file.size <= largest:
                    return None
                data = memoryview(file.read(0, file.size, "graph"))
        except (OSError, CorruptStore):
            return None
        return self._checked(data, dim, epoch)

    def _checked(self, data: memoryview, dim: int, epoch: int) -> Saved | None:
        magic, version, length = START.unpack_from(data)
        body, mac = data[:-MAC_BYTES], bytes(data[-MAC_BYTES:])
        if (magic, version) != (MAGIC, VERSION) or length > HEADER_BYTES:
            return None
        # First of all: what nobody but us can have written needs no more suspicion than our own errors do.
        if not hmac.compare_digest(mac, hmac.digest(self._key, body, hashlib.sha256)):
            return None
        start = START.size + length
        try:
            header = json.loads(bytes(body[START.size : start]))
            nodes = int(header["nodes"])
        except (ValueError, KeyError, TypeError):
            return None
        if header != self._header(dim, epoch, nodes) or start + NODE * nodes > len(body):
            return None
        ids = np.frombuffer(body, "<i8", nodes, start).astype(np.int64)
        found = np.frombuffer(body, "<u4", nodes, start + 8 * nodes).astype(np.uint32)
        living = ids[ids >= 0]
        if np.unique(living).size != living.size:
            return None
        return Saved(ids, found, body[start + NODE * nodes :])

    def _header(self, dim: int, epoch: int, nodes: int) -> dict[str, Any]:
        return self._whose | {
            "dim": dim,
            "nodes": nodes,
            "erasures": epoch,
            "connectivity": made.CONNECTIVITY,
            "expansion_add": made.EXPANSION_ADD,
            "usearch": made.version(),
        }


def beside(path: Path, name: str) -> Path:
    """Where the graph of a store's namespace lies."""
    return path.with_name(f"{path.name}.{name}.hnsw")


def remove_all(path: Path, names: Iterable[str]) -> None:
    """Remove the graphs of these namespaces of a store, and those that were being written.

    Raises
    ------
    OSError
    """
    for name in names:
        file = beside(path, name)
        # New files first: one that takes the other's place meanwhile is found there.
        for new in _new_files(file):
            _remove(new)
        _remove(file)


def _remove(file: Path) -> None:
    with suppress(FileNotFoundError):
        if not _is_sqlite(file):
            os.unlink(file)


def _is_sqlite(file: Path) -> bool:
    """Whether somebody has a database under this name."""
    with suppress(OSError, CorruptStore), opened(file) as source:
        return source.size >= len(SQLITE) and source.read(0, len(SQLITE), "graph") == SQLITE
    return False


def _new_files(file: Path) -> list[Path]:
    """Those on their way to take the place of `file`."""
    start = f"{file.name}."
    return [p for p in file.parent.glob("*.tmp") if p.name.startswith(start)]
