"""A plan: its numbers, its words, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsift import (
    Budget,
    Coherence,
    CoherencePolicy,
    CompactionPolicy,
    FifoPolicy,
    Frequency,
    LfuPolicy,
    LruPolicy,
    MemoryStore,
    MemoryView,
    Plan,
    RandomPolicy,
    Recency,
)
from memsift.errors import BudgetExceeded, PolicyError, UnknownEntry
from memsift.plan import make_plan
from memsift.policies import ScoredPolicy, Term
from memsift.testing.policy import columns, queries, view_of
from memsift.view import COLUMNS

POLICIES = [
    LruPolicy(),
    LfuPolicy(),
    FifoPolicy(),
    CoherencePolicy(),
    CoherencePolicy(25, 35, 40),
    RandomPolicy(1),
    0.5 * Recency() + -0.5 * Frequency(),
    0.5 * Coherence(2) + 0.25 * Coherence(5) + 0.25 * Coherence(5),
]


def plan_of(
    policy: CompactionPolicy, target: Budget | int, n: int = 50, locked: Any = None, **changes: Any
) -> Plan:
    view = view_of(columns(n), **changes)
    lock = np.zeros(n, np.bool_)
    lock[[] if locked is None else locked] = True
    return make_plan(view, policy, Budget.of(target), lock)


def reasons(plan: Plan) -> list[dict[str, Any]]:
    return [plan.explain(id_) for id_ in plan.view.ids.tolist()]


# ---- numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_contributions_sum_to_the_score(policy: ScoredPolicy) -> None:
    """Seen: two coherence signals in one expression had one name, and only the last was told."""
    plan = plan_of(policy, 20)
    for why in reasons(plan):
        assert sum(s["contribution"] for s in why["signals"].values()) == pytest.approx(
            why["score"], abs=1e-5
        )
        for name, signal in why["signals"].items():
            assert why[name] == signal["contribution"]
            assert signal["weight"] * signal["value"] == pytest.approx(why[name], abs=1e-4)
        assert len(why["signals"]) == len(plan.terms)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_shares_sum_to_one(policy: ScoredPolicy) -> None:
    for why in reasons(plan_of(policy, 20)):
        whole = sum(signal["share"] for signal in why["signals"].values())
        if any(signal["contribution"] for signal in why["signals"].values()):
            assert whole == pytest.approx(1.0, abs=3e-4)
        assert all(0.0 <= signal["share"] <= 1.0 for signal in why["signals"].values())


def test_an_entry_without_any_score_has_shares_of_nothing() -> None:
    plan = plan_of(LfuPolicy(), 20, access_count=np.zeros(50, np.int64))
    assert plan.explain(int(plan.view.ids[0]))["signals"]["frequency"]["share"] == 0.0


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("target", [1, 20, 49])
def test_ranks_are_a_permutation_and_the_first_ones_stay(policy: ScoredPolicy, target: int) -> None:
    why = reasons(plan_of(policy, target))
    assert sorted(w["rank"] for w in why) == list(range(1, 51))
    assert {w["of"] for w in why} == {50}
    for w in why:
        assert w["verdict"] == ("keep" if w["rank"] <= target else "evict")
    best = next(w for w in why if w["rank"] == 1)
    assert best["score"] >= max(w["score"] for w in why) - 2e-5 * policy.scale


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_margins_have_the_sign_of_the_verdict(policy: ScoredPolicy) -> None:
    for target in range(1, 50, 6):
        for why in reasons(plan_of(policy, target)):
            assert why["margin"] >= 0 if why["verdict"] == "keep" else why["margin"] <= 0


def test_float32_noise_puts_no_victim_above_the_cut() -> None:
    """Scores that float32 shuffles: the exact ones decide, and the margin must not deny it."""

    @dataclass(frozen=True)
    class Noisy(ScoredPolicy):
        name: ClassVar[str] = "noisy"

        def terms(self, view: MemoryView) -> list[Term]:
            return [Term("noise", 1.0, np.float32([0.5, 0.500005, 0.500001, 0.1]))]

        def exact(self, view: MemoryView, rows: Any) -> Any:
            return np.array([0.500003, 0.500002, 0.500001, 0.1])[rows]

    view = MemoryView.from_arrays(np.eye(4))
    plan = make_plan(view, Noisy(), Budget(1), np.zeros(4, np.bool_))
    assert plan.victims.tolist() == [1, 2, 3]
    assert [w["margin"] for w in reasons(plan)] == [0.0, 0.0, 0.0, -0.4]
    assert [w["rank"] for w in reasons(plan)] == [1, 2, 3, 4]


def test_a_plan_that_keeps_nothing_has_no_cut() -> None:
    plan = make_plan(view_of(columns(5)), LruPolicy(), Budget(bytes=0), np.zeros(5, np.bool_))
    assert len(plan) == 5
    assert plan.cut is None
    assert {w["margin"] for w in reasons(plan)} == {None}
    assert str(plan)
    assert json.dumps(plan.to_dict(), allow_nan=False)


@pytest.mark.parametrize("id_", [-1, 10**6, 2**70])
def test_an_id_that_the_plan_never_saw_is_refused(id_: int) -> None:
    plan = plan_of(LruPolicy(), 20)
    with pytest.raises(UnknownEntry, match=str(id_)):
        plan.explain(id_)


def test_victims_are_ids_in_ascending_order() -> None:
    ids = np.random.default_rng(0).permutation(50) * 7
    plan = plan_of(CoherencePolicy(), 20, ids=ids)
    assert plan.victims.dtype == np.int64
    assert plan.victims.tolist() == sorted(ids[~plan.keep].tolist())
    assert len(plan) == 30


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_sizes_before_and_after_are_sums(data: Any) -> None:
    n = data.draw(st.integers(1, 60), "n")
    entries = columns(n, seed=data.draw(st.integers(0, 99), "seed"))
    locked = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n), "locked"))
    view = view_of(entries)
    whole = {"entries": n, "bytes": int(view.nbytes.sum()), "cost": int(view.cost.sum())}
    held = {
        "entries": int(locked.sum()),
        "bytes": int(view.nbytes[locked].sum()),
        "cost": int(view.cost[locked].sum()),
    }
    units = data.draw(st.sets(st.sampled_from(["entries", "bytes", "cost"])), "units")
    target = Budget(
        **{unit: max(1, data.draw(st.integers(held[unit], whole[unit]), unit)) for unit in units}
    )
    plan = make_plan(view, data.draw(st.sampled_from(POLICIES), "policy"), target, locked)
    keep = plan.keep
    assert keep[locked].all()
    assert plan.before == (n, whole["bytes"], whole["cost"])
    assert plan.after == (keep.sum(), view.nbytes[keep].sum(), view.cost[keep].sum())
    assert target.fits(plan.after)
    assert plan.forced == (2 * keep.sum() < n)
    if not units:
        assert len(plan) == 0


# ---- verdicts ------------------------------------------------------------------------------------------------


def test_pinned_entries_and_newcomers_are_no_candidates() -> None:
    """Rows 0 and 1 would leave first; the one is pinned, the other has just come."""
    pinned = np.arange(50) == 0
    plan = plan_of(LruPolicy(), 10, locked=[0, 1], pinned=pinned, accessed_tick=np.arange(50))
    why = reasons(plan)
    assert (why[0]["verdict"], why[1]["verdict"], why[2]["verdict"]) == (
        "pinned",
        "newcomer",
        "evict",
    )
    assert why[0]["rank"] is why[1]["rank"] is None
    assert {w["of"] for w in why} == {48}
    assert sorted(w["rank"] for w in why[2:]) == list(range(1, 49))
    assert [w["verdict"] for w in why].count("keep") == 8
    # The cut is that of the candidates that stay, not of what could not leave.
    assert plan.cut == pytest.approx(42 / 49)


def test_a_plan_that_locked_entries_exceed_is_refused() -> None:
    with pytest.raises(BudgetExceeded, match=r"target of 2 entries; they take 3"):
        plan_of(LruPolicy(), 2, locked=[0, 1, 2])
    with pytest.raises(BudgetExceeded, match="cost"):
        plan_of(LruPolicy(), Budget(cost=1), locked=[0], cost=np.full(50, 7))


def test_reasons_can_still_be_asked_for_once_the_plan_is_applied() -> None:
    """Seen: StaleView, wherever another entry had nearly the same score."""
    store = MemoryStore(3)
    store.add_many(np.ones((8, 3)))
    store.search([1, 0, 0])
    plan = store.plan(4)
    before = [plan.explain(id_)["verdict"] for id_ in range(8)]
    ranks = [plan.explain(id_)["rank"] for id_ in range(8)]
    store.apply(plan)
    assert [plan.explain(id_)["verdict"] for id_ in range(8)] == before
    assert sorted(plan.explain(id_)["rank"] for id_ in range(8)) == sorted(ranks)
    assert json.dumps(plan.to_dict())
    assert str(plan)


# ---- words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("target", [1, 45, 50])
def test_a_plan_in_words_fits_a_terminal(policy: ScoredPolicy, target: int) -> None:
    text = str(plan_of(policy, target))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert f"evict {50 - target:,} of 50 entries" in text
    assert repr(policy)[:60] in text
    assert f"{target} entries" in text


def test_of_many_signals_those_are_shown_that_set_victims_apart_and_the_rest_as_one() -> None:
    plan = plan_of(sum((w * Coherence(w) for w in range(3, 9)), 1 * Recency()), 10)
    head, *rows = (line.split() for line in str(plan).splitlines()[-12:])
    assert head[0] == "id"
    assert head[-5:] == ["others", "score", "to", "the", "cut"]
    for row in rows:
        if row[0] != "...":
            id_, *parts, score, margin = row
            assert sum(map(float, parts)) == pytest.approx(float(score), abs=3e-4)
            assert float(score) == pytest.approx(plan.explain(int(id_))["score"], abs=1e-4)
            assert float(margin) == pytest.approx(float(score) - plan.cut, abs=2e-4)


def test_a_plan_of_the_largest_numbers_fits_a_terminal() -> None:
    """Seen: a target in three units ran over the edge."""
    largest = Budget(2**63 - 1, 2**63 - 1, 2**63 - 1)
    plans = [
        plan_of(LruPolicy(), largest),
        plan_of(LruPolicy(), 1, ids=2**63 - 1 - np.arange(50), nbytes=np.full(50, 2**40)),
        plan_of(sum((Coherence(w) for w in range(3, 9)), 1 * Recency()), 10),
        plan_of(1e30 * Recency() + 1e30 * Frequency(), 10),
    ]
    for plan in plans:
        assert all(len(line) <= 80 for line in str(plan).splitlines())


def test_a_plan_shows_the_worst_and_the_closest_victims() -> None:
    """Forty of fifty leave, in the order of their last access: the first five and the last five are shown."""
    text = str(plan_of(LruPolicy(), 10, ids=np.arange(50), accessed_tick=np.arange(50)))
    lines = text.splitlines()
    assert "note" in text
    assert [int(line.split()[0]) for line in lines[-11:-6]] == [0, 1, 2, 3, 4]
    assert lines[-6].split() == ["...", "30", "more"]
    assert [int(line.split()[0]) for line in lines[-5:]] == [35, 36, 37, 38, 39]


def test_a_plan_in_json_is_strict_and_whole() -> None:
    plan = plan_of(CoherencePolicy(), Budget(20, cost=10_000), locked=[3])
    data = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert data["policy"] == repr(CoherencePolicy())
    assert data["target"] == {"entries": 20, "cost": 10_000}
    assert data["before"]["entries"] == 50
    assert data["after"]["entries"] == 20
    assert data["victims"] == plan.victims.tolist()
    assert data["forced"] is True
    assert data["digest"] == plan.view.digest()
    assert sorted(why["id"] for why in data["reasons"]) == data["victims"]
    scores = [why["score"] for why in data["reasons"]]
    assert scores == sorted(scores)
    assert len(plan.to_dict(limit=3)["reasons"]) == 3
    assert plan.to_dict(limit=3)["reasons"] == plan.to_dict()["reasons"][:3]


# ---- digest --------------------------------------------------------------------------------------------------


def test_the_digest_is_of_the_memory_alone() -> None:
    wanted = plan_of(LruPolicy(), 20).digest
    assert plan_of(CoherencePolicy(), 5).digest == wanted
    assert len(wanted) == 64


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "revision"])
def test_the_digest_changes_with_every_column(name: str) -> None:
    view = view_of(columns(50))
    column = getattr(view, name).copy()
    column[7] = (
        ~column[7] if name == "pinned" else 0.25 if np.isnan(column[7]) else column[7] + 1000
    )
    changed = view_of(columns(50), **{name: column})
    assert changed.digest() != view.digest()


def test_the_digest_changes_with_the_number_of_entries_but_not_with_their_slots() -> None:
    view = view_of(columns(50))
    smaller = {view.take(np.arange(49)).digest(), view_of(columns(0)).digest()}
    assert len(smaller | {view.digest()}) == 3
    assert view.take(np.random.default_rng(0).permutation(50)).digest() == view.digest()
    assert view_of(columns(50), revision=np.arange(50)).digest() == view.digest()


# ---- a stranger's policy -------------------------------------------------------------------------------------


class Favourites:
    """Keeps the highest ids, and remembers how many it was asked for."""

    name = "favourites"

    def __init__(self) -> None:
        self.asked: list[int] = []

    def select_survivors(
        self, view: MemoryView, target_size: int, context_window: Any = None
    ) -> Any:
        self.asked.append(target_size)
        return np.sort(np.argsort(view.ids)[len(view) - target_size :])


def test_a_stranger_s_policy_plans_by_number() -> None:
    plan = plan_of(Favourites(), 20)
    assert plan.victims.tolist() == plan.view.ids[:30].tolist()
    assert plan.explain(int(plan.view.ids[0])) == {
        "id": int(plan.view.ids[0]),
        "verdict": "evict",
        "policy": "favourites",
    }
    assert "favourites" in str(plan)
    assert json.dumps(plan.to_dict())
    assert plan.cut is None


@pytest.mark.parametrize(
    "target",
    [
        Budget(cost=300),
        Budget(bytes=5000),
        Budget(entries=30, bytes=9000, cost=400),
        Budget(entries=5, cost=10**9),
        Budget(cost=0),
        Budget(bytes=0),
        Budget(),
    ],
    ids=str,
)
def test_a_stranger_s_policy_keeps_as_many_favourites_as_fit(target: Budget) -> None:
    policy = Favourites()
    plan = plan_of(policy, target)
    view = plan.view
    kept = 0
    while kept < 50:
        best = np.arange(50)[50 - kept - 1 :]
        size = (best.size, int(view.nbytes[best].sum()), int(view.cost[best].sum()))
        if any(size[("entries", "bytes", "cost").index(u)] > r for u, r in target.limits.items()):
            break
        kept += 1
    assert np.flatnonzero(plan.keep).tolist() == list(range(50 - kept, 50))
    assert len(policy.asked) <= 8, "one question per halving"


def test_a_stranger_s_policy_does_not_see_what_is_locked() -> None:
    plan = plan_of(Favourites(), 10, locked=[0, 49])
    assert np.flatnonzero(plan.keep).tolist() == [0, *range(41, 50)]


def test_a_stranger_s_policy_is_not_asked_to_keep_nothing() -> None:
    """Seen: an empty list has no integers, and was refused for it."""

    class Lists(Favourites):
        def select_survivors(self, *arguments: Any) -> Any:
            return super().select_survivors(*arguments).tolist()

    plan = plan_of(Lists(), 2, locked=[0, 1])
    assert np.flatnonzero(plan.keep).tolist() == [0, 1]
    assert len(plan_of(Lists(), Budget(bytes=0))) == 50
    assert len(plan_of(Lists(), 7)) == 43


@pytest.mark.parametrize(
    "rows",
    [
        None,
        [0, 1],
        [0, 1, 2, 3],
        [0, 1, 1],
        [0, 1, 50],
        [-1, 0, 1],
        [0.0, 1.0, 2.0],
        [True, False, True],
        [[0, 1, 2]],
        ["0", "1", "2"],
        "abc",
        {0, 1, 2},
        np.arange(3) + 2**40,
    ],
    ids=repr,
)
def test_rows_that_are_no_choice_are_refused(rows: Any) -> None:
    class Wrong(Favourites):
        name = "wrong"

        def select_survivors(self, *arguments: Any) -> Any:
            return rows

    with pytest.raises(PolicyError, match="wrong must return 3 different rows below 50"):
        plan_of(Wrong(), 3)


def test_rows_in_any_order_and_of_any_integer_type_are_a_choice() -> None:
    for rows in ([2, 0, 1], np.array([0, 2, 1], np.uint8), (1, 0, 2)):

        class Loose(Favourites):
            def select_survivors(self, *arguments: Any, rows: Any = rows) -> Any:
                return rows

        assert np.flatnonzero(plan_of(Loose(), 3).keep).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (lambda n: np.full(n, np.nan), "must give finite scores; got nan"),
        (lambda n: np.where(np.arange(n) == 7, np.inf, 0.0), "must give finite scores; got inf"),
        (lambda n: np.zeros(n + 1), r"shape \(50,\); got shape \(51,\)"),
        (lambda n: np.zeros(1), r"got shape \(1,\)"),
        (lambda n: np.zeros((n, 1)), r"got shape \(50, 1\)"),
    ],
)
def test_scores_that_are_no_scores_are_refused(values: Any, words: str) -> None:
    """Seen: a shape that numpy can stretch was stretched, and others raised numpy's own error."""

    @dataclass(frozen=True)
    class Broken(ScoredPolicy):
        name: ClassVar[str] = "broken"

        def terms(self, view: MemoryView) -> list[Term]:
            return [Term("broken", 1.0, values(len(view)).astype(np.float32))]

    with pytest.raises(PolicyError, match=words):
        plan_of(Broken(), 3)
    with pytest.raises(PolicyError, match=words):
        Broken().select_survivors(view_of(columns(50)), 3)


# ---- the view that it is made from ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"access_count": [1.5, 2.0]}, "access_count must be of dtype int64; got float64"),
        ({"access_count": [float("nan"), 1]}, "access_count must be of dtype int64"),
        ({"access_count": ["1", "2"]}, "access_count must be of dtype int64"),
        ({"access_count": [-1, 2]}, "access_count must be from 0 .*; got -1"),
        (
            {"created_tick": np.array([2**63, 1], np.uint64)},
            "created_tick must be from 0 .*; got 9",
        ),
        ({"pinned": [1, 0]}, "pinned must be of dtype bool"),
        ({"ids": [3, 3]}, "ids must differ"),
        ({"cost": [1, 2, 3]}, r"cost must have shape \(2,\)"),
        ({"cost": 1}, r"cost must have shape \(2,\)"),
        ({"price": [1, 2]}, "columns must be among .*; got price"),
    ],
)
def test_columns_that_are_none_are_refused(column: dict[str, Any], words: str) -> None:
    """Seen: fractions were cut off, negative and repeated numbers taken as they came."""
    with pytest.raises((ValueError, TypeError), match=words):
        MemoryView.from_arrays(np.eye(2), **column)


def test_a_view_cannot_be_changed() -> None:
    view = view_of(columns(5), queries(2))
    with pytest.raises(AttributeError, match="read-only"):
        view.tick = 5
    for name in (*COLUMNS, "vectors", "context"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(view, name)[0] = 1
