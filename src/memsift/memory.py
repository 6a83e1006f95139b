"""A memory's state and every way in which it changes.

Nothing is checked here and nothing is locked: the store does that. Only views, which go out of its hands, take
the lock themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from memsift import index as indexes
from memsift import kernels
from memsift.accesslog.events import Listener
from memsift.admission import Batch
from memsift.allowance import automatic_plan, fitting
from memsift.budget import Budget
from memsift.context import ContextWindow
from memsift.crowding import Crowding
from memsift.ghosts import Ghosts, limit_for
from memsift.impressions import BEFORE, NAMES, Impressions
from memsift.kernels import Float32, Float64, Rows
from memsift.learning import Asked
from memsift.lessons import Lessons
from memsift.plan import Plan, make_plan
from memsift.policies.adaptive import AdaptivePolicy
from memsift.policies.base import CompactionPolicy, policy_name
from memsift.table import Entries, EntryTable
from memsift.types import Compaction, Ids
from memsift.view import COLUMNS, FADE, MemoryView

if TYPE_CHECKING:
    from memsift.index.hnsw.saved import Companion

NOBODY: Rows = np.empty(0, np.intp)
# Queries remembered at least, whatever the policy looks at: the reference's window.
WINDOW = 20
# A query nearer to an entry than this is that entry in other words.
ALIKE = 0.999
EVERYTHING = frozenset(COLUMNS)
# What searches leave on their hits, where the policy asks for it.
MASSES = frozenset({"heat", "attention"})
# Attention is shared among the hits of a search by the softmax of their cosines over this.
TEMPERATURE = 0.05


class Sink(Protocol):
    """Who is told of every change, at the moment of it: a durable store's journal. Raising undoes the call."""

    def added(self, memory: Memory, start: int, rows: Float32) -> None: ...
    def queried(
        self, memory: Memory, unit: Float32, ids: Ids, shares: Float64 | None, at: float
    ) -> None: ...
    def changed(self, memory: Memory, ids: Ids) -> None: ...
    def replaced(self, memory: Memory, id_: int, unit: Float32 | None) -> None: ...
    def deleted(self, ids: Ids) -> None: ...
    def retired(self, memory: Memory, ids: Ids) -> None: ...
    def restored(self, memory: Memory, ids: Ids) -> None: ...
    def compacted(self, memory: Memory, plan: Plan, done: Compaction, digest: str) -> str: ...


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
        index: str = "exact",
        held: str = "float32",
        folder: Path | None = None,
    ) -> None:
        self.held, self.folder = held, folder
        self.budget, self.policy = budget, policy
        self.low_watermark, self.clock = low_watermark, clock
        self.index_kind = index
        self.index_home: Companion | None = None
        self.lock = threading.RLock()
        self.identity = object()
        self.ghosts = Ghosts(dim, 0)
        self.clear(dim)
        self.tick = self.next_id = self.revision = 0
        self.counts = dict.fromkeys(
            ("added", "evicted", "deleted", "searches", "compactions", "forced_compactions"), 0
        )
        self.last_compaction: Compaction | None = None
        self.sink: Sink | None = None
        self.log: Listener | None = None
        # Told when there may be more than before: what compacts in the background.
        self.grown: Callable[[], None] | None = None

    def clear(self, dim: int) -> None:
        """Hold nothing, as before the first entry; ids, clocks and counters stay."""
        before = getattr(self, "index", None)
        looked_at = int(getattr(self.policy, "queries", 0))
        self.context = ContextWindow(max(WINDOW, looked_at), dim)
        # Similarities are kept only for a policy that will read them.
        window, limit = self.context.window if looked_at else 0, self.budget.entries
        self.table = EntryTable(dim, window, limit, self.held, self.folder)
        self.index = indexes.made(self.index_kind, self.table, self.lock, self.index_home, before)
        if (former := getattr(self, "crowding", None)) is not None:
            former.close()
        crowds: frozenset[int] = getattr(self.policy, "crowds", frozenset())
        self.crowding: Crowding = Crowding(self.table, self.lock, crowds)
        self.impressions = Impressions(dim)
        self.lessons = Lessons()
        self.ghosts.limit = limit_for(self.budget.entries)

    @property
    def judge(self) -> CompactionPolicy:
        """The policy with what the store has learned."""
        return self.lessons.taught(self.policy)

    @property
    def wanted(self) -> frozenset[str]:
        """Columns that the policy reads; all of them for one that does not say."""
        needs: frozenset[str] | None = getattr(self.policy, "needs", None)
        return EVERYTHING if needs is None else needs

    def add(self, rows: Float32, batch: Batch, now: float) -> Ids:
        """Store checked newcomers one after the other, compacting whenever one tips the budget over.

        If the policy fails on the way, everything is put back and its error goes on.
        """
        first, start = self.next_id, 0
        before = self.tick, self.counts.copy(), self.last_compaction
        mean, clusters = self.impressions.mean, self.impressions.clusters.saved()
        learned, watch = self.lessons.learned, None
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
                self._impress(count)
                if self.sink is not None:
                    self.sink.added(self, len(self.table) - count, rows[part])
                self.tick += count
                self.next_id += count
                self.counts["added"] += count
                start += count
                if not self.budget.fits(self.table.size):
                    watch = self.ghosts.saved() if watch is None else watch
                    plan = self._automatic(np.array([len(self.table) - 1]))
                    if start < len(rows):
                        evicted.append(self.table.entries(plan.victims[plan.victims < first]))
                    self.apply(plan)
        except BaseException:
            self.table.remove(self.table.column("ids") < first)
            for entries in evicted:
                self.table.append(entries)
            self.next_id = first
            self.tick, self.counts, self.last_compaction = before
            self.impressions.mean, self.lessons.learned = mean, learned
            if watch is not None:
                self.ghosts.restore(watch)
            self.impressions.clusters.restore(*clusters)
            raise
        self.revision += 1
        self.crowding.wake(self.next_id)
        if self.grown is not None:
            self.grown()
        ids = np.arange(first, self.next_id, dtype=np.int64)
        if self.log is not None:
            self.log.add(ids, rows, batch.columns["cost"], now)
        return ids

    def _impress(self, count: int) -> None:
        """Measure what the last `count` entries are like beside the others, as far as the policy asks."""
        wanted = self.wanted & NAMES
        start = len(self.table) - count
        before = NOBODY
        if "adjacency" in wanted:
            before = self.table.slots_of(np.arange(self.next_id - BEFORE, self.next_id))
        vectors = self.table.vectors
        measured = self.impressions.of(vectors, start, vectors[before[before >= 0]], wanted)
        for name, column in measured.items():
            self.table.write(name, np.arange(start, start + count), column)
        if isinstance(self.policy, AdaptivePolicy):
            new = [self.table.column(name)[start:] for name in ("cost", "nearest", "typicality")]
            self.lessons.additions(vectors[start], self.context.recent(1), *new)
            if self.lessons.wants_a_look(start, len(self.table)):
                self.lessons.look(self.view())

    def count_query(
        self, unit: Float32, found: Rows, scores: Float64, touch: int, k: int, filtered: bool
    ) -> None:
        """A search for `k` that counts has returned slots `found`, best first; it touches the first `touch` of them."""
        self.tick += 1
        self.revision += 1
        self.counts["searches"] += 1
        self.context.push(unit)
        now, touched = self.clock(), found[:touch]
        shares = None if self.wanted.isdisjoint(MASSES) else attention(scores)[:touch]
        if touched.size:
            self._count_access(touched, shares, now)
        if self.log is not None:
            ids = self.table.column("ids")[found]
            self.log.query(unit, ids, k, min(touch, found.size), now, filtered=filtered)
        if not filtered:
            self.ghosts.asked(unit, scores, k, self.tick, now)
        if isinstance(self.policy, AdaptivePolicy):
            self.lessons.query(unit, scores)
        if self.sink is not None:
            self.sink.queried(self, unit, self.table.column("ids")[touched], shares, now)

    def touch(self, slots: Rows) -> None:
        """The caller came upon these entries, each once, by other ways than a search."""
        self.tick += 1
        self._count_access(slots, np.ones(slots.size), self.clock())
        self.changed(slots)

    def _count_access(self, slots: Rows, shares: Float64 | None, now: float) -> None:
        if shares is not None and not self.wanted.isdisjoint(MASSES):
            faded = FADE ** (self.tick - self.table.column("accessed_tick")[slots])
            for name, more in (("heat", 1.0), ("attention", shares)):
                column = self.table.column(name)[slots]
                self.table.write(name, slots, column * faded + more)
        self.table.touch(slots, self.tick, now, self.revision)

    def similarity_row(self) -> Float32 | None:
        """Where the next query's similarities belong; None if no policy reads them, or not all are computed."""
        ring = self.table.ring
        if not len(ring.rows):
            return None
        if self.index.sees_all:
            return ring.row(self.context.next_row, len(self.table))
        ring.skip(self.context.next_row)
        return None

    def used(self, slots: Rows) -> None:
        """The caller says that these entries, each once, helped."""
        if isinstance(self.policy, AdaptivePolicy) and self.policy.learn:
            self.lessons.used()
        self.table.count("use_count", slots)
        self.changed(slots)
        if self.log is not None:
            self.log.use(self.table.column("ids")[slots], self.clock())

    def changed(self, slots: Rows) -> None:
        """Entries were changed by the caller: a plan made before will spare them."""
        self.revision += 1
        self.table.write("revision", slots, self.revision)
        if self.sink is not None:
            self.sink.changed(self, self.table.column("ids")[slots])

    def replace(self, slot: int, batch: Batch, unit: Float32 | None) -> None:
        """An entry gets other values; its id and its history stay. If the policy fails, it keeps the old ones."""
        slots = np.array([slot])
        before = self.table.entries(self.table.column("ids")[slots])
        mean, clusters = self.impressions.mean, self.impressions.clusters.saved()
        if unit is not None:
            self.table.write_vector(slot, unit)
            self.crowding.rewritten(before.columns["ids"])
            # What it was like when it came was said of another vector, of which no copy may stay.
            self.impressions.forget(before.vectors)
            for name in NAMES:
                self.table.write(name, slots, COLUMNS[name][1])
        self.table.write_metadata(slot, batch.metadata[0] if batch.metadata else None)
        self.table.write("nbytes", slots, batch.nbytes)
        for name in ("cost", "importance"):
            self.table.write(name, slots, batch.columns[name])
        self.changed(slots)
        if self.sink is not None:
            self.sink.replaced(self, int(self.table.column("ids")[slot]), unit)
        try:
            self.hold_budget(slots)
        except BaseException:
            if unit is not None:
                self.table.write_vector(slot, before.vectors[0])
            self.table.write_metadata(slot, before.metadata[0] if before.metadata else None)
            self.impressions.mean = mean
            self.impressions.clusters.restore(*clusters)
            for name in ("nbytes", "cost", "importance", "revision", *NAMES):
                self.table.write(name, slots, before.columns[name])
            raise

    def restore(self, entries: Entries) -> None:
        """Entries come back with their counters, accessed now; others leave if they must."""
        count = len(entries.vectors)
        now = {"accessed_tick": self.tick, "accessed_at": self.clock()}
        faded = FADE ** np.maximum(0, self.tick - entries.columns["accessed_tick"])
        columns = entries.columns | {name: np.full(count, value) for name, value in now.items()}
        columns |= {name: entries.columns[name] * faded for name in ("attention", "heat")}
        self.table.append(entries._replace(columns=columns))
        self.ghosts.returned(entries.columns["ids"])
        slots = np.arange(len(self.table) - count, len(self.table))
        self.changed(slots)
        if self.sink is not None:
            self.sink.restored(self, columns["ids"])
        self.hold_budget(slots)

    def delete(self, slots: Rows, *, rest: bool = False) -> None:
        """Entries leave by the caller's wish: for good, or, where there is an archive, to `rest` there."""
        keep = np.ones(len(self.table), np.bool_)
        keep[slots] = False
        if self.sink is not None:
            ids = self.table.column("ids")[slots]
            self.sink.retired(self, ids) if rest else self.sink.deleted(ids)
        self.counts["deleted"] += int(np.count_nonzero(~keep))
        self.table.remove(keep)
        self.revision += 1

    def forget_queries(self, vectors: Float32) -> None:
        """Drop the window's queries that are as good as one of these unit rows (m, dim)."""
        self.lessons.asked = Asked()
        queries = self.context.recent()
        if len(queries) and len(vectors):
            alike = kernels.cosine_max(queries, vectors) > ALIKE
            if alike.any():
                # Others of the window take their places: a maximum over it does not notice.
                others = np.flatnonzero(~alike)
                places = np.searchsorted(others, np.arange(len(queries)))
                kept = others[np.minimum(places, others.size - 1)] if others.size else NOBODY
                self.context.restore(queries[kept], self.context.seen if others.size else 0)
                self.table.ring.forget_all()

    def plan(
        self, view: MemoryView, policy: CompactionPolicy, target: Budget, revision: int
    ) -> Plan:
        """The plan of a caller, who saw the memory at `revision`: pinned entries are no candidates."""
        if target.limits.get("bytes") == 0:
            # Nothing but the pinned ones.
            target = Budget(bytes=int(view.nbytes[view.pinned].sum()))
        return make_plan(view, policy, target, view.pinned.copy(), revision, self.identity)

    def apply(self, plan: Plan) -> Compaction:
        """Evict a plan's victims but those that changed since, or are pinned."""
        before = self.table.size
        rows = slots = np.flatnonzero(~plan.keep)
        if not self.table.holds_still(plan.view):
            slots = self.table.slots_of(plan.view.ids[rows])
            rows, slots = rows[slots >= 0], slots[slots >= 0]
        changed: npt.NDArray[np.bool_] = self.table.column("revision")[slots] > plan.revision
        changed |= self.table.column("pinned")[slots]
        ids = self.table.column("ids")
        going, staying = (slots[~changed], slots[changed]) if changed.any() else (slots, NOBODY)
        dropped, spared = kernels.ascending(ids[going]), kernels.ascending(ids[staying])
        state = None if self.sink is None else self.view().digest()
        if dropped.size:
            keep = np.ones(len(self.table), np.bool_)
            keep[going] = False
            self._watch(plan, rows[~changed], going)
            self.table.remove(keep)
            self.impressions.clusters.keep(self.table.column("cluster"))
            self.revision += 1
        forced = 2 * dropped.size > before.entries
        self.counts["evicted"] += dropped.size
        self.counts["compactions"] += 1
        self.counts["forced_compactions"] += forced
        name = policy_name(plan.policy)
        done = Compaction(dropped, spared, None, before, self.table.size, name, forced)
        if self.sink is not None and state is not None:
            done = replace(done, audit_head=self.sink.compacted(self, plan, done, state))
        self.last_compaction = done
        return done

    def _watch(self, plan: Plan, rows: Rows, slots: Rows) -> None:
        """The entries in these rows of a plan, which are in these slots now, are about to leave by it."""
        scores = None if plan.scores is None else plan.scores[rows]
        label, vectors = policy_name(plan.policy), self.table.vectors
        ids = self.table.column("ids")[slots]
        self.ghosts.evicted(ids, vectors, slots, scores, label, self.tick, self.clock())

    def hold_budget(self, newcomers: Rows = NOBODY) -> None:
        """Compact to the low watermark if the budget is exceeded; `newcomers` stay."""
        if not self.budget.fits(self.table.size):
            self.apply(self._automatic(newcomers))
        elif self.grown is not None:
            self.grown()

    def _automatic(self, newcomers: Rows) -> Plan:
        rule = self.judge, self.budget, self.low_watermark
        return automatic_plan(self.passing_view(), *rule, newcomers, self.revision)

    def view(self) -> MemoryView:
        known = self.crowding.remembered(self.next_id)
        return self.table.view(self.context, self.tick, self.clock(), self.lock, known)

    def passing_view(self) -> MemoryView:
        """A view for a decision that is carried out before anything else happens: where nobody keeps it, no copy."""
        known, live = self.crowding.remembered(self.next_id), self.sink is None
        return self.table.view(self.context, self.tick, self.clock(), self.lock, known, live=live)


def attention(scores: Float64) -> Float64:
    """How a search's attention is shared among its hits, best first: (hits,), summing to 1."""
    shares = np.exp((scores - scores.max(initial=-1.0)) / TEMPERATURE)
    found: Float64 = (shares / (shares.sum() or 1.0)).round(6)
    return found
