"""Touches that wait for the next write: a search must not cost a transaction."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from memsift.context import ContextWindow
from memsift.table import LARGEST_COUNT, EntryTable
from memsift.view import FADE

Ids = npt.NDArray[np.int64]


@dataclass
class Touch:
    """What happened to one entry since the last flush: how many accesses, when the last one was, and what they left."""

    count: int
    tick: int
    at: float
    heat: float
    attention: float

    def faded(self, tick: int) -> float:
        """What is left at `tick` of what was there at the last access."""
        return float(FADE ** max(0, tick - self.tick))


@dataclass
class Pending:
    """Searches that the file does not know yet.

    Attributes
    ----------
    ticks : int
        Searches that counted.
    queries : list of (dim,) float32
        Their vectors, as many as the window holds.
    touches : dict
        By id.
    """

    ticks: int = 0
    queries: list[npt.NDArray[np.float32]] = field(default_factory=list)
    touches: dict[int, Touch] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.ticks > 0

    def copy(self) -> Pending:
        """As it stands: `add` puts new values into the places of old ones."""
        return Pending(self.ticks, self.queries, dict(self.touches))

    def add(
        self,
        query: npt.NDArray[np.float32],
        window: int,
        ids: list[int],
        shares: list[float] | None,
        tick: int,
        at: float,
    ) -> None:
        """A search touched these ids, each of which had a share of the attention, if anybody counts that."""
        self.ticks += 1
        self.queries = [*self.queries, query][-window:]
        nothing = Touch(0, tick, at, 0.0, 0.0)
        for place, id_ in enumerate(ids):
            old = self.touches.get(id_, nothing)
            heat = attention = 0.0
            if shares is not None:
                left = old.faded(tick)
                heat, attention = 1.0 + old.heat * left, shares[place] + old.attention * left
            self.touches[id_] = Touch(old.count + 1, tick, at, heat, attention)

    def shift(self, ticks: int) -> None:
        """Other processes' events came first: ours are so many ticks later."""
        for touch in self.touches.values():
            touch.tick += ticks

    def onto(self, table: EntryTable, fresh: Ids) -> None:
        """Count accesses of entries whose columns were just read from the file, which does not know of them."""
        waiting = np.fromiter(self.touches, np.int64, len(self.touches))
        touched = waiting[np.isin(waiting, fresh)]
        slots = table.slots_of(touched)
        ours = [self.touches[id_] for id_ in touched.tolist()]
        more = np.array([touch.count for touch in ours], np.int64)
        counts = table.column("access_count")[slots]
        table.write("access_count", slots, counts + np.minimum(more, LARGEST_COUNT - counts))
        # What others left there has faded until our last access.
        ages = np.array([touch.tick for touch in ours]) - table.column("accessed_tick")[slots]
        left = FADE ** np.maximum(0, ages)
        for name in ("heat", "attention"):
            added = np.array([getattr(touch, name) for touch in ours])
            table.write(name, slots, table.column(name)[slots] * left + added)

    def mark(self, table: EntryTable) -> None:
        """Write the time of every touch that waits: it may have been shifted."""
        slots = table.slots_of(np.fromiter(self.touches, np.int64, len(self.touches)))
        pairs = zip(slots.tolist(), self.touches.values(), strict=True)
        marks = [(slot, touch.tick, touch.at) for slot, touch in pairs if slot >= 0]
        if marks:
            held, ticks, times = zip(*marks, strict=True)
            table.write("accessed_tick", np.array(held), ticks)
            table.write("accessed_at", np.array(held), times)

    def replay(self, context: ContextWindow) -> None:
        """Push the queries onto a window that was just read from the file."""
        for query in self.queries:
            context.push(query)
