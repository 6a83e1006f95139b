"""A memory's state and every way in which it changes.

Nothing is checked here and nothing is locked: the store does that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from memsift.admission import Batch
from memsift.allowance import automatic_plan, fitting
from memsift.budget import Budget
from memsift.context import ContextWindow
from memsift.index import ExactIndex
from memsift.kernels import Float32, Rows
from memsift.plan import Plan
from memsift.policies.base import CompactionPolicy, policy_name
from memsift.table import Entries, EntryTable
from memsift.types import Compaction, Ids
from memsift.view import MemoryView

# Queries remembered at least, whatever the policy looks at: the reference's window.
WINDOW = 20


class Memory:
    """Table, index, window of queries, clocks and counters, held within a budget.

    Attributes
    ----------
    tick : int
        Logical time: one more for each addition and each search that counts.
    next_id : int
        Never goes back.
    revision : int
        One more for each change; entries carry that of their last one, so that a plan knows what is new to it.
    """

    def __init__(
        self,
        dim: int,
        budget: Budget,
        policy: CompactionPolicy,
        low_watermark: float,
        clock: Callable[[], float],
    ) -> None:
        self.budget, self.policy, self.low_watermark, self.clock = (
            budget,
            policy,
            low_watermark,
            clock,
        )
        looked_at = int(getattr(policy, "queries", 0))
        self.context = ContextWindow(max(WINDOW, looked_at), dim)
        # Similarities are kept only for a policy that will read them.
        self.table = EntryTable(dim, self.context.window if looked_at else 0, budget.entries)
        self.index = ExactIndex(self.table)
        self.tick = self.next_id = self.revision = 0
        self.counts = dict.fromkeys(
            ("added", "evicted", "deleted", "searches", "compactions", "forced_compactions"), 0
        )
        self.last_compaction: Compaction | None = None

    def add(self, rows: Float32, batch: Batch, now: float) -> Ids:
        """Store checked newcomers one after the other, compacting whenever one tips the budget over.

        If the policy fails on the way, everything is put back and its error goes on.
        """
        first, start = self.next_id, 0
        before = self.tick, self.counts.copy(), self.last_compaction
        evicted: list[Entries] = []  # older entries that left for this batch, until it is through
        try:
            while start < len(rows):
                count = fitting(self.budget, self.table.size, batch, start)
                part = slice(start, start + count)
                ticks = np.arange(self.tick + 1, self.tick + 1 + count)
                columns = {name: column[part] for name, column in batch.columns.items()}
                columns |= {
                    "created_tick": ticks,
                    "accessed_tick": ticks,
                    "nbytes": batch.nbytes[part],
                }
                columns["ids"] = np.arange(self.next_id, self.next_id + count)
                columns["accessed_at"] = np.full(count, now)
                notes = batch.metadata[part] if batch.metadata else None
                self.table.append(Entries(rows[part], columns, notes))
                self.tick += count
                self.next_id += count
                self.counts["added"] += count
                start += count
                if not self.budget.fits(self.table.size):
                    plan = self._automatic(newcomer=len(self.table) - 1)
                    if start < len(rows):
                        evicted.append(self.table.entries(plan.victims[plan.victims < first]))
                    self.apply(plan)
        except BaseException:
            self.table.remove(self.table.column("ids") < first)
            for entries in evicted:
                self.table.append(entries)
            self.next_id = first
            self.tick, self.counts, self.last_compaction = before
            raise
        self.revision += 1
        return np.arange(first, self.next_id, dtype=np.int64)

    def count_query(self, unit: Float32, touched: Rows) -> None:
        """A search that counts has returned; `touched` are the slots of the hits that it touches."""
        self.tick += 1
        self.revision += 1
        self.counts["searches"] += 1
        self.context.push(unit)
        if touched.size:
            self.table.write("accessed_tick", touched, self.tick)
            self.table.write("accessed_at", touched, self.clock())
            self.table.write("revision", touched, self.revision)
            self.table.count("access_count", touched)

    def similarity_row(self) -> Float32 | None:
        """Where the next query's similarities belong; None if no policy reads them."""
        rows = self.table.ring.rows
        return rows[self.context.next_row] if len(rows) else None

    def changed(self, slots: Rows) -> None:
        """Entries were changed by the caller: a plan made before will spare them."""
        self.revision += 1
        self.table.write("revision", slots, self.revision)

    def replace(self, slot: int, batch: Batch, unit: Float32 | None) -> None:
        """An entry gets other values; its id and its history stay."""
        slots = np.array([slot])
        if unit is not None:
            self.table.write_vector(slot, unit)
        self.table.write_metadata(slot, batch.metadata[0] if batch.metadata else None)
        self.table.write("nbytes", slots, batch.nbytes)
        for name in ("cost", "importance"):
            self.table.write(name, slots, batch.columns[name])
        self.changed(slots)
        if not self.budget.fits(self.table.size):
            self.apply(self._automatic(newcomer=slot))

    def delete(self, slots: Rows) -> None:
        keep = np.ones(len(self.table), np.bool_)
        keep[slots] = False
        self.counts["deleted"] += int(np.count_nonzero(~keep))
        self.table.remove(keep)
        self.revision += 1

    def apply(self, plan: Plan) -> Compaction:
        """Evict a plan's victims but those that changed since, or are pinned."""
        before = self.table.size
        slots = self.table.slots_of(plan.victims)
        slots = slots[slots >= 0]
        changed: npt.NDArray[np.bool_] = self.table.column("revision")[slots] > plan.revision
        changed |= self.table.column("pinned")[slots]
        ids = self.table.column("ids")
        dropped, spared = np.sort(ids[slots[~changed]]), np.sort(ids[slots[changed]])
        if dropped.size:
            keep = np.ones(len(self.table), np.bool_)
            keep[slots[~changed]] = False
            self.table.remove(keep)
            self.revision += 1
        forced = 2 * dropped.size > before.entries
        self.counts["evicted"] += dropped.size
        self.counts["compactions"] += 1
        self.counts["forced_compactions"] += forced
        name = policy_name(plan.policy)
        self.last_compaction = Compaction(
            dropped, spared, None, before, self.table.size, name, forced
        )
        return self.last_compaction

    def _automatic(self, newcomer: int) -> Plan:
        rule = self.policy, self.budget, self.low_watermark
        return automatic_plan(self.view(), *rule, newcomer, self.revision)

    def view(self) -> MemoryView:
        return self.table.view(self.context, self.tick, self.clock())
