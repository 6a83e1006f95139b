"""How fast the file is, as ratios to what SQLite alone needs for the same bytes."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memsift.evaluation.speed.clock import Sample, sampled
from memsift.evaluation.speed.data import WINDOW, K, clustered
from memsift.evaluation.speed.row import OURS, SpeedRow, row_of, time_of
from memsift.store import MemoryStore

Float32 = npt.NDArray[np.float32]
Pair = tuple[Sample, Sample]
SIZE = (100_000, 384)
BARE = "SQLite"


def file_rows(
    size: tuple[int, int] = SIZE, repeats: int = 5, tell: Callable[[str], None] = lambda step: None
) -> Iterator[SpeedRow]:
    """Adding, reopening and compacting in a file, each beside the bare statements, in turn."""
    tell(f"file {size[0]:,} × {size[1]}")
    vectors = clustered(*size)
    queries = clustered(WINDOW, size[1], seed=2)
    pairs: dict[str, list[Pair]] = {"add": [], "reopen": [], "compact": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            for name, pair in _round(Path(folder), vectors, queries).items():
                pairs[name].append(pair)
    for name, found in pairs.items():
        ours, bare = zip(*found, strict=True)
        yield row_of(f"file: {name}", *size, [time_of(OURS, ours), time_of(BARE, bare)], base=BARE)


def _round(folder: Path, vectors: Float32, queries: Float32) -> dict[str, Pair]:
    """One pass over all three operations: ours and the bare one."""
    n, dim = vectors.shape
    path = folder / "store.memsift"
    bare = _bare(folder)
    bare.execute("CREATE TABLE live (key INTEGER PRIMARY KEY, row BLOB)")
    bare.execute("CREATE TABLE archive (key INTEGER PRIMARY KEY, row BLOB)")
    raw, row_bytes = vectors.data.cast("B"), 4 * dim
    store: MemoryStore = MemoryStore.open(path, dim, budget=n)

    def insert() -> None:
        bare.execute("BEGIN")
        rows = ((i, raw[i * row_bytes : (i + 1) * row_bytes]) for i in range(n))
        bare.executemany("INSERT INTO live VALUES (?, ?)", rows)
        bare.execute("COMMIT")

    def move() -> None:
        bare.execute("BEGIN")
        bare.execute("INSERT INTO archive SELECT * FROM live WHERE key IN (SELECT key FROM gone)")
        bare.execute("DELETE FROM live WHERE key IN (SELECT key FROM gone)")
        bare.execute("COMMIT")

    out = {"add": (sampled(lambda: store.add_many(vectors)), sampled(insert))}
    store.close()
    # Closed and opened as ours is: a log that was not written back yet would make the bare statement slow.
    bare.close()
    bare = _bare(folder)
    out["reopen"] = _reopened(folder, n, dim)
    store = MemoryStore.open(path)
    for query in queries:
        store.search(query, K)
    plan = store.plan(0.5)
    bare.execute("CREATE TEMP TABLE gone (key INTEGER PRIMARY KEY)")
    bare.executemany("INSERT INTO gone VALUES (?)", [(int(i),) for i in plan.victims])
    out["compact"] = sampled(lambda: store.compact(0.5)), sampled(move)
    store.close()
    bare.close()
    return out


def _reopened(folder: Path, n: int, dim: int) -> Pair:
    """Reopening in a process of its own, as it happens: ours and the bare statement."""
    module = "memsift.evaluation.speed.file"
    command = [sys.executable, "-m", module, str(folder), str(n), str(dim)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    ours, bare = json.loads(done.stdout)
    return Sample(*ours), Sample(*bare)


def _reopen(folder: Path, n: int, dim: int) -> Pair:
    row_bytes = 4 * dim
    # Allocated and touched before: the bare statement pays for no memory, ours for all of its own.
    room = np.zeros((n, dim), np.float32).data.cast("B")
    bare = _bare(folder)

    def select() -> None:
        place = 0
        for (blob,) in bare.execute("SELECT row FROM live ORDER BY key"):
            room[place : place + row_bytes] = blob
            place += row_bytes

    # Once untimed: neither pages that the system no longer has at hand nor imports are what is measured.
    MemoryStore.open(folder / "store.memsift").close()
    select()
    ours = sampled(lambda: MemoryStore.open(folder / "store.memsift"))
    return ours, sampled(select)


def _bare(folder: Path) -> sqlite3.Connection:
    db = sqlite3.connect(folder / "bare.db", isolation_level=None)
    db.execute("PRAGMA page_size = 16384")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    return db


if __name__ == "__main__":
    print(json.dumps(_reopen(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
