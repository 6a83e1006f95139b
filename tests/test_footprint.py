"""What a store says of its memory, against what the interpreter counts."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from memsift import AccessLog, CoherencePolicy, LruPolicy, MemoryStore
from memsift.cli.app import cli


def rows(n: int, dim: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, dim), dtype=np.float32)


def filled(store: MemoryStore, n: int, notes: Callable[[int], Any] | None = None) -> MemoryStore:
    for start in range(0, n, 500):
        part = rows(min(500, n - start), store.dim)
        store.add_many(part, notes and [notes(start + i) for i in range(len(part))])
    return store


def forgotten(store: MemoryStore) -> MemoryStore:
    """Half of it, after some searches, and an id was asked for."""
    for query in rows(30, store.dim):
        store.search(query)
    store.compact(0.5)
    store.get(store.view().ids[:5])
    return store


def logged(store: MemoryStore) -> MemoryStore:
    store.record(AccessLog(store.dim))
    return filled(store, 3000)


SHAPES: dict[str, Callable[[], MemoryStore]] = {
    "wide": lambda: filled(MemoryStore(384, vectors="float32"), 3000),
    "budgeted": lambda: filled(MemoryStore(64, budget=8000), 9000),
    "many small": lambda: filled(MemoryStore(8), 30_000),
    "noted": lambda: filled(
        MemoryStore(16),
        10_000,
        lambda i: {"text": f"memory number {i}", "at": 1000 + i, "k": ["a", 0.5 + i]},
    ),
    "noted alike": lambda: filled(MemoryStore(16), 10_000, lambda i: {"kind": "fact"}),
    "tiered": lambda: filled(MemoryStore(128, vectors="tiered", policy=CoherencePolicy()), 20_000),
    "float16": lambda: filled(MemoryStore(128, vectors="float16", policy=LruPolicy()), 20_000),
    "int8": lambda: filled(MemoryStore(64, vectors="int8", policy=LruPolicy()), 30_000),
    "forgotten": lambda: forgotten(filled(MemoryStore(64, policy=CoherencePolicy()), 20_000)),
    "tiered, forgotten": lambda: forgotten(
        filled(MemoryStore(64, vectors="tiered", policy=CoherencePolicy()), 20_000)
    ),
    "logged": lambda: logged(MemoryStore(64)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_parts_add_up_to_what_the_interpreter_counts(shape: str) -> None:
    SHAPES[shape]()  # whatever is made once for all stores is there
    gc.collect()
    tracemalloc.start()
    try:
        store = SHAPES[shape]()
        told = store.stats().allocated
        gc.collect()
        counted = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert told == pytest.approx(counted, rel=0.05), store.stats().bytes


def test_a_smaller_plane_is_smaller() -> None:
    sizes = {
        name: filled(MemoryStore(256, budget=4000, vectors=name), 4000).stats()
        for name in ("float32", "float16", "tiered", "int8")
    }
    told = {name: stats.bytes["vectors"] / stats.entries for name, stats in sizes.items()}
    assert 1024 <= told["float32"] < 1100
    assert 512 <= told["float16"] < 560
    assert 256 <= told["int8"] < 290
    assert 256 <= told["tiered"] < 290
    assert {name: stats.vectors for name, stats in sizes.items()} == {name: name for name in sizes}
    assert sizes["tiered"].cold_bytes >= 4000 * 1024
    assert not any(sizes[name].cold_bytes for name in ("float32", "float16", "int8"))


@pytest.mark.parametrize("name", ["float32", "tiered", "int8"])
def test_the_command_line_says_where_the_memory_goes(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.memsift"
    with MemoryStore.open(path, 8) as store:
        store.add_many(rows(100, 8), [{"text": f"entry {i}"} for i in range(100)])
    call = ["stats", str(path), "--vectors", name]
    found = json.loads(CliRunner().invoke(cli, [*call, "--json"]).output)
    with MemoryStore.open(path, vectors=name) as store:
        told = store.stats()
    assert found["vectors"] == name
    assert found["bytes"] == told.bytes
    assert found["allocated"] == sum(told.bytes.values()) == told.allocated
    assert found["cold_bytes"] == told.cold_bytes
    words = CliRunner().invoke(cli, call).output
    for part, size in told.bytes.items():
        assert (f"RAM: {part}" in words) == (size > 0)
    assert f"{told.allocated:,} B" in words
    assert ("disk: cold vectors" in words) == (name == "tiered")
    assert f"vectors held as {name}" in words
