"""How fast the file is, as ratios to what SQLite alone needs for the same bytes."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memsift.evaluation.speed import WINDOW, K, SpeedRow, clustered, measured, timed
from memsift.store import MemoryStore

Float32 = npt.NDArray[np.float32]
SIZE = (100_000, 384)


def file_rows(size: tuple[int, int] = SIZE, repeats: int = 5) -> Iterator[SpeedRow]:
    """Adding, reopening and compacting in a file, each beside the bare statements, in turn."""
    vectors = clustered(*size)
    queries = clustered(WINDOW, size[1], seed=2)
    times: dict[str, list[tuple[float, float]]] = {"add": [], "reopen": [], "compact": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            for name, pair in _round(Path(folder), vectors, queries).items():
                times[name].append(pair)
    limits = {"add": 3.0, "reopen": 2.0, "compact": 2.0}
    for name, pairs in times.items():
        ours, bare = np.array(pairs).T
        words = f"at most {limits[name]} times"
        yield measured(f"file: {name}", *size, ours, bare, words, None, limits[name])


def _round(folder: Path, vectors: Float32, queries: Float32) -> dict[str, tuple[float, float]]:
    """One pass over all three operations: CPU time of ours and of the bare one, in microseconds."""
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

    def select() -> None:
        matrix = np.empty((n, dim), np.float32)
        room, place = matrix.data.cast("B"), 0
        for (blob,) in bare.execute("SELECT row FROM live ORDER BY key"):
            room[place : place + row_bytes] = blob
            place += row_bytes

    def move() -> None:
        bare.execute("BEGIN")
        bare.execute("INSERT INTO archive SELECT * FROM live WHERE key IN (SELECT key FROM gone)")
        bare.execute("DELETE FROM live WHERE key IN (SELECT key FROM gone)")
        bare.execute("COMMIT")

    out = {"add": (timed(lambda: store.add_many(vectors)), timed(insert))}
    store.close()
    # Closed and opened as ours is: a log that was not written back yet would make the bare statement slow.
    bare.close()
    bare = _bare(folder)
    # Once untimed: whether the system still had the pages at hand is not what is measured.
    MemoryStore.open(path).close()
    select()
    opened: list[MemoryStore] = []
    out["reopen"] = timed(lambda: opened.append(MemoryStore.open(path))), timed(select)
    store = opened[0]
    for query in queries:
        store.search(query, K)
    plan = store.plan(0.5)
    bare.execute("CREATE TEMP TABLE gone (key INTEGER PRIMARY KEY)")
    bare.executemany("INSERT INTO gone VALUES (?)", [(int(i),) for i in plan.victims])
    out["compact"] = timed(lambda: store.compact(0.5)), timed(move)
    store.close()
    bare.close()
    return out


def _bare(folder: Path) -> sqlite3.Connection:
    db = sqlite3.connect(folder / "bare.db", isolation_level=None)
    db.execute("PRAGMA page_size = 16384")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    return db
