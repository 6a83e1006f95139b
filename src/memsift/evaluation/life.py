"""One store's life: a real store is driven through a stream, and what it still finds is counted.

The store under test is the one that users run; only its clock is the trace's. Additions, searches, feedback and
compactions happen in the trace's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from memsift.evaluation.drive import Drive
from memsift.evaluation.oracle import Future, OraclePolicy
from memsift.evaluation.tally import Marks, Tally
from memsift.evaluation.trace import Stream
from memsift.ghosts import Ghosts
from memsift.policies import CompactionPolicy, RandomPolicy
from memsift.store import MemoryStore

K = 10


def replay(
    stream: Stream,
    policy: CompactionPolicy | None,
    cap: int | None,
    drive: Drive,
    *,
    watermark: float = 0.97,
    score_from: float = 0.0,
    coverage: bool = False,
    future: Future | None = None,
    marks: Marks | None = None,
    at_end: Callable[[MemoryStore], object] | None = None,
) -> Tally:
    """Drive one store through one stream.

    Parameters
    ----------
    policy : CompactionPolicy or None
        None with `future` means the oracle.
    cap : int or None
        Budget in entries; None keeps everything.
    coverage : bool
        Count groups of needed memories instead of single ones.
    marks : Marks, optional
        The stream's labels laid out before; made here otherwise.
    at_end : callable, optional
        Given the store when all is over.

    Returns
    -------
    Tally
    """
    clock = Clock(stream)
    chosen = OraclePolicy(future) if policy is None and future is not None else policy
    store = MemoryStore(
        stream.vectors.shape[1], cap, chosen, low_watermark=watermark, clock=lambda: clock.now
    )
    store._memory.ghosts = Unwatched(stream.vectors.shape[1], 0)
    marks = Marks(stream, coverage) if marks is None else marks
    tally = Tally()
    begins = int(np.searchsorted(stream.asked, score_from * len(stream)))
    silent = not drive.counts and not drive.confirm and stream.used is None
    for adds, asked in _stretches(stream):
        _add(store, stream, adds, drive, clock, at_once=not drive.probe and timeless(chosen))
        if silent:
            # They leave no trace: a batch finds what they would one by one, and the unscored need not be asked.
            if future is not None:
                for row in asked:
                    future.asked(row)
            asked = range(max(asked.start, begins), max(asked.stop, begins))
            queries = stream.queries[asked.start : asked.stop]
            answers = iter(store.search_many(queries, K, touch=False) if asked else [])
        else:
            touch = drive.touch if drive.counts else False
            answers = (store.search(stream.queries[row], K, touch=touch) for row in asked)
        for row, hits in zip(asked, answers, strict=True):
            found = [hit.id for hit in hits]
            if row >= begins:
                tally.stored += len(store)
                tally.looked += 1
                marks.count(row, found, store, tally)
            if drive.confirm:
                store.feedback(np.intersect1d(stream.need.of(row), found))
            if future is not None and not silent:
                future.asked(row)
            if stream.used is not None and stream.used.of(row).size:
                said = np.unique(stream.used.of(row))
                store.feedback(said[store.holds(said)])
    tally.evicted = store.stats().evicted
    if at_end is not None:
        at_end(store)
    return tally


class Unwatched(Ghosts):
    """Watches nobody. Ghosts count regret and choose nothing, and would take a quarter of a replay."""

    def evicted(self, *_: object) -> None:
        pass

    def asked(self, *_: object) -> None:
        pass


def timeless(policy: CompactionPolicy | None) -> bool:
    """Whether a policy says what it reads, and no time of day is among it.

    A batch is then the same additions one by one: they only differ in the clock at which each is made.
    """
    needs: frozenset[str] = getattr(policy, "needs", frozenset())
    if isinstance(policy, (RandomPolicy, OraclePolicy)) or getattr(policy, "clock", "") == "ticks":
        return True
    return bool(needs) and not needs & {"created_at", "accessed_at", "now"}


def _stretches(stream: Stream) -> Iterator[tuple[range, range]]:
    """Memories stored in one go and the queries asked after them, in the order of `stream.events()`."""
    stored = asked = 0
    for place, end in zip(*_places(stream), strict=True):
        yield range(stored, place), range(asked, end)
        stored, asked = place, end
    if stored < len(stream):
        yield range(stored, len(stream)), range(asked, asked)


def _places(stream: Stream) -> tuple[list[int], list[int]]:
    """Where the stream pauses for queries, and how many queries have been asked after each pause."""
    places, counts = np.unique(stream.asked, return_counts=True)
    return places.tolist(), np.cumsum(counts).tolist()


def _add(
    store: MemoryStore, stream: Stream, rows: range, drive: Drive, clock: Clock, at_once: bool
) -> None:
    if at_once and len(rows) > 1:
        part = slice(rows.start, rows.stop)
        times = []
        for row in rows:
            clock.at(row)
            times.append(clock.now)
        cost = 1 if stream.cost is None else stream.cost[part]
        store.add_many(stream.vectors[part], cost=cost, created_at=times)
        return
    for row in rows:
        clock.at(row)
        if drive.probe:
            store.search(stream.vectors[row], K, touch=drive.touch)
        store.add(stream.vectors[row], cost=1 if stream.cost is None else int(stream.cost[row]))


class Clock:
    """A trace's time: its timestamps where it has them, one second a memory where it has not."""

    def __init__(self, stream: Stream) -> None:
        self._times = stream.created_at
        self.now = 0.0

    def at(self, row: int) -> None:
        stamp = float("nan") if self._times is None else float(self._times[row])
        self.now = stamp if stamp == stamp else self.now + 1.0
