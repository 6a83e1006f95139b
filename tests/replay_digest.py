"""Replay one made-up trace under several policies and print a SHA-256 of all victims in order, one line each.

A script of its own, since hash seed and thread count are fixed when an interpreter starts.
"""

import hashlib

import numpy as np

import memsift
from memsift import Coherence, Distinctiveness, Frequency, MemoryStore, Recency
from memsift.policies import CoherencePolicy, FifoPolicy, LfuPolicy, LruPolicy, RandomPolicy

POLICIES = {
    "lru": LruPolicy(),
    "lfu": LfuPolicy(),
    "fifo": FifoPolicy(),
    "random": RandomPolicy(seed=7),
    "coherence": CoherencePolicy(),
    "coherence alone": CoherencePolicy(alpha=0.0, beta=0.0, gamma=1.0, window=5),
    "expression": 0.5 * Recency() + -0.25 * Frequency() + 0.25 * Coherence(window=8),
    "distinctiveness": 1.0 * Distinctiveness(7),
}
DIM, COUNT, TOPICS = 96, 3_000, 40


def trace() -> tuple[np.ndarray, np.ndarray]:
    """Vectors, a third of them exact copies of earlier ones, and queries near some of the topics.

    Whole numbers only: how a generator makes floats may change from version to version.
    """
    rng = np.random.default_rng(20_252)
    topics = rng.integers(-50, 51, (TOPICS, DIM))
    vectors = topics[rng.integers(0, TOPICS, COUNT)] + rng.integers(-20, 21, (COUNT, DIM))
    copies = np.flatnonzero(rng.integers(0, 3, COUNT) == 0)[1:]
    vectors[copies] = vectors[rng.integers(0, copies)]
    queries = topics[rng.integers(0, TOPICS // 2, 400)] + rng.integers(-30, 31, (400, DIM))
    return vectors, queries


def digest(policy: memsift.CompactionPolicy, vectors: np.ndarray, queries: np.ndarray) -> str:
    """SHA-256 over the victims of every compaction, in order, and what is left in the end."""
    store = MemoryStore(DIM, 800, policy, low_watermark=0.9, clock=lambda: 0.0)
    state = hashlib.sha256()
    last = None
    for step in range(0, COUNT, 30):
        store.add_many(vectors[step : step + 30])
        for query in queries[step // 30 * 4 : step // 30 * 4 + 4]:
            store.search(query, k=5)
        if store.last_compaction is not last:
            last = store.last_compaction
            state.update(last.dropped.astype("<i8").tobytes())
    done = store.compact(100)
    state.update(done.dropped.astype("<i8").tobytes())
    state.update(np.sort(store.view().ids).astype("<i8").tobytes())
    return state.hexdigest()


if __name__ == "__main__":
    made = trace()
    for name, policy in POLICIES.items():
        print(f"{name}: {digest(policy, *made)}")
