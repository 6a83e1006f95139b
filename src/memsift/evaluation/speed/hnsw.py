"""How fast the HNSW index answers, and how well, while half of a memory leaves and as many come, again and again.

The queries are of the entries' own kind: rows that were drawn with them and held back. CPU time is that of the
searching thread; the truth is the scan's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from memsift.evaluation.speed.row import SpeedRow
from memsift.policies import LruPolicy
from memsift.store import MemoryStore

K = 10
QUERIES = 200
LIMIT_US, WAIT_US = 200.0, 5_000.0
SEARCHING, REBUILT = 0.98, 0.99
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]


def rows(
    n: int = 100_000, dim: int = 384, cycles: int = 5, *, uneven: bool = False
) -> Iterator[SpeedRow]:
    """Fill, build, and then `cycles` times: drop half, search, refill, search, rebuild, search.

    Yields
    ------
    SpeedRow
        The search of the first graph, of one that is half dead, of one that was rebuilt (the slowest cycle of each,
        with the worst recall of all cycles), and the longest wait of a search while graphs were rebuilt.
    """
    half = n // 2
    vectors = clustered(n + cycles * half + QUERIES, dim, uneven=uneven)
    queries, stock = vectors[:QUERIES], vectors[QUERIES:]
    with MemoryStore(dim, policy=LruPolicy(), index="hnsw") as store:
        store.add_many(stock[:n])
        store.wait_for_index(3600.0)
        first = _Phase(store, queries)
        idle = _Waits(store, queries)
        time.sleep(1.0)
        idle.end()
        dead, rebuilt, waits = [], [], []
        for cycle in range(cycles):
            chance = np.random.default_rng(cycle)
            store.delete(chance.choice(store.view().ids, half, replace=False))
            dead.append(_Phase(store, queries))
            store.add_many(stock[n + cycle * half :][:half])
            waiting = _Waits(store, queries)
            store.wait_for_index(3600.0)
            waits.append(waiting.end())
            rebuilt.append(_Phase(store, queries))
    yield _row("hnsw search", n, dim, [first], REBUILT)
    yield _row("hnsw search, half dead", half, dim, dead, SEARCHING)
    yield _row("hnsw search, rebuilt", n, dim, rebuilt, REBUILT)
    longest, usual = float(np.concatenate(waits).max()), float(idle.end().max())
    worst = [float(wait.max()) for wait in waits]
    yield SpeedRow(
        "hnsw wait for a rebuild",
        n,
        dim,
        round(longest, 1),
        round(usual, 1),
        round(longest / usual, 3),
        round(longest - usual, 1),
        round(min(worst), 1),
        round(max(worst), 1),
        sum(map(len, waits)),
        f"at most {WAIT_US / 1000:.0f} ms beyond the wait of idle times",
        longest - usual <= WAIT_US,
    )


def clustered(n: int, dim: int, *, uneven: bool = False) -> Float32:
    """Unit vectors around 100 centres, with as much noise as centre, or a third to four thirds: (n, dim) float32."""
    chance = np.random.default_rng(0)
    centres = chance.standard_normal((100, dim), dtype=np.float32)
    noise = chance.standard_normal((n, dim), dtype=np.float32)
    if uneven:
        noise *= chance.uniform(1 / 3, 4 / 3, (n, 1)).astype(np.float32)
    noise += centres[chance.integers(0, 100, n)]
    unit: Float32 = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    return unit


class _Phase:
    """CPU time of each search and of each scan, and the share of the scan's hits that the searches found."""

    def __init__(self, store: MemoryStore, queries: Float32) -> None:
        exact = store._memory.index.exact
        self.ours, self.scan = np.empty(len(queries)), np.empty(len(queries))
        found = 0
        for i, query in enumerate(queries):
            started = time.thread_time()
            hits = store.search(query, K)
            self.ours[i] = time.thread_time() - started
            with store._memory.lock:
                started = time.thread_time()
                true = exact.search(query, K)[0]
                self.scan[i] = time.thread_time() - started
                ids = store._memory.table.column("ids")[true]
            found += len({hit.id for hit in hits} & set(ids.tolist()))
        self.recall = found / (K * len(queries))


class _Waits:
    """A thread that searches until it is told to end, and notes for how long each search did not run."""

    def __init__(self, store: MemoryStore, queries: Float32) -> None:
        self._waits: list[float] = []
        self._stop = threading.Event()

        def search() -> None:
            place = 0
            while not self._stop.wait(0.002) or not self._waits:
                wall, cpu = time.perf_counter(), time.thread_time()
                store.search(queries[place % len(queries)], K)
                cpu = time.thread_time() - cpu
                self._waits.append(max(0.0, time.perf_counter() - wall - cpu) * 1e6)
                place += 1

        self._thread = threading.Thread(target=search)
        self._thread.start()

    def end(self) -> Float64:
        """Microseconds that each search waited."""
        self._stop.set()
        self._thread.join()
        return np.array(self._waits)


def _row(operation: str, n: int, dim: int, phases: list[_Phase], recall: float) -> SpeedRow:
    slowest = max(phases, key=lambda phase: float(np.median(phase.ours)))
    ours, scan = (float(np.median(x)) * 1e6 for x in (slowest.ours, slowest.scan))
    worst = min(phase.recall for phase in phases)
    return SpeedRow(
        operation,
        n,
        dim,
        round(ours, 1),
        round(scan, 1),
        round(ours / scan, 3),
        round(ours - scan, 1),
        round(float(slowest.ours.min()) * 1e6, 1),
        round(float(slowest.ours.max()) * 1e6, 1),
        sum(phase.ours.size for phase in phases),
        f"at most {LIMIT_US:.0f} µs, recall@10 at least {recall} (worst {worst:.4f})",
        ours <= LIMIT_US and worst >= recall,
    )
