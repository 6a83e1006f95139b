"""The index's thread beside the store's callers: nobody sees half a graph, nobody hangs, nothing outlives its store."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from forks import in_a_fork, needs_fork
from memsift import CoherencePolicy, MemoryStore, upkeep
from memsift.index.hnsw import build, graph, search
from memsift.testing.index import unit
from test_threads import run

pytest.importorskip("usearch", reason="needs memsift[ann]")

DIM = 16


@pytest.fixture(autouse=True)
def no_lulls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a moment without searches."""
    monkeypatch.setattr(search, "LULL_SECONDS", 0.0)


@pytest.fixture
def hasty_switching() -> Iterator[None]:
    """Threads change places a hundred times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 100)
    yield
    sys.setswitchinterval(usual)


def rows(n: int, seed: int = 0) -> np.ndarray:
    return unit(np.random.default_rng(seed).normal(size=(n, DIM)))


def filled(n: int = 2000, **options: Any) -> MemoryStore:
    store = MemoryStore(DIM, index="hnsw", **options)
    store.add_many(rows(n))
    return store


class Gate:
    """Holds the thread that adds to a graph until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        added = graph.Graph.add

        def add(this: Any, node: int, row: Any) -> None:
            self.reached.set()
            assert self.open.wait(30)
            added(this, node, row)

        monkeypatch.setattr(graph.Graph, "add", add)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "memsift-hnsw"]


def test_searchers_adders_and_compactors_while_graphs_come_and_go(
    hasty_switching: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every hit is an entry that was there at some moment of the search, with the cosine of its own vector."""
    monkeypatch.setattr(build, "TAIL", 16)
    monkeypatch.setattr(search, "TAIL", 16)
    vectors = rows(997, 5)
    store = MemoryStore(DIM, 3000, CoherencePolicy(), low_watermark=0.7, index="hnsw")
    store.add_many(vectors[np.arange(2500) % 997])  # the entry of id i holds row i % 997
    assert store.wait_for_index()
    kinds, built = set(), []
    begun = build.Build.__init__
    monkeypatch.setattr(
        build.Build, "__init__", lambda self, *args: built.append(1) or begun(self, *args)
    )

    def look(rng: np.random.Generator) -> None:
        query = rows(1, int(rng.integers(1 << 30)))[0]
        k = int(rng.integers(1, 30))
        hits = store.search(query, k, touch=bool(rng.integers(2)))
        assert len(hits) == k
        assert len({hit.id for hit in hits}) == k
        wide = vectors[[hit.id % 997 for hit in hits]].astype(np.float64)
        assert [hit.score for hit in hits] == (wide @ query.astype(np.float64)).round(9).tolist()
        order = [(-hit.score, hit.id) for hit in hits]
        assert order == sorted(order)
        kinds.add(store.stats().index.kind)

    def add(rng: np.random.Generator) -> None:
        start = store.stats().added
        store.add_many(vectors[np.arange(start, start + int(rng.integers(1, 60))) % 997])

    def leave(rng: np.random.Generator) -> None:
        if (
            len(store) < 1000
        ):  # the adder is the slower one: what is left must be enough for every search
            time.sleep(0.001)
            return
        store.compact(float(rng.uniform(0.6, 0.95)))
        gone = store.view().ids[:: int(rng.integers(5, 50))]
        store.delete(gone)
        assert not {hit.id for hit in store.search(vectors[0], 100)} & set(gone.tolist())

    run([look, look, add, leave], 4.0)
    assert store.wait_for_index()
    assert "hnsw" in kinds
    assert len(built) >= 1, "nothing was rebuilt meanwhile"
    store.add_many(vectors[np.arange(store.stats().added, store.stats().added + 1500) % 997])
    assert store.wait_for_index()
    state = store.stats(probe=True).index
    assert (state.kind, state.error) == ("hnsw", None)
    assert state.recall >= 0.98
    assert state.graph - state.dead + state.scanned == len(store)
    store.close()


def test_a_search_is_answered_while_a_graph_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread stands still amid an addition to the new graph; searches, additions and deletions go on."""
    store = filled()
    assert store.wait_for_index()
    gate = Gate(monkeypatch)
    gone = store.view().ids[::2]
    store.delete(gone)
    assert gate.reached.wait(30)
    state = store.stats().index
    assert (state.kind, state.rebuilding, state.dead) == ("hnsw", True, 1000)
    fresh = rows(50, 3)
    ids = store.add_many(fresh)
    store.delete(ids[:10])
    for id_, row in zip(ids[10:].tolist(), fresh[10:], strict=True):
        assert store.search(row, 1)[0].id == id_
    assert not {hit.id for hit in store.search(fresh[0], 900)} & {
        *gone.tolist(),
        *ids[:10].tolist(),
    }
    gate.open.set()
    assert store.wait_for_index()
    state = store.stats(probe=True).index
    assert (state.graph + state.scanned, state.dead, state.rebuilding) == (1040, 0, False)
    assert state.recall >= 0.98
    store.close()


def test_a_search_waits_for_one_addition_to_the_graph() -> None:
    """A search that comes amid an addition is next, whatever the adder is up to; it was starved by the lock."""
    graph_ = graph.Graph(DIM)
    log: list[str] = []

    class Native:
        expansion_search, memory_usage = graph.EXPANSION, 0

        def add(self, node: int, row: Any, threads: int) -> None:
            log.append("add")
            if node == 10:
                searcher.start()
                while not graph_._asking:  # the search waits for this addition to end
                    time.sleep(0)

        def search(self, query: Any, count: int, threads: int) -> Any:
            log.append("search")
            return SimpleNamespace(keys=np.arange(count, dtype=np.uint64))

    graph_._index = Native()
    row = graph.quantised(rows(1)[0])
    searcher = threading.Thread(target=graph_.nearest, args=(row, 3))
    for node in range(100):
        graph_.add(node, row)
    searcher.join(30)
    assert log == ["add"] * 11 + ["search"] + ["add"] * 89


def test_closing_ends_the_thread_amid_a_build(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    store = filled()
    store.search_many(rows(2, 1))
    assert gate.reached.wait(30)
    assert len(threads()) == 1
    gate.open.set()
    store.close()
    assert threads() == []
    assert store.stats().index.kind == "exact"
    store.add_many(rows(500, 2))
    assert len(store.search(rows(1, 3)[0])) == 10
    assert threads() == []
    store.close()


def test_closing_while_the_thread_waits_for_the_store_s_lock() -> None:
    """Whoever closes may hold the lock that a step wants: each waited for the other."""
    store = filled()
    with store._memory.lock:
        store.search_many(rows(2, 1))
        assert len(threads()) == 1
        store.close()
    assert threads() == []


def test_a_forgotten_store_takes_its_thread_along(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    store = filled()
    store.search_many(rows(2, 1))
    assert gate.reached.wait(30)
    (thread,) = threads()
    del store
    gc.collect()
    gate.open.set()
    thread.join(30)
    assert not thread.is_alive()


# ---- fork ----------------------------------------------------------------------------------------


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_amid_a_build_searches_and_builds_its_own() -> None:
    """The thread is gone in the child: the locks that it held would be held for ever."""
    store = filled(4000)
    assert store.wait_for_index()
    query = rows(1, 7)[0]
    expected = [hit.id for hit in store.search(query, touch=False)]

    def child() -> Any:
        found = [hit.id for hit in store.search(query, touch=False)]
        assert found == expected[: len(found)]
        store.add_many(rows(500, 4))
        settled = store.wait_for_index(8)
        state = store.stats().index
        return len(found), settled, state.kind, state.dead, state.graph + state.scanned

    for number in range(5):
        store.add_many(rows(300, 100 + number) * -1.0)
        store.delete(store.view().ids[-300:])
        store.search_many(rows(2, number))
        answer = in_a_fork(child)
        assert answer.startswith("(10, True, 'hnsw', "), answer
    assert store.wait_for_index()
    assert store.stats(probe=True).index.recall >= 0.98
    store.close()


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_that_cannot_wait_gives_the_child_no_half_graph(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread is stuck amid a step: the child drops what it was working on."""
    monkeypatch.setattr(upkeep, "FORK_SECONDS", 0.1)
    store = filled()
    assert store.wait_for_index()
    gate = Gate(monkeypatch)
    store.add_many(rows(500, 3))  # the graph that serves is being fed
    assert gate.reached.wait(30)

    def child() -> Any:
        return len(store.search(rows(1, 7)[0])), store.stats().index.kind

    assert in_a_fork(child) == "(10, 'exact')"
    gate.open.set()
    assert store.wait_for_index()
    assert store.stats().index.kind == "hnsw"
    store.close()


def test_a_process_that_ends_amid_a_build_ends_well() -> None:
    """A thread that came out of native code when the interpreter was gone took the process down with it."""
    code = (
        "import time\n"
        "import numpy as np\n"
        "from memsift import MemoryStore\n"
        "class Slow:\n"  # so that the thread has the time to come out
        "    def __del__(self, sleep=time.sleep):\n"
        "        sleep(0.3)\n"
        "slow = Slow()\n"
        "store = MemoryStore(64, index='hnsw')\n"
        "store.add_many(np.random.default_rng(0).normal(size=(20000, 64)))\n"
        "store.search_many(np.ones((3, 64)))\n"
        "index = store._memory.index\n"
        "while not index._work or not len(index._work.generation.graph):\n"
        "    time.sleep(0.001)\n"
        "print('building')\n"
    )
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
        )
        assert (done.stdout, done.stderr, done.returncode) == ("building\n", "", 0)


def test_one_search_begins_nothing() -> None:
    """A process that asks once and ends shall not build a graph for it."""
    store = filled()
    assert search.SEARCHES == 2
    store.search(rows(1, 1)[0])
    assert threads() == []
    assert not store.stats().index.rebuilding
    store.search(rows(1, 2)[0])
    assert store.wait_for_index()
    assert store.stats().index.kind == "hnsw"
    store.close()
