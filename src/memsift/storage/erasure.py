"""Erasing: not forgetting but removing, from every place that this process can reach, with a receipt."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from memsift.errors import CorruptStore, DiskTrouble, MemsiftError, StoreBusy
from memsift.index.hnsw import saved
from memsift.storage import namespaces
from memsift.storage.file import translated

PENDING = "erase"


def announce(db: sqlite3.Connection) -> None:
    """Within the transaction that deletes rows: say that the file must still be cleaned, should we not get there."""
    db.execute("INSERT OR IGNORE INTO pending VALUES (?)", (PENDING,))


def unfinished(db: sqlite3.Connection) -> bool:
    """Whether an erasure was made true whose remnants are still to be cleaned."""
    with translated():
        found = db.execute("SELECT 1 FROM pending WHERE what = ?", (PENDING,)).fetchone()
    return found is not None


def finish(db: sqlite3.Connection, path: Path, *, vacuum: bool = True) -> dict[str, str]:
    """Clean the file after an erasure, now or at the next opening. The erasure itself is done: nothing is raised.

    Rows were overwritten in their pages (`secure_delete`); copies of those pages as they were may be left in the
    write-ahead log, which is emptied here, and remnants of moved rows in the gaps of pages, which a vacuum removes by
    writing the file anew. Graphs beside the file hold int8 copies; they are removed, and made again by who needs them.

    Returns
    -------
    dict
        `graphs`, `log` and `pages`: "erased", or "pending" with the reason.
    """
    places = {"graphs": _no_graphs(db, path)}
    places |= {"pages": "pending: no vacuum was wanted; it is done when the store is next opened"}
    if vacuum:
        places["pages"] = _done(db, "VACUUM")
    places["log"] = _done(db, "PRAGMA wal_checkpoint(TRUNCATE)")
    if all(state == "erased" for state in places.values()):
        # Should this fail, the next opening cleans once more.
        _done(db, "DELETE FROM pending")
    return places


def _no_graphs(db: sqlite3.Connection, path: Path) -> str:
    try:
        saved.remove_all(path, [name for name, _, _ in namespaces.names(db)])
    except (OSError, MemsiftError) as error:
        return f"pending: {error}"
    return "erased"


def _done(db: sqlite3.Connection, statement: str) -> str:
    try:
        with translated():
            row = db.execute(statement).fetchone()
    except (StoreBusy, DiskTrouble, CorruptStore) as error:
        return f"pending: {error}"
    if row is not None and row[0]:
        return "pending: another process is reading; it is emptied when the next process opens"
    return "erased"


def unreachable(path: Path) -> dict[str, str]:
    """Places that no process can clean from here: exports beside the file, and whatever left the machine."""
    places = {
        f"export {found.name}": "unreachable: an export is a file of its own; delete it or export again"
        for found in sorted(path.parent.glob("*.rvf"))
    }
    places["memory of other processes"] = "unreachable: each lets go of it at its next call"
    places["backups and file-system snapshots"] = (
        "unreachable: only encryption and a destroyed key reach them"
    )
    return places
