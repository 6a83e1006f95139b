"""The default policy, its floor and its probation, and what entries were like when they came."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsift import AdaptivePolicy, Attention, Budget, Heat, LruPolicy, MemoryStore, MemoryView
from memsift.clusters import LEADERS
from memsift.errors import InvalidValue
from memsift.learning import Learned, Lengths, Traffic, unrelated
from memsift.policies import FlooredPolicy, from_dict, parse, to_text
from memsift.policies.floor import floor
from memsift.policies.probation import newest
from memsift.selection import Limit


def unit(rng: np.random.Generator, n: int, dim: int = 16) -> np.ndarray:
    rows = rng.normal(size=(n, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# ---- first impressions ---------------------------------------------------------------------------


@pytest.mark.parametrize("together", [True, False])
def test_newcomers_are_measured_against_all_that_came_before(together):
    rows = unit(np.random.default_rng(0), 60).astype(np.float32)
    rows[7] = rows[3]
    store = MemoryStore(dim=16)
    store.add_many(rows) if together else [store.add(row) for row in rows]
    view = store.view()
    assert math.isnan(view.nearest[0])
    assert math.isnan(view.typicality[0])
    wide = view.vectors.astype(np.float64)
    for i in range(1, 60):
        before = [float(np.dot(wide[i], wide[j])) for j in range(i)]
        assert view.nearest[i] == pytest.approx(max(before), abs=1e-7)
        assert view.typicality[i] == pytest.approx(sum(before) / i, abs=1e-7)
    assert view.nearest[7] == 1.0


def test_a_newcomer_joins_its_nearest_leader_or_leads():
    rng = np.random.default_rng(1)
    store = MemoryStore(dim=16)
    leaders: list[np.ndarray] = []
    expected = []
    for row in np.repeat(unit(rng, 90), 2, 0) + rng.normal(0, 0.05, (180, 16)):
        wide = (row / np.linalg.norm(row)).astype(np.float32).astype(np.float64)
        cosines = [float(np.dot(wide, leader)) for leader in leaders]
        if len(leaders) < LEADERS and (not cosines or max(cosines) < 0.5):
            leaders.append(wide)
            cosines.append(1.0)
        expected.append(1 + int(np.argmax(cosines)))
        store.add(row)
    assert store.view().cluster.tolist() == expected


def test_what_a_search_leaves_on_its_hits_fades_where_the_policy_asks_for_it():
    store = MemoryStore(dim=2, policy=1.0 * Heat() + 0.5 * Attention())
    others = MemoryStore(dim=2)
    for memory in (store, others):
        memory.add_many([[1, 0], [0, 1]])
        for _ in range(3):
            memory.search([1, 0], k=2, touch=1)
    view = store.view()
    shares = [math.exp(0), math.exp(-1 / 0.05)]
    share = shares[0] / sum(shares)
    heat = attention = 0.0
    for _ in range(3):
        heat, attention = 1 + heat * 0.995, share + attention * 0.995
    assert view.heat.tolist() == pytest.approx([heat, 0.0])
    assert view.attention.tolist() == pytest.approx([attention, 0.0])
    assert others.view().heat.tolist() == [0.0, 0.0]


# ---- the floor -----------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_floor_is_dealt_out_like_water(data):
    n = data.draw(st.integers(1, 40))
    clusters = np.array(data.draw(st.lists(st.integers(1, 6), min_size=n, max_size=n)))
    ticks = np.array(data.draw(st.permutations(range(n))))
    room, share = data.draw(st.integers(0, n)), data.draw(st.sampled_from([0.0, 0.2, 0.5, 1.0]))
    view = MemoryView.from_arrays(np.ones((n, 2)), cluster=clusters, accessed_tick=ticks)
    policy = LruPolicy()
    scores = policy.terms(view)[0].values
    chosen = floor(policy, view, [Limit(None, room)], np.zeros(n, bool), scores, share)
    water = int(share * room + 1e-9)
    # One for each cluster in turn, the best first, as long as there is enough for all that want one more.
    members = {c: sorted(np.flatnonzero(clusters == c), key=lambda r: -ticks[r]) for c in clusters}
    level = 0
    while sum(min(len(rows), level + 1) for rows in members.values()) <= water and level < n:
        level += 1
    expected = {row for rows in members.values() for row in rows[:level]}
    if level == 0:
        firsts = sorted((rows[0] for rows in members.values()), key=lambda r: -ticks[r])
        expected = set(firsts[:water])
    assert set(np.flatnonzero(chosen)) == expected


def test_a_fixated_agent_keeps_its_other_topics():
    rng = np.random.default_rng(2)
    centres = unit(rng, 20, 32)
    alive = {}
    for share in (0.0, 0.2):
        store = MemoryStore(dim=32, budget=250, policy=AdaptivePolicy(goal="replay", floor=share))
        for topic in rng.permutation(np.repeat(np.arange(20), 50)):
            store.add(centres[topic] + rng.normal(0, 0.08, 32), metadata={"topic": int(topic)})
            store.search(centres[0], touch=5)
        held = store.get(store.view().ids)
        alive[share] = len({entry.metadata["topic"] for entry in held})
    assert alive[0.2] == 20
    assert alive[0.0] <= alive[0.2]


# ---- probation, budgets, calibration -------------------------------------------------------------


def test_the_newest_are_not_judged_yet_if_they_resemble_older_ones():
    view = MemoryView.from_arrays(np.eye(10), created_tick=np.arange(10)[::-1])
    locked = np.zeros(10, bool)
    locked[0] = True
    chosen = newest(view, [Limit(None, 7)], locked, 0.5)
    assert np.flatnonzero(chosen).tolist() == [1, 2, 3]
    store = MemoryStore(dim=10)
    store.add_many(np.concatenate([np.eye(10)[:8], [np.eye(10)[0], np.eye(10)[9]]]))
    plan = store.plan(5, AdaptivePolicy(probation=0.4))
    assert plan.explain(8)["verdict"] == "probation"
    assert plan.explain(9)["verdict"] != "probation"


def test_a_budget_of_tokens_is_filled_by_value_for_weight():
    rows = unit(np.random.default_rng(3), 20)
    cost = [1000 if i % 2 else 10 for i in range(20)]
    store = MemoryStore(dim=16, policy=AdaptivePolicy(probation=0.0, floor=0.0))
    store.add_many(rows, cost=cost)
    plan = store.plan(Budget(cost=150))
    assert plan.policy.per == "cost"
    assert not plan.keep[1::2].any()
    assert sum(np.array(cost)[plan.keep]) <= 150
    assert "per cost" in plan.explain(0)


def test_an_embedder_with_a_common_direction_is_noticed():
    rng = np.random.default_rng(4)
    rows = unit(rng, 200, 64)
    assert unrelated(MemoryView.from_arrays(rows)) == 0.0
    common = unit(rng, 1, 64)[0]
    lifted = unrelated(MemoryView.from_arrays(rows + common))
    assert 0.35 < lifted < 0.6
    order = rng.permutation(200)
    shuffled = MemoryView.from_arrays((rows + common)[order], ids=order)
    assert unrelated(shuffled) == lifted


# ---- learning ------------------------------------------------------------------------------------


def feed(store: MemoryStore, rng: np.random.Generator, used: bool) -> list[int]:
    rows = unit(rng, 300)
    left = []
    for i, row in enumerate(rows):
        store.add(row, cost=int(rng.integers(1, 60)))
        if i % 3 == 0:
            hits = store.search(unit(rng, 1)[0], k=10, touch=5)
            if used:
                store.feedback(hits[0].id)
    left += sorted(set(range(300)) - set(store.view().ids.tolist()))
    return left


def test_without_feedback_learning_changes_nothing():
    victims = [
        feed(
            MemoryStore(dim=16, budget=100, policy=AdaptivePolicy(learn=learn)),
            np.random.default_rng(5),
            used=False,
        )
        for learn in (True, False)
    ]
    assert victims[0] == victims[1]


def test_feedback_teaches_and_can_be_frozen():
    store = MemoryStore(dim=16, budget=100)
    frozen = MemoryStore(dim=16, budget=100, policy=AdaptivePolicy(learn=False))
    feed(store, np.random.default_rng(6), used=True)
    feed(frozen, np.random.default_rng(6), used=True)
    assert store.policy.weights_["answered"] < 0.0
    assert "answered" not in frozen.policy.weights_
    assert frozen.view().use_count.any()


def test_a_query_is_answered_once_however_often_its_hits_are_said_to_help():
    store = MemoryStore(dim=4)
    store.add_many(np.eye(4))
    for _ in range(3):
        hits = store.search([1, 1, 0, 0], k=2)
        for hit in hits:
            store.feedback(hit.id)
    assert store.policy.learned.helped == 3
    assert store.policy.learned.answered == 1.0
    store.search([1, 1, 0, 0], k=2)
    store.feedback([])  # nothing helped
    assert store.policy.learned.helped == 3


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 90), st.floats(-9, 1)), max_size=30), st.integers(0, 30))
def test_trust_in_length_is_the_correlation_with_content_of_all_that_ever_came(rows, cut):
    sizes = np.array([math.log1p(cost) for cost, _ in rows]).round(4)
    contents = np.array([content for _, content in rows]).round(4)
    lengths = Lengths().joined(sizes[:cut], contents[:cut]).joined(sizes[cut:], contents[cut:])
    assert lengths.n == len(rows)
    expected = 0.0
    if len(rows) > 1 and np.ptp(sizes) > 0 and np.ptp(contents) > 0:
        expected = float(np.corrcoef(sizes, contents)[0, 1]) * len(rows) / (len(rows) + 20)
    assert lengths.correlation == pytest.approx(expected, abs=1e-6)
    assert lengths.trust == pytest.approx(min(1, max(0, 0.5 + 10 * expected)), abs=2e-5)


def test_long_entries_are_trusted_where_they_are_new_and_not_where_they_repeat():
    rng = np.random.default_rng(13)
    topic = unit(rng, 1)[0]
    trusts = []
    for new_is_long in (True, False):
        store = MemoryStore(dim=16)
        for i in range(200):
            new = i % 2 == 0
            row = unit(rng, 1)[0] if new else topic + 0.05 * rng.normal(size=16)
            store.add(row, cost=60 if new == new_is_long else 5)
        trusts.append(store.policy.weights_["trust in length"])
    assert trusts == [1.0, 0.0]


def test_a_common_direction_decides_nothing():
    """Cosines m + (1 - m) c instead of c shift both logarithms alike, if the embedder's m is known."""
    rng = np.random.default_rng(14)
    nearest, typicality = rng.uniform(0, 0.9, 50), rng.uniform(0, 0.6, 50)
    scores = []
    for common in (0.0, 0.5):
        columns = {
            "nearest": common + (1 - common) * nearest,
            "typicality": common + (1 - common) * typicality,
        }
        view = MemoryView.from_arrays(rng.normal(size=(50, 4)), **columns)
        policy = AdaptivePolicy("evidence", learned=Learned(unrelated=common))
        scores.append(policy.exact(view, np.arange(50)))
    assert np.ptp(scores[0] - scores[1]) < 1e-5


def test_what_was_learned_is_in_the_file(tmp_path):
    with MemoryStore.open(tmp_path / "a.memsift", dim=16, budget=100) as store:
        feed(store, np.random.default_rng(7), used=True)
        weights, plan = store.policy.weights_, store.plan(50)
        columns = {name: getattr(store.view(), name) for name in ("nearest", "cluster", "heat")}
        ids = store.view().ids
    with MemoryStore.open(tmp_path / "a.memsift") as store:
        assert store.policy.weights_ == weights
        assert store.plan(50).victims.tolist() == plan.victims.tolist()
        view = store.view()
        for name, column in columns.items():
            then = dict(zip(ids.tolist(), column.tolist(), strict=True))
            now = dict(zip(view.ids.tolist(), getattr(view, name).tolist(), strict=True))
            assert repr(sorted(then.items())) == repr(sorted(now.items()))
        assert store.verify().ok


def test_the_gate_opens_for_queries_that_recur_and_not_for_echoes():
    traffic = Traffic()
    for _ in range(100):
        traffic = traffic.asked(1.0)
    assert traffic.confidence > 0.9
    assert AdaptivePolicy(learned=Learned(traffic)).weights_["gate"] == 1.0
    echoes = Traffic()
    for _ in range(100):
        echoes = echoes.asked(1.0).stored(0.99)
    assert echoes.confidence == 0.0
    assert AdaptivePolicy("evidence", learned=Learned(traffic)).weights_["gate"] == 0.0


def test_the_gate_opens_for_the_same_words_however_far_from_all_entries():
    store = MemoryStore(dim=16, budget=100)
    rng = np.random.default_rng(9)
    store.add_many(unit(rng, 50))
    questions = unit(rng, 40)
    for i in range(40):
        store.search(questions[i])
    assert store.policy.weights_["gate"] == 0.0
    for i in range(160):
        store.search(questions[i % 40])
    assert store.policy.weights_["gate"] == 1.0


def test_the_gate_closes_later_than_it_opens():
    traffic = Traffic()
    opened, closed = [], []
    for known in [1.0] * 50 + [0.0] * 60:
        was, traffic = traffic.settled().recurs, traffic.asked(known)
        now = traffic.settled()
        if now.recurs != was:
            (opened if now.recurs else closed).append(now.confidence)
    assert len(opened) == len(closed) == 1
    assert opened[0] >= 0.64
    assert 0.48 < closed[0] < 0.5


def test_questions_that_passed_an_entry_by_count_against_it_and_looks_before_storing_do_not():
    rng = np.random.default_rng(15)
    rows = unit(rng, 60)
    for echo in (False, True):
        store = MemoryStore(dim=16)
        for row in rows:
            store.search(row if echo else unit(rng, 1)[0], k=3)
            store.add(row)
        terms = {t.name: t.values for t in store.policy.terms(store.view())}
        if echo:
            assert "questions" not in terms
        else:
            # Entry i came after i + 1 searches of 60.
            expected = [math.log1p(59 - i) for i in range(60)]
            assert terms["questions"].tolist() == pytest.approx(expected, abs=1e-5)


# ---- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "adaptive",
        "adaptive:goal=replay,floor=0.3",
        "lru@floor=0.2",
        "coherence:gamma=0.5@floor=0.3",
    ],
)
def test_policies_by_text_and_as_json(text):
    policy = parse(text)
    assert parse(to_text(policy)) == policy
    assert from_dict(policy.to_dict()) == policy


def test_a_bound_policy_is_told_whole():
    store = MemoryStore(dim=16, budget=100)
    feed(store, np.random.default_rng(8), used=True)
    bound = store.plan(50).policy
    again = from_dict(bound.to_dict())
    assert (again.gate, again.per, again.learned) == (bound.gate, bound.per, bound.learned)
    assert isinstance(LruPolicy().with_floor(0.1), FlooredPolicy)


@pytest.mark.parametrize(
    "wrong", [{"goal": "win"}, {"probation": 2.0}, {"floor": -1}, {"per": "words"}, {"gate": 3}]
)
def test_what_a_policy_cannot_be_is_refused(wrong):
    with pytest.raises(InvalidValue, match=f"AdaptivePolicy.{next(iter(wrong))} must be"):
        AdaptivePolicy(**wrong)


def test_an_entry_with_another_vector_is_a_stranger_and_leaves_no_copy():
    rows = unit(np.random.default_rng(10), 4).astype(np.float32)
    store = MemoryStore(dim=16)
    store.add_many(rows[:3])
    store.update(1, vector=rows[3])
    view = store.view()
    assert math.isnan(view.nearest[1])
    assert view.cluster[1] == 0
    impressions = store._memory.impressions
    assert not (np.abs(impressions.clusters.leaders @ view.vectors[1]) > 0.999).any()
    assert not (np.abs(impressions.clusters.leaders @ rows[1]) > 0.999).any()
    assert impressions.mean.total == pytest.approx((rows[0] + rows[2]).astype(float), abs=1e-6)


# ---- where it is weak ----------------------------------------------------------------------------


@pytest.mark.xfail(
    strict=True, reason="the gate takes queries for known from a cosine of .75 on; these have .73"
)
def test_topics_that_come_again_in_other_words_are_kept_better_than_by_chance() -> None:
    """Forty topics, asked for by Zipf's law; the README says so too. LRU finds twice what chance does here."""
    found = dict.fromkeys(("random", "adaptive"), 0)
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        topics, odds = rng.normal(size=(40, 32)), 1 / np.arange(1, 41)
        notes = topics[rng.integers(40, size=600)] + 0.6 * rng.normal(size=(600, 32))
        about = rng.choice(40, size=600, p=odds / odds.sum())
        queries = topics[about] + 0.6 * rng.normal(size=(600, 32))
        unit = notes / np.linalg.norm(notes, axis=1, keepdims=True)
        for name in found:
            store = MemoryStore(32, 60, parse(name))
            for i, (note, query) in enumerate(zip(notes, queries, strict=True)):
                store.add(note)
                hits = {hit.id for hit in store.search(query, k=3)}
                if i >= 300:
                    best = np.argsort(-(unit[: i + 1] @ query))[:3]
                    found[name] += len(hits & set(best.tolist()))
    assert found["adaptive"] > found["random"]
