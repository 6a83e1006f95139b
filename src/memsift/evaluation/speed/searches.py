"""The search, one query and many, beside everybody else's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from memsift.evaluation.speed.clock import Contender, in_turn, sampled
from memsift.evaluation.speed.data import Float32, K, clustered, nearest, recall
from memsift.evaluation.speed.engines import OURS, Absent, Bare, Engine
from memsift.evaluation.speed.limits import BATCH
from memsift.evaluation.speed.row import SpeedRow, Time, row_of, time_of
from memsift.evaluation.speed.run import Run, named

CHECKED = 50
MANY = 100
# A turn lasts about so long, in microseconds, within so many calls: long beside the clock's own cost.
TURN, FEWEST, MOST = 100_000, 3, 1000
Queries = Callable[[int], Float32]


def searches(run: Run) -> Iterator[SpeedRow]:
    """Two rows for each size: one query at a time, and a hundred in one call."""
    for n, dim in run.sizes:
        run.tell(f"search {named(n, dim)}")
        vectors = clustered(n, dim)
        engines, others = ready([*OURS, Bare, *run.peers], vectors)
        try:
            yield one_by_one(run, n, dim, engines, others)
            run.tell(f"{BATCH} {named(n, dim)}")
            yield _together(run, n, dim, engines, others)
        finally:
            for engine, _ in engines:
                engine.close()


def ready(
    classes: Sequence[type[Engine]], vectors: Float32
) -> tuple[list[tuple[Engine, float | None]], list[Time]]:
    """Engines that hold the vectors and answer well, with their recall if that is not 1; and why the others do not."""
    n, dim = vectors.shape
    asked = clustered(CHECKED, dim, seed=1)
    truth = nearest(vectors, asked, min(K, n))
    able: list[tuple[Engine, float | None]] = []
    others: list[Time] = []
    for made in classes:
        if n > made.largest:
            others.append(Time(made.name, note=f"left out beyond {made.largest:,} entries"))
            continue
        try:
            engine = made(dim, n)
            engine.build(vectors)
            found = [engine.ids(engine.search(query, K)) for query in asked]
            if engine.batches:
                engine.search_many(asked, K)
        except Absent as error:
            others.append(Time(made.name, note=str(error)))
        except Exception as error:  # another's library may fail as it likes: the others go on
            if made in OURS:
                raise
            others.append(Time(made.name, note=f"failed: {type(error).__name__}: {error}"[:160]))
        else:
            share = recall(found, truth, vectors, asked)
            if made.exact and share < 1.0:
                note = f"wrong answers, so not timed: recall@10 {share:.3f}"
                others.append(Time(made.name, recall=share, note=note))
            else:
                able.append((engine, None if made.exact else round(share, 4)))
    return able, others


def one_by_one(
    run: Run,
    n: int,
    dim: int,
    engines: list[tuple[Engine, float | None]],
    others: list[Time],
    operation: str = "search",
) -> SpeedRow:
    """Single queries to engines that hold the same vectors."""
    queries = _fresh(MOST, dim)
    samples = in_turn([_asking(engine, queries) for engine, _ in engines], run.repeats)
    times = [time_of(e.name, samples[e.name], recall=share) for e, share in engines]
    return row_of(operation, n, dim, [*times, *others])


def _together(
    run: Run, n: int, dim: int, engines: list[tuple[Engine, float | None]], others: list[Time]
) -> SpeedRow:
    queries = _fresh(MANY, dim)
    able = [(engine, share) for engine, share in engines if engine.batches]
    unable = [Time(e.name, note="has no call for many") for e, _ in engines if not e.batches]

    def contender(engine: Engine) -> Contender:
        def turn(repeat: int) -> Callable[[], object]:
            part = queries(repeat)
            return lambda: engine.search_many(part, K)

        return Contender(engine.name, turn)

    samples = in_turn([contender(engine) for engine, _ in able], run.repeats)
    times = [time_of(e.name, samples[e.name], recall=share) for e, share in able]
    return row_of(BATCH, n, dim, [*times, *unable, *others])


def _asking(engine: Engine, queries: Queries) -> Contender:
    """One query after the other, none of them twice in a run."""
    few = list(clustered(FEWEST, engine.dim, seed=2))
    once = sampled(lambda: [engine.search(query, K) for query in few]).wall / FEWEST
    calls = round(min(MOST, max(FEWEST, TURN / once)))

    def turn(repeat: int) -> Callable[[], object]:
        part = list(queries(repeat)[:calls])

        def work() -> None:
            for query in part:
                engine.search(query, K)

        return work

    return Contender(engine.name, turn, calls)


def _fresh(count: int, dim: int) -> Queries:
    """New queries for each repeat, the same for all contenders."""
    return lru_cache(maxsize=1)(lambda repeat: clustered(count, dim, seed=100 + repeat))
