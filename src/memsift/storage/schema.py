"""What the file looks like, and how an older one becomes this one.

Fat rows (`vector`) are written once and deleted once; whatever changes often is in the narrow ones (`entry`), so that
touching or archiving a thousand entries rewrites a few pages. A key is the namespace's number times 2**40 plus the id.
"""

from __future__ import annotations

import sqlite3

from memsift.errors import CorruptStore
from memsift.storage.migrations import MIGRATIONS, NEW_TABLES

APPLICATION_ID = 0x6D736674  # "msft"
VERSION = 3

TABLES = {
    "namespace": """CREATE TABLE namespace (
        ns INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dim INTEGER NOT NULL, store_id TEXT NOT NULL,
        secret BLOB NOT NULL, generation INTEGER NOT NULL, config TEXT NOT NULL, state TEXT NOT NULL,
        context BLOB NOT NULL, sum INTEGER NOT NULL)""",
    "vector": "CREATE TABLE vector (key INTEGER PRIMARY KEY, row BLOB NOT NULL)",
    "entry": "CREATE TABLE entry (key INTEGER PRIMARY KEY, row BLOB NOT NULL, archived_at REAL)",
    "archived": "CREATE INDEX archived ON entry (archived_at) WHERE archived_at IS NOT NULL",
    "note": "CREATE TABLE note (key INTEGER PRIMARY KEY, json TEXT NOT NULL)",
    "payload": """CREATE TABLE payload (
        key INTEGER PRIMARY KEY, text TEXT NOT NULL, hash INTEGER NOT NULL, sum INTEGER NOT NULL)""",
    "said": "CREATE INDEX said ON payload (hash)",
    "change": """CREATE TABLE change (
        ns INTEGER NOT NULL, generation INTEGER NOT NULL, ids BLOB NOT NULL,
        PRIMARY KEY (ns, generation)) WITHOUT ROWID""",
    "audit": """CREATE TABLE audit (
        ns INTEGER NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (ns, seq)) WITHOUT ROWID""",
    "leader": "CREATE TABLE leader (key INTEGER PRIMARY KEY, row BLOB NOT NULL)",
    "ghost": "CREATE TABLE ghost (key INTEGER PRIMARY KEY, row BLOB NOT NULL)",
    "log": """CREATE TABLE log (
        ns INTEGER NOT NULL, seq INTEGER NOT NULL, row BLOB NOT NULL,
        PRIMARY KEY (ns, seq)) WITHOUT ROWID""",
    "pending": "CREATE TABLE pending (what TEXT PRIMARY KEY) WITHOUT ROWID",
}


def create(db: sqlite3.Connection) -> None:
    """Fill an empty database. The caller holds the write lock."""
    for statement in TABLES.values():
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def check(db: sqlite3.Connection) -> int:
    """The file's version, 0 for an empty database.

    Raises
    ------
    CorruptStore
        Not a memsift file, a newer version, or a schema that is not ours to the letter: a foreign trigger or view
        must never run.
    """
    found = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall())
    application = int(db.execute("PRAGMA application_id").fetchone()[0])
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if not found and application == 0 and version == 0:
        return 0
    if application != APPLICATION_ID:
        raise CorruptStore(
            "header", f"must carry the application id of memsift; got {application:#x}"
        )
    if not 1 <= version <= VERSION:
        raise CorruptStore(
            "header", f"must be of version 1 to {VERSION}; got {version}: a newer memsift wrote it"
        )
    wanted = of_version(version)
    if found != wanted:
        odd = sorted(set(found) ^ set(wanted)) or [n for n in wanted if found[n] != wanted[n]]
        raise CorruptStore(
            "schema", f"must be that of version {version}; differs at {', '.join(odd)[:80]}"
        )
    return version


def of_version(version: int) -> dict[str, str]:
    """The tables of a version."""
    later = {name for step in range(version, VERSION) for name in NEW_TABLES[step]}
    return {name: sql for name, sql in TABLES.items() if name not in later}


def migrate(db: sqlite3.Connection, version: int) -> None:
    """Bring an older file to this version, one named step at a time. The caller holds the write lock."""
    for step in range(version, VERSION):
        for name in NEW_TABLES[step]:
            db.execute(TABLES[name])
        MIGRATIONS[step](db)
    db.execute(f"PRAGMA user_version = {VERSION}")
