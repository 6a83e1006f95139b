"""Adding while a large store forgets in another thread: what the hot path feels of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from memsift.evaluation.speed.clock import quiet
from memsift.evaluation.speed.compactions import filled
from memsift.evaluation.speed.data import WINDOW, Float32, K, clustered
from memsift.evaluation.speed.limits import BESIDE, IDLE
from memsift.evaluation.speed.row import OURS, SpeedRow, Time, row_of
from memsift.evaluation.speed.run import Run, Size, named
from memsift.policies.base import CompactionPolicy
from memsift.policies.reference import CoherencePolicy
from memsift.store import MemoryStore

ROUNDS, CALM, ROOM = 2, 300, 1.2
Float64 = npt.NDArray[np.float64]


def background(run: Run) -> Iterator[SpeedRow]:
    """Two rows: with the default policy, and with coherence, of which an addition costs less."""
    policies: tuple[tuple[str, CompactionPolicy | None], ...] = (
        ("", None),
        (" (coherence)", CoherencePolicy()),
    )
    for words, policy in policies:
        run.tell(f"{BESIDE}{words} {named(*run.large)}")
        yield _beside(run, f"{BESIDE}{words}", run.large, policy)


def _beside(run: Run, operation: str, size: Size, policy: CompactionPolicy | None) -> SpeedRow:
    """One addition after the other; those count that fall into a compaction, from its plan to its end.

    Each round compacts to half and fills up again, untimed. The waits are those on the wall, all rounds together.
    """
    n, dim = size
    rounds = ROUNDS * run.repeats
    vectors, window = clustered(n, dim), clustered(WINDOW, dim, seed=3)
    # The budget leaves room, so that no addition compacts by itself.
    store = filled(vectors, window, policy, budget=round(ROOM * n))
    newcomers = clustered(4096, dim, seed=7)
    calm: list[float] = []
    busy: list[float] = []
    lengths: list[float] = []
    for _ in range(rounds):
        quiet()
        calm += _waits(store, newcomers[:CALM])
        during, seconds = _while_forgetting(store, newcomers)
        busy += during
        lengths.append(seconds)
        store.add_many(vectors[: max(0, n - len(store))])
        for query in window:
            store.search(query, K)
    times = [_time(OURS, np.array(busy), rounds), _time(IDLE, np.array(calm), rounds)]
    note = (
        f"{len(busy):,} additions in {rounds} compactions of {1000 * np.median(lengths):.0f} ms (wall, median); "
        f"p50 / p99 / longest: {_words(busy)} µs, idle {_words(calm)} µs"
    )
    return row_of(operation, n, dim, times, clock="wall", base=IDLE, note=note)


def _waits(store: MemoryStore, rows: Float32) -> list[float]:
    """How long each addition took, in microseconds."""
    waits = []
    for row in rows:
        began = time.perf_counter()
        store.add(row)
        waits.append((time.perf_counter() - began) * 1e6)
    return waits


def _while_forgetting(store: MemoryStore, rows: Float32) -> tuple[list[float], float]:
    """Additions from the beginning of a compaction in another thread to its end, and how long that took."""
    begins, done = threading.Event(), threading.Event()
    seconds = 0.0

    def forget() -> None:
        nonlocal seconds
        begins.wait()
        began = time.perf_counter()
        store.apply(store.plan(0.5))
        seconds = time.perf_counter() - began
        done.set()

    thread = threading.Thread(target=forget)
    thread.start()
    waits: list[float] = []
    begins.set()
    while not done.is_set() and len(waits) < len(rows):
        waits += _waits(store, rows[len(waits) : len(waits) + 1])
    thread.join()
    return waits, seconds


def _time(name: str, waits: Float64, rounds: int) -> Time:
    """The 99th percentile, between the median and the longest."""
    low, middle, high = (float(f"{np.quantile(waits, q):.5g}") for q in (0.5, 0.99, 1.0))
    return Time(name, wall=middle, wall_low=low, wall_high=high, repeats=rounds)


def _words(waits: list[float]) -> str:
    return " / ".join(f"{np.quantile(waits, q):,.0f}" for q in (0.5, 0.99, 1.0))
