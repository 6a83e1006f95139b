"""Coherence from what the searches computed anyway, against the same cosines computed again.

Also what a view promises while the store goes on: frozen columns, shared snapshots, and an error in place of
wrong vectors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from memsift import Coherence, CoherencePolicy, LruPolicy, MemoryStore, MemoryView, Recency
from memsift import index as indexes
from memsift.errors import StaleView
from memsift.index import ExactIndex
from memsift.table import EntryTable
from memsift.view import COLUMNS
from model import EXAMPLES

HISTORIES = 34 * EXAMPLES
STEPS = 12


def random_step(store: MemoryStore, rng: np.random.Generator) -> None:
    """One call of those that change entries, their places or the window."""
    ids = store.view().ids

    def vectors(count: int) -> np.ndarray:
        # Some rows come again and again, so that exact duplicates are held.
        rows = rng.normal(size=(count, store.dim))
        return np.where(rng.random((count, 1)) < 0.3, np.round(rows) + 0.25, rows)

    def delete() -> None:
        store.delete(ids[rng.permutation(ids.size)[: rng.integers(0, ids.size + 1)]])

    def add_many() -> None:
        store.add_many(vectors(int(rng.choice([1, 3, 30, 300], p=[0.4, 0.3, 0.25, 0.05]))))

    steps: list[tuple[float, Callable[[], object]]] = [
        (0.15, lambda: store.add(vectors(1)[0])),
        (0.10, add_many),
        (0.30, lambda: store.search(vectors(1)[0], k=3)),
        (0.05, lambda: store.search(vectors(1)[0], k=3, touch=0)),
        (0.05, lambda: store.search(vectors(1)[0], k=3, touch=False)),
        (0.08, lambda: store.search_many(vectors(int(rng.integers(1, 30))), k=2)),
        (0.02, lambda: store.search_many(vectors(3), k=2, touch=False)),
        (0.10, delete),
        (0.05, lambda: store.compact(float(rng.uniform(0.1, 1.0)))),
        (0.10, lambda: ids.size and store.update(int(rng.choice(ids)), vector=vectors(1)[0])),
    ]
    steps[rng.choice(len(steps), p=[weight for weight, _ in steps])][1]()


def recomputed(view: MemoryView, window: int) -> np.ndarray:
    return (view.vectors.astype(np.float64) @ view.context[-window:].astype(np.float64).T).max(1)


def check(store: MemoryStore, rng: np.random.Generator, window: int) -> None:
    view = store.view()
    if not len(view) or not len(view.context):
        return
    for w in {1, 2, int(rng.integers(1, window + 1)), window, window + 7}:
        np.testing.assert_allclose(view.cosine_max(w), recomputed(view, w), rtol=0, atol=1e-6)
    plain = view.with_context(view.context)
    for policy in (CoherencePolicy(window=window), Recency() + -1.0 * Coherence(2)):
        size = int(rng.integers(0, len(view) + 1))
        ours, theirs = (policy.select_survivors(v, size) for v in (view, plain))
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("window", [1, 5, 20, 31])
def test_the_ring_equals_recomputation_over_random_histories(window: int) -> None:
    """Half of the histories are looked at after each step, half only at the end, when much is late."""
    for seed in range(HISTORIES // 4):
        rng = np.random.default_rng((window, seed))
        store = MemoryStore(
            int(rng.integers(1, 9)),
            budget=[None, 7, 90, 700][seed % 4],
            policy=CoherencePolicy(window=window),
            low_watermark=float(rng.choice([0.97, 0.5])),
        )
        for _ in range(STEPS):
            random_step(store, rng)
            if seed % 2:
                check(store, rng, window)
        check(store, rng, window)


class SeesSome(ExactIndex):
    """An index whose searches see all entries or only some, as the dice fall: those write no row."""

    def __init__(self, table: EntryTable, rng: np.random.Generator) -> None:
        super().__init__(table)
        self._rng, self.share = rng, rng.random()
        self.fall()

    def fall(self) -> None:
        self.sees_all = bool(self._rng.random() < self.share)

    def search(self, query, k, mask=None, out=None):
        assert out is None or self.sees_all
        return super().search(query, k, mask, out)

    def search_many(self, queries, k, mask=None, last=0):
        found, similarities = super().search_many(queries, k, mask, last)
        return found, similarities if self.sees_all else similarities[:0]


@pytest.mark.parametrize("window", [1, 5, 20, 31])
def test_the_ring_equals_recomputation_where_searches_see_only_some(window: int) -> None:
    for seed in range(HISTORIES // 4):
        rng = np.random.default_rng((window, seed, 1))
        store = MemoryStore(
            int(rng.integers(1, 9)),
            budget=[None, 7, 90, 700][seed % 4],
            policy=CoherencePolicy(window=window),
            low_watermark=float(rng.choice([0.97, 0.5])),
        )
        store._memory.index = index = SeesSome(store._memory.table, rng)
        for _ in range(STEPS):
            index.fall()
            random_step(store, rng)
            if seed % 2:
                check(store, rng, window)
        check(store, rng, window)


@pytest.mark.parametrize("window", [5, 20])
def test_the_ring_equals_recomputation_while_a_graph_comes_and_goes(
    window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`auto` with its crossover at 40 entries: exact, by the graph, and exact again, in each history several times."""
    pytest.importorskip("usearch", reason="needs memsift[ann]")
    monkeypatch.setattr(indexes, "CROSSOVER", 40)
    turns = []
    for seed in range(max(6, HISTORIES // 100)):
        rng = np.random.default_rng((window, seed, 2))
        with MemoryStore(4, policy=CoherencePolicy(window=window), index="auto") as store:
            store.add_many(rng.normal(size=(60, 4)))
            for _ in range(3 * STEPS):
                if rng.random() < 0.4:
                    store.wait_for_index()
                random_step(store, rng)
                turns.append(store.stats().index.kind)
                if seed % 2:
                    check(store, rng, window)
            check(store, rng, window)
    changes = list(itertools.pairwise(turns))
    assert changes.count(("exact", "hnsw")) > 3
    assert changes.count(("hnsw", "exact")) > 3
    assert changes.count(("hnsw", "hnsw")) > 20


def test_a_skipped_row_counts_for_nothing_until_it_is_filled() -> None:
    """What an old query left in the row must not be taken for the new one's similarities."""
    store = MemoryStore(4, policy=CoherencePolicy(window=2))
    store.add_many(np.random.default_rng(0).normal(size=(30, 4)))
    index = SeesSome(store._memory.table, np.random.default_rng(0))
    for queries, sees_all in (([[1, 0, 0, 0]] * 2, True), ([[0, 1, 0, 0]], False)):
        store._memory.index, index.sees_all = index, sees_all
        for query in queries:
            store.search(query)
    np.testing.assert_allclose(
        store.view().cosine_max(1), store.view().vectors[:, 1], rtol=0, atol=1e-6
    )


def test_a_store_whose_policy_looks_at_no_queries_still_answers() -> None:
    store = MemoryStore(4, policy=LruPolicy())
    rng = np.random.default_rng(0)
    store.add_many(rng.normal(size=(50, 4)))
    store.search_many(rng.normal(size=(30, 4)))
    assert store.stats().bytes["window"] == 0
    check(store, rng, 20)


# ---- memory --------------------------------------------------------------------------------------


def held(store: MemoryStore) -> int:
    bytes_ = store.stats().bytes
    return sum(bytes_[part] for part in ("vectors", "columns", "window"))


def test_growth_is_amortised() -> None:
    """Twenty thousand additions one by one move the rows a few dozen times, not thousands."""
    store = MemoryStore(2, policy=LruPolicy())
    sizes = {held(store)}
    for _ in range(20_000):
        store.add([1, 0])
        sizes.add(held(store))
    assert len(sizes) <= math.log(20_000 / 64, 1.5) + 2
    assert held(store) <= 1.6 * 20_000 * store.stats().size.bytes / len(store)


def test_eviction_gives_memory_back() -> None:
    store = MemoryStore(32)
    store.add_many(np.random.default_rng(0).normal(size=(10_000, 32)))
    store.search(np.ones(32))
    full = held(store)
    store.compact(0.5)
    store.compact(0.1)
    assert held(store) < full / 5
    store.delete(store.view().ids)
    assert held(store) < full / 50
    assert len(store.search(np.ones(32))) == 0


def test_a_store_at_its_budget_neither_grows_nor_shrinks() -> None:
    store = MemoryStore(4, budget=1000)
    sizes = []
    for _ in range(30):
        store.add_many(np.ones((200, 4)))
        sizes.append(held(store))
    assert len(set(sizes[10:])) == 1


def test_views_cost_what_changed() -> None:
    store = MemoryStore(4, policy=CoherencePolicy())
    store.add_many(np.ones((1000, 4)))
    assert store.stats().bytes["snapshots"] == 0
    view = store.view()
    whole = store.stats().bytes["snapshots"]
    # A column in which every entry says the default is one value.
    said = [
        name for name, (_, default) in COLUMNS.items() if (getattr(view, name) != default).any()
    ]
    said = [name for name in said if not np.isnan(getattr(view, name).astype(float)).all()]
    assert whole == sum(1000 * np.dtype(COLUMNS[name][0]).itemsize for name in said) > 0
    store.feedback(3)
    store.view()
    more = store.stats().bytes["snapshots"]
    assert more == whole + 1000 * (8 + 8)  # use_count, revision
    store.feedback(4)
    assert store.stats().bytes["snapshots"] == more - 1000 * (8 + 8)


# ---- views ---------------------------------------------------------------------------------------


def story() -> MemoryStore:
    store = MemoryStore(3, policy=CoherencePolicy(window=5))
    store.add_many(np.random.default_rng(1).normal(size=(20, 3)))
    store.search([1, 2, 3], k=4)
    return store


def columns(view: MemoryView) -> dict[str, bytes]:
    return {name: getattr(view, name).tobytes() for name in COLUMNS} | {
        "context": view.context.tobytes(),
        "tick": str(view.tick).encode(),
    }


CHANGES: dict[str, Callable[[MemoryStore], object]] = {
    "add": lambda store: store.add([1, 0, 0]),
    "growth": lambda store: store.add_many(np.ones((500, 3))),
    "search": lambda store: store.search([1, 0, 0]),
    "thirty searches": lambda store: store.search_many(np.ones((30, 3))),
    "feedback": lambda store: store.feedback([3, 4]),
    "pin": lambda store: store.pin([3, 4]),
    "cost": lambda store: store.update(3, cost=9),
    "vector": lambda store: store.update(3, vector=[1, 0, 0]),
    "delete": lambda store: store.delete([0, 5]),
    "compaction": lambda store: store.compact(4),
    "everything leaves": lambda store: store.delete(range(20)),
}
MOVES = ("vector", "delete", "compaction", "everything leaves")


@pytest.mark.parametrize("change", CHANGES)
def test_a_view_stays_as_it_was(change: str) -> None:
    store = story()
    view = store.view()
    before, cosines = columns(view), view.cosine_max(3)
    rows = view.vectors.copy()
    CHANGES[change](store)
    assert columns(view) == before
    if change in MOVES:
        asked = (
            lambda: view.vectors,
            lambda: view.cosine_max(3),
            lambda: view.exact_cosine_max(3, np.arange(2)),
            lambda: view.take(np.arange(2)).vectors,
            lambda: view.with_context([[1, 0, 0]]).cosine_max(1),
            lambda: CoherencePolicy().select_survivors(view, 3),
        )
        for ask in asked:
            with pytest.raises(StaleView, match="take a new one"):
                ask()
    else:
        assert view.vectors.tobytes() == rows.tobytes()
        np.testing.assert_allclose(view.cosine_max(3), cosines, rtol=0, atol=1e-6)


def test_vectors_that_moved_and_came_back_are_still_stale() -> None:
    """As many entries as before, but others: a count would not have told."""
    store = story()
    view = store.view()
    store.delete(19)
    store.add([0, 0, 1])
    with pytest.raises(StaleView):
        _ = view.vectors


def copied_again(view: MemoryView, again: MemoryView) -> set[str]:
    """Columns that two views do not share; where all entries say the same, there is nothing to copy."""
    pairs = {name: (getattr(view, name), getattr(again, name)) for name in COLUMNS}
    return {
        name
        for name, (old, new) in pairs.items()
        if old is not new and not old.strides == new.strides == (0,)
    }


def test_a_silent_search_changes_no_view() -> None:
    store = story()
    view = store.view()
    store.search([1, 0, 0], touch=False)
    again = store.view()
    assert copied_again(view, again) == set()


def test_only_the_columns_that_changed_are_copied_again() -> None:
    store = story()
    view = store.view()
    store.pin(3)
    again = store.view()
    assert copied_again(view, again) == {"pinned", "revision"}
    assert view.vectors.base is again.vectors.base


def test_nothing_of_a_view_can_be_written() -> None:
    view = story().view()
    for name in [*COLUMNS, "vectors", "context"]:
        with pytest.raises(ValueError, match="read-only"):
            getattr(view, name)[0] = 0
        with pytest.raises(AttributeError):
            setattr(view, name, None)


def test_what_a_view_computes_is_the_callers() -> None:
    """Writing into a result must not reach the ring."""
    store = story()
    store.view().cosine_max(5)[:] = 7
    store.view().cosine_max(1)[:] = 7
    check(store, np.random.default_rng(0), 5)
