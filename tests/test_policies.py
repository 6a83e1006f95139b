"""The policies: one suite for all, then each one's own story."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsift import (
    Coherence,
    CoherencePolicy,
    FifoPolicy,
    Frequency,
    LfuPolicy,
    LruPolicy,
    MemoryView,
    RandomPolicy,
    Recency,
    WeightedPolicy,
)
from memsift.errors import InvalidType, InvalidValue
from memsift.policies import CompactionPolicy, ScoredPolicy, Term
from memsift.testing import PolicyTests
from memsift.testing.policy import columns, queries, view_of


class TestLru(PolicyTests):
    policy = LruPolicy()


class TestLfu(PolicyTests):
    policy = LfuPolicy()


class TestFifo(PolicyTests):
    policy = FifoPolicy()


class TestCoherence(PolicyTests):
    policy = CoherencePolicy()


class TestCoherenceOfTwoQueries(PolicyTests):
    policy = CoherencePolicy(alpha=0, beta=12.5, gamma=100, window=2)


class TestCoherenceWithoutWeights(PolicyTests):
    policy = CoherencePolicy(0, 0, 0)


class TestRandom(PolicyTests):
    policy = RandomPolicy(seed=3)
    ties_by_rule = False


class TestExpression(PolicyTests):
    policy = 0.25 * Recency() + 0.35 * Frequency() + 0.40 * Coherence()


class TestExpressionThatForgetsTheFamiliar(PolicyTests):
    policy = 3 * Coherence(3) + -2 * Frequency()


class Dearest:
    """A stranger's policy: a name and one method, in plain Python."""

    name = "dearest"

    def select_survivors(
        self, view: MemoryView, target_size: int, context_window: Any = None
    ) -> Any:
        def worth(row: int) -> tuple[int, int, int]:
            return view.cost[row], view.accessed_tick[row], view.ids[row]

        best = sorted(range(len(view)), key=worth, reverse=True)[:target_size]
        return np.array(sorted(best), np.int64)


class TestAStrangersPolicy(PolicyTests):
    policy = Dearest()


@dataclass(frozen=True)
class Worth(ScoredPolicy):
    """A stranger's scored policy, with a parameter of its own."""

    name: ClassVar[str] = "worth"

    power: float = 1.0

    def terms(self, view: MemoryView) -> list[Term]:
        return [Term("worth", 2.5, (view.cost**self.power).astype(np.float32))]


class TestAStrangersScoredPolicy(PolicyTests):
    policy = Worth(power=0.5)


# ---- five entries, in words ----------------------------------------------------------------------------------


def survivors(policy: CompactionPolicy, target: int, **columns: Any) -> str:
    """Which of the entries A, B, C, D, E stay; their ids are 0 to 4."""
    vectors = columns.pop("vectors", np.eye(5))
    view = MemoryView.from_arrays(vectors, **columns)
    return "".join("ABCDE"[row] for row in policy.select_survivors(view, target))


def test_lru_forgets_what_was_not_asked_for_longest() -> None:
    """A to E are added at 1 to 5; a search at 6 returns B, one at 7 returns A."""
    accessed = [7, 6, 3, 4, 5]
    assert survivors(LruPolicy(), 4, accessed_tick=accessed) == "ABDE"
    assert survivors(LruPolicy(), 3, accessed_tick=accessed) == "ABE"
    assert survivors(LruPolicy(), 1, accessed_tick=accessed) == "A"


def test_lru_keeps_the_younger_of_two_hits_of_one_search() -> None:
    """One search, at 6, returns A and C."""
    assert survivors(LruPolicy(), 1, accessed_tick=[6, 2, 6, 4, 5]) == "C"


def test_lfu_forgets_what_was_asked_for_least() -> None:
    """A is asked for three times, C once, the others never; of those E came last."""
    story = {"accessed_tick": [9, 2, 7, 4, 5], "access_count": [3, 0, 1, 0, 0]}
    assert survivors(LfuPolicy(), 1, **story) == "A"
    assert survivors(LfuPolicy(), 2, **story) == "AC"
    assert survivors(LfuPolicy(), 3, **story) == "ACE"


def test_lfu_lives_in_the_past() -> None:
    """A was asked for twice long ago, E once just now."""
    story = {"accessed_tick": [6, 2, 3, 4, 99], "access_count": [2, 0, 0, 0, 1]}
    assert survivors(LfuPolicy(), 1, **story) == "A"


def test_lfu_ranks_equal_counts_by_last_access_and_then_by_id() -> None:
    """All were returned once: A and B by the last search, the others before."""
    story = {"accessed_tick": [8, 8, 5, 7, 6], "access_count": [1] * 5}
    assert survivors(LfuPolicy(), 1, **story) == "B"
    assert survivors(LfuPolicy(), 2, **story) == "AB"
    assert survivors(LfuPolicy(), 3, **story) == "ABD"


def test_fifo_forgets_the_oldest_however_useful() -> None:
    """A is asked for a hundred times, and leaves all the same."""
    story = {
        "created_tick": [1, 2, 3, 4, 5],
        "accessed_tick": [105, 2, 3, 4, 5],
        "access_count": [100, 0, 0, 0, 0],
    }
    assert survivors(FifoPolicy(), 4, **story) == "BCDE"
    assert survivors(FifoPolicy(), 2, **story) == "DE"


EAST, NORTH, SOUTH, NORTHEAST = [1, 0], [0, 1], [0, -1], [1, 1]

# The agent asked for something in the north.
#              A     B     C      D      E
VECTORS = [EAST, EAST, SOUTH, NORTH, NORTHEAST]
ACCESSED = [10, 6, 2, 4, 8]  # recency    1    .5   0     .25    .75
COUNTS = [0, 2, 4, 1, 0]  # frequency  0    .5   1     .25    0
#                           coherence  0    0    0     1      .7071
# 0.25, 0.35 and 0.40 of these:       .25  .30  .35   .55    .4703
COMPASS = {"vectors": VECTORS, "accessed_tick": ACCESSED, "access_count": COUNTS}


def test_coherence_weighs_recency_frequency_and_what_is_asked_about() -> None:
    policy = CoherencePolicy()
    assert survivors(policy, 1, context=[NORTH], **COMPASS) == "D"
    assert survivors(policy, 2, context=[NORTH], **COMPASS) == "DE"
    assert survivors(policy, 3, context=[NORTH], **COMPASS) == "CDE"
    assert survivors(policy, 4, context=[NORTH], **COMPASS) == "BCDE"


def test_coherence_scores_are_the_written_formula() -> None:
    view = MemoryView.from_arrays(VECTORS, context=[NORTH], **_ticks_and_counts())
    terms = CoherencePolicy().terms(view)
    assert [(t.name, t.weight) for t in terms] == [
        ("recency", 0.25),
        ("frequency", 0.35),
        ("coherence", 0.40),
    ]
    np.testing.assert_array_equal(terms[0].values, np.float32([1, 0.5, 0, 0.25, 0.75]))
    np.testing.assert_array_equal(terms[1].values, np.float32([0, 0.5, 1, 0.25, 0]))
    np.testing.assert_allclose(terms[2].values, [0, 0, 0, 1, 0.5**0.5], atol=1e-6)


def test_coherence_with_an_empty_window_keeps_as_lfu_does() -> None:
    """C, B and D by their counts, then A, which was accessed after E."""
    for target, kept in enumerate(["", "C", "BC", "BCD", "ABCD", "ABCDE"]):
        assert survivors(CoherencePolicy(), target, **COMPASS) == kept
        assert survivors(LfuPolicy(), target, **COMPASS) == kept


def test_coherence_does_not_count_a_query_that_points_away() -> None:
    """South of everything: C is hit, the others are not punished."""
    story = {**COMPASS, "access_count": [0] * 5, "accessed_tick": [5, 4, 3, 2, 1]}
    assert survivors(CoherencePolicy(), 1, context=[SOUTH], **story) == "C"
    assert survivors(CoherencePolicy(), 3, context=[SOUTH], **story) == "ABC"


def test_coherence_looks_at_the_last_queries_only() -> None:
    """North was asked about before east; a window of one has forgotten it."""
    short, long = (CoherencePolicy(0, 0, 1, window=w) for w in (1, 2))
    asked = [NORTH, EAST]
    assert survivors(short, 2, context=asked, **COMPASS) == "AB"
    assert survivors(short, 3, context=asked, **COMPASS) == "ABE"
    assert survivors(long, 3, context=asked, **COMPASS) == "ABD"


def _ticks_and_counts() -> dict[str, Any]:
    return {"accessed_tick": ACCESSED, "access_count": COUNTS}


# ---- chance --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2**70])
def test_random_keeps_every_entry_equally_often(seed: int) -> None:
    policy, ticks = RandomPolicy(seed), 3000
    kept = np.zeros(10)
    for tick in range(ticks):
        view = MemoryView.from_arrays(np.eye(10), accessed_tick=np.full(10, tick))
        kept[policy.select_survivors(view, 3)] += 1
    expected, variance = 0.3 * ticks, 0.3 * 0.7 * ticks
    # Ten counts with a fixed sum: chi-square of 9 degrees of freedom, above 27.9 once in a thousand.
    assert 0.9 * ((kept - expected) ** 2 / variance).sum() < 27.9


def test_random_draws_anew_for_each_seed_and_at_each_tick() -> None:
    def kept(seed: int, tick: int) -> bytes:
        view = MemoryView.from_arrays(np.eye(40), accessed_tick=np.full(40, tick))
        return RandomPolicy(seed).select_survivors(view, 20).tobytes()

    assert kept(7, 7) == kept(7, 7)
    assert len({kept(seed, 7) for seed in range(50)}) == 50
    assert len({kept(7, tick) for tick in range(50)}) == 50


# ---- what must not matter ------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e-12, 1e-3, 7.0, 1e9, 1e30])
def test_the_unit_of_the_weights_does_not_matter(factor: float) -> None:
    """Seen: 1e-10 * Frequency() ranked by ties alone, as differences were rounded away."""
    entries = columns(200)
    view = view_of(entries)
    wanted = CoherencePolicy()
    policies = [
        CoherencePolicy(factor * 0.25, factor * 0.35, factor * 0.40),
        (factor * 0.25) * Recency()
        + (factor * 0.35) * Frequency()
        + WeightedPolicy(((factor * 0.40, Coherence()),)),
    ]
    for target in (1, 60, 199):
        kept = wanted.select_survivors(view, target).tolist()
        for policy in policies:
            assert policy.select_survivors(view, target).tolist() == kept


def test_a_tiny_weight_is_still_a_weight() -> None:
    story = {"access_count": [1, 0, 0, 0, 0], "accessed_tick": [1, 2, 3, 4, 5]}
    assert survivors(1e-10 * Frequency(), 1, **story) == "A"


@pytest.mark.parametrize("policy", [LruPolicy(), FifoPolicy(), CoherencePolicy(), 1 * Recency()])
def test_the_age_of_the_clock_does_not_matter(policy: CompactionPolicy) -> None:
    """Seen: ticks beyond 2**53 were compared as floats, and recency came out as 0 or 512."""
    entries = columns(100)
    late = {name: entries[name] + 2**62 for name in ("created_tick", "accessed_tick")}
    for target in (1, 30, 99):
        kept = policy.select_survivors(view_of(entries), target).tolist()
        assert policy.select_survivors(view_of(entries, **late), target).tolist() == kept


@pytest.mark.parametrize("policy", [LfuPolicy(), CoherencePolicy(), 2 * Frequency()])
def test_a_full_counter_is_the_highest_count(policy: CompactionPolicy) -> None:
    full = 2**63 - 1
    assert survivors(policy, 2, access_count=[0, full, 0, full, 0], context=[[-1] * 5]) == "BD"
    assert survivors(LfuPolicy(), 1, access_count=[0, full, 0, full - 1, 0]) == "B"


def test_recency_of_a_late_clock_is_still_between_0_and_1() -> None:
    view = MemoryView.from_arrays(np.eye(3), accessed_tick=2**62 + np.array([511, 512, 513]))
    assert Recency().values(view).tolist() == [0.0, 0.5, 1.0]


def test_float32_noise_of_signs_does_not_decide() -> None:
    """In rows of equal elements every product rounds the same way: at dim 384 cosines came out 3.7e-6 too low.

    A is such a row; the query leans from it towards a single spike, and the B lie on its other side, further
    away than A by 1e-6.
    """
    signs, spike = np.full(385, 384**-0.5), np.zeros(385)
    signs[384], spike[384] = 0.0, 1.0

    def between(angle: float) -> Any:
        return np.cos(angle) * signs + np.sin(angle) * spike

    lean = np.arcsin(0.3**0.5)
    vectors = [between(0)] + [between(2 * lean + 1.8e-6)] * 63
    view = MemoryView.from_arrays(
        vectors, context=[between(lean)] * 20, accessed_tick=np.arange(64)
    )
    for policy in (CoherencePolicy(0, 0, 1), 50 * Coherence()):
        assert policy.select_survivors(view, 1).tolist() == [0]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_survivors_are_those_of_the_formula_in_float64(data: st.DataObject) -> None:
    """Against a sort of Python numbers, with many ties and vectors of few directions."""
    n = data.draw(st.integers(1, 40), "n")
    small = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    ticks, counts = data.draw(small, "ticks"), data.draw(small, "counts")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "seed"))
    vectors = rng.integers(-1, 2, (n, 3)) + np.array([0, 0, 2])
    count = data.draw(st.integers(1, 4), "queries")
    context = rng.integers(-1, 2, (count, 3)) + np.array([0, 0, 2])
    weights = data.draw(st.tuples(*[st.sampled_from([0.0, 0.25, 1.0, 3.0, 40.0])] * 3), "weights")
    policy = CoherencePolicy(*weights, window=3)
    view = MemoryView.from_arrays(
        vectors, context=context, accessed_tick=ticks, access_count=counts
    )

    unit = view.vectors.astype(np.float64)
    asked = view.context[-3:].astype(np.float64)
    low, span = min(ticks), max(ticks) - min(ticks)
    scores = []
    for row in range(n):
        recency = (ticks[row] - low) / span if span else 0.0
        frequency = counts[row] / max(counts) if max(counts) else 0.0
        coherence = max(0.0, *(float(unit[row] @ query) for query in asked))
        scores.append(weights[0] * recency + weights[1] * frequency + weights[2] * coherence)
    scale = sum(weights) or 1.0
    rank = sorted(range(n), key=lambda row: (-round(scores[row] / scale, 9), -ticks[row], -row))
    for target in range(n + 1):
        assert policy.select_survivors(view, target).tolist() == sorted(rank[:target])


# ---- parameters ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: CoherencePolicy(alpha=-0.1), InvalidValue, "CoherencePolicy.alpha"),
        (lambda: CoherencePolicy(beta=float("nan")), InvalidValue, "CoherencePolicy.beta"),
        (lambda: CoherencePolicy(gamma=float("inf")), InvalidValue, "CoherencePolicy.gamma"),
        (lambda: CoherencePolicy(alpha="much"), InvalidType, "'much'"),
        (lambda: CoherencePolicy(alpha=True), InvalidType, "True"),
        (lambda: CoherencePolicy(window=0), InvalidValue, "from 1 to 10000; got 0"),
        (lambda: CoherencePolicy(window=2.5), InvalidType, "2.5"),
        (lambda: Coherence(window=0), InvalidValue, "Coherence.window"),
        (lambda: RandomPolicy(seed=-1), InvalidValue, "RandomPolicy.seed"),
        (lambda: LruPolicy().select_survivors(view_of(columns(3)), -1), InvalidValue, "target"),
        (lambda: LruPolicy().select_survivors(view_of(columns(3)), 1.5), InvalidType, "target"),
        (lambda: LruPolicy().select_survivors(view_of(columns(3)), True), InvalidType, "target"),
        (
            lambda: CoherencePolicy().select_survivors(view_of(columns(3)), 1, queries(1)[0]),
            InvalidValue,
            "context",
        ),
        (
            lambda: CoherencePolicy().select_survivors(view_of(columns(3)), 1, np.eye(5)),
            InvalidValue,
            "context must have 8 dimensions",
        ),
    ],
)
def test_what_is_not_allowed_is_named(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words.replace("(", r"\(")):
        make()


def test_numpy_parameters_become_plain_numbers() -> None:
    """Seen: a float32 weight was kept as it came, and no JSON could hold it."""
    policy = CoherencePolicy(alpha=np.float32(0.25), window=np.int64(7))
    assert policy == CoherencePolicy(alpha=0.25, window=7)
    assert repr(policy) == "CoherencePolicy(alpha=0.25, beta=0.35, gamma=0.4, window=7)"
    assert json.loads(json.dumps(policy.to_dict()))["configuration"]["window"] == 7
    assert json.dumps(RandomPolicy(np.uint8(4)).to_dict())
    assert json.dumps((np.float32(0.5) * Coherence(np.int16(3))).to_dict())
