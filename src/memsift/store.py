"""The store: a table, an index, a window of queries, and a budget that is true after every call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from memsift import checks, kernels
from memsift import index as indexes
from memsift.accesslog import AccessLog, held_by
from memsift.admission import admit
from memsift.allowance import check_room, target_of
from memsift.budget import Budget
from memsift.checks import Metadata
from memsift.errors import InvalidType, InvalidValue, StaleView, UnknownEntry
from memsift.footprint import footprint
from memsift.index import compile_filter
from memsift.index.probe import recall
from memsift.leaving import give_back, leaving
from memsift.memory import Memory
from memsift.plan import Plan
from memsift.planes import plane_name
from memsift.policies.adaptive import AdaptivePolicy
from memsift.policies.base import CompactionPolicy, policy_name
from memsift.regret import Regret
from memsift.types import Compaction, Hit, Ids, MemoryEntry, Stats
from memsift.vectors import as_unit_row, as_unit_rows
from memsift.view import COLUMNS, MemoryView

if TYPE_CHECKING:
    from memsift.background import Compactor
    from memsift.durable import DurableStore

Vector = npt.ArrayLike
# From so many entries on, a plan copies column by column; many victims leave in parts of about so many bytes of rows.
# In between, so much time is for others: a lock that is let go of and taken again at once is never somebody else's.
LARGE, PART_BYTES = 20_000, 2**21
PAUSE_SECONDS = 1e-4


class MemoryStore:
    """A vector memory inside a hard budget.

    Parameters
    ----------
    dim : int, at least 1
        Length of every vector.
    budget : Budget, int (entries) or None (no limit)
        What the store may hold; true after every call.
    policy : CompactionPolicy
        Chooses what leaves when the budget is exceeded.
    low_watermark : float in (0, 1]
        A full store is compacted to this share of its budget.
    clock : callable
        Unix seconds; for tests and replays.
    index : "exact", "hnsw" or "auto"
        What answers searches. `exact` looks at every entry. `hnsw` (needs `memsift[ann]`) keeps a graph in the
        background and finds nearly all of the best ten in a fraction of the time; scores and order of what it finds are
        exact. `auto` takes the graph above 50,000 entries, if usearch is there.
    vectors : "float32", "tiered", "float16" or "int8"
        How vectors are held in memory. `tiered`: int8 in RAM, exact float32 in a file that leaves with the store; the
        same answers for a quarter of the memory, and faster from a few thousand entries on (with the extra `fast`,
        slower without). `float16` and `int8`: half and a quarter of the memory with nothing beside it; `get` and scores
        then tell of the rounded vectors, cosines are off by about 1e-4 and 5e-4.
    folder : path, optional
        Where the file of a tiered store lies: the system's temporary folder by default. If that is in RAM, nothing is
        saved.

    >>> store = MemoryStore(dim=2, budget=2)
    >>> ids = store.add_many([[1, 0], [0, 1], [1, 1]], metadata=[{"n": i} for i in range(3)])
    >>> [(hit.id, hit.score) for hit in store.search([1, 0.1], k=1)]
    [(2, 0.773957291)]
    """

    def __init__(
        self,
        dim: int,
        budget: Budget | int | None = None,
        policy: CompactionPolicy | None = None,
        *,
        low_watermark: float = 0.97,
        clock: Callable[[], float] = time.time,
        index: str = "exact",
        vectors: str = "float32",
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.dim = checks.integer(dim, "dim", 1, 65_536)
        chosen = AdaptivePolicy() if policy is None else _policy(policy)
        if isinstance(chosen, AdaptivePolicy):
            chosen = chosen.plain
        watermark = checks.fraction(low_watermark, "low_watermark", zero=False)
        indexes.demand(checks.one_of(index, "index", indexes.KINDS))
        held = plane_name(vectors), None if folder is None else checks.path(folder, "folder")
        self._memory = Memory(self.dim, Budget.of(budget), chosen, watermark, clock, index, *held)
        self._lock = self._memory.lock
        # Every call enters one of these; a durable store puts its transactions here.
        self._reading: AbstractContextManager[object] = self._lock
        self._writing: AbstractContextManager[object] = self._lock

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        dim: int | None = None,
        namespace: str = "default",
        budget: Budget | int | None = None,
        policy: CompactionPolicy | None = None,
        *,
        low_watermark: float | None = None,
        archive: Budget | int | None = None,
        grace_seconds: float | None = None,
        durability: str = "normal",
        busy_timeout: float = 5.0,
        touch_flush_seconds: float = 1.0,
        clock: Callable[[], float] = time.time,
        index: str | None = None,
        vectors: str = "float32",
        embedder: str | None = None,
    ) -> DurableStore:
        """Open a store in a file, or make one.

        Several processes may have it open: each sees what the others committed at its next call.

        Parameters
        ----------
        path : path
            One SQLite file (0600) with its two companions while it is open.
        dim : int, optional
            Needed to make a namespace; an existing one must have this dimension.
        namespace : str
            One of several memories in the file: `[a-z0-9][a-z0-9_.-]{0,63}`.
        budget, policy, low_watermark, index
            As for a store in RAM. What is left out is as the file says; what is given is written to it. The graph of an
            index lies beside the file, as `NAME.NAMESPACE.hnsw` (0600); it may be deleted at any time.
        archive : Budget or int (entries), optional
            How much may rest in the archive; as much as the store may hold by default. 0 keeps no victims.
        grace_seconds : float
            How long a victim may rest there; a week by default.
        durability : "normal" or "full"
            `normal`: what returned survives the death of the process; power loss may lose the last commits, never a
            part of one. `full`: what returned survives power loss.
        busy_timeout : float
            Seconds to wait for another process's write before `StoreBusy`.
        touch_flush_seconds : float
            Access statistics may lag by this much: a killed process loses no more than that of them.
        vectors : "float32", "tiered", "float16" or "int8"
            How this process holds them in memory, as for a store in RAM; others may do so otherwise. The file has
            float32 in any case. The cold half of a tiered store lies beside it.
        embedder : str, optional
            Fingerprint of what makes the vectors, 1 to 200 printable ASCII characters. The namespace keeps it; another
            one is refused.

        Raises
        ------
        DimensionMismatch, EmbedderMismatch, InvalidValue, CorruptStore, StoreBusy, DiskTrouble, MissingExtra
        """
        from memsift.durable import DurableStore
        from memsift.storage.namespaces import Settings, checked_embedder, checked_name

        settings = Settings(
            checked_name(namespace),
            None if dim is None else checks.integer(dim, "dim", 1, 65_536),
            None if budget is None else Budget.of(budget),
            None if policy is None else _policy(policy),
            None
            if low_watermark is None
            else checks.fraction(low_watermark, "low_watermark", zero=False),
            None if archive is None else Budget(bytes=0) if archive == 0 else Budget.of(archive),
            None if grace_seconds is None else checks.at_least_zero(grace_seconds, "grace_seconds"),
            None if index is None else checks.one_of(index, "index", indexes.KINDS),
            checked_embedder(embedder),
        )
        return DurableStore(
            path,
            settings,
            durability=durability,
            busy_timeout=checks.at_least_zero(busy_timeout, "busy_timeout"),
            touch_flush_seconds=checks.at_least_zero(touch_flush_seconds, "touch_flush_seconds"),
            clock=clock,
            vectors=plane_name(vectors),
        )

    @property
    def budget(self) -> Budget:
        """What the store may hold."""
        return self._memory.budget

    @property
    def policy(self) -> CompactionPolicy:
        """What chooses when the budget is exceeded, with what it has learned in this store."""
        return self._memory.judge

    @property
    def low_watermark(self) -> float:
        """A full store is compacted to this share of its budget."""
        return self._memory.low_watermark

    # ---- adding ----------------------------------------------------------------------------------

    def add(
        self,
        vector: Vector,
        metadata: Metadata | None = None,
        *,
        cost: int | None = None,
        importance: float | None = None,
        pinned: bool = False,
        created_at: Any = None,
    ) -> int:
        """Store one vector and return its id. One case of `add_many`, which see."""
        row = as_unit_row(vector, self.dim)[None, :]
        return int(self._add(row, [metadata], cost, importance, pinned, created_at)[0])

    def add_many(
        self,
        vectors: Vector,
        metadata: Sequence[Metadata | None] | None = None,
        *,
        cost: Any = None,
        importance: Any = None,
        pinned: Any = False,
        created_at: Any = None,
    ) -> Ids:
        """Store vectors and return their ids, (n,) int64. All or nothing.

        The same as adding them one by one: what does not fit leaves by the policy, older entries and earlier ones
        of the batch alike, but an entry never leaves to make room for itself.

        Parameters
        ----------
        vectors : (n, dim) array-like
            Real numbers of any dtype and layout; normalised here.
        metadata : list of n dicts or None
            Strict JSON, at most 16 KiB and 8 levels each.
        cost : int or (n,) ints, at least 0
            Tokens, or whatever `Budget.cost` counts; 1 by default.
        importance : float or (n,) floats in [0, 1], NaN for none
        pinned : bool or (n,) bools
            Pinned entries never leave by a compaction.
        created_at : unix seconds or datetime, or n of them
            The clock's time by default.

        Raises
        ------
        DimensionMismatch, NotFinite, ZeroVector, InvalidType, InvalidValue, InvalidMetadata
            Something in the batch is not allowed; nothing was stored.
        BudgetExceeded
            An entry cannot fit beside the pinned ones; nothing was stored.
        """
        rows = as_unit_rows(vectors, self.dim)
        return self._add(rows, metadata, cost, importance, pinned, created_at)

    def _add(
        self,
        rows: npt.NDArray[np.float32],
        metadata: Any,
        cost: Any,
        importance: Any,
        pinned: Any,
        created_at: Any,
    ) -> Ids:
        cost = 1 if cost is None else cost
        with self._writing:
            now = self._memory.clock()
            since = now if created_at is None else created_at
            table = self._memory.table
            batch = admit(len(rows), metadata, cost, importance, pinned, since, table)
            check_room(self.budget, table, batch)
            return self._memory.add(rows, batch, now)

    # ---- searching -------------------------------------------------------------------------------

    def search(
        self,
        query: Vector,
        k: int = 10,
        *,
        where: dict[str, Any] | None = None,
        touch: bool | int = True,
    ) -> list[Hit]:
        """The `k` entries nearest to a query, by cosine; equal scores by ascending id.

        Parameters
        ----------
        query : (dim,) array-like
        k : int, at least 1
            More than there are entries gives all of them.
        where : dict, optional
            Filter on metadata: equality, `$in $ne $gt $gte $lt $lte $and $or`.
        touch : bool or int
            True touches all hits, n the best n, 0 none; False leaves no trace at all. Any search but a silent one moves
            the clock and enters the context window.
        """
        unit = as_unit_row(query, self.dim, "query")
        k, touched = checks.integer(k, "k", 1), _touched(touch)
        with self._reading:
            memory = self._memory
            out = None if touched is None else memory.similarity_row()
            slots, scores = memory.index.search(unit, k, self._mask(where), out)
            if touched is not None:
                memory.count_query(unit, slots, scores, touched, k, where is not None)
            return memory.table.hits(slots, scores)

    def search_many(
        self,
        queries: Vector,
        k: int = 10,
        *,
        where: dict[str, Any] | None = None,
        touch: bool | int = True,
    ) -> list[list[Hit]]:
        """`search` for each row of `queries` (m, dim), in order, by one matrix product."""
        units = as_unit_rows(queries, self.dim, "queries")
        k, touched = checks.integer(k, "k", 1), _touched(touch)
        with self._reading:
            memory = self._memory
            remembered = 0 if touched is None else len(memory.table.ring.rows)
            found, similarities = memory.index.search_many(units, k, self._mask(where), remembered)
            results: list[list[Hit]] = []
            for i, (slots, scores) in enumerate(found, len(similarities) - len(found)):
                if touched is not None:
                    # Of more queries than the window holds, the first leave it before anybody reads their rows.
                    stays = i >= 0 or not memory.index.sees_all
                    row = memory.similarity_row() if stays else None
                    if row is not None:
                        row[: len(memory.table)] = similarities[i]
                    unit = units[len(results)]
                    memory.count_query(unit, slots, scores, touched, k, where is not None)
                results.append(memory.table.hits(slots, scores))
            return results

    def _mask(self, where: dict[str, Any] | None) -> npt.NDArray[np.bool_] | None:
        return None if where is None else self._memory.table.matching(compile_filter(where))

    # ---- single entries --------------------------------------------------------------------------

    def get(self, ids: Any) -> list[MemoryEntry | None]:
        """The entries of these ids, in the order asked; None where there is none. Touches nothing."""
        with self._reading:
            slots = self._memory.table.slots_of(checks.ids(ids))
            return [None if slot < 0 else self._memory.table.entry(slot) for slot in slots.tolist()]

    def ids(self) -> Ids:
        """Ids of all entries, ascending: (n,) int64."""
        with self._reading:
            return np.sort(self._memory.table.column("ids"))

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Keep other threads from changing anything within. Other processes may still write to a file."""
        with self._reading:
            yield

    @property
    def edition(self) -> int:
        """Another number whenever entries came or left, also by the hands of other processes."""
        with self._reading:
            return self._memory.table.edition

    def holds(self, ids: Any) -> npt.NDArray[np.bool_]:
        """Whether each of these ids is in the store: (m,) bool."""
        with self._reading:
            held: npt.NDArray[np.bool_] = self._memory.table.slots_of(checks.ids(ids)) >= 0
            return held

    def feedback(self, ids: Any, *, used: bool = True) -> None:
        """Say that these hits helped. Being returned is not being used; only this counts as use.

        Raises
        ------
        UnknownEntry
            One of them is not in the store; nothing was counted.
        """
        counts = checks.flag(used, "used")
        with self._writing:
            slots = np.unique(self._slots(ids))
            if counts and slots.size:  # to say that nothing helped is to say nothing
                self._memory.used(slots)

    def metadata(self, ids: Any) -> list[Metadata | None]:
        """Metadata of these ids, in the order asked, `{}` for an entry without any; None where there is no entry."""
        with self._reading:
            return self._memory.table.notes_of(checks.ids(ids))

    def touch(
        self, ids: Any, query: Vector | None = None, *, k: int | None = None, later: bool = False
    ) -> None:
        """Count one access of each of these entries, as if a search had found it alone.

        Parameters
        ----------
        ids : (m,) ints
            Distinct and best first, if there is a query.
        query : (dim,) array-like, optional
            They are what came of a search for it that somebody carried out with `touch=False`: it moves the clock and
            enters the context window, and is written with the next change, as any search is.
        k : int, optional
            They are the `k` nearest of all entries, or all that there are: regret is counted too.
        later : bool
            Write it with the next change, also without a query.

        Raises
        ------
        UnknownEntry
            One of them is not in the store; nothing was counted.
        """
        if query is not None:
            unit = as_unit_row(query, self.dim, "query")
            k = None if k is None else checks.integer(k, "k", 1)
            with self._reading:
                slots, memory = self._slots(ids), self._memory
                rows = memory.table.plane.take(slots).astype(np.float64)
                scores = rows @ unit.astype(np.float64)
                if len(memory.table.ring.rows):
                    memory.table.ring.skip(memory.context.next_row)
                asked, filtered = (slots.size, True) if k is None else (k, False)
                memory.count_query(unit, slots, scores, slots.size, asked, filtered=filtered)
            return
        if checks.flag(later, "later"):
            with self._reading:
                self._memory.touch_later(np.unique(self._slots(ids)))
            return
        with self._writing:
            slots = np.unique(self._slots(ids))
            if slots.size:
                self._memory.touch(slots)

    def pin(self, ids: Any) -> None:
        """Pinned entries never leave by a compaction; `delete` still removes them."""
        with self._writing:
            self._set_pinned(ids, True)

    def unpin(self, ids: Any) -> None:
        """Let a policy judge these entries again."""
        with self._writing:
            self._set_pinned(ids, False)

    def update(self, id_: int, **changes: Any) -> None:
        """Replace parts of an entry: `vector`, `metadata`, `cost`, `importance`. Its id and its history stay.

        Raises
        ------
        BudgetExceeded
            It no longer fits beside the pinned entries; nothing was changed.
        """
        unknown = sorted(changes.keys() - {"vector", "metadata", "cost", "importance"})
        if unknown:
            raise InvalidType(
                f"update takes vector, metadata, cost and importance; got {', '.join(unknown)[:60]}"
            )
        with self._writing:
            slot = int(self._slots(checks.integer(id_, "id_", 0))[0])
            table = self._memory.table
            old = table.entry(slot)
            unit = as_unit_row(changes["vector"], self.dim) if "vector" in changes else None
            note = changes.get("metadata", old.metadata)
            values = (
                changes.get("cost", old.cost),
                changes.get("importance", old.importance),
                old.pinned,
            )
            batch = admit(1, [note], *values, old.created_at, table)
            check_room(self.budget, table, batch, replacing=slot)
            self._memory.replace(slot, batch, unit)

    def delete(self, ids: Any) -> None:
        """Remove entries, pinned or not.

        Raises
        ------
        UnknownEntry
            One of them is not in the store; nothing was removed.
        """
        with self._writing:
            self._memory.delete(self._slots(ids))

    # ---- forgetting ------------------------------------------------------------------------------

    def plan(
        self,
        target: Budget | float | None = None,
        policy: CompactionPolicy | None = None,
        context: Vector | None = None,
        *,
        force: bool = False,
    ) -> Plan:
        """What would be forgotten. Changes nothing.

        Parameters
        ----------
        target : int (entries), float (share of the entries held, rounded up), Budget, or None
            What shall remain; None means the low watermark of the store's budget. Keeping nothing at all needs
            `force=True`.
        policy : CompactionPolicy, optional
            The store's own by default.
        context : (w, dim) array-like, optional
            Queries to judge coherence by, in place of the store's last ones.

        Raises
        ------
        BudgetExceeded
            The pinned entries alone exceed the target.
        """
        self._settle()
        self._prepare()
        with self._reading:
            view, revision = self._memory.view(), self._memory.revision
            chosen = self.policy if policy is None else _policy(policy)
            wanted, regret = self._target(target, force), self._memory.ghosts.regret()
        try:
            # Thinking holds nobody up, unless the vectors that it thinks about are moved meanwhile.
            plan = self._choose(view, chosen, wanted, context, revision, force)
        except StaleView:
            with self._reading:
                view, revision = self._memory.view(), self._memory.revision
                plan = self._choose(view, chosen, wanted, context, revision, force)
        return replace(plan, regret=regret)

    def _prepare(self) -> None:
        """Do ahead, in small parts, most of what a large store's next plan needs the lock for."""
        table, context = self._memory.table, self._memory.context
        if len(table) < LARGE:
            return
        for name in COLUMNS:
            with self._lock:
                table.snapshots.of(name, table.column(name))
            time.sleep(PAUSE_SECONDS)
        more = True
        while more:
            with self._lock:
                more = table.ring.fill(table.vectors, context, self._part)
            time.sleep(PAUSE_SECONDS)

    def _target(self, target: Budget | float | None, force: bool) -> Budget:
        held = len(self._memory.table)
        force = checks.flag(force, "force")
        return target_of(target, held, self.budget, self.low_watermark, force)

    def _choose(
        self,
        view: MemoryView,
        policy: CompactionPolicy,
        target: Budget,
        context: Vector | None,
        revision: int,
        force: bool,
    ) -> Plan:
        if context is not None:
            view = view.with_context(context)
        plan = self._memory.plan(view, policy, target, revision)
        if len(view) and not plan.keep.any() and not force:
            raise InvalidValue(
                f"target must leave at least one entry, unless force=True; got {target}"
            )
        return plan

    def apply(self, plan: Plan) -> Compaction:
        """Do what a plan says, sparing every victim that was touched, used, changed or pinned since it was made.

        In a store in RAM, many victims leave in parts, and other threads may add and search in between; what they touch
        then is spared as well. In a file, all leave in one transaction.
        """
        if not isinstance(plan, Plan):
            raise InvalidType(f"plan must be a Plan; got {type(plan).__name__}")
        if plan.origin is not self._memory.identity:
            raise InvalidValue("plan must be one that this store made; got another's")
        if self._memory.sink is None and len(plan) > self._part:
            return self._apply_in_parts(plan)
        with self._writing:
            return self._memory.apply(plan)

    def _apply_in_parts(self, plan: Plan) -> Compaction:
        """`apply` of many victims in RAM: others get their turn after every few of them."""
        steps = leaving(self._memory, plan, self._part)
        try:
            while True:
                with self._lock:
                    try:
                        next(steps)
                    except StopIteration as end:
                        done: Compaction = end.value
                        break
                time.sleep(PAUSE_SECONDS)
        finally:
            with self._lock:
                steps.close()
        give_back(self._memory.table, self._lock)
        return done

    @property
    def _part(self) -> int:
        """Victims that leave while others wait."""
        return max(256, PART_BYTES // (4 * self.dim))

    def compact(
        self,
        target: Budget | float | None = None,
        policy: CompactionPolicy | None = None,
        context: Vector | None = None,
        *,
        force: bool = False,
    ) -> Compaction:
        """`plan`, then `apply`."""
        with self._writing:
            self._settle()
            chosen = self.policy if policy is None else _policy(policy)
            wanted, revision = self._target(target, force), self._memory.revision
            view = self._memory.passing_view()
            plan = self._choose(view, chosen, wanted, context, revision, force)
            return self._memory.apply(plan)

    @property
    def last_compaction(self) -> Compaction | None:
        """What the last compaction did, an automatic one in an `add` as well."""
        return self._memory.last_compaction

    def _settle(self) -> None:
        """Before a plan: a durable store writes the touches that wait."""

    # ---- leaving and coming back -----------------------------------------------------------------

    def save_rvf(self, path: str | os.PathLike[str]) -> None:
        """Write the store as one .rvf file (0600), whole or not at all; what was there stays until then.

        Other tools read its vectors and ids; `load_rvf` reads everything. Metadata is in it in clear.
        """
        from memsift import exchange

        with self._reading:
            exchange.save(self._memory, path, self._bodies())

    @classmethod
    def load_rvf(
        cls,
        path: str | os.PathLike[str],
        budget: Budget | int | None = None,
        policy: CompactionPolicy | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> MemoryStore:
        """A store in RAM of what a .rvf file holds: ids, counters, clocks and window as they were.

        Budget and policy are the file's unless given. A file of other tools gives vectors and ids; the rest is
        as if they had been added in the order of their ids.

        Raises
        ------
        CorruptStore
            Naming the section and the offset.
        """
        from memsift import exchange

        snapshot = exchange.load(path)
        known, chosen, watermark = exchange.settings_of(snapshot)
        made = MemoryStore(
            snapshot.dim,
            known if budget is None else Budget.of(budget),
            chosen if policy is None else policy,
            low_watermark=watermark,
            clock=clock,
        )
        with made._writing:
            exchange.fill(made._memory, snapshot)
        return made

    def _bodies(self) -> list[bytes] | None:
        """Audit records to go with an export; a store in RAM has none."""
        return None

    def record(self, log: AccessLog | None) -> None:
        """Write down in `log` what is stored, asked and used from now on; None ends it.

        Vectors, ids and costs, never text or metadata: what `memsift simulate` lives again. What the store holds
        already comes first.
        """
        with self._writing:
            if log is not None:
                log.holds = held_by(self._memory)
                view = self._memory.view()
                log.begin(view.ids, view.vectors, view.cost, view.created_at)
            self._memory.log = log

    # ---- looking ---------------------------------------------------------------------------------

    def stats(self, *, probe: bool = False) -> Stats:
        """Figures of this moment.

        Parameters
        ----------
        probe : bool
            Also measure `index.recall`: what the last queries (or some entries, if there were none) find by the index,
            of the best ten that an exact search finds.
        """
        wanted = checks.flag(probe, "probe")
        with self._reading:
            table, index = self._memory.table, self._memory.index
            state = index.state()
            if wanted:
                queries = self._memory.context.recent()
                state = replace(state, recall=recall(index, table.vectors, queries))
            return Stats(
                entries=len(table),
                pinned=int(np.count_nonzero(table.column("pinned"))),
                size=table.size,
                budget=self.budget,
                tick=self._memory.tick,
                policy=policy_name(self.policy),
                bytes=footprint(self._memory),
                vectors=table.plane.name,
                cold_bytes=table.plane.cold_bytes,
                regret=self._regret(),
                index=state,
                crowding=self._memory.crowding.state(),
                compactor=None if self._compactor is None else self._compactor.state(),
                **self._memory.counts,
            )

    def wait_for_index(self, seconds: float = 60.0) -> bool:
        """Wait until the index has nothing left to do in the background; whether that came true in time.

        Nobody has to: meanwhile, searches are answered by what is there.
        """
        patience = checks.at_least_zero(seconds, "seconds")
        with self._reading:
            index = self._memory.index
        return index.settle(patience)

    def _regret(self) -> Regret:
        return self._memory.ghosts.regret()

    def view(self) -> MemoryView:
        """A frozen view of all entries, as policies see it."""
        with self._reading:
            return self._memory.view()

    def __len__(self) -> int:
        with self._reading:  # amid an addition there may be one too many
            return len(self._memory.table)

    def __contains__(self, id_: object) -> bool:
        try:
            wanted = checks.ids(id_, "id")
        except (InvalidType, InvalidValue):
            return False
        with self._reading:
            return wanted.size == 1 and int(self._memory.table.slots_of(wanted)[0]) >= 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what runs in the background. A store in RAM can be used further."""
        if self._compactor is not None:
            self._compactor.close()
        self._memory.index.close()
        self._memory.crowding.close()

    # Set by `Compactor.start`.
    _compactor: Compactor | None = None

    def _usable(self) -> bool:
        """Whether calls can do anything here."""
        return True

    def __repr__(self) -> str:
        return f"MemoryStore({len(self)} entries of dim {self.dim}, budget {self.budget}, {policy_name(self.policy)})"

    def _slots(self, ids: Any) -> kernels.Rows:
        wanted = checks.ids(ids)
        slots = self._memory.table.slots_of(wanted)
        if (slots < 0).any():
            missing = wanted[slots < 0]
            more = f" and {missing.size - 5} more" if missing.size > 5 else ""
            raise UnknownEntry(
                f"ids must be in the store; got {', '.join(map(str, missing[:5]))}{more}, which are not"
            )
        return slots

    def _set_pinned(self, ids: Any, pinned: bool) -> None:
        slots = self._slots(ids)
        self._memory.table.write("pinned", slots, pinned)
        self._memory.changed(slots)


def _touched(touch: bool | int) -> int | None:
    """How many hits a search touches; None for a search that leaves no trace."""
    if touch is True:
        return checks.LARGEST_INT
    return None if touch is False else checks.integer(touch, "touch", 0)


def _policy(policy: object) -> CompactionPolicy:
    if isinstance(policy, type) or not isinstance(policy, CompactionPolicy):
        raise InvalidType(
            f"policy must be a CompactionPolicy such as CoherencePolicy(); got {checks.shown(policy)}"
        )
    if not isinstance(policy.name, str) or not 1 <= len(policy.name) <= 100:
        raise InvalidType(
            f"a policy's name must be text of 1 to 100 characters; got {policy.name!r:.60}"
        )
    return policy
