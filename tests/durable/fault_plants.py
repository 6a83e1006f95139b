"""Planted bugs: what a tired author might have written. Each patches the library in the child that lives scripts."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from memsift.durable import DurableStore
from memsift.storage import erasure, file
from memsift.storage.journal import Journal
from memsift.storage.ledger import Ledger
from memsift.storage.pending import Pending
from memsift.storage.recorder import Recorder


class Through:
    """A connection that passes everything on, but for what a plant changes."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def __getattr__(self, name: str) -> Any:
        return getattr(self.db, name)


def _journal_through(kind: type[Through]) -> None:
    original = Journal.__init__

    def init(self: Journal, db: Any, found: Any) -> None:
        original(self, kind(db), found)  # type: ignore[arg-type]

    Journal.__init__ = init  # type: ignore[method-assign]


def never_syncs() -> None:
    file.DURABILITY["full"] = "OFF"


def syncs_as_in_normal() -> None:
    file.DURABILITY["full"] = "NORMAL"


def commits_at_the_next_call() -> None:
    """COMMIT is acknowledged before it is made."""

    class Late(Through):
        due = False

        def execute(self, sql: str, *more: Any) -> Any:
            if sql == "COMMIT" and self.db.total_changes:
                self.due = True
                return None
            if self.due:
                self.due = False
                self.db.execute("COMMIT")
            return self.db.execute(sql, *more)

        @property
        def in_transaction(self) -> bool:
            return self.db.in_transaction and not self.due

    _journal_through(Late)


def audits_afterwards() -> None:
    """The record is written once the transaction is through."""
    due: list[Callable[[], object]] = []
    append, commit = Ledger._append, Journal.commit

    class Aside(Through):
        def execute(self, sql: str, *more: Any) -> Any:
            if sql.startswith("INSERT INTO audit"):
                due.append(lambda: self.db.execute(sql, *more))
                return None
            return self.db.execute(sql, *more)

    def late(self: Ledger, *arguments: Any, **options: Any) -> str:
        db, self._db = self._db, Aside(self._db)  # type: ignore[assignment]
        try:
            return append(self, *arguments, **options)
        finally:
            self._db = db

    def committed(self: Journal, memory: Any) -> None:
        commit(self, memory)
        while due:
            due.pop(0)()

    Ledger._append, Journal.commit = late, committed  # type: ignore[method-assign]


def forgets_the_record() -> None:
    def compacted(self: Recorder, memory: Any, plan: Any, done: Any, digest: str) -> str:
        now = memory.clock()
        self._journal.archived(done.dropped, now)
        self._archive.purge(now)
        return "0" * 64

    Recorder.compacted = compacted  # type: ignore[method-assign]


def forgets_the_mark_of_the_archive() -> None:
    Journal.archived = lambda self, ids, now: self._note(ids)  # type: ignore[method-assign]


def forgets_to_read_again() -> None:
    """After a rollback the memory stays as the failed call left it."""

    def reload(self: DurableStore) -> None:
        self._stale = False

    DurableStore._reload = reload  # type: ignore[method-assign]


def forgets_to_roll_back() -> None:
    Journal.rollback = lambda self: None  # type: ignore[method-assign]


def forgets_what_changed() -> None:
    """Other processes are told of a change, but not of which."""

    class Silent(Through):
        def execute(self, sql: str, *more: Any) -> Any:
            if sql.startswith("INSERT INTO change"):
                ns, generation, _ = more[0]
                more = ((ns, generation, b""),)
            return self.db.execute(sql, *more)

    _journal_through(Silent)


def swallows_a_failed_commit() -> None:
    commit = Journal.commit

    def quiet(self: Journal, memory: Any) -> None:
        try:
            commit(self, memory)
        except OSError:
            self.wrote, self.pending = False, Pending()

    Journal.commit = quiet  # type: ignore[method-assign]


def drops_touches_too_early() -> None:
    """What waits is thrown away before its transaction is true."""
    flush = Journal._flush

    def eager(self: Journal, memory: Any) -> None:
        flush(self, memory)
        self.pending = Pending()

    Journal._flush = eager  # type: ignore[method-assign]


def erases_without_a_mark() -> None:
    """A crash before the file is cleaned, and nobody knows that it must be."""
    erasure.announce = lambda db: None


def keeps_a_rollback_journal_in_memory() -> None:
    """No write-ahead log: pages are overwritten where they lie."""

    def use(db: sqlite3.Connection, *_: Any) -> str:
        db.execute("PRAGMA journal_mode = MEMORY")
        return "wal"

    file._use_wal = use


def passes_errors_on() -> None:
    file._translation = lambda error: error


def counts_ids_anew() -> None:
    """After opening, ids go on behind the last one that is still there."""
    adopt = Journal._adopt

    def forgetful(self: Journal, memory: Any, state: Any) -> None:
        adopt(self, memory, state)
        memory.next_id = int(memory.table.column("ids").max(initial=-1)) + 1

    Journal._adopt = forgetful  # type: ignore[method-assign]


def writes_each_row_by_itself() -> None:
    """A batch is many transactions."""
    insert = Journal._insert

    def piecemeal(self: Journal, *arguments: Any) -> None:
        insert(self, *arguments)
        self.db.execute("COMMIT")
        self.db.execute("BEGIN IMMEDIATE")

    Journal._insert = piecemeal  # type: ignore[method-assign]


PLANTS: dict[str, Callable[[], None]] = {
    "none": lambda: None,
    **{
        plant.__name__: plant
        for plant in (
            never_syncs,
            syncs_as_in_normal,
            commits_at_the_next_call,
            audits_afterwards,
            forgets_the_record,
            forgets_the_mark_of_the_archive,
            forgets_to_read_again,
            forgets_to_roll_back,
            forgets_what_changed,
            swallows_a_failed_commit,
            drops_touches_too_early,
            erases_without_a_mark,
            keeps_a_rollback_journal_in_memory,
            passes_errors_on,
            counts_ids_anew,
            writes_each_row_by_itself,
        )
    },
}
