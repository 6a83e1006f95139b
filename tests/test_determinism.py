"""The same trace gives the same victims, byte for byte: whatever the hash seed, the threads or the BLAS kernels."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import replay_digest
from memsift import CoherencePolicy, MemoryStore

SCRIPT = Path(replay_digest.__file__)

# Pinned, so that a change of what is forgotten is meant and seen. A change here belongs into the changelog.
PINNED = {
    "lru": "fb25756ceabbb71ffc7a530e04a0e293a946a5185bed18220e65d9cdf695656e",
    "lfu": "e7f29a4305cc5584090a7177b37323f4b7b00e5db54975788d4492915dd0f68c",
    "fifo": "e8c9ceaf5aacc63c25b4cdd8542592f9d58aff50e3e8fc6c55591d3d8f596562",
    "random": "95f67cbb1caeef79eacb65113cc7aa9bd76d1046e0c66d95f042e4434bcec0c6",
    "coherence": "cb7a4d96e51d743b71f8803e3319072b42fc7547a2c31b2c4597342aaa5dcb50",
    "coherence alone": "0cb365a8a0e9f38cd879a9ad96d9e65faa9878f666717c55d8e5775647cbe428",
    "expression": "17bf9e26365256a9ff16d5163edd9fe01d34499d4701723efe46a0af32c63686",
    "distinctiveness": "2a07f0a809fb4de0d08631cc1b2dbae38947ac2bc44ffa66d1b34a5acaad03ff",
}


def replay(settings: dict[str, str]) -> dict[str, str]:
    """The script's lines, by policy."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return dict(line.split(": ") for line in done.stdout.splitlines())


def test_hash_seed_and_threads_change_no_victim() -> None:
    settings = [
        {"PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        for seed in "012"
        for threads in "12"
    ]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(replay, settings))
    assert [result == results[0] for result in results] == [True] * 6
    assert results[0] == PINNED


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of x86 kernels")
def test_other_blas_kernels_change_no_victim() -> None:
    """OpenBLAS sums in another order on each kind of processor; without OpenBLAS this repeats the test above."""
    kernels = [{"OPENBLAS_CORETYPE": name} for name in ("Prescott", "Nehalem", "Haswell")]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(replay, kernels))
    assert [result == PINNED for result in results] == [True] * 3


def test_the_order_of_a_batch_of_queries_is_all_that_counts() -> None:
    """One search at a time (a matrix times a vector) and a batch (times a matrix) round differently."""
    vectors, queries = replay_digest.trace()
    victims = []
    for many in (False, True):
        store = MemoryStore(vectors.shape[1], 2_000, CoherencePolicy(), clock=lambda: 0.0)
        store.add_many(vectors[:2_000])
        if many:
            store.search_many(queries[:100])
        else:
            for query in queries[:100]:
                store.search(query)
        victims.append(store.compact(0.4).dropped.tolist())
    assert victims[0] == victims[1]
    assert len(victims[0]) == 1_200


def test_identical_vectors_leave_in_the_order_of_the_rule() -> None:
    """All scores equal but the ticks: the earliest leave, whatever the float32 sums of the day."""
    store = MemoryStore(96, policy=CoherencePolicy(alpha=0.0, beta=0.0, gamma=1.0))
    store.add_many(np.tile(np.random.default_rng(0).normal(size=96), (500, 1)))
    store.search(np.random.default_rng(1).normal(size=96), k=1, touch=0)
    assert store.compact(100).dropped.tolist() == list(range(400))
