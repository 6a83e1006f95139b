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
from memsift.allowance import check_room, target_of
from memsift.budget import Budget
from memsift.checks import Metadata
from memsift.errors import InvalidType, InvalidValue, UnknownEntry
from memsift.index import compile_filter
from memsift.memory import Memory
from memsift.plan import Plan, make_plan
from memsift.policies.base import CompactionPolicy, policy_name
from memsift.policies.reference import CoherencePolicy
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
        self._memory = Memory(self.dim, self.budget, self.policy, self.low_watermark, clock)
        self._lock = threading.RLock()

    # ---- adding ----------------------------------------------------------------------------------

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
        cost = 1 if cost is None else cost
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
        with self._lock:
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
            Whether the search counts: True touches all hits, n the best n, False leaves no trace at all. A search that
            counts moves the clock and enters the context window.
        """
        unit = vectors.as_unit_row(query, self.dim, "query")
        k, touched = checks.integer(k, "k", 1), _touched(touch)
        with self._lock:
            memory = self._memory
            out = None if touched is None else memory.similarity_row()
            slots, scores = memory.index.search(unit, k, self._mask(where), out)
            if touched is not None:
                memory.count_query(unit, slots[:touched])
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
        units = vectors.as_unit_rows(queries, self.dim, "queries")
        k, touched = checks.integer(k, "k", 1), _touched(touch)
        with self._lock:
            memory = self._memory
            remembered = 0 if touched is None else len(memory.table.ring.rows)
            found, similarities = memory.index.search_many(units, k, self._mask(where), remembered)
            results: list[list[Hit]] = []
            for i, (slots, scores) in enumerate(found, len(similarities) - len(found)):
                if touched is not None:
                    row = memory.similarity_row()
                    if row is not None and i >= 0:
                        row[: len(memory.table)] = similarities[i]
                    memory.count_query(units[len(results)], slots[:touched])
                results.append(memory.table.hits(slots, scores))
            return results

    def _mask(self, where: dict[str, Any] | None) -> npt.NDArray[np.bool_] | None:
        return None if where is None else self._memory.table.matching(compile_filter(where))

    # ---- single entries --------------------------------------------------------------------------

    def get(self, ids: Any) -> list[MemoryEntry | None]:
        """The entries of these ids, in the order asked; None where there is none. Touches nothing."""
        with self._lock:
            slots = self._memory.table.slots_of(checks.ids(ids))
            return [None if slot < 0 else self._memory.table.entry(slot) for slot in slots.tolist()]

    def holds(self, ids: Any) -> npt.NDArray[np.bool_]:
        """Whether each of these ids is in the store: (m,) bool."""
        with self._lock:
            held: npt.NDArray[np.bool_] = self._memory.table.slots_of(checks.ids(ids)) >= 0
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
            self._memory.table.count("use_count", slots)
            self._memory.changed(slots)

    def pin(self, ids: Any) -> None:
        """Pinned entries never leave by a compaction; `delete` still removes them."""
        with self._lock:
            self._set_pinned(ids, True)

    def unpin(self, ids: Any) -> None:
        """Let a policy judge these entries again."""
        with self._lock:
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
                f"update takes vector, metadata, cost and importance; got {', '.join(unknown)}"
            )
        with self._lock:
            slot = int(self._slots(checks.integer(id_, "id_", 0))[0])
            table = self._memory.table
            old = table.entry(slot)
            unit = vectors.as_unit_row(changes["vector"], self.dim) if "vector" in changes else None
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
        with self._lock:
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
        with self._lock:
            wanted = target_of(
                target,
                len(self._memory.table),
                self.budget,
                self.low_watermark,
                checks.flag(force, "force"),
            )
            view = self._memory.view()
            if context is not None:
                view = view.with_context(context)
            chosen = self.policy if policy is None else _policy(policy)
            return make_plan(view, chosen, wanted, view.pinned.copy(), self._memory.revision)

    def apply(self, plan: Plan) -> Compaction:
        """Do what a plan says, sparing every victim that was touched, used, changed or pinned since it was made."""
        if not isinstance(plan, Plan):
            raise InvalidType(f"plan must be a Plan; got {type(plan).__name__}")
        with self._lock:
            return self._memory.apply(plan)

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

    @property
    def last_compaction(self) -> Compaction | None:
        """What the last compaction did, an automatic one in an `add` as well."""
        return self._memory.last_compaction

    # ---- looking ---------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """Figures of this moment."""
        with self._lock:
            table = self._memory.table
            return Stats(
                entries=len(table),
                pinned=int(np.count_nonzero(table.column("pinned"))),
                size=table.size,
                budget=self.budget,
                tick=self._memory.tick,
                policy=policy_name(self.policy),
                bytes=table.allocated,
                **self._memory.counts,
            )

    def view(self) -> MemoryView:
        """A frozen view of all entries, as policies see it."""
        with self._lock:
            return self._memory.view()

    def __len__(self) -> int:
        return len(self._memory.table)

    def __contains__(self, id_: object) -> bool:
        try:
            wanted = checks.ids(id_, "id")
        except (InvalidType, InvalidValue):
            return False
        with self._lock:
            return wanted.size == 1 and int(self._memory.table.slots_of(wanted)[0]) >= 0

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing to do for a store in RAM."""

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
    return policy
