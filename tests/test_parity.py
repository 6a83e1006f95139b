"""Parity with the reference implementation, on the state by which it measures itself (2,000 entries, 64-d)."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from memsift import (
    Coherence,
    CoherencePolicy,
    CompactionPolicy,
    Frequency,
    LfuPolicy,
    LruPolicy,
    MemoryStore,
    MemoryView,
    Recency,
    compact,
    recall_at_k,
)
from memsift.errors import InvalidType, InvalidValue

Arrays = dict[str, np.ndarray]

KEPT = 1000
EXPRESSION = 0.25 * Recency() + 0.35 * Frequency() + 0.40 * Coherence()


@pytest.fixture(scope="module")
def reference() -> Arrays:
    with (files("memsift") / "data" / "adr252.npz").open("rb") as file, np.load(file) as arrays:
        return {name: arrays[name] for name in arrays}


@pytest.fixture(scope="module")
def view(reference: Arrays) -> MemoryView:
    return MemoryView.from_arrays(
        reference["vectors"],
        context=reference["context_window"],
        created_tick=reference["created_tick"],
        accessed_tick=reference["last_accessed_tick"],
        access_count=reference["access_count"],
    )


def store_of(reference: Arrays, rows: Any = slice(None)) -> MemoryStore:
    """A store whose ids are the reference's row numbers: all are added, then those not in `rows` deleted."""
    store = MemoryStore(64)
    ids = store.add_many(reference["vectors"])
    assert ids.tolist() == list(range(2000))
    store.delete(np.setdiff1d(ids, ids[rows]))
    return store


def recall(reference: Arrays, rows: Any) -> float:
    return recall_at_k(store_of(reference, rows), reference["queries"], reference["true_top10"])


@pytest.mark.parametrize(
    ("policy", "survivors"),
    [
        (LruPolicy(), "survivors_lru"),
        (CoherencePolicy(), "survivors_coherence"),
        (CoherencePolicy(alpha=0.25, beta=0.35, gamma=0.40, window=20), "survivors_coherence"),
        (EXPRESSION, "survivors_coherence"),
    ],
)
def test_the_same_entries_survive(
    reference: Arrays, view: MemoryView, policy: CompactionPolicy, survivors: str
) -> None:
    assert policy.select_survivors(view, KEPT).tolist() == reference[survivors].tolist()


@pytest.mark.parametrize("policy", [CoherencePolicy(), EXPRESSION])
def test_the_same_entries_survive_by_an_explicit_window(
    reference: Arrays, view: MemoryView, policy: CompactionPolicy
) -> None:
    blind = view.with_context(np.empty((0, 64)))
    rows = policy.select_survivors(blind, KEPT, reference["context_window"])
    assert rows.tolist() == reference["survivors_coherence"].tolist()


@pytest.mark.parametrize("policy", [LruPolicy(), CoherencePolicy(), EXPRESSION])
def test_slots_do_not_matter(view: MemoryView, policy: CompactionPolicy) -> None:
    wanted = policy.select_survivors(view, KEPT)
    order = np.random.default_rng(0).permutation(2000)
    kept = policy.select_survivors(view.take(order), KEPT)
    assert sorted(order[kept].tolist()) == wanted.tolist()


def test_lfu_breaks_its_many_ties_by_rule(reference: Arrays, view: MemoryView) -> None:
    """1,460 entries have a count of 0. The reference leaves them to an unstable sort; here the rule decides."""
    counts, ticks = reference["access_count"], reference["last_accessed_tick"]
    assert np.count_nonzero(counts == 0) == 1460
    rule = sorted(range(2000), key=lambda row: (counts[row], ticks[row], row), reverse=True)
    rows = LfuPolicy().select_survivors(view, KEPT)
    assert rows.tolist() == sorted(rule[:KEPT])
    theirs = reference["survivors_lfu"]
    # Where counts decide, both agree.
    assert set(np.flatnonzero(counts > 0)) <= set(rows) & set(theirs)


def test_an_empty_window_keeps_as_lfu_does(view: MemoryView) -> None:
    blind = view.with_context(np.empty((0, 64)))
    wanted = LfuPolicy().select_survivors(view, KEPT).tolist()
    assert CoherencePolicy().select_survivors(blind, KEPT).tolist() == wanted


@pytest.mark.parametrize(
    ("policy", "figure"),
    [(LruPolicy(), 0.710), (CoherencePolicy(), 1.000), (EXPRESSION, 1.000), (LfuPolicy(), 0.710)],
)
def test_recall_is_the_reference_s(
    reference: Arrays, view: MemoryView, policy: CompactionPolicy, figure: float
) -> None:
    rows = policy.select_survivors(view, KEPT)
    assert recall(reference, rows) == pytest.approx(figure, abs=5e-4)


@pytest.mark.parametrize(
    ("survivors", "figure"),
    [("survivors_lru", 0.710), ("survivors_lfu", 0.866), ("survivors_coherence", 1.000)],
)
def test_recall_of_the_reference_s_own_survivors(
    reference: Arrays, survivors: str, figure: float
) -> None:
    assert recall(reference, reference[survivors]) == pytest.approx(figure, abs=5e-4)


def test_a_whole_store_finds_the_true_neighbours(reference: Arrays) -> None:
    store = store_of(reference)
    assert recall_at_k(store, reference["queries"], reference["true_top10"]) == 1.0
    for query, true in zip(reference["queries"], reference["true_top10"], strict=True):
        hits = store.search(query, k=10, touch=False)
        assert {hit.id for hit in hits} == set(true.tolist())
    assert store.stats().searches == 0


# ---- the reference's two calls -------------------------------------------------------------------------------


def test_compact_leaves_the_target_and_says_what_left(reference: Arrays) -> None:
    """Ticks of a store are its own: all were added in turn and none was asked for, so LRU keeps the last."""
    store = store_of(reference)
    done = compact(store, LruPolicy(), KEPT, reference["context_window"])
    assert len(store) == KEPT
    assert done.dropped.dtype == np.int64
    assert done.dropped.tolist() == list(range(1000))
    assert (done.before.entries, done.after.entries) == (2000, 1000)


def test_compact_judges_by_the_window_that_it_is_given(reference: Arrays) -> None:
    store = store_of(reference)
    window = reference["context_window"]
    compact(store, CoherencePolicy(0, 0, 1), KEPT, window)
    best = (reference["vectors"].astype(np.float64) @ window.T.astype(np.float64)).max(1)
    assert store.holds(np.argsort(-best)[:KEPT]).all()
    assert recall_at_k(store, reference["queries"], reference["true_top10"]) == 1.0


def test_compact_without_a_window_judges_by_the_store_s_own_queries(reference: Arrays) -> None:
    given, own = store_of(reference), store_of(reference)
    for query in reference["context_window"]:
        own.search(query, touch=0)
    compact(given, CoherencePolicy(0, 0, 1), KEPT, reference["context_window"])
    compact(own, CoherencePolicy(0, 0, 1), KEPT)
    assert given.holds(range(2000)).tolist() == own.holds(range(2000)).tolist()


def test_pinned_entries_stay(reference: Arrays) -> None:
    store = store_of(reference)
    store.pin([0, 1, 2])
    compact(store, LruPolicy(), 5)
    assert np.flatnonzero(store.holds(range(2000))).tolist() == [0, 1, 2, 1998, 1999]


@pytest.mark.parametrize(
    ("target", "error"), [(-1, InvalidValue), (0.5, InvalidType), ("half", InvalidType)]
)
def test_a_target_that_is_no_number_of_entries_is_refused(
    target: Any, error: type[Exception]
) -> None:
    store = MemoryStore(2)
    store.add([1, 0])
    with pytest.raises(error, match="target_size"):
        compact(store, LruPolicy(), target)
    assert len(store) == 1


def test_recall_is_the_mean_share_of_true_neighbours_found() -> None:
    """Of four on a compass, east and north stay: the first query finds one of two, the second one of one."""
    store = MemoryStore(2)
    store.add_many([[1, 0], [0, 1], [-1, 0], [0, -1]])
    store.delete([2, 3])
    assert recall_at_k(store, [[1, 0], [0, 1]], [[0, 3], [1]], k=2) == 0.75
    assert recall_at_k(store, [[1, 0], [0, 1]], [[0, 3], [0]], k=1) == 0.25


@pytest.mark.parametrize("truth", [[], [[0], [0]], [[]]])
def test_recall_needs_neighbours_for_every_query(truth: Any) -> None:
    store = MemoryStore(2)
    store.add([1, 0])
    with pytest.raises(InvalidValue, match="truth"):
        recall_at_k(store, [[1, 0]], truth)


def test_recall_without_queries_is_refused() -> None:
    store = MemoryStore(2)
    store.add([1, 0])
    with pytest.raises(InvalidValue, match="at least 1"):
        recall_at_k(store, np.empty((0, 2)), [])
