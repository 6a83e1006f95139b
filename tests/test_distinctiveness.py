"""Distinctiveness against a dumb O(n^2) model, its estimate against the truth, and what may not show in it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsift import Distinctiveness, MemoryStore, MemoryView, Recency
from memsift import neighbours as room
from memsift.errors import InvalidType, InvalidValue
from memsift.neighbours import Others, Sample, estimate_for, sample_for, sampled
from memsift.policies import from_dict, parse, to_text
from memsift.testing import PolicyTests
from memsift.testing.policy import columns, view_of

Float64 = npt.NDArray[np.float64]


def dumb(vectors: Any, neighbours: int, among: list[int] | None = None) -> list[float]:
    """1 - the mean of the largest cosines to the others, or to those in some rows."""
    rows = np.asarray(vectors, np.float64)
    out = []
    for i in range(len(rows)):
        others = [j for j in (range(len(rows)) if among is None else among) if j != i]
        cosines = sorted((float(rows[i] @ rows[j]) for j in others), reverse=True)[:neighbours]
        mean = sum(cosines) / len(cosines) if cosines else 0.0
        out.append(1.0 - min(1.0, max(-1.0, mean)))  # float32 rows may be a little too long
    return out


def exact(view: MemoryView, neighbours: int = 20) -> list[float]:
    """What the signal says of all entries, in one go and of each alone, which must agree."""
    signal = Distinctiveness(neighbours)
    n = len(view)
    found = signal.exact(view, np.arange(n))
    assert signal.values(view).tolist() == found.astype(np.float32).tolist()
    for row in range(0, n, max(1, n // 5)):
        assert signal.exact(view, np.array([row])).tolist() == [found[row]]
    return found.tolist()


def clusters(n: int, seed: int, dim: int = 32) -> Float64:
    """Entries around 30 centres, some crowds and some few, some narrow and some wide."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, 31)
    of = rng.choice(30, n, p=share / share.sum())
    wide = rng.uniform(0.2, 1.2, 30)[of, None]
    found: Float64 = rng.normal(size=(30, dim))[of] + wide * rng.normal(size=(n, dim))
    return found


def rank_correlation(one: list[float], other: list[float]) -> float:
    ranks = [np.argsort(np.argsort(x, kind="stable"), kind="stable") for x in (one, other)]
    return float(np.corrcoef(*ranks)[0, 1])


# ---- the formula ---------------------------------------------------------------------------------------------


def test_it_is_1_minus_the_mean_cosine_to_the_nearest_others() -> None:
    """At 0, 60 and 180 degrees: cosines .5, -1 and -.5."""
    angles = np.radians([0, 60, 180])
    view = MemoryView.from_arrays(np.stack([np.cos(angles), np.sin(angles)], 1))
    assert exact(view, 1) == pytest.approx([0.5, 0.5, 1.5])
    assert exact(view, 2) == pytest.approx([1.25, 1.0, 1.75])
    assert exact(view, 9) == exact(view, 2)


def test_copies_are_not_distinct_and_an_entry_alone_is_like_nobody() -> None:
    assert exact(MemoryView.from_arrays(np.eye(3)[[1] * 5]), 3) == [0.0] * 5
    assert exact(MemoryView.from_arrays([[3.0, 4.0]])) == [1.0]
    assert exact(MemoryView.from_arrays([[1.0, 0.0], [-1.0, 0.0]])) == [2.0, 2.0]


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 40), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_it_is_what_the_dumb_model_says(n: int, neighbours: int, seed: int) -> None:
    """Few directions: copies and ties everywhere, often fewer entries than neighbours."""
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-1, 2, (n, 3)) + np.array([0, 0, 2])
    view = MemoryView.from_arrays(vectors)
    found = exact(view, neighbours)
    assert found == pytest.approx(dumb(view.vectors, neighbours), abs=2e-9)
    assert all(-1e-9 <= value <= 2 for value in found)


@pytest.mark.parametrize("products", [1 << 9, 1 << 14, room.PRODUCTS])
@pytest.mark.parametrize("neighbours", [1, 7, 20, 299, 1000])
def test_many_parts_say_what_one_says(
    products: int, neighbours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clusters, a storm of copies and a storm of near copies, which float32 cannot tell apart."""
    rng = np.random.default_rng(5)
    vectors = clusters(300, 1)
    vectors[50:110] = vectors[0]
    vectors[110:180] = vectors[1] + 1e-7 * rng.normal(size=(70, 32))
    view = MemoryView.from_arrays(vectors)
    monkeypatch.setattr(room, "PRODUCTS", products)
    assert exact(view, neighbours) == pytest.approx(dumb(view.vectors, neighbours), abs=2e-9)


def test_rows_whose_products_all_round_one_way_are_told_apart() -> None:
    """Rows of equal elements: float32 is off by 3e-6 at dim 384."""
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], 384) * np.where(rng.random((400, 384)) < 0.02, -1.0, 1.0)
    view = MemoryView.from_arrays(signs)
    assert exact(view, 20) == pytest.approx(dumb(view.vectors, 20), abs=2e-9)


def test_each_way_to_settle_a_doubt_is_taken_and_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the sum of those that are sure, by all that come into question, and by everybody."""
    taken = {}
    for name in ("_mean", "_mean_of_best", "_mean_of_all"):
        whole = getattr(Others, name)

        def spy(self: Others, rows: Any, *more: Any, name: str = name, whole: Any = whole) -> Any:
            taken[name] = taken.get(name, 0) + len(rows)
            return whole(self, rows, *more)

        monkeypatch.setattr(Others, name, spy)
    vectors = clusters(600, 2)
    vectors[:200] = vectors[0]  # a crowd
    vectors[200:203], vectors[203] = vectors[210], vectors[210]  # a few copies
    view = MemoryView.from_arrays(vectors)
    found = Distinctiveness(3).exact(view, np.arange(600)).tolist()
    assert found == pytest.approx(dumb(view.vectors, 3), abs=2e-9)
    assert taken["_mean_of_all"] >= 200
    assert taken["_mean_of_best"] >= 5
    assert taken["_mean"] >= 300


# ---- what may not show ---------------------------------------------------------------------------------------


@pytest.fixture(params=["exact", "estimate"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once as for a small memory, once by a sample of 40."""
    if request.param == "estimate":
        monkeypatch.setattr(room, "EXACT", 60)
        monkeypatch.setattr(room, "SAMPLE", 40)


def test_where_an_entry_lies_does_not_show(both_ways: None) -> None:
    rng = np.random.default_rng(3)
    entries = {**columns(200), "vectors": clusters(200, 4, dim=8)}
    entries["vectors"][20:60] = entries["vectors"][0]
    wanted = dict(zip(entries["ids"].tolist(), exact(view_of(entries)), strict=True))
    for _ in range(4):
        order = rng.permutation(200)
        view = view_of({name: column[order] for name, column in entries.items()})
        assert dict(zip(view.ids.tolist(), exact(view), strict=True)) == wanted


def test_nothing_but_vectors_and_ids_shows(both_ways: None) -> None:
    entries = columns(200)
    other = columns(200, seed=9) | {name: entries[name] for name in ("vectors", "ids")}
    assert exact(view_of(entries)) == exact(view_of(other))


# ---- the estimate --------------------------------------------------------------------------------------------


def test_whom_all_are_compared_with_depends_on_ids_and_hardly_changes() -> None:
    ids = np.random.default_rng(0).permutation(50_000)[:9000]
    chosen = ids[sampled(ids, 500)]
    assert (np.diff(chosen) > 0).all()
    assert ids[::-1][sampled(ids[::-1], 500)].tolist() == chosen.tolist()
    left = np.setdiff1d(ids, ids[:900])
    assert np.isin(chosen[~np.isin(chosen, ids[:900])], left[sampled(left, 500)]).all()
    assert np.sort(ids).tolist() == ids[sampled(ids, 9000)].tolist()
    assert np.sort(ids).tolist() == ids[sampled(ids, 10**6)].tolist()
    # Evenly spread: of the older half as many as of the newer.
    assert abs(int((chosen < np.median(ids)).sum()) - 250) < 50


def test_a_sample_has_its_due_share_of_neighbours() -> None:
    assert sample_for(room.EXACT, 20) == Sample(room.EXACT, 20)
    assert sample_for(room.EXACT + 1, 20) == Sample(2048, round(20 * 2048 / 10_001))
    assert sample_for(100_000, 20) == Sample(2048, 3)
    assert sample_for(100_000, 500) == Sample(2048, 10)
    assert sample_for(7, 20) == Sample(7, 6)
    assert [sample_for(n, 20).nearest for n in (2, 1, 0)] == [1, 0, -1]
    assert estimate_for(100, 20) == Sample(100, 20)
    assert estimate_for(1, 20) == Sample(1, 0)


def test_the_estimate_is_that_of_the_dumb_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "EXACT", 60)
    monkeypatch.setattr(room, "SAMPLE", 40)
    entries = columns(200)
    view = view_of(entries)
    among = sampled(view.ids, 40).tolist()
    assert exact(view, 20) == pytest.approx(dumb(view.vectors, 4, among), abs=2e-9)
    assert exact(view, 3) == pytest.approx(dumb(view.vectors, 3, among), abs=2e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_estimate_ranks_nearly_as_the_truth_does(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten entries for each of the sample, as at 20,000."""
    vectors = clusters(2000, seed)
    view = MemoryView.from_arrays(vectors)
    truth = Distinctiveness().exact(view, np.arange(2000)).tolist()
    assert truth[:3] == pytest.approx(dumb(view.vectors, 20)[:3], abs=2e-9)
    monkeypatch.setattr(room, "EXACT", 100)
    monkeypatch.setattr(room, "SAMPLE", 200)
    estimate = Distinctiveness().exact(view, np.arange(2000)).tolist()
    assert estimate != truth
    assert rank_correlation(estimate, truth) > 0.85


# ---- the suite, and words ------------------------------------------------------------------------------------


class TestDistinctiveness(PolicyTests):
    policy = 1.0 * Distinctiveness()


class TestOneNeighbour(PolicyTests):
    policy = 1.0 * Distinctiveness(1)


class TestAMix(PolicyTests):
    policy = 0.25 * Recency() + -0.5 * Distinctiveness(5)


@pytest.mark.usefixtures("by_estimate")
class TestTheEstimate(PolicyTests):
    policy = 1.0 * Distinctiveness(7)

    @pytest.fixture
    def by_estimate(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(room, "EXACT", 8)
        monkeypatch.setattr(room, "SAMPLE", 6)


def test_a_crowd_leaves_before_who_stands_apart() -> None:
    """Six copies and three others in a store of four: of the copies one is left."""
    store = MemoryStore(4, policy=parse("distinctiveness:neighbours=2"))
    store.add_many([[1, 0, 0, 0]] * 6 + [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    assert store.compact(4).dropped.tolist() == [0, 1, 2, 3, 4]


def test_text_and_files_give_it_back() -> None:
    policy = parse("0.5*distinctiveness:neighbours=10+0.5*recency")
    assert policy == 0.5 * Distinctiveness(10) + 0.5 * Recency()
    assert parse(to_text(policy)) == policy
    assert from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    assert "measured" not in json.dumps(policy.to_dict())
    bound = 1.0 * Distinctiveness(measured="ab")
    assert bound == 1.0 * Distinctiveness()
    assert repr(bound) == "1 * Distinctiveness(neighbours=20)"
    assert from_dict(bound.to_dict()).to_dict() == bound.to_dict()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Distinctiveness(0), InvalidValue, "Distinctiveness.neighbours must be .* 1"),
        (lambda: Distinctiveness(1001), InvalidValue, "Distinctiveness.neighbours"),
        (lambda: Distinctiveness(2.5), InvalidType, "Distinctiveness.neighbours"),
        (lambda: Distinctiveness(measured=7), InvalidType, "Distinctiveness.measured must be text"),
        (lambda: parse("distinctiveness:k=3"), InvalidValue, "takes the parameters neighbours"),
    ],
)
def test_what_is_not_allowed_is_named(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_a_policy_says_what_it_wants_to_know() -> None:
    mix = 1.0 * Distinctiveness(5) + 1.0 * Distinctiveness(9) + 1.0 * Recency()
    assert mix.crowds == {5, 9}
    assert mix.with_floor(0.1).crowds == {5, 9}
    assert (1.0 * Recency()).crowds == frozenset()
