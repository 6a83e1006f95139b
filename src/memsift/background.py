"""Forgetting ahead of time: a thread plans once a store is nearly full, and lets go when nobody is looking.

Additions never wait for it. One that comes before it is through compacts in line, as without it; then its plan is of
no use, and is dropped.
"""

from __future__ import annotations

import threading
import time
import weakref

from memsift import checks
from memsift.allowance import automatic_plan
from memsift.budget import Budget, Size
from memsift.errors import InvalidType, InvalidValue, MemsiftError, StaleView
from memsift.memory import NOBODY, Memory
from memsift.plan import Plan
from memsift.store import MemoryStore
from memsift.types import CompactorState
from memsift.upkeep import Closed, Upkeep

LONGEST_PAUSE_SECONDS = 300.0
# A store may be compacted to all of its budget by additions; ahead of them there would be nothing to do then.
HIGHEST_LOW = 0.97
# So long it sleeps at most before it looks again.
NAP_SECONDS = 0.5
# From this share of the way between `high` and the budget on, it does not wait for a quiet moment.
PRESSING = 0.8


class Compactor:
    """Compacts a store in the background, so that additions seldom have to.

    `start` it; it is closed with its store, and forgotten with it. Several processes may each have one on one file:
    who comes second finds the work done.

    Parameters
    ----------
    store : MemoryStore
        In RAM or in a file.
    high : float in (0, 1], optional
        Share of the budget, in its fullest unit, at which it begins. Halfway from `low` to 1 by default.
    low : float in (0, high), optional
        Share of the budget that it compacts to; the store's `low_watermark`, though at most 0.97, by default. At most
        half of the entries leave in one pass.
    quiet_seconds : float
        A plan is carried out once so much time went by without an addition, a change or a search that touches; at
        once when the budget is nearly full.
    pause_seconds : float
        After an error, or when nothing may leave. The pause doubles each time in a row, up to five minutes.
    """

    def __init__(
        self,
        store: MemoryStore,
        *,
        high: float | None = None,
        low: float | None = None,
        quiet_seconds: float = 0.25,
        pause_seconds: float = 1.0,
    ) -> None:
        if not isinstance(store, MemoryStore):
            raise InvalidType(f"store must be a MemoryStore; got {checks.shown(store)}")
        below = min(store.low_watermark, HIGHEST_LOW) if low is None else low
        self.low = checks.fraction(below, "low", zero=False)
        above = (1.0 + self.low) / 2 if high is None else high
        self.high = checks.fraction(above, "high", zero=False)
        if self.low >= self.high:
            raise InvalidValue(f"low must be below high; got {self.low} and {self.high}")
        self.quiet_seconds = checks.at_least_zero(quiet_seconds, "quiet_seconds")
        self.pause_seconds = checks.at_least_zero(pause_seconds, "pause_seconds")
        self.lock: threading.RLock = store._lock
        self._store = weakref.ref(store)
        self._upkeep = Upkeep(self, "memsift-compactor")
        self._plan: Plan | None = None
        self._seen, self._since = -1, 0.0
        self._not_before, self._pauses = 0.0, 0
        self._error: str | None = None
        self._planned = self._applied = self._evicted = 0

    def start(self) -> Compactor:
        """Watch the store from now on.

        Raises
        ------
        InvalidValue
            The store has another compactor, or this one was closed.
        """
        store = self._store()
        if store is None or self._upkeep.closed:
            raise InvalidValue("a compactor that was closed cannot be started; make another")
        with self.lock:
            if store._compactor not in (None, self):
                raise InvalidValue("store must have no compactor yet; it has one. Close that first")
            store._compactor = self
            store._memory.grown = self.wake
        self.wake()
        return self

    def close(self) -> None:
        """End it; the store goes on without. Closing twice is no error."""
        self._upkeep.close()
        self._plan = None
        store = self._store()
        if store is not None and store._compactor is self:
            store._compactor = None
            store._memory.grown = None

    def wake(self) -> None:
        """See to it that what is due gets done. Additions call this; it does no work of its own."""
        self._upkeep.wake()

    def settle(self, seconds: float = 60.0) -> bool:
        """Wait until nothing is due; whether that came true in time. Not within a transaction."""
        return self._upkeep.settle(checks.at_least_zero(seconds, "seconds"))

    def state(self) -> CompactorState:
        """Figures of this moment."""
        return CompactorState(
            running=self._upkeep.running,
            planned=self._planned,
            applied=self._applied,
            evicted=self._evicted,
            last_error=self._error or self._upkeep.error,
            retry_in=max(0.0, self._not_before - time.monotonic()),
        )

    def __repr__(self) -> str:
        return f"Compactor({self.high:g} -> {self.low:g}, {self.state()})"

    # ---- in the background -----------------------------------------------------------------------

    def due(self) -> bool:
        """Whether there is something to do: the store is nearly full, or a plan lies here."""
        store = self._store()
        if store is None or self._upkeep.closed or not store._usable():
            return False
        return self._plan is not None or self._nearly_full(store._memory)

    def _nearly_full(self, memory: Memory) -> bool:
        # Of a small budget, `low` may be all of it: then there is nothing to gain.
        fits = memory.budget.scaled(self.low).fits(memory.table.size)
        return not fits and occupancy(memory) >= self.high

    def step(self) -> float | None:
        """Plan, or wait, or carry out; how many seconds to wait before the next step."""
        store = self._store()
        left = self._not_before - time.monotonic()
        if store is None or left > 0:
            return None if store is None else min(left, NAP_SECONDS)
        try:
            return self._step(store)
        except (Closed, StaleView):
            # Whose vectors were moved while it thought about them thinks again.
            self._plan = None
            if self._upkeep.closed:
                raise Closed from None
            return self.quiet_seconds
        except Exception as error:
            # Of a stranger's error the kind alone: its words may quote what is stored.
            words = f": {error}" if isinstance(error, MemsiftError) else ""
            self._error = f"{type(error).__name__}{words}"[:200]
            return self._pause()

    def _step(self, store: MemoryStore) -> float | None:
        memory = store._memory
        if not self._nearly_full(memory):
            self._plan = None
            return None
        if self._plan is None:
            self._plan = self._made(store)
            self._planned += 1
            return None if self._plan.victims.size else self._pause()
        wait = self._until_quiet(memory.revision)
        if wait > 0 and occupancy(memory) < self.high + PRESSING * (1.0 - self.high):
            return min(wait, NAP_SECONDS)
        plan, self._plan = self._plan, None
        self._carry_out(store, plan)
        self._pauses = 0
        return None

    def _made(self, store: MemoryStore) -> Plan:
        """A plan for the store as it is: the lock is held only while its columns are copied."""
        with self._upkeep.held():
            store._settle()
            with store._reading:
                memory = store._memory
                view, policy, revision = memory.view(), memory.judge, memory.revision
                budget = memory.budget
        return automatic_plan(view, policy, budget, self.low, NOBODY, revision)

    def _carry_out(self, store: MemoryStore, plan: Plan) -> None:
        with self._upkeep.held(), store._writing:
            # Another process may have made room meanwhile.
            if self._nearly_full(store._memory):
                done = store._memory.apply(plan)
                self._applied += 1
                self._evicted += done.dropped.size

    def _until_quiet(self, revision: int) -> float:
        """Seconds until nothing has happened for long enough, should nothing happen."""
        now = time.monotonic()
        if revision != self._seen:
            self._seen, self._since = revision, now
        return self._since + self.quiet_seconds - now

    def _pause(self) -> float:
        """Do nothing for a while: the first time for a moment, then for longer and longer."""
        self._plan = None
        pause = min(self.pause_seconds * 2.0**self._pauses, LONGEST_PAUSE_SECONDS)
        self._pauses = min(self._pauses + 1, 60)
        self._not_before = time.monotonic() + pause
        return min(pause, NAP_SECONDS)

    def failed(self) -> None:
        """The process forked amid a step: begin anew."""
        self._plan = None


def occupancy(memory: Memory) -> float:
    """The share of the budget that is taken, in the unit that is taken most; 0 without a budget."""
    size, budget = memory.table.size, memory.budget
    return max((_share(size, budget, unit) for unit in budget.limits), default=0.0)


def _share(size: Size, budget: Budget, unit: str) -> float:
    limit: int = getattr(budget, unit)
    taken: int = getattr(size, unit)
    return taken / limit if limit else float(taken > 0)
