"""Ghosts against a list of dicts that remembers whole vectors, and regret in the words of a user."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import model as m
from memsift import Budget, FifoPolicy, LruPolicy, MemoryView
from memsift.ghosts import LABELS, OTHERS, Ghosts, limit_for
from memsift.kernels import NOISE, exact_cosines
from memsift.plan import make_plan
from memsift.regret import Regret, expected, regret_curve
from memsift.regret.sketch import bounds, sketched

DIM = 4
# Directions that int8 holds exactly, so that cosines are equal or far apart and the model needs no margin.
GRID = np.array(
    [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [-1, 0, 0, 0],
        [0.5, 0.5, 0.5, 0.5],
        [0.5, -0.5, 0.5, -0.5],
        [0, 0.5**0.5, 0.5**0.5, 0],
        [0, 0, 0, 1],
    ],
    np.float32,
)


def unit(rng: np.random.Generator, n: int, dim: int) -> np.ndarray:
    rows = rng.normal(size=(n, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def leave(
    ghosts: Ghosts,
    ids: list[int],
    vectors: np.ndarray,
    scores: Any = None,
    label: str = "lru",
    tick: int = 1,
) -> None:
    given_ = None if scores is None else np.array(scores, np.float32)
    ghosts.evicted(
        np.array(ids, np.int64), vectors, np.arange(len(ids)), given_, label, tick, 100.0 + tick
    )


def ask(ghosts: Ghosts, query: np.ndarray, scores: list[float], k: int, tick: int = 2) -> None:
    ghosts.asked(query, np.array(scores, np.float64), k, tick, 100.0 + tick)


def wants(ghosts: Ghosts) -> dict[int, int]:
    """How often each ghost was wanted."""
    ghosts.settle()
    held = ghosts.watch.held
    return dict(zip(held["id"].tolist(), held["wanted"].tolist(), strict=True))


# ---- a story -------------------------------------------------------------------------------------


def test_four_leave_and_one_of_them_is_asked_for() -> None:
    """Ids 7 to 10 leave by LRU, 11 by FIFO. A search for [1, 0, 0, 0] finds .9 and .5 where 7 would have been a 1.0."""
    ghosts = Ghosts(DIM, 64)
    leave(ghosts, [7, 8, 9, 10], GRID[:4], [0.1, 0.2, 0.3, 0.4], "LruPolicy()", tick=3)
    leave(ghosts, [11], GRID[4:5], None, "FifoPolicy()", tick=4)
    assert str(ghosts.regret()) == "evicted 5, later wanted 0"
    ask(ghosts, GRID[0], [0.9, 0.5], 2, tick=6)
    regret = ghosts.regret(lambda: np.array([7, 8, 9]))
    assert (regret.evicted, regret.watched, regret.wanted, regret.times) == (5, 5, 1, 1)
    assert regret.by_policy == {"LruPolicy()": (4, 1), "FifoPolicy()": (1, 0)}
    (ghost,) = regret.recent
    assert (ghost.id, ghost.policy, ghost.times) == (7, "LruPolicy()", 1)
    assert ghost.score == pytest.approx(0.1)
    assert (ghost.evicted_at, ghost.wanted_at) == (103.0, 106.0)
    assert str(regret) == (
        "evicted 5, later wanted 1 (1 by LruPolicy()): ids 7; restore([7]) brings it back"
    )
    # It comes back: what was counted stays, and there is nothing more to restore.
    ghosts.returned(np.array([7]))
    assert str(ghosts.regret()) == "evicted 5, later wanted 1 (1 by LruPolicy())"
    # It leaves again and is wanted again: a second eviction that was a mistake.
    leave(ghosts, [7], GRID[:1], None, "FifoPolicy()", tick=8)
    ask(ghosts, GRID[0], [0.9, 0.5], 2, tick=9)
    assert ghosts.regret().by_policy == {"LruPolicy()": (4, 1), "FifoPolicy()": (2, 1)}


def test_what_the_archive_no_longer_holds_is_named_but_not_offered() -> None:
    ghosts = Ghosts(DIM, 64)
    leave(ghosts, [1, 2], GRID[:2])
    ask(ghosts, GRID[0], [], 1, tick=5)
    ask(ghosts, GRID[1], [], 1, tick=6)
    both = ghosts.regret(lambda: np.array([1, 2, 3]))
    assert str(both).endswith("ids 2, 1; restore([1, 2]) brings them back")
    assert ghosts.regret(lambda: np.array([1])).restorable == [1]
    assert str(ghosts.regret(lambda: np.array([9]))).endswith(": ids 2, 1")
    assert ghosts.regret().restorable is None  # a store in RAM has no archive
    dumped = json.loads(json.dumps(both.to_dict(), allow_nan=False))
    assert dumped["by_policy"] == {"lru": [2, 2]}
    assert dumped["recent"][0]["score"] is None
    assert dumped["by_age"][0] == {"queries": 10, "watched": 2, "wanted": 2}


def test_the_archive_is_asked_only_if_something_was_wanted() -> None:
    ghosts = Ghosts(DIM, 64)
    leave(ghosts, [1], GRID[:1])
    ghosts.regret(lambda: pytest.fail("nothing was wanted"))


def test_one_query_counts_a_ghost_once_and_no_more_ghosts_than_hits() -> None:
    """Three ghosts are better than any hit, two hits were asked for: two ghosts, one query."""
    ghosts = Ghosts(DIM, 64)
    rows = np.array([[1, 0, 0, 0], [0.96, 0.28, 0, 0], [0.8, 0.6, 0, 0]], np.float32)
    leave(ghosts, [1, 2, 3], rows)
    ask(ghosts, GRID[0], [0.5, 0.4], 2)
    assert wants(ghosts) == {1: 1, 2: 1, 3: 0}
    ghosts.settle()
    assert (ghosts.regret().times, ghosts.regret().wanted) == (1, 2)


def test_a_ghost_between_the_hits_takes_the_last_ones_place() -> None:
    ghosts = Ghosts(DIM, 64)
    leave(ghosts, [1], np.array([[0.8, 0.6, 0, 0]], np.float32))
    ask(ghosts, GRID[0], [0.9, 0.85, 0.81], 3)
    assert wants(ghosts) == {1: 0}
    ask(ghosts, GRID[0], [0.9, 0.85, 0.79], 3)
    assert wants(ghosts) == {1: 1}


def test_a_search_that_found_too_few_would_have_taken_any() -> None:
    ghosts = Ghosts(DIM, 64)
    leave(ghosts, [1, 2, 3], GRID[[2, 0, 1]])  # opposite, the same, across
    ask(ghosts, GRID[0], [0.9], 3)
    assert wants(ghosts) == {1: 0, 2: 1, 3: 1}


def test_a_query_sees_only_ghosts_that_were_there() -> None:
    ghosts = Ghosts(DIM, 64)
    ask(ghosts, GRID[0], [], 5)
    leave(ghosts, [1], GRID[:1])
    ask(ghosts, GRID[1], [], 5)
    leave(ghosts, [2], GRID[:1])
    assert wants(ghosts) == {1: 1, 2: 0}
    ask(ghosts, GRID[0], [], 5)
    ghosts.returned(np.array([1]))
    assert wants(ghosts) == {2: 1}
    assert ghosts.regret().times == 2
    assert ghosts.regret().queries == 3


def test_ages_say_when_ghosts_were_first_wanted() -> None:
    ghosts = Ghosts(DIM, 64)
    leave(ghosts, [1, 2, 3], GRID[[0, 1, 6]])
    for number in range(1, 151):
        wanted = {5: GRID[0], 120: GRID[1]}.get(number)
        ask(ghosts, GRID[2] if wanted is None else wanted, [0.7], 1)
    leave(ghosts, [4], GRID[:1])  # nothing was asked of it yet
    ages = ghosts.regret().by_age
    assert [tuple(age) for age in ages] == [
        (10, 3, 1),
        (100, 2, 0),
        (1000, 2, 1),
        (10_000, 0, 0),
        (None, 0, 0),
    ]
    assert ghosts.regret().exposed == (3, 2)
    ghosts.returned(np.array([1, 2, 3, 4]))
    assert ghosts.regret().by_age == ages


# ---- what is certain -----------------------------------------------------------------------------


def shapes(dim: int) -> np.ndarray:
    """Rows of several kinds: random, sparse, of equal elements, with one large element, all in one corner."""
    rng = np.random.default_rng(dim)
    rows = [rng.normal(size=(40, dim)), rng.choice([-1.0, 1.0], (10, dim)), np.eye(dim)[:5]]
    rows += [rng.normal(size=(10, dim)) * (rng.random((10, dim)) < 0.2) + np.eye(dim)[:1]]
    spiky = rng.normal(size=(10, dim))
    spiky[:, 0] = 40
    rows += [spiky, np.abs(rng.normal(size=(10, dim))), rng.normal(size=(5, dim)) + 3]
    stacked = np.concatenate(rows)
    return (stacked / np.linalg.norm(stacked, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("dim", [1, 2, 3, 24, 384, 1536])
def test_the_cosine_is_within_its_bounds(dim: int) -> None:
    rows = shapes(dim)
    sketches, scale, error = sketched(rows)
    assert np.abs(sketches).max() <= 127
    queries = np.concatenate([rows, unit(np.random.default_rng(1), 30, dim)])
    widest, outside = 0.0, 0
    for query in queries:
        exact = exact_cosines(rows, np.arange(len(rows)), query)
        low, high = bounds(query, sketches, scale, error)
        off = np.maximum(low - exact, exact - high)
        assert (off <= error).all()
        outside += np.count_nonzero(off > 0)
        widest = max(widest, float((high - low).max()))
        # A query that repeats the vector leaves no doubt.
        own = exact > 1 - 1e-6
        assert ((high - low)[own] <= 2.1 * NOISE + 0.03 * error[own]).all()
    print(f"dim {dim}: error up to {error.max():.4f}, bounds up to {widest:.4f} apart")
    assert outside <= len(rows) * len(queries) / 3000
    # The rounding of a step of `largest element / 127`, over `dim` elements.
    assert widest <= 2 * (np.abs(rows).max() / 254 * np.sqrt(dim) * 1.05 + NOISE)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_counted_is_certain_and_what_is_missed_is_close(seed: int) -> None:
    """Against whole vectors: nobody is counted that the search would not have returned, and few are missed."""
    rng = np.random.default_rng(seed)
    dim, k = [8, 64, 384][seed % 3], [1, 5, 10][seed // 2]
    centres = unit(rng, 6, dim)
    rows = unit(rng, 900, dim) * 0.7 + centres[rng.integers(0, 6, 900)]
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    live, gone = rows[:500], rows[500:]
    ghosts = Ghosts(dim, 400)
    leave(ghosts, list(range(400)), gone)
    _, _, error = sketched(gone)
    band = 2 * (min(1.0, 4 / np.sqrt(dim - 1)) * error.max() * 1.01 + NOISE)
    expected_, certain = np.zeros(400, int), np.zeros(400, int)
    for number in range(300):
        query = unit(rng, 1, dim)[0] * 0.5 + centres[number % 6]
        query = (query / np.linalg.norm(query)).astype(np.float32)
        scores = np.sort(exact_cosines(live, np.arange(500), query))[::-1][:k]
        ask(ghosts, query, scores.tolist(), k)
        exact = exact_cosines(gone, np.arange(400), query)
        for ghost, score in enumerate(exact):
            others = np.delete(exact, ghost)
            expected_[ghost] += (scores >= score).sum() + (others > score).sum() < k
            certain[ghost] += (scores >= score - band).sum() + (others > score - 2 * band).sum() < k
    found = np.array(list(wants(ghosts).values()))
    assert (found <= expected_).all()
    assert (found >= certain).all()
    print(f"dim {dim}, k {k}: {found.sum()} of {expected_.sum()} wants counted")
    assert found.sum() > 0.75 * expected_.sum()


def test_float_noise_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another BLAS rounds products in another way: not a byte of the state differs."""
    rng = np.random.default_rng(3)
    rows, queries = unit(rng, 300, 16), unit(rng, 200, 16)
    plain = Ghosts._cosines
    states = []
    for seed in (None, 1, 2):
        noise = np.random.default_rng(seed)

        def noisy(
            self: Ghosts, asked: np.ndarray, off: Any = noise, none: bool = seed is None
        ) -> Any:
            found = plain(self, asked)
            return found if none else found + off.uniform(-NOISE / 2, NOISE / 2, found.shape)

        monkeypatch.setattr(Ghosts, "_cosines", noisy)
        ghosts = Ghosts(16, 300)
        leave(ghosts, list(range(300)), rows)
        for query in queries:
            near = np.sort(exact_cosines(rows, np.arange(0, 300, 7), query))[::-1][:4]
            ask(ghosts, query, near.tolist(), 4)
        states.append(content(ghosts))
    assert states[0] == states[1] == states[2]


def content(ghosts: Ghosts) -> list[Any]:
    """Everything in a state, comparable."""
    return [x.tobytes() if isinstance(x, np.ndarray) else x for x in ghosts.saved()]


# ---- against the model ---------------------------------------------------------------------------


class Model:
    """A list of dicts, each with its whole vector; every query is judged at once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.ghosts: list[dict[str, Any]] = []
        self.evicted: dict[str, int] = {}
        self.wanted: dict[str, int] = {}
        self.queries = self.times = 0

    def forget(self, ids: list[int]) -> None:
        self.ghosts = [g for g in self.ghosts if g["id"] not in ids]

    def evict(self, pairs: list[tuple[int, list[float]]], label: str, tick: int) -> None:
        self.forget([id_ for id_, _ in pairs])
        self.evicted[label] = self.evicted.get(label, 0) + len(pairs)
        self.wanted.setdefault(label, 0)
        wanted = [g for g in self.ghosts if g["wanted"]]
        wanted.sort(key=lambda g: (g["last"], g["id"]), reverse=True)
        safe = wanted[: self.limit // 2]
        room = self.limit - len(safe)
        pairs = sorted(pairs)
        for places in (self.limit, room):  # as many are held back at once as there may be places
            if len(pairs) > places:
                pairs = [pairs[i * len(pairs) // places] for i in range(places)]
        others = sorted(
            (g for g in self.ghosts if g not in safe), key=lambda g: (g["tick"], g["id"])
        )
        while others and pairs and len(others) + len(pairs) > room:
            del others[0]
        new = [
            {"id": i, "v": v, "label": label, "tick": tick, "wanted": 0, "last": 0}
            for i, v in pairs
        ]
        self.ghosts = sorted(safe + others + new, key=lambda g: g["id"])

    def ask(self, query: list[float], scores: list[float], k: int, tick: int) -> None:
        self.queries += 1

        def cosine(g: dict[str, Any]) -> float:
            return round(sum(a * b for a, b in zip(g["v"], query, strict=True)), 6)

        found = []
        for ghost in self.ghosts:
            ahead = sum(round(s, 6) >= cosine(ghost) for s in scores)
            ahead += sum(cosine(g) >= cosine(ghost) for g in self.ghosts if g is not ghost)
            if ahead < k:
                found.append(ghost)
        for ghost in found:
            self.wanted[ghost["label"]] += not ghost["wanted"]
            ghost["wanted"] += 1
            ghost["last"] = tick
        self.times += bool(found)


class GhostRules(RuleBasedStateMachine):
    """Evictions, queries and returns in any order, on `Ghosts` and on its model."""

    @initialize(limit=st.integers(0, 9))
    def start(self, limit: int) -> None:
        self.ghosts, self.model = Ghosts(DIM, limit), Model(limit)
        self.tick = self.next_id = 0
        self.saved: tuple[Any, Any] | None = None

    @rule(
        draws=st.lists(st.integers(0, len(GRID) - 1), max_size=12),
        back=st.lists(st.integers(0, 40), max_size=2),
        label=st.sampled_from(["lru", "fifo"]),
    )
    def evict(self, draws: list[int], back: list[int], label: str) -> None:
        self.tick += 1
        ids = list(range(self.next_id, self.next_id + len(draws)))
        self.next_id += len(draws)
        # Some that left before leave again without having been reported back, out of order.
        again = sorted({b for b in back if b < ids[0]}, reverse=True) if ids else []
        pairs = [(id_, GRID[draw]) for id_, draw in zip(ids, draws, strict=True)]
        pairs += [(id_, GRID[id_ % len(GRID)]) for id_ in again]
        rows = np.array([v for _, v in pairs], np.float32).reshape(-1, DIM)
        # Their vectors lie among others.
        leave_rows = np.arange(len(pairs))[::-1].copy()
        self.ghosts.evicted(
            np.array([id_ for id_, _ in pairs], np.int64),
            rows[::-1].copy(),
            leave_rows,
            None,
            label,
            self.tick,
            0.0,
        )
        self.model.evict([(id_, [float(x) for x in v]) for id_, v in pairs], label, self.tick)

    @rule(
        draw=st.integers(0, len(GRID) - 1),
        scores=st.lists(st.sampled_from([1.0, 0.9, 0.5, 0.2, 0.0, -0.5, -1.0]), max_size=4),
        more=st.integers(0, 2),
    )
    def ask(self, draw: int, scores: list[float], more: int) -> None:
        self.tick += 1
        scores, k = sorted(scores, reverse=True), max(1, len(scores) + more)
        ask(self.ghosts, GRID[draw], scores, k, self.tick)
        self.model.ask([float(x) for x in GRID[draw]], scores, k, self.tick)

    @rule(draws=st.lists(st.integers(0, 60), max_size=4), scrub=st.booleans())
    def come_back(self, draws: list[int], scrub: bool) -> None:
        self.saved = None if scrub else self.saved
        self.ghosts.returned(np.array(draws, np.int64), scrub=scrub)
        self.model.forget(draws)

    @rule()
    def settle(self) -> None:
        self.ghosts.settle()

    @rule()
    def save(self) -> None:
        import copy

        self.saved = self.ghosts.saved(), copy.deepcopy(self.model)

    @rule()
    def fail(self) -> None:
        """A call failed after `save`: everything is as before."""
        if self.saved:
            self.ghosts.settle()
            watch, self.model = self.saved
            self.ghosts.restore(watch)
            self.saved = None

    @rule()
    def compare(self) -> None:
        regret = self.ghosts.regret()
        held = [(g["id"], g["wanted"]) for g in self.model.ghosts]
        assert list(wants(self.ghosts).items()) == held
        assert (regret.times, regret.queries) == (self.model.times, self.model.queries)
        counts = {
            label: (self.model.evicted[label], self.model.wanted[label])
            for label in self.model.evicted
        }
        assert regret.by_policy == counts
        recent = sorted(
            (g for g in self.model.ghosts if g["wanted"]), key=lambda g: (-g["last"], -g["id"])
        )
        assert [g.id for g in regret.recent] == [g["id"] for g in recent[:10]]

    @invariant()
    def bounded(self) -> None:
        if hasattr(self, "ghosts"):
            assert len(self.ghosts) <= self.model.limit

    def teardown(self) -> None:
        if hasattr(self, "ghosts"):
            self.compare()


TestGhostRules = GhostRules.TestCase
TestGhostRules.settings = settings(
    max_examples=2 * m.EXAMPLES,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@settings(max_examples=m.EXAMPLES, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), every=st.integers(1, 100))
def test_waiting_changes_nothing(seed: int, every: int) -> None:
    """Settled at once or sixty-four at a time: the same state, byte for byte."""
    rng = np.random.default_rng(seed)
    at_once, later = Ghosts(8, 30), Ghosts(8, 30)
    for step in range(200):
        rows, query = unit(rng, 3, 8), unit(rng, 1, 8)[0]
        scores = np.sort(rng.uniform(0, 1, 3))[::-1].tolist()
        for ghosts in (at_once, later):
            if step % 20 == 0:
                leave(ghosts, [3 * step, 3 * step + 1, 3 * step + 2], rows, tick=step)
            ask(ghosts, query, scores, 3, step)
        at_once.settle()
        if step % every == 0:
            later.settle()
    assert content(at_once) == content(later)


# ---- bounds --------------------------------------------------------------------------------------


def test_of_many_victims_an_even_spread_is_watched() -> None:
    ghosts = Ghosts(2, 10)
    rows = unit(np.random.default_rng(0), 1000, 2)
    order = np.random.default_rng(1).permutation(1000)
    ghosts.evicted(order, rows, order, None, "lru", 1, 0.0)
    assert ghosts.ids.tolist() == list(range(0, 1000, 100))
    regret = ghosts.regret()
    assert (regret.evicted, regret.watched) == (1000, 10)


def test_a_ghost_that_is_wanted_stays_while_others_pass() -> None:
    ghosts = Ghosts(DIM, 4)
    leave(ghosts, [0, 1, 2], GRID[[0, 1, 6]])
    ask(ghosts, GRID[0], [0.9], 1, tick=2)
    ask(ghosts, GRID[1], [0.9], 1, tick=3)
    ask(ghosts, GRID[6], [0.9], 1, tick=4)
    for tick in range(5, 40):
        leave(ghosts, [tick], GRID[2:3], tick=tick)
    # Half of the places at most: 0, wanted longest ago, has gone.
    assert ghosts.ids.tolist() == [1, 2, 38, 39]
    assert ghosts.regret().wanted == 3


def test_memory_is_bounded_whatever_happens() -> None:
    rng = np.random.default_rng(0)
    ghosts = Ghosts(64, 100)
    for tick in range(300):
        leave(
            ghosts,
            list(range(50 * tick, 50 * tick + 50)),
            unit(rng, 50, 64),
            None,
            f"policy {tick}",
            tick,
        )
        ask(ghosts, unit(rng, 1, 64)[0], [0.2], 1, tick)
    assert len(ghosts) == 100
    assert ghosts.nbytes < 60_000
    regret = ghosts.regret()
    assert len(regret.by_policy) == LABELS + 1
    assert regret.by_policy[OTHERS][0] == 50 * (300 - LABELS)
    assert regret.evicted == 15_000


def test_without_a_place_evictions_are_counted_all_the_same() -> None:
    ghosts = Ghosts(DIM, 0)
    leave(ghosts, [1, 2], GRID[:2])
    ask(ghosts, GRID[0], [], 1)
    assert (ghosts.regret().evicted, ghosts.regret().watched, ghosts.regret().times) == (2, 0, 0)


def test_scrubbing_leaves_no_sketch_and_no_query_in_memory() -> None:
    ghosts = Ghosts(DIM, 4)
    leave(ghosts, [1, 2], GRID[3:5])
    [waiting] = ghosts._waiting
    ask(ghosts, GRID[3], [0.1], 1)
    ghosts.settle()
    assert not waiting.remains.vectors.any()
    ask(ghosts, GRID[3], [0.1], 1)
    before = ghosts.watch.sketches
    ghosts.returned(np.array([1]), scrub=True)
    assert before.any(1).tolist() == [False, True]
    assert not ghosts._queries.any()
    assert ghosts.ids.tolist() == [2]


@pytest.mark.parametrize(
    ("entries", "limit"),
    [(1, 64), (512, 64), (4000, 500), (10_000, 1024), (10**9, 1024), (None, 1024)],
)
def test_ghosts_take_an_eighth_of_the_places_at_most(entries: int | None, limit: int) -> None:
    assert limit_for(entries) == limit


# ---- what a plan would cost ----------------------------------------------------------------------


def some_view(n: int = 200, w: int = 20, seed: int = 0) -> MemoryView:
    rng = np.random.default_rng(seed)
    return MemoryView.from_arrays(
        unit(rng, n, 16),
        context=unit(rng, w, 16) if w else None,
        accessed_tick=rng.permutation(n),
        ids=rng.permutation(10 * n)[:n],
        pinned=rng.random(n) < 0.05,
    )


def planned(view: MemoryView, keep: int, policy: Any = None) -> Any:
    return make_plan(view, policy or LruPolicy(), Budget(entries=keep), view.pinned.copy())


@pytest.mark.parametrize("keep", [40, 100, 199, 200])
@pytest.mark.parametrize("k", [1, 10, 300])
def test_the_window_says_what_it_would_have_missed(keep: int, k: int) -> None:
    view = some_view()
    plan = planned(view, keep)
    gone = set(plan.victims.tolist())
    missed, lost = 0, set()
    for query in view.context.astype(np.float64):
        cosines = (view.vectors.astype(np.float64) * query).sum(1).round(9)
        top = sorted(zip(-cosines, view.ids.tolist(), strict=True))[:k]
        hit = {id_ for _, id_ in top} & gone
        missed, lost = missed + bool(hit), lost | hit
    found = expected(plan, None, k)
    assert (found.queries, found.missed, found.lost) == (20, missed, len(lost))
    assert (found.victims, found.kept) == (len(gone), keep)


def test_expected_regret_in_words() -> None:
    view = some_view()
    assert str(expected(planned(view, 200))) == (
        "expected regret: of the last 20 queries 0 would have missed a hit; "
        "unknown by history: no victim has been watched yet"
    )
    ghosts = Ghosts(16, 64)
    leave(ghosts, list(range(8)), view.vectors[:8])
    ask(ghosts, view.vectors[3], [0.9], 1)
    found = expected(planned(view, 150), ghosts.regret())
    assert found.share == pytest.approx(0.2)
    assert found.lines() == [
        f"of the last 20 queries {found.missed} would have missed a hit ({found.lost} victims)",
        "of 8 watched victims 1 were wanted again: about 10 of these 50",
    ]
    assert all(len(line) <= 68 for line in found.lines())
    silent = expected(planned(some_view(w=0), 150))
    assert silent.lines()[0] == "unknown by the window, which holds no query"
    json.dumps(silent.to_dict(), allow_nan=False)
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_curve_is_each_plan_by_itself() -> None:
    view = some_view()
    plans = [planned(view, keep) for keep in (180, 120, 60, 20)] + [
        planned(some_view(seed=1), 50, FifoPolicy())
    ]
    curve = regret_curve(plans)
    assert curve == [expected(plan) for plan in plans]
    assert [point.kept for point in curve] == [180, 120, 60, 20, 50]
    lost = [point.lost for point in curve[:4]]
    assert lost == sorted(lost)  # nested budgets: a tighter one loses more


def test_an_empty_memory_has_nothing_to_regret() -> None:
    view = some_view(1)
    found = expected(planned(view, 1))
    assert (found.victims, found.missed, found.returning) == (0, 0, None)
    none = Regret(0, 0, 0, 0, 0, {}, (), [], None)
    assert none.exposed == (0, 0)
    assert str(none) == "evicted 0, later wanted 0"
    assert expected(planned(view, 1), replace(none, evicted=3)).share is None
