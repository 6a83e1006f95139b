"""Erasing: not forgetting but removing, from every place that this process can reach, with a receipt."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from memsift.errors import DiskTrouble, StoreBusy
from memsift.storage.file import translated

PENDING = "erase"


def announce(db: sqlite3.Connection) -> None:
    """Within the transaction that deletes rows: say that the file must still be cleaned, should we not get there."""
    db.execute("INSERT OR IGNORE INTO pending VALUES (?)", (PENDING,))


def finish(db: sqlite3.Connection, *, vacuum: bool = True) -> dict[str, str]:
    """Clean the file after an erasure, now or at the next opening.

    Rows were overwritten in their pages (`secure_delete`); copies of those pages as they were may be left in the
    write-ahead log, which is emptied here, and remnants of moved rows in the gaps of pages, which a vacuum removes by
    writing the file anew.

    Returns
    -------
    dict
        `log` and `pages`: "erased", or "pending" with the reason.
    """
    with translated():
        if db.execute("SELECT 1 FROM pending WHERE what = ?", (PENDING,)).fetchone() is None:
            return {}
    places = {"pages": "pending: no vacuum was wanted; it is done when the store is next opened"}
    if vacuum:
        try:
            with translated():
                db.execute("VACUUM")
            places["pages"] = "erased"
        except (StoreBusy, DiskTrouble) as error:
            places["pages"] = f"pending: {error}"
    try:
        with translated():
            busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        places["log"] = (
            "pending: another process is reading; it is emptied when the next process opens"
            if busy
            else "erased"
        )
    except (StoreBusy, DiskTrouble) as error:
        places["log"] = f"pending: {error}"
    if all(state == "erased" for state in places.values()):
        with translated():
            db.execute("DELETE FROM pending WHERE what = ?", (PENDING,))
    return places


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
