"""Where a writer is killed: before, amid or after the n-th statement of a kind. Only children are ever patched."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

# Name -> how its statements begin.
POINTS = {
    "begin": "BEGIN IMMEDIATE",
    "vector insert": "INSERT INTO vector",
    "entry insert": "INSERT INTO entry",
    "note insert": "INSERT INTO note",
    "text insert": "INSERT INTO payload",
    "text delete": "DELETE FROM payload",
    "entry update": "UPDATE entry SET row",
    "vector update": "UPDATE vector",
    "archive": "UPDATE entry SET archived_at = ?",
    "restore": "UPDATE entry SET archived_at = NULL",
    "vector delete": "DELETE FROM vector",
    "entry delete": "DELETE FROM entry",
    "note delete": "DELETE FROM note",
    "audit insert": "INSERT INTO audit",
    "state update": "UPDATE namespace",
    "change insert": "INSERT INTO change",
    "change trim": "DELETE FROM change",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "pending flag": "INSERT OR IGNORE INTO pending",
    "pending done": "DELETE FROM pending",
    "vacuum": "VACUUM",
    "checkpoint": "PRAGMA wal_checkpoint",
    "version look": "PRAGMA data_version",
    "close": "close",
}
MANY = {"vector insert", "text insert", "entry insert", "entry update", "archive", "vector delete"}


@dataclass
class Kill:
    """`when` is "before", "amid" (of the rows of one statement) or "after"; the `nth` time counts."""

    point: str
    when: str
    nth: int


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(kill: Kill, ready: Callable[[], bool] = lambda: True) -> None:
    """From now on every new SQLite connection of this process kills it at that point, once it is `ready`."""
    left = [kill.nth]

    def due(statement: str) -> bool:
        if not ready() or not statement.lstrip().startswith(POINTS[kill.point]):
            return False
        left[0] -= 1
        return left[0] == 0

    def rows(given: Iterable[Any]) -> Iterator[Any]:
        for place, row in enumerate(given):
            if place == 1:
                die()
            yield row
        die()

    class Connection(sqlite3.Connection):
        def execute(self, statement: str, *args: Any) -> Any:
            now = due(statement)
            if now and kill.when != "after":
                die()
            found = super().execute(statement, *args)
            if now:
                die()
            return found

        def executemany(self, statement: str, given: Any) -> Any:
            now = due(statement)
            if now and kill.when == "before":
                die()
            found = super().executemany(
                statement, rows(given) if now and kill.when == "amid" else given
            )
            if now:
                die()
            return found

        def close(self) -> None:
            now = due("close")
            if now and kill.when != "after":
                die()
            super().close()
            if now:
                die()

    original = sqlite3.connect
    sqlite3.connect = lambda *args, **named: original(*args, **named, factory=Connection)
