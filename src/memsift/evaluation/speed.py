"""How fast the store is, as ratios to what numpy alone would need for the bare work.

Ours and the primitives are timed in one process, in turn, by CPU time with one BLAS thread: absolute times belong
to a machine, ratios mostly do not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.budget import Budget
from memsift.store import MemoryStore

WINDOW = 20
K = 10
BLOCK = 8192
SIZES = ((2_000, 64), (20_000, 384), (100_000, 384))
Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class SpeedRow:
    """One operation at one size: medians in microseconds of CPU time, and their ratio.

    `beyond_us` is what ours takes on top of the primitives; `limit` is what this project promises, in words.
    `low` and `high` are the fastest and the slowest of ours.
    """

    operation: str
    n: int
    dim: int
    ours_us: float
    primitives_us: float
    ratio: float
    beyond_us: float
    low_us: float
    high_us: float
    repeats: int
    limit: str
    holds: bool

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def rows(sizes: Sequence[tuple[int, int]] = SIZES, repeats: int = 5) -> Iterator[SpeedRow]:
    """Measure search and compaction at each (n, dim)."""
    for n, dim in sizes:
        made = clustered(n, dim)
        yield search(made, repeats)
        yield compaction(made, repeats, cold=False)
        yield compaction(made, repeats, cold=True)


def clustered(n: int, dim: int, seed: int = 0) -> Float32:
    """Unit vectors around 100 centres, as embeddings of a few topics are: (n, dim) float32."""
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((100, dim), dtype=np.float32)
    rows = centres[chance.integers(0, 100, n)] + chance.standard_normal((n, dim), dtype=np.float32)
    unit: Float32 = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def search(vectors: Float32, repeats: int) -> SpeedRow:
    """One query against `X @ q` and a partial sort."""
    n, dim = vectors.shape
    store = _filled(vectors)
    queries = clustered(400, dim, seed=1)
    calls = max(5, min(400, 4_000_000 // n))

    def ours() -> None:
        for query in queries[:calls]:
            store.search(query, K)

    def primitives() -> None:
        for query in queries[:calls]:
            scores = vectors @ query
            np.argpartition(scores, n - K)[n - K :]

    ours_us, base_us = _in_turn([ours] * repeats, [primitives] * repeats)
    small = n * dim <= 2_000 * 64
    limit = "at most 60 µs beyond" if small else "at most 1.3 times"
    return measured(
        "search", n, dim, ours_us / calls, base_us / calls, limit, 60 if small else None, 1.3
    )


def compaction(vectors: Float32, repeats: int, *, cold: bool) -> SpeedRow:
    """A Coherence compaction to half.

    With the similarities of the window's searches at hand, or (`cold`) with a window given by the caller, for
    which all products must be computed.
    """
    n, dim = vectors.shape
    window = clustered(WINDOW, dim, seed=2)
    # Small compactions are repeated on many stores, so that one timing spans milliseconds.
    copies = max(1, min(20, 200_000 // n))

    def one() -> tuple[Callable[[], None], list[MemoryStore]]:
        stores = [_filled(vectors, window) for _ in range(copies)]

        def ours() -> None:
            for store in stores:
                store.compact(0.5, context=window if cold else None)

        return ours, stores

    def primitives() -> None:
        for _ in range(copies):
            best = np.empty(n, np.float32)
            for start in range(0, n, BLOCK):
                best[start : start + BLOCK] = (window @ vectors[start : start + BLOCK].T).max(0)
            keep = np.argpartition(best, n // 2)[n // 2 :]
            vectors[keep]

    ours_us, base_us = [], []
    for _ in range(repeats):
        run, stores = one()
        ours_us.append(timed(run))
        del run, stores
        base_us.append(timed(primitives))
    small = n * dim <= 2_000 * 64
    limit = "at most 400 µs beyond" if small else "at most 2.0 times"
    name = "compact, window given" if cold else "compact"
    return measured(
        name,
        n,
        dim,
        np.array(ours_us) / copies,
        np.array(base_us) / copies,
        limit,
        400 if small else None,
        2.0,
    )


def _filled(vectors: Float32, queries: Float32 | None = None) -> MemoryStore:
    store = MemoryStore(vectors.shape[1], Budget(entries=len(vectors)))
    store.add_many(vectors)
    for query in () if queries is None else queries:
        store.search(query, K)
    return store


def _in_turn(
    ours: list[Callable[[], None]], base: list[Callable[[], None]]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    ours[0](), base[0]()  # warm caches and code paths
    pairs = [(timed(a), timed(b)) for a, b in zip(ours, base, strict=True)]
    return np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])


def timed(run: Callable[[], object]) -> float:
    """CPU time of one call, in microseconds."""
    started = time.process_time()
    run()
    return (time.process_time() - started) * 1e6


def measured(
    operation: str,
    n: int,
    dim: int,
    ours: npt.NDArray[np.float64],
    base: npt.NDArray[np.float64],
    limit: str,
    beyond: float | None,
    ratio: float,
) -> SpeedRow:
    ours_us, base_us = float(np.median(ours)), float(np.median(base))
    holds = ours_us - base_us <= beyond if beyond is not None else ours_us <= ratio * base_us
    return SpeedRow(
        operation,
        n,
        dim,
        round(ours_us, 1),
        round(base_us, 1),
        round(ours_us / base_us, 3),
        round(ours_us - base_us, 1),
        round(float(ours.min()), 1),
        round(float(ours.max()), 1),
        len(ours),
        limit,
        holds,
    )


# Run by the CLI in a process of its own, whose environment fixes the BLAS threads.
if __name__ == "__main__":
    import json
    import sys
    from itertools import chain

    from memsift.evaluation.speed_file import file_rows

    count = int(sys.argv[1])
    for row in chain(rows(repeats=count), file_rows(repeats=count)):
        print(json.dumps(row.to_dict()), flush=True)
