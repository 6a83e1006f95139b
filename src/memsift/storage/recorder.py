"""Who tells the file: the memory's changes to the journal, its decisions to the archive and the audit log."""

from __future__ import annotations

from memsift.kernels import Float32, Float64
from memsift.memory import Memory
from memsift.plan import Plan
from memsift.storage.archive import Archive
from memsift.storage.file import translated
from memsift.storage.journal import Journal
from memsift.storage.ledger import Ledger
from memsift.types import Compaction, Ids


class Recorder:
    """The memory's `Sink`. Everything happens in the transaction of the call."""

    def __init__(self, journal: Journal, archive: Archive, ledger: Ledger) -> None:
        self._journal, self._archive, self._ledger = journal, archive, ledger

    def added(self, memory: Memory, start: int, rows: Float32) -> None:
        with translated():
            self._journal.added(memory, start, rows)

    def queried(
        self, memory: Memory, unit: Float32, ids: Ids, shares: Float64 | None, at: float
    ) -> None:
        self._journal.queried(memory, unit, ids, shares, at)

    def changed(self, memory: Memory, ids: Ids) -> None:
        with translated():
            self._journal.changed(memory, ids)

    def replaced(self, memory: Memory, id_: int, unit: Float32 | None) -> None:
        with translated():
            self._journal.replaced(memory, id_, unit)

    def deleted(self, ids: Ids) -> None:
        with translated():
            self._journal.deleted(ids)

    def retired(self, memory: Memory, ids: Ids) -> None:
        now = memory.clock()
        with translated():
            self._journal.archived(ids, now)
            self._archive.purge(now)

    def restored(self, memory: Memory, ids: Ids) -> None:
        with translated():
            self._journal.restored(memory, ids)

    def compacted(self, memory: Memory, plan: Plan, done: Compaction, digest: str) -> str:
        """The victims rest, the archive holds its own budget, and the record is written: one transaction."""
        now = memory.clock()
        with translated():
            self._journal.archived(done.dropped, now)
            purged = self._archive.purge(now)
            return self._ledger.compacted(memory, plan, done, digest, purged, now)
