"""The policies from papers and the plain ones: the suite for all, then each one's own story."""

from __future__ import annotations

import heapq
import json
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsift import (
    ActrPolicy,
    BaseLevel,
    Budget,
    Centrality,
    CompactionPolicy,
    Density,
    EbbinghausPolicy,
    FifoPolicy,
    GdsfPolicy,
    GenerativeAgentsPolicy,
    GraphPolicy,
    LongestPolicy,
    LruPolicy,
    MemoryStore,
    MemoryView,
    Novelty,
    OldestPolicy,
    ShortestPolicy,
    StackDistance,
)
from memsift.errors import InvalidType, InvalidValue
from memsift.plan import make_plan
from memsift.policies import ScoredPolicy, from_dict, parse, parse_list, to_text
from memsift.selection import Limit
from memsift.testing import PolicyTests
from memsift.testing.policy import columns, queries, view_of


class TestOldest(PolicyTests):
    policy = OldestPolicy()


class TestLongest(PolicyTests):
    policy = LongestPolicy()


class TestShortest(PolicyTests):
    policy = ShortestPolicy()


class TestEbbinghaus(PolicyTests):
    policy = EbbinghausPolicy()


class TestEbbinghausByBothClocks(PolicyTests):
    policy = EbbinghausPolicy("both", ticks=3, seconds=0.5)


class TestActr(PolicyTests):
    policy = ActrPolicy()


class TestActrInSeconds(PolicyTests):
    policy = ActrPolicy("seconds", decay=0.9)


class TestGenerativeAgents(PolicyTests):
    policy = GenerativeAgentsPolicy()


class TestGenerativeAgentsThatForgetSoon(PolicyTests):
    policy = GenerativeAgentsPolicy("seconds", decay=1e-300, least=1e-6, window=2)


class TestGdsf(PolicyTests):
    policy = GdsfPolicy()


class TestGdsfByBytesWithoutAging(PolicyTests):
    policy = GdsfPolicy(per="bytes", aging=0)


class TestGraph(PolicyTests):
    policy = GraphPolicy()
    # Room for one more may be dealt out as one more to each component, at the cost of the most central.
    nested = False


class TestGraphOfManyComponents(PolicyTests):
    policy = GraphPolicy("degree", k=2, alike=0.8, share=1.0)
    nested = False


class TestGraphByCentralityAlone(PolicyTests):
    policy = GraphPolicy(share=0.0)


class TestDensity(PolicyTests):
    policy = 1.0 * Density()


class TestStructuralTime(PolicyTests):
    policy = 2.0 * StackDistance() + 1.0 * Novelty()


class TestCentrality(PolicyTests):
    policy = 1.0 * Centrality(alike=0.0) + 0.5 * BaseLevel()


# ---- five entries, in words ----------------------------------------------------------------------------------


def survivors(policy: CompactionPolicy, target: int, **columns: Any) -> str:
    """Which of the entries A, B, C, D, E stay; their ids are 0 to 4."""
    vectors = columns.pop("vectors", np.eye(5))
    view = MemoryView.from_arrays(vectors, **columns)
    return "".join("ABCDE"[row] for row in policy.select_survivors(view, target))


def test_oldest_takes_nothing_more_once_it_is_full() -> None:
    story = {"created_tick": [1, 2, 3, 4, 5], "accessed_tick": [1, 2, 3, 4, 99]}
    assert survivors(OldestPolicy(), 2, **story) == "AB"
    assert survivors(FifoPolicy(), 2, **story) == "DE"


def test_longest_and_shortest_are_each_other_s_reverse() -> None:
    story = {"cost": [5, 90, 2**40, 0, 17]}
    assert survivors(LongestPolicy(), 2, **story) == "BC"
    assert survivors(ShortestPolicy(), 2, **story) == "AD"
    assert survivors(LongestPolicy(), 4, **story) == "ABCE"
    # Equal lengths: the later accessed, then the higher id.
    same = {"cost": [7] * 5, "accessed_tick": [9, 2, 3, 4, 4]}
    for policy in (LongestPolicy(), ShortestPolicy()):
        assert survivors(policy, 2, **same) == "AE"


def test_ebbinghaus_forgets_slowly_what_it_was_reminded_of() -> None:
    """A, 3000 ticks old and returned three times, is at t / S = 750; B, 900 old and never returned, at 900."""
    story = {"accessed_tick": [1000, 3100, 3900, 500, 4000], "access_count": [3, 0, 0, 1, 0]}
    assert survivors(EbbinghausPolicy(), 3, **story) == "ACE"
    assert survivors(EbbinghausPolicy(), 4, **story) == "ABCE"
    assert survivors(LruPolicy(), 3, **story) == "BCE"


def test_ebbinghaus_tells_apart_what_has_faded_to_nothing() -> None:
    """exp(-t / S) is 0 in float64 for all but the last."""
    story = {"accessed_tick": [3, 2, 10**6, 10**6 + 1, 10**9], "access_count": [0, 1, 0, 0, 0]}
    policy = EbbinghausPolicy(ticks=1)
    for target, kept in enumerate(["", "E", "BE", "BDE", "BCDE"]):
        assert survivors(policy, target, **story) == kept


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-3, 1e6), st.integers(1, 59))
def test_the_unit_of_time_does_not_change_who_ebbinghaus_keeps(unit: float, target: int) -> None:
    view = view_of(columns(60))
    wanted = EbbinghausPolicy().select_survivors(view, target).tolist()
    assert EbbinghausPolicy(ticks=unit).select_survivors(view, target).tolist() == wanted


def test_the_clock_of_a_memory_that_slept_decides() -> None:
    """A was accessed 10 ticks ago, before the weekend; B 2000 ticks ago, an hour before now."""
    weekend = 3 * 86_400.0
    story = {
        "vectors": np.eye(2),
        "accessed_tick": [1990, 0],
        "created_tick": [2000, 2000],
        "accessed_at": [1e9 - weekend, 1e9 - 3600],
        "now": 1e9,
    }
    view = MemoryView.from_arrays(story.pop("vectors"), **story)
    for kind in (EbbinghausPolicy, ActrPolicy, GenerativeAgentsPolicy):
        assert kind("ticks").select_survivors(view, 1).tolist() == [0]
        assert kind("seconds").select_survivors(view, 1).tolist() == [1]
    assert EbbinghausPolicy("both").select_survivors(view, 1).tolist() == [1]
    assert EbbinghausPolicy("both", ticks=10).select_survivors(view, 1).tolist() == [0]


def test_actr_weighs_how_often_against_how_long_ago() -> None:
    """A was returned 20 times and last 1000 ticks ago, B once just now, C ten times evenly, D and E never."""
    story = {
        "created_tick": [1, 4000, 1, 3000, 4500],
        "accessed_tick": [4001, 5001, 4901, 3000, 4500],
        "access_count": [20, 1, 10, 0, 0],
    }
    # ln of: A 1001^-.5 + 20 * 2 / (31.6 + 70.7) = .42; B 1 + 2 / (1 + 31.6) = 1.06; C .0995 + 20 / 80.8 = .35;
    # D 2002^-.5 = .022; E 502^-.5 = .045.
    view = MemoryView.from_arrays(np.eye(5), **story)
    found = ActrPolicy().terms(view)[0].values
    wanted = [0.4225, 1.0612, 0.3471, 0.02235, 0.04463]
    assert np.exp(found).tolist() == pytest.approx(wanted, rel=2e-3)
    for target, kept in enumerate(["", "B", "AB", "ABC", "ABCE"]):
        assert survivors(ActrPolicy(), target, **story) == kept
    assert survivors(ActrPolicy(decay=0), 3, **story) == "ABC"
    assert survivors(ActrPolicy(decay=0), 1, **story) == "A"


# ---- generative agents ---------------------------------------------------------------------------------------

NORTH, EAST, NORTHEAST = [0, 1], [1, 0], [1, 1]


def agents_view() -> MemoryView:
    return MemoryView.from_arrays(
        [NORTH, NORTHEAST, EAST, NORTH, NORTH],
        context=[NORTH],
        accessed_tick=[100, 100, 100, 0, 100],
        importance=[1.0, 0.5, 1.0, 1.0, math.nan],
    )


def test_generative_agents_score_by_the_product() -> None:
    """Recency 1, but D's .995^100; relevance 1, but B's 1 / sqrt(2) and C's 0, which counts as .01."""
    view, rows = agents_view(), np.arange(5)
    policy = GenerativeAgentsPolicy()
    product = [1, 0.5 * 0.5**0.5, 0.01, 0.995**100, 0.5]
    assert np.exp(policy.exact(view, rows)).tolist() == pytest.approx(product, rel=1e-6)
    kept = ["", "A", "AD", "ADE", "ABDE"]
    for target, names in enumerate(kept):
        rows = policy.select_survivors(view, target)
        assert "".join("ABCDE"[row] for row in rows) == names


def test_a_plan_explains_the_product_as_a_sum_of_logarithms() -> None:
    view = agents_view()
    plan = make_plan(view, GenerativeAgentsPolicy(), Budget(entries=2), np.zeros(5, bool))
    story = plan.explain(1)
    assert story["recency"] == 0.0
    assert story["importance"] == pytest.approx(math.log(0.5), abs=1e-6)
    assert story["relevance"] == pytest.approx(math.log(0.5) / 2, abs=1e-6)
    assert story["score"] == pytest.approx(math.log(0.5) * 1.5, abs=1e-6)
    assert story["verdict"] == "evict"


def test_no_factor_counts_as_less_than_the_least() -> None:
    view = MemoryView.from_arrays(
        np.eye(2), context=[[0, 1]], accessed_tick=[0, 2**62], importance=[0, 1]
    )
    for least in (0.01, 1e-6):
        found = GenerativeAgentsPolicy(least=least).exact(view, np.arange(2))
        assert found.tolist() == pytest.approx([3 * math.log(least), 0])
    # As little as may be: then all are alike, and the rule decides.
    assert GenerativeAgentsPolicy(least=1).select_survivors(view, 1).tolist() == [1]


def test_float_noise_of_a_relevance_near_nothing_does_not_decide() -> None:
    """The logarithm is steep there: cosines of 1e-4 that differ by 1e-7 differ by 1e-3 in the score."""
    rng = np.random.default_rng(0)
    query = np.zeros(384)
    query[0] = 1.0
    vectors = rng.normal(size=(400, 384))
    vectors[:, 0] = 0.0
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    vectors[:, 0] = 1e-4 + 1e-9 * rng.permutation(400)
    view = MemoryView.from_arrays(vectors, context=[query + 1e-3 * rng.normal(size=384)])
    policy = GenerativeAgentsPolicy(least=1e-6)
    score = policy.exact(view, np.arange(400))
    for target in (1, 100, 399):
        best = np.lexsort((-np.arange(400), -(score / policy.scale).round(9)))[:target]
        assert policy.select_survivors(view, target).tolist() == sorted(best.tolist())


# ---- value for room ------------------------------------------------------------------------------------------


def test_gdsf_keeps_what_is_worth_its_room() -> None:
    """F * C / S: A 1 * .5 / 10, B 4 * .5 / 10, C 1 * .5 / 1, D 1 * 1 / 10, E 1 * .1 / 1. All accessed at once."""
    story = {
        "access_count": [0, 3, 0, 0, 0],
        "cost": [10, 10, 0, 10, 1],
        "importance": [math.nan, math.nan, math.nan, 1.0, 0.1],
    }
    for target, kept in enumerate(["", "C", "BC", "BCE", "BCDE"]):
        assert survivors(GdsfPolicy(), target, **story) == kept
    view = MemoryView.from_arrays(np.eye(5), **story)
    values = np.array([0.05, 0.2, 0.5, 0.1, 0.1])
    found = GdsfPolicy().exact(view, np.arange(5))
    assert found.tolist() == pytest.approx((values * (1 / values).mean()).tolist())


def test_gdsf_by_bytes_and_by_cost() -> None:
    story = {"cost": [1, 9, 9, 9, 9], "nbytes": [900, 900, 100, 900, 900]}
    assert survivors(GdsfPolicy(per="cost"), 1, **story) == "A"
    assert survivors(GdsfPolicy(per="bytes"), 1, **story) == "C"


def test_gdsf_lets_what_was_once_in_demand_grow_old() -> None:
    """A was returned twice before the others came. Its V is 3, theirs 1, the mean of 1 / V 13 / 15.

    So A lasts for 2.6 times 5 additions, the others for .87 times 5. B came 1 addition later, or 9.
    """
    story = {
        "created_tick": [1, 3, 4, 5, 6],
        "accessed_tick": [2, 3, 4, 5, 6],
        "access_count": [2, 0, 0, 0, 0],
    }
    assert survivors(GdsfPolicy(), 1, **story) == "A"
    late = [0, 9, 10, 11, 12]
    assert survivors(GdsfPolicy(), 4, ids=late, **story) == "BCDE"
    assert survivors(GdsfPolicy(aging=0), 1, ids=late, **story) == "A"
    view = MemoryView.from_arrays(np.eye(5), ids=late, **story)
    found = GdsfPolicy().exact(view, np.arange(2))
    assert found.tolist() == pytest.approx([2.6, 13 / 15 + 9 / 5])


@pytest.mark.parametrize(
    "changes", [{"importance": [0.0] * 5}, {"importance": [0, 0, 0, 1e-38, 1]}]
)
def test_gdsf_of_worthless_entries_is_still_a_ranking(changes: dict[str, Any]) -> None:
    story = {"access_count": [0, 0, 2**63 - 1, 0, 0], "cost": [1, 2**40, 1, 1, 1]}
    view = MemoryView.from_arrays(np.eye(5), **story, **changes)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert len(GdsfPolicy().select_survivors(view, 3)) == 3
        assert np.isfinite(GdsfPolicy().exact(view, np.arange(5))).all()


class GreedyDual:
    """The algorithm as it is written, with its state: a heap of H and the L of the last eviction."""

    def __init__(self, sizes: list[int], room: int) -> None:
        self.sizes, self.room, self.used, self.level = sizes, room, 0, 0.0
        self.count: dict[int, int] = {}
        self.key: dict[int, float] = {}
        self.heap: list[tuple[float, int]] = []

    def ask(self, item: int) -> bool:
        hit = item in self.key
        if not hit:
            self.used += self.sizes[item]
        self.count[item] = self.count[item] + 1 if hit else 1
        self.key[item] = self.level + self.count[item] / self.sizes[item]
        heapq.heappush(self.heap, (self.key[item], item))
        while self.used > self.room:
            key, worst = heapq.heappop(self.heap)
            if self.key.get(worst) == key:
                self.level, self.used = key, self.used - self.sizes[worst]
                del self.key[worst]
        return hit


class Cache:
    """The same cache with a memsift policy: a view is all that it has."""

    def __init__(self, policy: ScoredPolicy, sizes: list[int], room: int) -> None:
        self.policy, self.sizes, self.room = policy, sizes, room
        self.tick = self.born = 0
        self.rows: dict[int, list[int]] = {}

    def ask(self, item: int) -> bool:
        self.tick += 1
        if item in self.rows:
            self.rows[item][2:] = [self.tick, self.rows[item][3] + 1]
            return True
        self.rows[item] = [self.born, self.tick, self.tick, 0]
        self.born += 1
        items = list(self.rows)
        cost = np.array([self.sizes[i] for i in items])
        if cost.sum() > self.room:
            ids, created, accessed, count = np.array(list(self.rows.values())).T
            view = MemoryView.from_arrays(
                np.ones((len(items), 1)),
                ids=ids,
                created_tick=created,
                accessed_tick=accessed,
                access_count=count,
                cost=cost,
            )
            limits = [Limit(view.cost, self.room, "cost")]
            keep = self.policy.decide(view, limits, np.zeros(len(items), bool)).keep
            self.rows = {i: self.rows[i] for i, stays in zip(items, keep, strict=True) if stays}
        return False


@pytest.mark.parametrize("drift", [False, True])
def test_gdsf_from_a_view_hits_as_often_as_the_algorithm_with_its_state(drift: bool) -> None:
    """300 items of 1 to 29 in size, asked for by Zipf's law, which in one trace moves on to others eight times."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 30, 300).tolist()
    law = 1 / np.arange(1, 301) ** 0.9
    law = rng.permutation(law / law.sum())
    trace = [rng.choice(300, 300, p=np.roll(law, 41 * part * drift)).tolist() for part in range(8)]
    caches = {
        "as written": GreedyDual(sizes, sum(sizes) // 8),
        "from a view": Cache(GdsfPolicy(), sizes, sum(sizes) // 8),
        "value alone": Cache(GdsfPolicy(aging=0), sizes, sum(sizes) // 8),
        "lru": Cache(LruPolicy(), sizes, sum(sizes) // 8),
    }
    hits = {
        name: sum(cache.ask(item) for part in trace for item in part) / 2400
        for name, cache in caches.items()
    }
    assert hits["from a view"] == pytest.approx(hits["as written"], abs=0.015)
    assert hits["from a view"] > hits["lru"] + 0.04
    if drift:
        assert hits["from a view"] > hits["value alone"] + 0.08


# ---- the graph -----------------------------------------------------------------------------------------------


def islands(sizes: list[int]) -> MemoryView:
    """Groups of entries, each around an axis of its own."""
    rng = np.random.default_rng(0)
    axes = np.repeat(np.arange(len(sizes)), sizes)
    vectors = np.eye(12)[axes] + 0.1 * rng.normal(size=(len(axes), 12))
    return MemoryView.from_arrays(vectors, cluster=1 + axes, accessed_tick=np.arange(len(axes)))


def kept_islands(policy: ScoredPolicy, sizes: list[int], target: int) -> list[int]:
    rows = policy.select_survivors(islands(sizes), target)
    axes = np.repeat(np.arange(len(sizes)), sizes)
    return np.bincount(axes[rows], minlength=len(sizes)).tolist()


def test_no_component_of_the_graph_dies() -> None:
    """Forty, twelve, three and one; by centrality alone the small islands have no chance."""
    sizes = [40, 12, 3, 1]
    alone = kept_islands(GraphPolicy(share=0.0), sizes, 12)
    assert alone[3] == 0
    spread = kept_islands(GraphPolicy(), sizes, 12)
    assert min(spread) == 1
    assert sum(spread) == 12
    assert kept_islands(GraphPolicy(share=1.0), sizes, 12) == [4, 4, 3, 1]


def test_a_plan_says_that_a_component_protects() -> None:
    view = islands([40, 12, 3, 1])
    plan = make_plan(view, GraphPolicy(), Budget(entries=12), np.zeros(56, bool))
    assert plan.explain(55)["verdict"] == "component"
    assert list(plan.protected) == ["component"]
    # Half of twelve are six for four components: one each, and the rest by centrality.
    assert plan.protected["component"].sum() == 4


def test_pinned_entries_and_budgets_of_bytes_hold_with_a_graph() -> None:
    store = MemoryStore(8, budget=Budget(entries=50, cost=300), policy=GraphPolicy(alike=0.3))
    entries = columns(120)
    ids = [
        store.add(vector, cost=int(cost) // 4 + 1, pinned=i < 3)
        for i, (vector, cost) in enumerate(zip(entries["vectors"], entries["cost"], strict=True))
    ]
    assert store.holds(ids[:3]).all()
    plan = store.plan(20)
    assert len(plan) == len(store) - 20
    for victim in plan.victims.tolist():
        assert plan.explain(victim)["margin"] <= 0
    store.apply(plan)
    assert len(store) == 20


# ---- text, files, errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("oldest", OldestPolicy()),
        ("longest", LongestPolicy()),
        ("shortest", ShortestPolicy()),
        ("ebbinghaus:clock=seconds", EbbinghausPolicy("seconds")),
        ("actr:decay=0.3", ActrPolicy(decay=0.3)),
        ("generative_agents:clock=both,window=5", GenerativeAgentsPolicy("both", window=5)),
        ("gdsf:per=bytes", GdsfPolicy("bytes")),
        ("graph:measure=degree,k=3", GraphPolicy("degree", 3)),
    ],
)
def test_text_and_files_name_the_policy(text: str, policy: ScoredPolicy) -> None:
    assert parse(text) == policy
    assert to_text(policy) == text
    assert from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    assert parse_list(f"{text},lru,{text}") == [policy, LruPolicy(), policy]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: EbbinghausPolicy("hours"), InvalidValue, "EbbinghausPolicy.clock must be one of"),
        (lambda: EbbinghausPolicy(ticks=0), InvalidValue, "EbbinghausPolicy.ticks"),
        (lambda: ActrPolicy(decay=1), InvalidValue, "decay must be .* below 1"),
        (lambda: ActrPolicy(seconds="1"), InvalidType, "ActrPolicy.seconds"),
        (lambda: GenerativeAgentsPolicy(decay=0), InvalidValue, "decay must be a number above 0"),
        (lambda: GenerativeAgentsPolicy(least=0), InvalidValue, "least must be a number above 0"),
        (lambda: GenerativeAgentsPolicy(least=1e-7), InvalidValue, "from 1e-6 to 1; got 1e-07"),
        (lambda: GenerativeAgentsPolicy(window=0), InvalidValue, "window"),
        (lambda: GdsfPolicy(per="word"), InvalidValue, "GdsfPolicy.per must be one of cost, bytes"),
        (lambda: GdsfPolicy(aging=-1), InvalidValue, "GdsfPolicy.aging"),
        (lambda: GraphPolicy(share=1.5), InvalidValue, "GraphPolicy.share"),
        (lambda: GraphPolicy(k=0), InvalidValue, "k must be an integer"),
        (lambda: parse("gdsf:per=word"), InvalidValue, "must be one of cost, bytes; got 'word'"),
        (lambda: parse("gdsf:aging=much"), InvalidValue, "aging must be a number"),
        (lambda: parse("oldest:k=1"), InvalidValue, "oldest takes the parameters none at all"),
    ],
)
def test_what_is_not_allowed_is_named(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_an_explicit_window_counts_for_the_policies_that_ask() -> None:
    view = view_of(columns(50), queries(0))
    policy = GenerativeAgentsPolicy()
    other = policy.select_survivors(view, 10, queries(3)).tolist()
    assert other != policy.select_survivors(view, 10).tolist()
    assert policy.queries == 20


def test_a_graph_without_rustworkx_fails_by_name_and_changes_nothing() -> None:
    code = (
        "import sys\nsys.modules['rustworkx'] = None\n"
        "import numpy, memsift\n"
        "store = memsift.MemoryStore(2, budget=9, policy=memsift.LruPolicy())\n"
        "store.add_many(numpy.ones((5, 2)))\n"
        "try:\n    store.compact(2, policy=memsift.GraphPolicy())\n"
        "except memsift.errors.MissingExtra as error:\n    print(len(store), error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("5 centrality and components need rustworkx"), done.stderr
