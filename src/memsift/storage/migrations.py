"""How an older file becomes this version's, one step at a time.

Old files stay in tests/data/archives with the command that wrote them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import numpy as np

from memsift.errors import CorruptStore
from memsift.storage import rows
from memsift.view import COLUMNS

# Tables that version n + 1 brought.
NEW_TABLES = {1: ("leader", "ghost", "log"), 2: ("payload", "said")}
CHUNK = 10_000

# An entry's row in version 1.
PACKED_1 = np.dtype(
    [
        ("ids", "<i8"),
        ("created_tick", "<i8"),
        ("accessed_tick", "<i8"),
        ("created_at", "<f8"),
        ("accessed_at", "<f8"),
        ("access_count", "<i8"),
        ("use_count", "<i8"),
        ("cost", "<i8"),
        ("importance", "<f4"),
        ("pinned", "?"),
        ("nbytes", "<i8"),
        ("vector", "<u4"),
        ("note", "<u4"),
        ("sum", "<u4"),
    ]
)


def from_1(db: sqlite3.Connection) -> None:
    """Entries get the columns of forgetting: what they were like when they came, which nobody knows any more."""
    last = -1
    while True:
        select = "SELECT key, row FROM entry WHERE key > ? ORDER BY key LIMIT ?"
        found = db.execute(select, (last, CHUNK)).fetchall()
        if not found:
            return
        last = found[-1][0]
        old = np.frombuffer(_joined([row for _, row in found]), PACKED_1)
        if (rows.row_sums(old) != old["sum"]).any():
            raise CorruptStore("entry", "sum must fit the row; one of version 1 does not")
        new = np.zeros(len(old), rows.PACKED)
        for name in rows.STORED:
            new[name] = old[name] if name in (PACKED_1.names or ()) else COLUMNS[name][1]
        new["vector"], new["note"] = old["vector"], old["note"]
        new["sum"] = rows.row_sums(new)
        blobs = rows.slices(new.data.cast("B"), rows.PACKED.itemsize)
        changes = zip(blobs, (key for key, _ in found), strict=True)
        db.executemany("UPDATE entry SET row = ? WHERE key = ?", changes)


def _joined(blobs: list[object]) -> bytes:
    for blob in blobs:
        if not isinstance(blob, bytes) or len(blob) != PACKED_1.itemsize:
            raise CorruptStore("entry", f"rows must be {PACKED_1.itemsize} bytes in version 1")
    return rows.joined(blobs)  # type: ignore[arg-type]


def from_2(db: sqlite3.Connection) -> None:
    """Texts get a table; no entry has one yet."""


# Version n -> what makes version n + 1 of it, once its new tables are there.
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {1: from_1, 2: from_2}
