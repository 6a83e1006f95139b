"""Online coherence: what it adds to a search, and what a compaction pays to read it."""

from __future__ import annotations

from collections.abc import Iterator

from memsift.evaluation.speed.clock import Contender, Work, in_turn
from memsift.evaluation.speed.compactions import filled
from memsift.evaluation.speed.data import WINDOW, K, clustered
from memsift.evaluation.speed.limits import UNFED
from memsift.evaluation.speed.row import OURS, SpeedRow, row_of, time_of
from memsift.evaluation.speed.run import Run, Size, named
from memsift.policies.reference import CoherencePolicy
from memsift.similarity import SimilarityRing

FEEDS, READ = "search that feeds the window", "window read, per 1,000 entries"
# A difference of a few per cent asks for more turns than one of a factor.
TURNS, CALLS, READS = 8, 20, 20


def online(run: Run) -> Iterator[SpeedRow]:
    """A row for the search, and one for reading at each of the larger sizes."""
    run.tell(f"{FEEDS} {named(*run.middle)}")
    yield _feeding(run, run.middle)
    for size in (run.middle, run.large, *run.beyond):
        run.tell(f"{READ} {named(*size)}")
        yield _reading(run, size)


def _feeding(run: Run, size: Size) -> SpeedRow:
    """The same store with its ring and without: two stores differ by more, only by where their rows lie in memory."""
    vectors = clustered(*size)
    store = filled(vectors, clustered(WINDOW, size[1], seed=3), CoherencePolicy())
    table = store._memory.table
    full, nothing = table.ring, SimilarityRing(0, 0)
    place = {OURS: full, UNFED: nothing}

    def contender(name: str) -> Contender:
        def turn(repeat: int) -> Work:
            table.ring = place[name]
            queries = list(clustered(CALLS, size[1], seed=100 + repeat))

            def work() -> None:
                for query in queries:
                    store.search(query, K)

            return work

        return Contender(name, turn, CALLS)

    samples = in_turn([contender(OURS), contender(UNFED)], TURNS * run.repeats)
    times = [time_of(name, samples[name]) for name in (OURS, UNFED)]
    return row_of(FEEDS, *size, times, base=UNFED)


def _reading(run: Run, size: Size) -> SpeedRow:
    """The largest of each entry's, out of a view all of whose similarities are known."""
    vectors = clustered(*size)
    store = filled(vectors, clustered(WINDOW, size[1], seed=3), CoherencePolicy())
    view = store.view()

    def work() -> None:
        for _ in range(READS):
            view.cosine_max(WINDOW)

    samples = in_turn([Contender(OURS, lambda repeat: work, READS * size[0] / 1000)], run.repeats)
    return row_of(READ, *size, [time_of(OURS, samples[OURS])])
