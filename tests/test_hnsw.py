"""The HNSW index: what it finds is true, nearly all is found, and nothing that left comes back, however much leaves."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

from memsift import MemoryStore, upkeep
from memsift import index as indexes
from memsift.errors import InvalidType, InvalidValue, MissingExtra
from memsift.index import ExactIndex
from memsift.index.hnsw import HnswIndex, build, graph, search
from memsift.index.hnsw.nodes import Nodes
from memsift.table import Entries, EntryTable
from memsift.testing import IndexTests
from memsift.testing.index import brute_force, unit

pytest.importorskip("usearch", reason="needs memsift[ann]")

DIM = 32


@pytest.fixture(autouse=True)
def no_lulls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a moment without searches."""
    monkeypatch.setattr(search, "LULL_SECONDS", 0.0)


def around(n: int, seed: int, dim: int = DIM) -> np.ndarray:
    """Unit rows around 20 centres."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(20, dim))
    return unit(centres[rng.integers(0, 20, n)] + rng.normal(size=(n, dim)))


def held(vectors: Any, ids: Any = None) -> EntryTable:
    ids = np.arange(len(vectors)) if ids is None else ids
    table = EntryTable(vectors.shape[1], 0)
    table.append(Entries(vectors, {"ids": ids}, None))
    return table


def recall(index: HnswIndex, queries: np.ndarray, k: int = 10) -> float:
    """Of the true best k, by brute force; and whatever was found must be true and in order."""
    vectors, ids = index.table.vectors.copy(), index.table.column("ids").copy()
    found = 0
    for query in queries:
        rows, scores = index.search(query, k)
        best, true = brute_force(vectors, ids, query, k)
        assert rows.size == len(best)
        assert scores.tolist() == [
            brute_force(vectors[[r]], ids[[r]], query, 1)[1][0] for r in rows
        ]
        assert (np.diff(scores) <= 0).all()
        assert (scores <= true).all()
        found += len(set(best) & set(rows.tolist()))
    return found / (len(queries) * min(k, len(ids)))


def refused(*args: Any) -> Any:
    raise AssertionError("the graph did not answer")


class TestHnswIndex(IndexTests):
    recall = 0.95

    def make(self, vectors: Any, ids: Any) -> HnswIndex:
        index = HnswIndex(held(vectors, ids), threading.RLock())
        assert index.settle()
        kind = "hnsw" if len(ids) >= search.SMALLEST else "exact"
        assert index.state().kind == kind
        return index


class TestHalfOfTheGraphDead(TestHnswIndex):
    """Twice as many entries were there; every other one has left, and nothing was rebuilt since."""

    def make(self, vectors: Any, ids: Any) -> HnswIndex:
        n = len(ids)
        gone = unit(np.random.default_rng(77).normal(size=(n, self.dim))).reshape(n, self.dim)
        both, numbers = np.empty((2 * n, self.dim), np.float32), np.empty(2 * n, np.int64)
        both[::2], both[1::2] = vectors, gone
        numbers[::2], numbers[1::2] = ids, ids + 1_000_000
        table = held(both, numbers)
        index = HnswIndex(table, threading.RLock())
        assert index.settle()
        index.stop()
        table.remove(np.arange(2 * n) % 2 == 0)
        # Rows come in the order in which the suite knows them.
        order = np.argsort(table.slots_of(ids))
        return _Renumbered(index, order)  # type: ignore[return-value]


class TestATailBesideTheGraph(TestHnswIndex):
    """A third of the entries are not in the graph, and the first ten have other vectors than the graph knows."""

    def make(self, vectors: Any, ids: Any) -> HnswIndex:
        n = len(ids)
        first = n - n // 3
        changed = vectors[:first].copy()
        changed[:10] = -changed[:10]
        table = held(changed, ids[:first])
        index = HnswIndex(table, threading.RLock(), least=64)
        assert index.settle()
        index.stop()
        for slot in range(min(10, first)):
            table.write_vector(slot, vectors[slot])
        table.append(Entries(vectors[first:], {"ids": ids[first:]}, None))
        assert index.state().kind == ("hnsw" if first >= 64 else "exact")
        if first >= 64:
            assert index.state().scanned == n // 3 + 10
        return index


class _Renumbered:
    """An index whose table holds row i of the suite in slot `slots[i]`."""

    def __init__(self, index: HnswIndex, row_of: np.ndarray) -> None:
        self._index, self._row = index, row_of
        self._slot = np.argsort(row_of)

    def search(self, query: Any, k: int, mask: Any = None) -> Any:
        slots, scores = self._index.search(query, k, None if mask is None else mask[self._row])
        return self._row[slots], scores

    def search_many(self, queries: Any, k: int, mask: Any = None) -> Any:
        found, _ = self._index.search_many(queries, k, None if mask is None else mask[self._row])
        return [(self._row[slots], scores) for slots, scores in found]


# ---- the nodes against a dict --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_nodes_follow_the_table_as_a_dict_would(seed: int) -> None:
    """Each entry is its id; the dict says which node stands for it. Nodes that died stay dead."""
    rng = np.random.default_rng(seed)
    table, model, born = held(around(300, 0)[:0]), {}, 0
    table.following.begin(follower := _Follower(Nodes(table.capacity)))
    nodes = follower.nodes
    for _ in range(60):
        ids = table.column("ids")
        step = rng.integers(4)
        if step == 0:
            count = int(rng.integers(1, 200))
            fresh = np.arange(born, born + count)
            table.append(Entries(around(count, seed), {"ids": fresh}, None))
            born += count
        elif step == 1:
            keep = rng.random(len(table)) < rng.random()
            for id_ in ids[~keep].tolist():
                model.pop(id_, None)
            table.remove(keep)
        elif step == 2 and len(table):
            slot = int(rng.integers(len(table)))
            table.write_vector(slot, around(1, 9)[0])
            model.pop(int(ids[slot]), None)
        else:
            slots = np.array([s for s, i in enumerate(ids.tolist()) if i not in model], np.intp)
            slots = slots[rng.random(slots.size) < 0.5]
            first = nodes.claim(slots)
            model |= {int(ids[slot]): first + i for i, slot in enumerate(slots)}
        ids = table.column("ids")
        expected = np.full(nodes.given, -1)
        for id_, node in model.items():
            expected[node] = int(np.flatnonzero(ids == id_)[0])
        assert nodes.slots(np.arange(nodes.given)).tolist() == expected.tolist()
        assert nodes.live == len(model)
        outside = [slot for slot, id_ in enumerate(ids.tolist()) if id_ not in model]
        assert nodes.outside(len(table), nodes.given).tolist() == outside


class _Follower:
    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.forget, self.resize, self.moved = nodes.forget, nodes.resize, nodes.move

    def appended(self) -> None:
        pass


# ---- churn ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", ["even", "region"])
def test_five_times_half_leave_and_as_many_come(spread: str) -> None:
    """While half of the graph is dead and half of the entries wait beside it, and after the rebuild."""
    queries = around(60, 99)
    table = held(around(3000, 1))
    index = HnswIndex(table, threading.RLock())
    assert index.settle()
    assert recall(index, queries) >= 0.99
    born = 3000
    for cycle in range(5):
        rng = np.random.default_rng(cycle)
        loved = table.vectors @ around(1, cycle)[0] if spread == "region" else rng.random(3000)
        stopped = index.upkeep._not_before
        index.upkeep._not_before = np.inf  # nobody rebuilds meanwhile
        with index.lock:
            table.remove(loved > np.median(loved))
        assert index.state().dead == 1500
        assert recall(index, queries) >= 0.98
        for part in range(0, 1500, 500):
            with index.lock:
                fresh = {"ids": np.arange(born, born + 500)}
                table.append(Entries(around(500, 1000 + 10 * cycle + part), fresh, None))
            born += 500
            assert recall(index, queries[::3]) >= 0.98
        index.upkeep._not_before = stopped
        assert index.settle()
        state = index.state()
        assert (state.dead, state.error, state.rebuilding) == (0, None, False)
        assert state.graph + state.scanned == 3000
        assert recall(index, queries) >= 0.99


def test_the_graph_alone_answers_what_is_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this, every other test would pass by falling back on the scan."""
    index = HnswIndex(held(around(3000, 1)), threading.RLock())
    assert index.settle()
    monkeypatch.setattr(index.exact, "search", refused)
    index._serving.near = index._serving.far = -1.0  # nobody is a stranger
    assert recall(index, around(100, 99)) >= 0.98
    mask = np.random.default_rng(0).random(3000) < 0.5
    for query in around(20, 98):
        rows, _ = index.search(query, 10, mask)
        assert rows.size == 10
        assert mask[rows].all()


def test_a_stranger_to_all_entries_is_answered_by_the_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """No way through a graph leads to the nearest of those that are all far away: it found four of ten."""
    monkeypatch.setattr(search, "SCANNED_FLOATS", 0)
    rng = np.random.default_rng(3)
    centre = rng.normal(size=DIM)
    table = held(unit(centre + 0.3 * rng.normal(size=(3000, DIM))))
    index = HnswIndex(table, threading.RLock())
    assert index.settle()
    assert recall(index, unit(-centre + 0.3 * rng.normal(size=(10, DIM)))) == 1.0
    assert index.state().scans == 10
    assert recall(index, unit(centre + 0.3 * rng.normal(size=(20, DIM)))) >= 0.98
    assert index.state().scans == 10
    # Between the two, the search goes wider.
    asked = []
    nearest = graph.Graph.nearest
    monkeypatch.setattr(
        graph.Graph,
        "nearest",
        lambda self, query, count, expansion: (
            asked.append(expansion) or nearest(self, query, count, expansion)
        ),
    )
    index._serving.near, index._serving.far = 1.0, -1.0
    assert recall(index, unit(centre + 0.3 * rng.normal(size=(5, DIM)))) >= 0.98
    assert asked == [graph.EXPANSION, search.WIDER * graph.EXPANSION] * 5


def test_the_old_graph_goes_in_a_lull_or_when_patience_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To let go of it keeps the interpreter busy for milliseconds."""
    store = MemoryStore(DIM, index="hnsw")
    store.add_many(around(2000, 1))
    assert store.wait_for_index()
    before = store.stats().bytes["index"]
    for lull, patience in ((0.0, 1000.0), (1000.0, 0.0)):
        monkeypatch.setattr(search, "LULL_SECONDS", lull)
        monkeypatch.setattr(search, "PATIENCE_SECONDS", patience)
        store.search(around(1, 1)[0])
        store.delete(store.view().ids[::2])
        store.add_many(around(1000, 7))
        assert store.wait_for_index()
        assert store.stats().bytes["index"] <= 1.1 * before
    monkeypatch.setattr(search, "PATIENCE_SECONDS", 1000.0)
    store.search(around(1, 1)[0])
    store.delete(store.view().ids[::2])
    assert not store.wait_for_index(1.0)
    state = store.stats().index
    assert (state.kind, state.dead, state.rebuilding) == ("hnsw", 0, False)
    store.close()


def test_few_allowed_rows_are_scanned() -> None:
    """Among the tenth that lies farthest from the query, a graph would find none."""
    table = held(around(3000, 1))
    index = HnswIndex(table, threading.RLock())
    assert index.settle()
    for query in around(10, 5):
        scores = table.vectors @ query
        mask = scores <= np.quantile(scores, 0.1)
        rows, scores = index.search(query, 10, mask)
        assert (rows.tolist(), scores.tolist()) == brute_force(
            table.vectors, table.column("ids"), query, 10, mask
        )


def test_never_fewer_than_there_are() -> None:
    """Nine of ten leave at once, and the graph has hardly anything to offer."""
    table = held(around(3000, 1))
    index = HnswIndex(table, threading.RLock(), least=64)
    assert index.settle()
    index.stop()
    near = table.vectors @ around(1, 5)[0]
    table.remove(near < np.quantile(near, 0.1))  # all that the graph would meet first is gone
    for k in (1, 10, 100, 299, 300, 301, 5000):
        for query in around(5, 5):
            assert index.search(query, k)[0].size == min(k, len(table))
            assert recall(index, query[None], k) == 1.0


def test_an_entry_that_changed_is_found_by_its_new_vector_alone() -> None:
    store = MemoryStore(DIM, index="hnsw")
    ids = store.add_many(around(2000, 1))
    assert store.wait_for_index()
    old = store.get(7)[0].vector
    other = -old
    store.update(7, vector=other)
    for settled in (False, True):
        assert store.search(other, 1)[0].id == 7
        assert 7 not in [hit.id for hit in store.search(old, 20)]
        if not settled:
            store.update(8, vector=around(1, 3)[0])
            assert store.wait_for_index()
    store.delete(ids[:5])
    assert not {hit.id for hit in store.search(old, 500)} & set(ids[:5].tolist())
    store.close()


def test_what_is_found_does_not_depend_on_when_it_is_built() -> None:
    """The same additions, built at once or in between, find all that an exact search finds here."""
    vectors = around(2500, 4)
    whole, parts = (HnswIndex(held(vectors[:1500]), threading.RLock()) for _ in range(2))
    assert whole.settle()
    for start in range(1500, 2500, 250):
        for index in (whole, parts):
            fresh = {"ids": np.arange(start, start + 250)}
            index.table.append(Entries(vectors[start : start + 250], fresh, None))
        assert parts.settle()
    assert whole.settle()
    for index in (whole, parts):
        assert index.state().graph + index.state().scanned >= 2500
        assert recall(index, around(50, 9)) >= 0.98


# ---- auto ----------------------------------------------------------------------------------------


def test_auto_takes_the_graph_above_the_crossover_and_keeps_it_to_half_of_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(indexes, "CROSSOVER", 2000)
    store = MemoryStore(DIM, index="auto")
    seen = []
    for change in (1999, 1, -500, -499, -1, -1, 900, 200):
        if change > 0:
            store.add_many(around(change, seed=change))
        else:
            store.delete(store.view().ids[:-change])
        assert store.wait_for_index()
        store.search(around(1, 3)[0])
        seen.append((len(store), store.stats().index.kind))
    assert seen == [
        (1999, "exact"),
        (2000, "hnsw"),
        (1500, "hnsw"),
        (1001, "hnsw"),
        (1000, "hnsw"),
        (999, "exact"),
        (1899, "exact"),
        (2099, "hnsw"),
    ]
    store.close()


def test_without_usearch_hnsw_says_what_is_missing_and_auto_is_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "usearch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "usearch", None)
    with pytest.raises(MissingExtra, match=r"pip install 'memsift\[ann\]'"):
        MemoryStore(2, index="hnsw")
    store = MemoryStore(2, index="auto")
    assert isinstance(store._memory.index, ExactIndex)
    assert store.stats().index.kind == "exact"


@pytest.mark.parametrize(
    ("given", "error"),
    [("HNSW", InvalidValue), ("", InvalidValue), (None, InvalidType), (True, InvalidType)],
)
def test_other_indexes_are_refused(given: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="index must be one of exact, hnsw, auto"):
        MemoryStore(2, index=given)


# ---- looking -------------------------------------------------------------------------------------


def test_stats_say_what_answers_and_how_well() -> None:
    store = MemoryStore(DIM, index="hnsw")
    store.add_many(around(2000, 1))
    before = store.stats().to_dict()["index"]
    assert before == {
        "asked": "hnsw",
        "kind": "exact",
        "graph": 0,
        "dead": 0,
        "scanned": 2000,
        "scans": 0,
        "rebuilding": False,
        "error": None,
        "recall": None,
    }
    assert store.stats(probe=True).index.recall == 1.0
    assert store.wait_for_index()
    after = store.stats(probe=True)
    assert (after.index.kind, after.index.graph, after.index.scanned) == ("hnsw", 2000, 0)
    assert 0.98 <= after.index.recall <= 1.0
    assert after.bytes["index"] > 2000 * DIM
    store._memory.index.stop()  # so that nothing is mended
    store.delete(store.view().ids[:100])
    store.add_many(around(30, 2))
    now = store.stats().index
    assert (now.graph, now.dead, now.scanned) == (2000, 100, 30)
    assert str(now) == "hnsw, 2,000 nodes, 100 dead, 30 entries beside it"
    assert store.stats(probe=True).searches == 0, "a probe leaves no trace"
    store.close()


def test_a_probe_sees_a_bad_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that only knows every other entry: about half of the truth."""
    store = MemoryStore(DIM, index="hnsw")
    store.add_many(around(2000, 1))
    added = graph.Graph.add

    def every_other(self: Any, node: int, row: Any) -> None:
        if node % 2:
            added(self, node, row)

    monkeypatch.setattr(graph.Graph, "add", every_other)
    assert store.wait_for_index()
    for query in around(10, 7):
        store.search(query)
    assert 0.2 < store.stats(probe=True).index.recall < 0.8
    store.close()


def test_an_exact_index_finds_all() -> None:
    store = MemoryStore(DIM)
    assert store.stats(probe=True).index.recall == 1.0
    store.add_many(around(100, 1))
    assert store.stats(probe=True).index.recall == 1.0
    assert store.wait_for_index(0.0)


# ---- failures ------------------------------------------------------------------------------------


def test_a_build_that_fails_leaves_the_search_exact_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore(DIM, index="hnsw")
    store.add_many(around(2000, 1))

    def full(self: Any, node: int, row: Any) -> None:
        raise MemoryError("no room for a node")

    with monkeypatch.context() as patch:
        patch.setattr(graph.Graph, "add", full)
        assert store.wait_for_index()
        state = store.stats().index
        assert (state.kind, state.error) == ("exact", "MemoryError: no room for a node")
        assert store.stats(probe=True).index.recall == 1.0
    assert store.stats().index.rebuilding is False, "it is not tried again at once"
    store._memory.index.upkeep._not_before = 0.0  # half a minute later
    assert store.wait_for_index()
    assert store.stats().index.kind == "hnsw"
    store.close()


def test_a_rebuild_that_fails_leaves_the_old_graph_serving(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(DIM, index="hnsw")
    store.add_many(around(2000, 1))
    assert store.wait_for_index()

    def broken(self: Any, held: Any) -> bool:
        raise RuntimeError("broken")

    monkeypatch.setattr(build.Build, "step", broken)
    store.delete(store.view().ids[::2])
    assert store.wait_for_index()
    state = store.stats(probe=True).index
    assert (state.kind, state.dead, state.error) == ("hnsw", 1000, "RuntimeError: broken")
    assert state.recall >= 0.98
    store.close()


def test_a_feeding_that_fails_gives_the_graph_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some nodes were promised that the graph will never have: entries would be lost."""
    store = MemoryStore(DIM, index="hnsw")
    store.add_many(around(2000, 1))
    assert store.wait_for_index()
    added = graph.Graph.add

    def some(self: Any, node: int, row: Any) -> None:
        if node >= 2030:
            raise MemoryError
        added(self, node, row)

    with monkeypatch.context() as patch:
        patch.setattr(graph.Graph, "add", some)
        fresh = around(200, 2)
        store.add_many(fresh)
        assert store.wait_for_index()
    assert store.stats().index.kind == "exact"
    assert all(store.search(row, 1)[0].score > 0.999999 for row in fresh)
    store.close()


def test_no_thread_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThreads(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    store = MemoryStore(DIM, index="hnsw")
    store.add_many(around(2000, 1))
    monkeypatch.setattr(upkeep.threading, "Thread", NoThreads)
    for query in around(3, 1):
        assert len(store.search(query)) == 10
    assert store.stats().index.error == "RuntimeError: can't start new thread"
    store.close()
