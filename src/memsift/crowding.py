"""How crowded it is around the entries of a large store: measured in the background, remembered, never waited for.

An entry's crowding changes slowly. A decision takes what was measured last and measures those alone that have come
since; once a tenth of the entries came or went, a thread measures all again. Small stores measure at each decision.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from memsift.kernels import Float32, Float64, Rows
from memsift.neighbours import Others, Sample, estimate_for, sample_for, sampled
from memsift.table import EntryTable
from memsift.types import CrowdingState
from memsift.upkeep import Upkeep
from memsift.view import Closeness, MemoryView

Ids = npt.NDArray[np.int64]

# Up to so many entries, all are measured anew at each decision, in a fifth of a second at most (dim 384).
AFRESH = 4096
# A store is measured again once one in so many of its entries came or went.
WORN = 10
# Vectors copied while the store's lock is held.
COPIED = 2048


@dataclass
class Measured:
    """The closeness of entries at one moment.

    Attributes
    ----------
    ids : (n,) int64, ascending
    values : (n,) float64
        NaN for those that left while they were measured.
    sample : Sample
    changes : int
        What the store counted when it began.
    rewritten : set of ids
        Whose vectors have been replaced since.
    """

    ids: Ids
    values: Float64
    sample: Sample
    changes: int
    rewritten: set[int] = field(default_factory=set)

    def of(self, ids: Ids) -> Float64:
        """The values of these ids, NaN where they are not known: (m,)."""
        places = np.minimum(np.searchsorted(self.ids, ids), self.ids.size - 1)
        known = self.ids[places] == ids
        known &= ~np.isin(ids, np.fromiter(self.rewritten, np.int64, len(self.rewritten)))
        return np.where(known, self.values[places], np.nan)

    def without(self, ids: Ids) -> Measured:
        """The same as if these had never been."""
        stay = ~np.isin(self.ids, ids)
        rewritten = self.rewritten - set(ids.tolist())
        return Measured(self.ids[stay], self.values[stay], self.sample, self.changes, rewritten)


class Known:
    """What a view is given: what was known when it was made, and measures of whoever was not."""

    def __init__(self, measured: dict[int, Measured]) -> None:
        self._measured = {
            neighbours: Measured(m.ids, m.values, m.sample, m.changes, m.rewritten.copy())
            for neighbours, m in measured.items()
        }
        self._found: dict[int, Closeness] = {}

    def closeness(self, view: MemoryView, neighbours: int) -> Closeness:
        """That of all entries of the view, always the same."""
        if neighbours not in self._found:
            self._found[neighbours] = self._closeness(view, neighbours)
        return self._found[neighbours]

    def _closeness(self, view: MemoryView, neighbours: int) -> Closeness:
        n, last = len(view), self._measured.get(neighbours)
        values, sample, same = np.full(n, np.nan), estimate_for(n, neighbours), True
        if last is not None and last.ids.size:
            known = last.of(view.ids)
            # What says something of a few alone is no measure for the others.
            if 2 * np.count_nonzero(np.isnan(known)) <= n:
                values, sample, same = known, last.sample, last.ids.size == n
        unknown = np.flatnonzero(np.isnan(values))
        values[unknown] = view.compared(unknown, sample)
        at_once = unknown.size == n or (same and not unknown.size)
        return Closeness(values, at_once and sample == sample_for(n, neighbours))


class Crowding:
    """Keeps what is known up to date, if anybody wants to know.

    Parameters
    ----------
    table : EntryTable
    lock : RLock
        Held by everybody who changes the table.
    crowds : set of int
        To how many nearest others the store's policy wants to know the closeness of each entry.
    """

    def __init__(self, table: EntryTable, lock: threading.RLock, crowds: frozenset[int]) -> None:
        self.lock = lock
        self._table, self._crowds = table, sorted(crowds)
        self._measured: dict[int, Measured] = {}
        self._changes = 0
        self._job: Job | None = None
        self._upkeep = Upkeep(self, "memsift-crowding")

    def remembered(self, next_id: int) -> Known | None:
        """What a view of now knows; None in a store that is small, or whose policy does not ask."""
        self.wake(next_id)
        return Known(self._measured) if self._crowds and len(self._table) > AFRESH else None

    def wake(self, next_id: int) -> None:
        """See to it that what is due gets done. The caller holds the lock."""
        if self._crowds:
            # Additions since ever, and removals, but for entries that came back.
            self._changes = next_id + (next_id - len(self._table))
            self._upkeep.wake()

    def rewritten(self, ids: Iterable[int]) -> None:
        """The vectors of these ids are others now. The caller holds the lock."""
        if self._crowds:
            gone = [int(i) for i in ids]
            for measured in self._measured.values():
                measured.rewritten.update(gone)
            if self._job is not None:
                self._job.rewritten.update(gone)

    def erased(self, ids: Ids) -> None:
        """Nothing may be kept of these entries, nor a copy of their vectors. The caller holds the lock."""
        self._job = None
        self._measured = {k: measured.without(ids) for k, measured in self._measured.items()}

    def settle(self, seconds: float = 60.0) -> bool:
        """Wait until nothing is due; whether that came true in time. Not to be called with the lock held."""
        return self._upkeep.settle(seconds)

    def close(self) -> None:
        """End the thread."""
        self._upkeep.close()

    def state(self) -> CrowdingState | None:
        """Figures of this moment; None if nobody wants to know."""
        if not self._crowds:
            return None
        known = min((m.ids.size for m in self._measured.values()), default=0)
        return CrowdingState(known, self._upkeep.running, self._upkeep.error)

    @property
    def nbytes(self) -> int:
        return sum(m.ids.nbytes + m.values.nbytes for m in self._measured.values())

    # ---- in the background -----------------------------------------------------------------------

    def due(self) -> bool:
        """Whether there is something to measure."""
        return self._job is not None or any(self._worn(crowd) for crowd in self._crowds)

    def _worn(self, crowd: int) -> bool:
        n, last = len(self._table), self._measured.get(crowd)
        if n <= AFRESH:
            return False
        if last is None:
            return True
        return abs(self._changes - last.changes) + len(last.rewritten) >= max(1, n // WORN)

    def step(self) -> None:
        """Begin a measurement, go on with it, or make it known."""
        job = self._job
        if job is None:
            with self._upkeep.held():
                worn = [crowd for crowd in self._crowds if self._worn(crowd)]
                if worn:
                    ids = np.sort(self._table.column("ids"))
                    self._job = Job(worn[0], ids, self._changes, self._table.dim)
            return
        part = job.wants()
        if part.size:
            with self._upkeep.held():
                slots = self._table.slots_of(part)
                there = slots >= 0
                rows = self._table.vectors[slots[there]]
            job.take(part, there, rows)
            return
        with self._upkeep.held():
            if self._job is job:
                self._job = None
                self._measured = {**self._measured, job.neighbours: job.measured}

    def failed(self) -> None:
        """A step has failed: begin anew."""
        self._job = None


class Job:
    """One measurement, a part at a time: first whom all are compared with, then all."""

    def __init__(self, neighbours: int, ids: Ids, changes: int, dim: int) -> None:
        self.neighbours = neighbours
        sample = sample_for(ids.size, neighbours)
        self.measured = Measured(ids, np.full(ids.size, np.nan), sample, changes)
        self.rewritten = self.measured.rewritten
        self._chosen = ids[sampled(ids, sample.size)]
        self._vectors = np.empty((self._chosen.size, dim), np.float32)
        self._there = np.zeros(self._chosen.size, np.bool_)
        self._copied = self._done = 0
        self._others: Others | None = None
        self._own: Rows = np.full(ids.size, -1)

    def wants(self) -> Ids:
        """Whose vectors come next; nobody's once all is measured."""
        if self._others is None:
            return self._chosen[self._copied : self._copied + COPIED]
        return self.measured.ids[self._done : self._done + self._others.block]

    def take(self, ids: Ids, there: npt.NDArray[np.bool_], rows: Float32) -> None:
        """Of those that `wants` named, these are still there, with these vectors."""
        if self._others is None:
            part = slice(self._copied, self._copied + ids.size)
            self._there[part] = there
            self._vectors[part][there] = rows
            self._copied += ids.size
            if self._copied == self._chosen.size:
                living = self._chosen[self._there]
                self._own[np.searchsorted(self.measured.ids, living)] = np.arange(living.size)
                self._others = Others(self._vectors[self._there], self.measured.sample.nearest)
            return
        part = slice(self._done, self._done + ids.size)
        own = self._own[part][there]
        self.measured.values[part][there] = self._others.closeness(rows, own)
        self._done += ids.size
