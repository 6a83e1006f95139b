"""The signals: each one's formula by hand, and against a dumb model in plain Python."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memsift
from memsift import (
    Adjacency,
    Attention,
    BaseLevel,
    Centrality,
    Density,
    Distance,
    Heat,
    Importance,
    MemoryStore,
    MemoryView,
    Novelty,
    Retention,
    StackDistance,
    Use,
)
from memsift.errors import InvalidType, InvalidValue
from memsift.kernels import NOISE
from memsift.policies import from_dict, parse, to_text
from memsift.signals import Signal, Size
from memsift.signals.graph import NeighbourGraph
from memsift.signals.registry import SIGNALS
from memsift.testing.policy import columns, queries, view_of

NAN = math.nan
FULL = 2**63 - 1
GAMMA = 0.995


def values(signal: Signal, n: int, **arrays: Any) -> list[float]:
    """What a signal says of n entries, in float32 and in float64 alike."""
    view = MemoryView.from_arrays(arrays.pop("vectors", np.eye(n)), **arrays)
    quick, exact = signal.values(view), signal.exact(view, np.arange(n))
    assert quick.dtype == np.float32
    assert exact.dtype == np.float64
    assert quick.tolist() == pytest.approx(exact.tolist(), rel=1e-6, abs=1e-6 * signal.noise)
    return exact.tolist()


# ---- the formula, by hand ------------------------------------------------------------------------------------


def test_use_is_the_logarithm_of_how_often_it_helped() -> None:
    assert values(Use(), 3, use_count=[0, 1, 7]) == pytest.approx([0, math.log(2), math.log(8)])
    assert values(Use(), 1, use_count=[FULL]) == pytest.approx([63 * math.log(2)])


def test_size_grows_no_further_than_the_cap() -> None:
    found = values(Size(), 4, cost=[0, 9, 48, 2**40])
    assert found == pytest.approx([0, math.log(10), math.log(49), math.log(49)])
    assert values(Size(cap=9), 2, cost=[9, 10]) == pytest.approx([math.log(10)] * 2)


def test_novelty_and_distance_are_what_is_left_to_1() -> None:
    assert values(Novelty(), 3, nearest=[1, 0.25, -1]) == [0, 0.75, 2]
    assert values(Distance(), 3, typicality=[1, 0.25, -0.5]) == [0, 0.75, 1.5]
    assert values(Adjacency(), 3, adjacency=[1, 0.25, -0.5]) == [1, 0.25, -0.5]


@pytest.mark.parametrize(
    ("signal", "column", "known"),
    [
        (Novelty(), "nearest", lambda x: 1 - x),
        (Distance(), "typicality", lambda x: 1 - x),
        (Adjacency(), "adjacency", lambda x: x),
    ],
)
def test_what_is_unknown_counts_as_the_mean_of_what_is_known(
    signal: Signal, column: str, known: Callable[[float], float]
) -> None:
    found = values(signal, 4, **{column: [0.5, NAN, 0.25, NAN]})
    assert found == [known(0.5), known(0.375), known(0.25), known(0.375)]
    assert values(signal, 2, **{column: [NAN, NAN]}) == [known(0.0)] * 2


def test_importance_is_the_caller_s_and_a_half_where_nobody_gave_one() -> None:
    assert values(Importance(), 3, importance=[0, NAN, 1]) == [0, 0.5, 1]
    assert values(Importance(unset=0.25), 2, importance=[NAN, 0.75]) == [0.25, 0.75]


def test_what_nobody_gave_equals_the_same_number_that_somebody_gave() -> None:
    """0.1 in float32 is not 0.1 in float64, and the difference must not rank them."""
    one, other = values(Importance(unset=0.1), 2, importance=[NAN, 0.1])
    assert one == other


@pytest.mark.parametrize(("signal", "column"), [(Heat(), "heat"), (Attention(), "attention")])
def test_heat_and_attention_fade_by_half_in_138_ticks(signal: Signal, column: str) -> None:
    story = {column: [3.0, 3.0, 0.0], "accessed_tick": [1000, 862, 862]}
    found = values(signal, 3, **story)
    assert found == [3.0, pytest.approx(3 * GAMMA**138), 0.0]
    assert found[1] == pytest.approx(1.5, abs=0.01)


def test_what_fades_without_end_is_gone_without_a_warning() -> None:
    story = {"heat": [200.0, 200.0], "accessed_tick": [0, 2**62]}
    with np.errstate(all="raise", under="ignore"):
        assert values(Heat(), 2, **story) == [0.0, 200.0]


def test_stack_distance_counts_what_came_between_and_not_the_time() -> None:
    """Accessed in the order B, D and E at once, A, C: one is below nobody, two are below two."""
    ticks = [70, 1, 9000, 4, 4]
    assert values(StackDistance(), 5, accessed_tick=ticks) == [0.75, 0, 1, 0.5, 0.5]
    assert values(StackDistance(), 3, accessed_tick=[5, 5, 5]) == [1, 1, 1]
    assert values(StackDistance(), 1, accessed_tick=[7]) == [1]


def test_retention_is_1_over_e_after_one_strength() -> None:
    """Never returned: a strength of 1000 ticks. Returned three times: of 4000."""
    story = {"accessed_tick": [2000, 1000, 1000, 0], "access_count": [0, 0, 3, 1]}
    found = values(Retention(), 4, **story)
    assert found == pytest.approx([1, math.exp(-1), math.exp(-0.25), math.exp(-1)])
    power = values(Retention(form="power"), 4, **story)
    assert power == pytest.approx([1, 0.5**0.5, 0.8**0.5, 0.5**0.5])


def test_retention_knows_two_clocks_and_their_sum() -> None:
    """500 ticks and half a day ago."""
    story = {"accessed_tick": [1500, 2000], "accessed_at": [1e9, 1e9 + 43_200], "now": 1e9 + 43_200}
    assert values(Retention("ticks"), 2, **story) == pytest.approx([math.exp(-0.5), 1])
    assert values(Retention("seconds"), 2, **story) == pytest.approx([math.exp(-0.5), 1])
    assert values(Retention("both"), 2, **story) == pytest.approx([math.exp(-1), 1])
    assert values(Retention("seconds", seconds=4320), 2, **story) == pytest.approx(
        [math.exp(-10), 1]
    )


def test_base_level_is_the_sum_over_presentations_where_that_is_known() -> None:
    """Added and never returned: ln(t^-d). Returned at once: both presentations are as old."""
    found = values(BaseLevel(), 2, created_tick=[1, 16], accessed_tick=[1, 16])
    assert found == pytest.approx([math.log(16**-0.5), 0])
    twice = values(BaseLevel(), 2, created_tick=[1, 16], accessed_tick=[1, 16], access_count=[1, 0])
    assert twice == pytest.approx([math.log(2 * 16**-0.5), 0])


def test_base_level_spreads_the_returns_between_the_first_and_the_last() -> None:
    """Ages 4 and 100, five returns: ln(4^-.5 + 5 * (100^.5 - 4^.5) / (.5 * 96)) = ln(.5 + 5 * 8 / 48) = ln(4 / 3)."""
    story = {"created_tick": [1, 100], "accessed_tick": [97, 100], "access_count": [5, 0]}
    assert values(BaseLevel(), 2, **story)[0] == pytest.approx(math.log(4 / 3))


def test_base_level_is_near_the_true_sum_of_presentations_that_are_spread_evenly() -> None:
    """Petrov (2006): the approximation is for this case; without decay it is a count."""
    ages = np.linspace(10, 1000, 34)
    story = {"created_tick": [0, 999], "accessed_tick": [990, 999], "access_count": [33, 0]}
    true = math.log((ages**-0.5).sum())
    assert values(BaseLevel(), 2, **story)[0] == pytest.approx(true, abs=0.06)
    assert values(BaseLevel(decay=0.0), 2, **story) == pytest.approx([math.log(34), 0])


def test_density_counts_the_queries_nearby_and_the_newest_most() -> None:
    """Asked for north, then twice for east. Kernel of a right angle: e^-10."""
    north, east, away = [0, 1], [1, 0], math.exp(-10)
    found = values(Density(), 2, vectors=[north, east], context=[north, east, east])
    assert found == pytest.approx([0.99**2 + 1.99 * away, 1.99 + 0.99**2 * away], rel=1e-6)
    short = Density(window=1, decay=0.5, temperature=0.5)
    found = values(short, 2, vectors=[north, east], context=[north, east])
    assert found == pytest.approx([math.exp(-2), 1], rel=1e-6)
    assert values(Density(), 2) == [0, 0]


def test_centrality_is_high_where_many_look() -> None:
    """A and B look at D, C at A, D at B, which is 10 degrees away; E looks at nobody and nobody at it."""
    angles = np.radians([0, 50, -55, 40, 180])
    vectors = np.stack([np.cos(angles), np.sin(angles)], 1)
    degree = values(Centrality("degree", k=1, alike=0.0), 5, vectors=vectors)
    assert degree == [1 / 2, 1 / 2, 0, 1, 0]
    rank = values(Centrality(k=1, alike=0.0), 5, vectors=vectors)
    assert rank[3] == 1.0
    assert rank[2] == rank[4] < rank[0] < rank[1]


def test_nobody_is_more_central_than_others_where_nothing_is_alike() -> None:
    assert values(Centrality(), 4) == [1, 1, 1, 1]
    assert values(Centrality("degree"), 4) == [0, 0, 0, 0]


# ---- a dumb model beside each --------------------------------------------------------------------------------

ticks = st.integers(0, 6) | st.integers(0, 10_000) | st.integers(2**62 - 3, 2**62)
counts = st.integers(0, 4) | st.sampled_from([10**6, FULL - 1, FULL])
seconds = st.floats(-1e11, 1e11) | st.sampled_from([1.7e9, 1.7e9 + 1, 1.8e9])
cosines = st.floats(-1, 1, width=32) | st.sampled_from([0.0, 1.0, NAN])
masses = st.floats(0, 200, width=32)


@st.composite
def views(draw: st.DrawFn) -> MemoryView:
    """Up to a dozen entries of few directions, with ties, unknown values, and clocks that went wrong."""
    n = draw(st.integers(1, 12))
    kinds = {
        "created_tick": ticks,
        "accessed_tick": ticks,
        "created_at": seconds,
        "accessed_at": seconds,
        "access_count": counts,
        "use_count": counts,
        "cost": st.integers(0, 60) | st.just(2**40),
        "importance": st.floats(0, 1, width=32) | st.just(NAN),
        "nearest": cosines,
        "typicality": cosines,
        "adjacency": cosines,
        "attention": masses,
        "heat": masses,
    }
    arrays = {name: draw(st.lists(kind, min_size=n, max_size=n)) for name, kind in kinds.items()}
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    vectors = rng.integers(-1, 2, (n, 3)) + np.array([0, 0, 2])
    context = rng.integers(-1, 2, (draw(st.integers(0, 4)), 3)) + np.array([0, 0, 2])
    return MemoryView.from_arrays(
        vectors, context=context if len(context) else None, now=draw(seconds), **arrays
    )


def known_mean(column: Any) -> float:
    known = [float(x) for x in column if not math.isnan(x)]
    return math.fsum(known) / len(known) if known else 0.0


def or_mean(column: Any, i: int) -> float:
    return known_mean(column) if math.isnan(column[i]) else float(column[i])


def tick_age(view: MemoryView, column: str, i: int) -> int:
    return max(0, view.tick - int(getattr(view, column)[i]))


def fading(mass: float, age: int) -> float:
    return mass * math.pow(GAMMA, age)


def both_ages(view: MemoryView, when: str, i: int) -> float:
    """In thousands of ticks plus days."""
    seconds = max(0.0, view.now - float(getattr(view, f"{when}_at")[i]))
    return tick_age(view, f"{when}_tick", i) / 1000 + seconds / 86_400


def base_level(view: MemoryView, i: int) -> float:
    last = 1 + tick_age(view, "accessed_tick", i)
    first = max(last, 1 + tick_age(view, "created_tick", i))
    # (sqrt(b) - sqrt(a)) / (.5 * (b - a)), which is 2 / (sqrt(a) + sqrt(b)).
    mean = 2 / (math.sqrt(first) + math.sqrt(last))
    return math.log(last**-0.5 + int(view.access_count[i]) * mean)


def depth(view: MemoryView, i: int) -> float:
    deeper = sum(int(t) > int(view.accessed_tick[i]) for t in view.accessed_tick)
    return 1 - deeper / max(1, len(view) - 1)


def density(view: MemoryView, i: int) -> float:
    row = view.vectors[i].astype(np.float64)
    out = 0.0
    for age, query in enumerate(view.context[::-1][:20].astype(np.float64)):
        cosine = min(1.0, math.fsum(row * query))
        out += 0.99**age * math.exp((cosine - 1) / 0.1)
    return out


MODELS: list[tuple[Signal, Callable[[MemoryView, int], float], float, float]] = [
    (Use(), lambda v, i: math.log1p(int(v.use_count[i])), 0, 44),
    (Size(), lambda v, i: math.log(1 + min(48, int(v.cost[i]))), 0, math.log(49)),
    (Novelty(), lambda v, i: 1 - or_mean(v.nearest, i), 0, 2),
    (Distance(), lambda v, i: 1 - or_mean(v.typicality, i), 0, 2),
    (Adjacency(), lambda v, i: or_mean(v.adjacency, i), -1, 1),
    (
        Importance(),
        lambda v, i: 0.5 if math.isnan(v.importance[i]) else float(v.importance[i]),
        0,
        1,
    ),
    (Heat(), lambda v, i: fading(float(v.heat[i]), tick_age(v, "accessed_tick", i)), 0, 200),
    (
        Attention(),
        lambda v, i: fading(float(v.attention[i]), tick_age(v, "accessed_tick", i)),
        0,
        200,
    ),
    (StackDistance(), depth, 0, 1),
    (
        Retention("both"),
        lambda v, i: math.exp(-both_ages(v, "accessed", i) / (1 + int(v.access_count[i]))),
        0,
        1,
    ),
    (
        Retention(form="power"),
        lambda v, i: (
            (1 + tick_age(v, "accessed_tick", i) / 1000 / (1 + int(v.access_count[i]))) ** -0.5
        ),
        0,
        1,
    ),
    (BaseLevel(), base_level, -45, 45),
    (Density(), density, 0, 20),
]
each_model = pytest.mark.parametrize(
    ("signal", "model", "low", "high"), MODELS, ids=[repr(signal) for signal, *_ in MODELS]
)


@each_model
@settings(max_examples=60, deadline=None)
@given(view=views())
def test_a_signal_says_what_the_dumb_model_says(
    view: MemoryView, signal: Signal, model: Any, low: float, high: float
) -> None:
    n = len(view)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        quick, exact = signal.values(view), signal.exact(view, np.arange(n))
    wanted = [model(view, i) for i in range(n)]
    assert exact.tolist() == pytest.approx(wanted, rel=1e-9, abs=1e-8)
    # What the selection allows for: float32 noise below half of the margin.
    assert np.abs(quick - exact).max() <= NOISE / 2 * max(signal.noise, np.abs(exact).max(), 1.0)
    assert (exact >= low - 1e-9).all()
    assert (exact <= high + 1e-6).all()


ALL_SIGNALS = [
    *(kind() for kind in SIGNALS.values()),
    Retention("both", form="power"),
    BaseLevel("both", decay=0.0),
    BaseLevel("seconds", decay=0.999),
    Centrality("degree", k=2, alike=-1.0),
    Density(window=3, decay=0.5, temperature=0.001),
]
each_signal = pytest.mark.parametrize("signal", ALL_SIGNALS, ids=repr)


@each_signal
@settings(max_examples=25, deadline=None)
@given(view=views())
def test_a_signal_is_finite_and_pure(view: MemoryView, signal: Signal) -> None:
    rows = np.arange(len(view))[::-1].copy()
    before = view.digest()
    quick, exact = signal.values(view), signal.exact(view, rows)
    assert quick.shape == exact.shape == (len(view),)
    assert quick.dtype == np.float32
    assert np.isfinite(quick).all()
    assert np.isfinite(exact).all()
    assert np.abs(quick[rows] - exact).max() <= NOISE / 2 * max(
        signal.noise, np.abs(exact).max(), 1.0
    )
    assert signal.values(view).tobytes() == quick.tobytes()
    assert signal.exact(view, rows).tobytes() == exact.tobytes()
    assert view.digest() == before


@each_signal
def test_a_signal_of_nothing_is_nothing(signal: Signal) -> None:
    for context in (queries(3), queries(0)):
        view = view_of(columns(0), context)
        assert signal.values(view).shape == (0,)
        assert signal.exact(view, np.empty(0, np.intp)).shape == (0,)


@each_signal
def test_where_an_entry_lies_does_not_show(signal: Signal) -> None:
    """Rounded as the ranking rounds: not one entry says anything else."""
    rng = np.random.default_rng(0)
    entries = columns(150)
    for name in ("nearest", "typicality", "adjacency"):
        entries[name] = np.where(rng.random(150) < 0.3, np.nan, rng.uniform(-1, 1, 150))
    order = rng.permutation(150)
    view = view_of(entries)
    moved = view_of({name: column[order] for name, column in entries.items()})
    here, there = signal.exact(view, order), signal.exact(moved, np.arange(150))
    assert here.round(9).tolist() == there.round(9).tolist()


@each_signal
def test_a_date_in_the_future_is_as_good_as_now(signal: Signal) -> None:
    def exact(ahead: float) -> list[float]:
        dates = {name: np.full(5, 1.8e9 + ahead) for name in ("created_at", "accessed_at")}
        view = view_of(columns(5), **dates)
        return signal.exact(view, np.arange(5)).tolist()

    assert view_of(columns(5)).now == 1.8e9
    assert exact(1e9) == exact(0.0)


@each_signal
def test_a_signal_comes_back_from_a_file_and_from_text(signal: Signal) -> None:
    policy = 0.5 * signal
    assert from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    assert parse(to_text(policy)) == policy
    assert parse(f"{signal.name}+recency").parts[0][1] == type(signal)()


@pytest.mark.parametrize("name", sorted(SIGNALS))
def test_every_signal_names_what_it_needs_and_says_what_it_is(name: str) -> None:
    kind = SIGNALS[name]
    assert kind.needs <= set(MemoryView.__slots__) | {"vectors"}
    assert kind.needs
    assert kind.__doc__
    assert "; in [" in kind.__doc__ or "about -45 to 45" in kind.__doc__


def test_words_are_written_bare() -> None:
    text = "0.5*retention:clock=seconds,form=power+0.5*recency"
    assert to_text(parse(text)) == text
    assert parse('retention:form="power"') == 1.0 * Retention(form="power")


# ---- density and float noise ---------------------------------------------------------------------------------


def test_density_says_how_much_the_noise_of_cosines_grows_in_it() -> None:
    """Rows of equal elements: the products all round the same way, 3e-6 at dim 384."""
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], (40, 384))
    signs[1:] = np.where(rng.random((39, 384)) < 0.02, signs[1:], signs[0])
    view = MemoryView.from_arrays(signs, context=signs[:20])
    for signal in (Density(), Density(temperature=0.001)):
        off = signal.values(view) - signal.exact(view, np.arange(40))
        assert np.abs(off).max() <= NOISE / 2 * signal.noise
    assert Density().noise == pytest.approx(sum(0.99**i for i in range(20)) / 0.1)
    assert Density(window=1, temperature=50).noise == 1.0


def test_density_of_a_live_store_is_that_of_a_view_of_arrays() -> None:
    store = MemoryStore(8, budget=100)
    entries = columns(60)
    for i, vector in enumerate(entries["vectors"]):
        store.add(vector)
        if i % 2:
            store.search(vector + 0.3, k=3)
    view = store.view()
    alone = MemoryView.from_arrays(view.vectors, context=view.context)
    np.testing.assert_allclose(Density().values(view), Density().values(alone), atol=1e-5)
    rows = np.array([59, 3, 7])
    assert Density().exact(view, rows) == pytest.approx(Density().exact(alone, rows), abs=1e-6)


# ---- the graph of neighbours ---------------------------------------------------------------------------------


def dumb_links(view: MemoryView, k: int, alike: float) -> set[tuple[int, int]]:
    rows = view.vectors.astype(np.float64)
    links = set()
    for i in range(len(view)):
        others = []
        for j in range(len(view)):
            cosine = round(min(1.0, math.fsum(rows[i] * rows[j])), 9)
            if j != i and cosine >= alike:
                others.append((cosine, int(view.accessed_tick[j]), int(view.ids[j]), j))
        links |= {(i, j) for *_, j in sorted(others, reverse=True)[:k]}
    return links


def dumb_pagerank(links: set[tuple[int, int]], n: int) -> list[float]:
    ranks = [1 / n] * n
    degree = [sum(source == i for source, _ in links) for i in range(n)]
    for _ in range(300):
        lost = sum(rank for i, rank in enumerate(ranks) if not degree[i])
        new = [0.15 / n + 0.85 * lost / n] * n
        for source, target in links:
            new[target] += 0.85 * ranks[source] / degree[source]
        ranks = new
    return [rank / max(ranks) for rank in ranks]


def dumb_components(links: set[tuple[int, int]], n: int) -> list[frozenset[int]]:
    groups = [frozenset([i]) for i in range(n)]
    for source, target in links:
        joined = groups[source] | groups[target]
        for i in joined:
            groups[i] = joined
    return groups


@settings(max_examples=60, deadline=None)
@given(views(), st.integers(1, 4), st.sampled_from([-1.0, 0.0, 0.5, 0.8, 1.0]))
def test_the_graph_is_that_of_the_dumb_model(view: MemoryView, k: int, alike: float) -> None:
    n, graph = len(view), NeighbourGraph(view, k, alike)
    links = dumb_links(view, k, alike)
    found = list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    assert len(found) == len(links)
    assert set(found) == links
    assert graph.pagerank.tolist() == pytest.approx(dumb_pagerank(links, n), abs=1e-8)
    degrees = [sum(target == i for _, target in links) for i in range(n)]
    assert graph.in_degree.tolist() == [d / max(1, *degrees) for d in degrees]
    groups = dumb_components(links, n)
    found_groups = [frozenset(np.flatnonzero(graph.components == c)) for c in graph.components]
    assert found_groups == groups


def test_the_graph_of_many_blocks_is_that_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    view = view_of(columns(300))
    whole = NeighbourGraph(view, 5, 0.3)
    monkeypatch.setattr("memsift.signals.graph.ROWS", 7)
    parts = NeighbourGraph(view, 5, 0.3)
    assert whole.sources.tolist() == parts.sources.tolist()
    assert whole.targets.tolist() == parts.targets.tolist()
    assert whole.pagerank.tobytes() == parts.pagerank.tobytes()


def test_a_live_store_s_graph_is_made_once_until_the_memory_changes() -> None:
    store = MemoryStore(8, budget=100)
    vectors = columns(40)["vectors"]
    ids = store.add_many(vectors)
    first = NeighbourGraph.of(store.view(), 5, 0.3)
    assert NeighbourGraph.of(store.view(), 5, 0.3) is first
    assert NeighbourGraph.of(store.view(), 4, 0.3) is not first
    for change in (
        lambda: store.search(vectors[0], k=2),
        lambda: store.add(-vectors[0]),
        lambda: store.update(ids[3], vector=-vectors[3]),
        lambda: store.delete([ids[5]]),
    ):
        before = NeighbourGraph.of(store.view(), 5, 0.3)
        change()
        after = NeighbourGraph.of(store.view(), 5, 0.3)
        assert after is not before
        view = store.view()
        fresh = NeighbourGraph(view, 5, 0.3)
        assert after.pagerank.tobytes() == fresh.pagerank.tobytes()


def test_a_view_of_arrays_keeps_no_graph_alive() -> None:
    view = view_of(columns(20))
    assert NeighbourGraph.of(view, 5, 0.3) is not NeighbourGraph.of(view, 5, 0.3)


def test_without_rustworkx_the_error_says_what_to_install() -> None:
    code = (
        "import sys\nsys.modules['rustworkx'] = None\n"
        "import numpy, memsift\n"
        "view = memsift.MemoryView.from_arrays(numpy.ones((3, 2)))\n"
        "print(memsift.Centrality('degree').values(view).sum())\n"
        "try:\n    memsift.Centrality().values(view)\n"
        "except ImportError as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [
        "3.0",
        "MissingExtra centrality and components need rustworkx, which is not installed: "
        "pip install 'memsift[graph]'",
    ], done.stderr


# ---- parameters ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Size(cap=0), InvalidValue, "Size.cap must be an integer from 1"),
        (lambda: Size(cap=4.5), InvalidType, "Size.cap"),
        (lambda: Importance(unset=1.5), InvalidValue, "Importance.unset must be a number from 0"),
        (lambda: Retention(form="linear"), InvalidValue, "one of exponential, power; got 'linear'"),
        (lambda: Retention(clock="hours"), InvalidValue, "one of ticks, seconds, both"),
        (lambda: Retention(clock=5), InvalidType, "Retention.clock must be one of"),
        (lambda: Retention(ticks=0), InvalidValue, "Retention.ticks must be a number of at least"),
        (lambda: Retention(seconds=NAN), InvalidValue, "Retention.seconds"),
        (lambda: BaseLevel(decay=1), InvalidValue, "BaseLevel.decay must be .* below 1"),
        (lambda: BaseLevel(decay=-0.1), InvalidValue, "BaseLevel.decay"),
        (lambda: BaseLevel(clock="day"), InvalidValue, "BaseLevel.clock"),
        (lambda: Density(window=0), InvalidValue, "Density.window"),
        (lambda: Density(decay=0), InvalidValue, "Density.decay"),
        (lambda: Density(temperature=0), InvalidValue, "Density.temperature .* at least 0.001"),
        (lambda: Density(temperature="hot"), InvalidType, "Density.temperature"),
        (lambda: Centrality("betweenness"), InvalidValue, "Centrality.measure"),
        (lambda: Centrality(k=0), InvalidValue, "Centrality.k"),
        (lambda: Centrality(alike=1.01), InvalidValue, "Centrality.alike .* from -1 to 1"),
        (lambda: parse("retention:clock=hours"), InvalidValue, "one of ticks, seconds, both"),
        (lambda: parse("retention:ticks=many"), InvalidValue, "ticks must be a number"),
    ],
)
def test_what_is_not_allowed_is_named(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_numpy_parameters_become_plain_numbers() -> None:
    for signal in (
        Size(np.int32(9)),
        Importance(np.float32(0.25)),
        Retention(ticks=np.float32(10), seconds=np.int64(5)),
        BaseLevel(decay=np.float64(0.25)),
        Density(np.int16(3), np.float32(0.5), np.float32(0.25)),
        Centrality(k=np.uint8(3), alike=np.float32(0.5)),
    ):
        assert json.dumps((0.5 * signal).to_dict())


def test_every_signal_is_a_public_name() -> None:
    """But `Size`, which at the top is the size of a budget."""
    public = {kind for kind in SIGNALS.values() if getattr(memsift, kind.__name__, None) is kind}
    assert set(SIGNALS.values()) - public == {Size}
