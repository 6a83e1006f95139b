"""Forgetting half of a store, beside the plain numpy form of the same choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from memsift.evaluation.speed.clock import Contender, Work, in_turn
from memsift.evaluation.speed.data import WINDOW, Float32, K, clustered
from memsift.evaluation.speed.limits import FAST
from memsift.evaluation.speed.row import BARE, OURS, SpeedRow, Time, row_of, time_of
from memsift.evaluation.speed.run import Run, named
from memsift.kernels import Rows
from memsift.planes.integers import numkong
from memsift.policies.base import CompactionPolicy
from memsift.policies.reference import CoherencePolicy
from memsift.store import MemoryStore

# Small compactions are done on many stores in one turn, which then spans milliseconds.
COPIES, TOGETHER = 20, 60_000
GIVEN, DEFAULT = "compact, window given", "compact, default policy"


def compactions(run: Run) -> Iterator[SpeedRow]:
    """Three rows for each size: by what searches left, by a window of the caller's, and by the default policy."""
    for n, dim in run.sizes:
        vectors, window = clustered(n, dim), clustered(WINDOW, dim, seed=3)
        run.tell(f"compact {named(n, dim)}")
        yield _row(run, "compact", vectors, window, CoherencePolicy(), None, _coherent)
        run.tell(f"{GIVEN} {named(n, dim)}")
        yield _row(run, GIVEN, vectors, window, CoherencePolicy(), window, _coherent)
        run.tell(f"{DEFAULT} {named(n, dim)}")
        yield _row(run, DEFAULT, vectors, window, None, None, _any_half)


def filled(
    vectors: Float32,
    queries: Float32 | None = None,
    policy: CompactionPolicy | None = None,
    budget: int | None = None,
    held: str = "float32",
) -> MemoryStore:
    """A store of these vectors that was asked these queries; full, unless its budget is larger."""
    store = MemoryStore(vectors.shape[1], budget or len(vectors), policy, vectors=held)
    store.add_many(vectors)
    for query in () if queries is None else queries:
        store.search(query, K)
    return store


def _row(
    run: Run,
    operation: str,
    vectors: Float32,
    window: Float32,
    policy: CompactionPolicy | None,
    given: Float32 | None,
    bare: Callable[[Float32, Float32, Float32], Float32],
) -> SpeedRow:
    n, dim = vectors.shape
    copies = max(1, min(COPIES, TOGETHER // n))

    def ours(held: str) -> Callable[[int], Work]:
        def turn(repeat: int) -> Work:
            stores = [filled(vectors, window, policy, held=held) for _ in range(copies)]

            def work() -> None:
                for store in stores:
                    store.compact(0.5, context=given)

            return work

        return turn

    # As many copies: one that is used over and over would be found in the caches.
    rows = [vectors, *(vectors.copy() for _ in range(copies - 1))]
    scores = np.random.default_rng(4).random((n,), dtype=np.float32)

    def numpy(repeat: int) -> Work:
        def work() -> None:
            for vectors in rows:
                bare(vectors, window, scores)

        return work

    contenders = [Contender(OURS, ours("float32"), copies), Contender(BARE, numpy, copies)]
    absent = []
    if numkong() is None:
        absent.append(Time(FAST, note="not installed: pip install 'memsift[fast]'"))
    elif operation == DEFAULT and n > run.large[0]:
        absent.append(Time(FAST, note=f"left out beyond {run.large[0]:,} entries: long to fill"))
    else:
        contenders.append(Contender(FAST, ours("tiered"), copies))
    samples = in_turn(contenders, run.repeats)
    times = [time_of(c.name, samples[c.name]) for c in contenders]
    return row_of(operation, n, dim, [*times, *absent])


def _coherent(vectors: Float32, window: Float32, scores: Float32) -> Float32:
    """Coherence as it is written down, and a copy of the rows that stay."""
    best = (vectors @ window.T).max(1)
    return vectors[_better_half(best)]


def _any_half(vectors: Float32, window: Float32, scores: Float32) -> Float32:
    """The better half by a column of scores that is there already: what any choice costs at least."""
    return vectors[_better_half(scores)]


def _better_half(scores: Float32) -> Rows:
    n = len(scores)
    kept: Rows = np.argpartition(scores, n // 2)[n // 2 :]
    return kept
