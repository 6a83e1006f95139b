"""The store: a table, an index, a window of queries, and a budget that is true after every call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift import checks, kernels, vectors
from memsift.admission import admit
from memsift.budget import Budget, Size
from memsift.checks import Metadata
from memsift.context import ContextWindow
from memsift.errors import BudgetExceeded, InvalidType, InvalidValue, UnknownEntry
from memsift.index import ExactIndex, compile_filter
from memsift.plan import Plan, make_plan
from memsift.policies.base import CompactionPolicy, policy_name
from memsift.policies.reference import CoherencePolicy
from memsift.table import ENTRY_COLUMNS, EntryTable
from memsift.types import Compaction, Hit, Ids, MemoryEntry, Stats
from memsift.view import MemoryView

Vector = npt.ArrayLike


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

    >>> store = MemoryStore(dim=2, budget=2)
    >>> ids = store.add_many([[1, 0], [0, 1], [1, 1]], metadata=[{"n": i} for i in range(3)])
    >>> [(hit.id, hit.score) for hit in store.search([1, 0.1], k=1)]
    [(2, 0.773957299)]
    """

    def __init__(
        self,
        dim: int,
        budget: Budget | int | None = None,
        policy: CompactionPolicy | None = None,
        *,
        low_watermark: float = 0.97,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.dim = checks.integer(dim, "dim", 1, 65_536)
        self.budget = Budget.of(budget)
        self.policy = CoherencePolicy() if policy is None else _policy(policy)
        self.low_watermark = checks.fraction(low_watermark, "low_watermark", zero=False)
        self._clock = clock
        window = int(getattr(self.policy, "queries", 0))
        self._context = ContextWindow(max(20, window), self.dim)
        self._table = EntryTable(
            self.dim, self._context.window if window else 0, self._ceiling(window)
        )
        self._index = ExactIndex(self._table)
        self._tick = 0
        self._next_id = 0
        self._revision = 0
        self._counts = dict.fromkeys(
            ("added", "evicted", "deleted", "searches", "compactions", "forced_compactions"), 0
        )
        self.last_compaction: Compaction | None = None
        self._lock = threading.RLock()

    # ---- adding ----------------------------------------------------------------------------------------------

    def add(
        self,
        vector: Vector,
        metadata: Metadata | None = None,
        *,
        cost: int = 1,
        importance: float | None = None,
        pinned: bool = False,
        created_at: Any = None,
    ) -> int:
        """Store one vector and return its id. One case of `add_many`, which see."""
        row = vectors.as_unit_row(vector, self.dim)[None, :]
        return int(self._add(row, [metadata], cost, importance, pinned, created_at)[0])

    def add_many(
        self,
        vectors_: Vector,
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
        vectors_ : (n, dim) array-like
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
        rows = vectors.as_unit_rows(vectors_, self.dim)
        return self._add(
            rows, metadata, 1 if cost is None else cost, importance, pinned, created_at
        )

    def _add(
        self,
        rows: npt.NDArray[np.float32],
        metadata: Sequence[Metadata | None] | None,
        cost: Any,
        importance: Any,
        pinned: Any,
        created_at: Any,
    ) -> Ids:
        with self._lock:
            now = self._clock()
            batch = admit(
                rows,
                metadata,
                cost,
                importance,
                pinned,
                now if created_at is None else created_at,
                self._table,
            )
            self._check_room(batch.nbytes, batch.columns["cost"], batch.columns["pinned"])
            first = self._next_id
            start = 0
            while start < len(rows):
                stop = start + self._fitting(batch.nbytes[start:], batch.columns["cost"][start:])
                part = slice(start, stop)
                ticks = np.arange(self._tick + 1, self._tick + 1 + stop - start)
                self._table.append(
                    rows[part],
                    batch.metadata[part] if batch.metadata else None,
                    ids=np.arange(self._next_id, self._next_id + stop - start),
                    created_tick=ticks,
                    accessed_tick=ticks,
                    accessed_at=now,
                    nbytes=batch.nbytes[part],
                    **{name: column[part] for name, column in batch.columns.items()},
                )
                self._tick += stop - start
                self._next_id += stop - start
                self._counts["added"] += stop - start
                start = stop
                self._hold_budget(newcomer=len(self._table) - 1)
            self._revision += 1
            return np.arange(first, self._next_id, dtype=np.int64)

    # ---- searching -------------------------------------------------------------------------------------------

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
            Whether the search counts: True touches all hits, n the best n, False leaves no trace at all. A search that
            counts moves the clock and enters the context window.
        """
        unit = vectors.as_unit_row(query, self.dim, "query")
        k = checks.integer(k, "k", 1)
        touched = k if touch is True else 0 if touch is False else checks.integer(touch, "touch", 0)
        counts = touch is not False
        with self._lock:
            mask = None if where is None else self._mask(where)
            ring = self._table.ring.rows
            out = ring[self._context.next_row] if counts and len(ring) else None
            slots, scores = self._index.search(unit, k, mask, out)
            if counts:
                self._count_query(unit, slots[:touched])
            return self._hits(slots, scores)

    def search_many(
        self,
        queries: Vector,
        k: int = 10,
        *,
        where: dict[str, Any] | None = None,
        touch: bool | int = True,
    ) -> list[list[Hit]]:
        """`search` for each row of `queries` (m, dim), in order, by one matrix product."""
        units = vectors.as_unit_rows(queries, self.dim, "queries")
        k = checks.integer(k, "k", 1)
        touched = k if touch is True else 0 if touch is False else checks.integer(touch, "touch", 0)
        counts = touch is not False
        with self._lock:
            mask = None if where is None else self._mask(where)
            ring = self._table.ring.rows
            found, similarities = self._index.search_many(
                units, k, mask, last=len(ring) if counts else 0
            )
            results = []
            for i, (slots, scores) in enumerate(found):
                if counts:
                    place = i - (len(found) - len(similarities))
                    if place >= 0:
                        ring[self._context.next_row, : len(self._table)] = similarities[place]
                    self._count_query(units[i], slots[:touched])
                results.append(self._hits(slots, scores))
            return results

    def _count_query(self, unit: npt.NDArray[np.float32], touched: kernels.Rows) -> None:
        self._tick += 1
        self._revision += 1
        self._counts["searches"] += 1
        self._context.push(unit)
        if touched.size:
            table = self._table
            table.write("accessed_tick", touched, self._tick)
            table.write("accessed_at", touched, self._clock())
            table.write("revision", touched, self._revision)
            table.count("access_count", touched)

    def _hits(self, slots: kernels.Rows, scores: kernels.Float64) -> list[Hit]:
        ids = self._table.column("ids")[slots].tolist()
        metadata = self._table.all_metadata[slots].tolist()
        return [
            Hit(id_, score, {} if meta is None else checks.thawed(meta))
            for id_, score, meta in zip(ids, scores.tolist(), metadata, strict=True)
        ]

    def _mask(self, where: dict[str, Any]) -> npt.NDArray[np.bool_]:
        test = compile_filter(where)
        nothing: Metadata = {}
        return np.fromiter(
            (test(m or nothing) for m in self._table.all_metadata), np.bool_, len(self._table)
        )

    # ---- single entries --------------------------------------------------------------------------------------

    def get(self, ids: Any) -> list[MemoryEntry | None]:
        """The entries of these ids, in the order asked; None where there is none. Touches nothing."""
        with self._lock:
            slots = self._table.slots_of(checks.ids(ids))
            return [None if slot < 0 else self._entry(slot) for slot in slots.tolist()]

    def holds(self, ids: Any) -> npt.NDArray[np.bool_]:
        """Whether each of these ids is in the store: (m,) bool."""
        with self._lock:
            held: npt.NDArray[np.bool_] = self._table.slots_of(checks.ids(ids)) >= 0
            return held

    def feedback(self, ids: Any, *, used: bool = True) -> None:
        """Say that these hits helped. Being returned is not being used; only this counts as use.

        Raises
        ------
        UnknownEntry
            One of them is not in the store; nothing was counted.
        """
        if not checks.flag(used, "used"):
            self._slots(ids)
            return
        with self._lock:
            slots = np.unique(self._slots(ids))
            self._table.count("use_count", slots)
            self._changed(slots)

    def pin(self, ids: Any) -> None:
        """Pinned entries never leave by a compaction; `delete` still removes them."""
        with self._lock:
            slots = self._slots(ids)
            self._table.write("pinned", slots, True)
            self._changed(slots)

    def unpin(self, ids: Any) -> None:
        """Let a policy judge these entries again."""
        with self._lock:
            slots = self._slots(ids)
            self._table.write("pinned", slots, False)
            self._changed(slots)

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
                f"update takes vector, metadata, cost and importance; got {', '.join(unknown)}"
            )
        with self._lock:
            slots = self._slots(checks.integer(id_, "id_", 0))
            slot = int(slots[0])
            old = self._entry(slot)
            unit = vectors.as_unit_row(changes["vector"], self.dim) if "vector" in changes else None
            batch = admit(
                old.vector[None, :],
                [changes.get("metadata", old.metadata)],
                changes.get("cost", old.cost),
                changes.get("importance", old.importance),
                old.pinned,
                old.created_at,
                self._table,
            )
            self._check_room(
                batch.nbytes, batch.columns["cost"], batch.columns["pinned"], replacing=slot
            )
            if unit is not None:
                self._table.write_vector(slot, unit)
            self._table.write_metadata(slot, batch.metadata[0] if batch.metadata else None)
            self._table.write("nbytes", slots, batch.nbytes)
            for name in ("cost", "importance"):
                self._table.write(name, slots, batch.columns[name])
            self._changed(slots)
            self._hold_budget(newcomer=slot)

    def delete(self, ids: Any) -> None:
        """Remove entries, pinned or not.

        Raises
        ------
        UnknownEntry
            One of them is not in the store; nothing was removed.
        """
        with self._lock:
            keep = np.ones(len(self._table), np.bool_)
            keep[self._slots(ids)] = False
            self._counts["deleted"] += int(np.count_nonzero(~keep))
            self._table.remove(keep)
            self._revision += 1

    # ---- forgetting ------------------------------------------------------------------------------------------

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
        target : int (entries), float (share of the entries held, above 0 up to 1), Budget, or None
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
        with self._lock:
            wanted = self._target(target, checks.flag(force, "force"))
            view = self._view()
            if context is not None:
                view = view.with_context(context)
            chosen = self.policy if policy is None else _policy(policy)
            return make_plan(view, chosen, wanted, view.pinned.copy(), self._revision)

    def apply(self, plan: Plan) -> Compaction:
        """Do what a plan says, sparing every victim that was touched, used, changed or pinned since it was made."""
        if not isinstance(plan, Plan):
            raise InvalidType(f"plan must be a Plan; got {type(plan).__name__}")
        with self._lock:
            before = self._table.size
            slots = self._table.slots_of(plan.victims)
            slots = slots[slots >= 0]
            changed = self._table.column("revision")[slots] > plan.revision
            changed |= self._table.column("pinned")[slots]
            spared = np.sort(self._table.column("ids")[slots[changed]])
            going = slots[~changed]
            dropped = np.sort(self._table.column("ids")[going])
            if going.size:
                keep = np.ones(len(self._table), np.bool_)
                keep[going] = False
                self._table.remove(keep)
                self._revision += 1
            forced = 2 * dropped.size > before.entries
            self._counts["evicted"] += dropped.size
            self._counts["compactions"] += 1
            self._counts["forced_compactions"] += forced
            self.last_compaction = Compaction(
                dropped, spared, None, before, self._table.size, policy_name(plan.policy), forced
            )
            return self.last_compaction

    def compact(
        self,
        target: Budget | float | None = None,
        policy: CompactionPolicy | None = None,
        context: Vector | None = None,
        *,
        force: bool = False,
    ) -> Compaction:
        """`plan`, then `apply`."""
        with self._lock:
            return self.apply(self.plan(target, policy, context, force=force))

    def _target(self, target: Budget | float | None, force: bool) -> Budget:
        n = len(self._table)
        if target is None:
            if not self.budget.limits:
                raise InvalidValue("target must be given for a store without a budget; got None")
            return self.budget.scaled(self.low_watermark)
        if isinstance(target, Budget):
            wanted = target
        elif isinstance(target, (float, np.floating)):
            share = checks.fraction(target, "target as a share of the entries")
            wanted = Budget(entries=max(1, int(share * n + 1e-9))) if share else Budget(bytes=0)
        else:
            entries = checks.integer(target, "target as a number of entries", 0)
            wanted = Budget(entries=entries) if entries else Budget(bytes=0)
        if n and not force and wanted.limits.get("bytes") == 0:
            raise InvalidValue("target must leave at least one entry, unless force=True; got 0")
        return wanted

    # ---- the budget ------------------------------------------------------------------------------------------

    def _fitting(self, nbytes: npt.NDArray[np.int64], cost: npt.NDArray[np.int64]) -> int:
        """How many entries go in before the budget must be looked at: up to the first that exceeds it."""
        size, n = self._table.size, nbytes.size
        over = n
        for unit, limit in self.budget.limits.items():
            if unit == "entries":
                over = min(over, max(0, limit - size.entries))
            else:
                sums = np.cumsum(nbytes if unit == "bytes" else cost) + getattr(size, unit)
                over = min(over, int(np.searchsorted(sums, limit, side="right")))
        return min(n, over + 1)

    def _check_room(
        self,
        nbytes: npt.NDArray[np.int64],
        cost: npt.NDArray[np.int64],
        pinned: npt.NDArray[np.bool_],
        replacing: int | None = None,
    ) -> None:
        """Refuse newcomers of which one could not stay, even if all that may leave left."""
        if not self.budget.limits or not nbytes.size:
            return
        held = self._table.column("pinned").copy()
        if replacing is not None:
            held[replacing] = False
        pins = Size(
            int(np.count_nonzero(held)) + int(np.count_nonzero(pinned)),
            int(self._table.column("nbytes")[held].sum() + nbytes[pinned].sum()),
            int(self._table.column("cost")[held].sum() + cost[pinned].sum()),
        )
        free = ~pinned
        widest = (
            Size(1, int(nbytes[free].max()), int(cost[free].max())) if free.any() else Size(0, 0, 0)
        )
        for unit, excess in self.budget.excess(pins + widest).items():
            limit = self.budget.limits[unit]
            raise BudgetExceeded(
                f"pinned entries and the newcomer must fit into the budget of {limit:,} {unit}; "
                f"they take {limit + excess:,}. Nothing was changed"
            )

    def _hold_budget(self, newcomer: int) -> None:
        """Compact to the low watermark if the budget is exceeded; the newcomer is no candidate."""
        if self.budget.fits(self._table.size):
            return
        view = self._view()
        locked = view.pinned.copy()
        locked[newcomer] = True
        held = Size(
            int(np.count_nonzero(locked)),
            int(view.nbytes[locked].sum()),
            int(view.cost[locked].sum()),
        )
        low = self.budget.scaled(self.low_watermark)
        # What cannot leave may be more than the watermark, though never more than the budget.
        low = Budget(
            **{unit: max(limit, getattr(held, unit)) for unit, limit in low.limits.items()}
        )
        plan = make_plan(view, self.policy, low, locked, self._revision)
        if plan.forced:
            # Half of the store at most, unless the budget itself demands more.
            needed = make_plan(view, self.policy, self.budget, locked, self._revision)
            half = Budget(entries=max(len(view) - len(view) // 2, held.entries))
            plan = (
                needed
                if needed.forced
                else make_plan(view, self.policy, half, locked, self._revision)
            )
        self.apply(plan)

    # ---- looking ---------------------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """Figures of this moment."""
        with self._lock:
            table = self._table
            return Stats(
                entries=len(table),
                pinned=int(np.count_nonzero(table.column("pinned"))),
                size=table.size,
                budget=self.budget,
                tick=self._tick,
                policy=policy_name(self.policy),
                bytes=table.allocated,
                **self._counts,
            )

    def view(self) -> MemoryView:
        """A frozen view of all entries, as policies see it."""
        with self._lock:
            return self._view()

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, id_: object) -> bool:
        try:
            wanted = checks.ids(id_, "id")
        except (InvalidType, InvalidValue):
            return False
        with self._lock:
            return wanted.size == 1 and int(self._table.slots_of(wanted)[0]) >= 0

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing to do for a store in RAM."""

    def __repr__(self) -> str:
        return f"MemoryStore({len(self)} entries of dim {self.dim}, budget {self.budget}, {policy_name(self.policy)})"

    def _view(self) -> MemoryView:
        return self._table.view(self._context, self._tick, self._clock())

    def _entry(self, slot: int) -> MemoryEntry:
        table = self._table
        values = {name: table.column(name)[slot].item() for name in ENTRY_COLUMNS}
        importance = values.pop("importance")
        vector = table.vectors[slot].copy()
        vector.flags.writeable = False
        return MemoryEntry(
            id=values.pop("ids"),
            vector=vector,
            importance=None if importance != importance else importance,
            metadata=checks.thawed(table.metadata(slot) or {}),
            **values,
        )

    def _slots(self, ids: Any) -> kernels.Rows:
        wanted = checks.ids(ids)
        slots = self._table.slots_of(wanted)
        if (slots < 0).any():
            missing = wanted[slots < 0]
            more = f" and {missing.size - 5} more" if missing.size > 5 else ""
            raise UnknownEntry(
                f"ids must be in the store; got {', '.join(map(str, missing[:5]))}{more}, which are not"
            )
        return slots

    def _changed(self, slots: kernels.Rows) -> None:
        self._revision += 1
        self._table.write("revision", slots, self._revision)

    def _ceiling(self, window: int) -> int | None:
        """The most entries that the budget can ever admit, with the one that tips it over."""
        bounds = [self.budget.entries] if self.budget.entries is not None else []
        return min(bounds) + 1 if bounds else None


def _policy(policy: object) -> CompactionPolicy:
    if isinstance(policy, type) or not isinstance(policy, CompactionPolicy):
        raise InvalidType(
            f"policy must be a CompactionPolicy such as CoherencePolicy(); got {checks.shown(policy)}"
        )
    return policy
