"""sqlite-vec: an extension of SQLite, in memory."""

from __future__ import annotations

import sqlite3
from typing import Any, ClassVar

import numpy as np

from memsift.evaluation.speed.data import Float32, Ids
from memsift.evaluation.speed.engines.base import Absent, Engine, needed


class SqliteVec(Engine):
    """A `vec0` table, by cosine distance. Many Pythons have an sqlite3 that loads no extensions; apsw does."""

    name: ClassVar[str] = "sqlite-vec"
    pip: ClassVar[str] = "sqlite-vec"
    churns: ClassVar[int] = 1_000_000
    batches: ClassVar[bool] = False

    def __init__(self, dim: int, capacity: int) -> None:
        super().__init__(dim, capacity)
        with needed(self.pip):
            import sqlite_vec
        self.db: Any
        if hasattr(sqlite3.Connection, "enable_load_extension"):
            self.db = sqlite3.connect(":memory:", isolation_level=None)
            self.db.enable_load_extension(True)
            sqlite_vec.load(self.db)
        else:
            try:
                import apsw
            except ImportError as error:
                raise Absent(
                    "this Python's sqlite3 loads no extensions: pip install apsw"
                ) from error
            self.db = apsw.Connection(":memory:")
            self.db.enable_load_extension(True)
            self.db.load_extension(sqlite_vec.loadable_path())
        self.db.execute(
            f"CREATE VIRTUAL TABLE rows USING vec0(vector float[{dim}] distance_metric=cosine)"
        )
        self.added = 0

    def add(self, vectors: Float32) -> None:
        rows = ((self.added + i, row.tobytes()) for i, row in enumerate(vectors))
        self.db.execute("BEGIN")
        self.db.executemany("INSERT INTO rows(rowid, vector) VALUES (?, ?)", rows)
        self.db.execute("COMMIT")
        self.added += len(vectors)

    def search(self, query: Float32, k: int) -> list[Any]:
        words = "SELECT rowid, distance FROM rows WHERE vector MATCH ? AND k = ? ORDER BY distance"
        return list(self.db.execute(words, (query.tobytes(), k)))

    def ids(self, found: Any) -> Ids:
        return np.array([rowid for rowid, _ in found], np.int64)

    def delete(self, ids: Ids) -> None:
        self.db.execute("BEGIN")
        self.db.executemany("DELETE FROM rows WHERE rowid = ?", ((i,) for i in ids.tolist()))
        self.db.execute("COMMIT")

    def close(self) -> None:
        self.db.close()
