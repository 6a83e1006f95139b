"""The store against a list of dicts that obeys the same rules without being clever."""

from __future__ import annotations

import contextlib
import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import model as m
from memsift import (
    Budget,
    Coherence,
    CoherencePolicy,
    FifoPolicy,
    Frequency,
    LfuPolicy,
    LruPolicy,
    MemoryStore,
    Recency,
)
from memsift.errors import BudgetExceeded, InvalidValue, UnknownEntry

POLICIES = {
    "lru": (LruPolicy(), m.LRU),
    "lfu": (LfuPolicy(), m.LFU),
    "fifo": (FifoPolicy(), m.FIFO),
    "coherence": (CoherencePolicy(), m.coherence()),
    "short window": (CoherencePolicy(window=2), m.coherence(window=2)),
    "long window": (
        CoherencePolicy(alpha=0.0, beta=0.25, gamma=0.75, window=25),
        m.coherence(0.0, 0.25, 0.75, window=25),
    ),
    "expression": (
        0.5 * Recency() + -0.25 * Frequency() + 0.25 * Coherence(window=3),
        m.Rule(((0.5, ("recency",)), (-0.25, ("frequency",)), (0.25, ("coherence", 3)))),
    ),
}


def directions(dim: int) -> list[list[float]]:
    """A few directions, most of them exact in float32, so that ties and exact duplicates are common."""
    out = []
    for axis in range(min(dim, 3)):
        for sign in (1.0, -1.0):
            out.append([sign if i == axis else 0.0 for i in range(dim)])
    if dim >= 4:
        out += [[0.5, 0.5, 0.5, 0.5], [0.5, -0.5, 0.5, -0.5], [-0.5, -0.5, 0.5, 0.5]]
    out += [[3.0, 4.0], [6.0, 8.0], [1.0, 1.0], [1.0, 2.0, 2.0]]  # of other lengths than one
    return [v + [0.0] * (dim - len(v)) for v in out]


FILTERS: list[tuple[Any, Any]] = [
    (None, None),
    ({"kind": "fact"}, lambda d: d.get("kind") == "fact"),
    ({"n": {"$gte": 2}}, lambda d: "n" in d and d["n"] >= 2),
    ({"kind": {"$ne": "fact"}}, lambda d: d.get("kind") != "fact"),
    (
        {"$or": [{"kind": "plan"}, {"n": {"$in": [0, 3]}}]},
        lambda d: d.get("kind") == "plan" or d.get("n") in (0, 3),
    ),
    ({"kind": "nobody"}, lambda d: False),
]

metadata = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {}, optional={"kind": st.sampled_from(["fact", "plan"]), "n": st.integers(0, 4)}
    ),
    st.just({"note": "é" * 40}),
)
costs = st.one_of(st.integers(0, 4), st.integers(0, 12))
importances = st.sampled_from([None, 0.0, 0.25, 1.0])
newcomers = st.fixed_dictionaries(
    {
        "vector": st.integers(0, 99),
        "metadata": metadata,
        "cost": costs,
        "importance": importances,
        "pinned": st.sampled_from([False] * 7 + [True]),
        "created_at": st.sampled_from([None, None, 0.0, 1_600_000_000.5]),
    }
)
touches = st.sampled_from([True, True, True, False, 0, 1, 3])
# A bound that leaves room for a few entries, and now and then one that is next to nothing.
limits = st.one_of(
    st.fixed_dictionaries({"entries": st.integers(2, 12)}),
    st.fixed_dictionaries({"entries": st.integers(1, 12)}),
    st.fixed_dictionaries({"bytes": st.integers(800, 3000) | st.integers(1, 800)}),
    st.fixed_dictionaries({"cost": st.integers(10, 40) | st.integers(0, 10)}),
    st.fixed_dictionaries(
        {
            "entries": st.integers(3, 12),
            "bytes": st.integers(800, 3000),
            "cost": st.integers(8, 40),
        }
    ),
)
targets = st.one_of(
    st.none(),
    st.integers(0, 14),
    st.sampled_from([0.0, 0.1, 0.29, 0.5, 0.9, 1.0]),
    limits,
    st.just({}),
)


def columns(batch: list[dict[str, Any]], grid: list[list[float]]) -> dict[str, Any]:
    """A list of newcomers as the keyword arguments of `add_many`."""
    return {
        "vectors": [grid[item["vector"] % len(grid)] for item in batch],
        **{
            name: [item[name] for item in batch]
            for name in ("metadata", "cost", "importance", "pinned")
        },
    }


def entry_bytes(dim: int, policy: Any) -> int:
    """What one entry without metadata counts: asked of a store that holds nothing else."""
    probe = MemoryStore(dim, policy=policy)
    probe.add([1.0] + [0.0] * (dim - 1))
    return probe.stats().size.bytes


class StoreRules(RuleBasedStateMachine):
    """Every public call, in any order, on a store and on its model."""

    @initialize(
        dim=st.integers(3, 5),
        budget=limits,
        low=st.sampled_from([0.97, 1.0, 0.5, 0.75, 0.1]),
        policy=st.sampled_from(sorted(POLICIES)),
        first=st.lists(newcomers, min_size=4, max_size=14),
        asked=st.lists(st.integers(0, 99), max_size=3),
    )
    def start(
        self,
        dim: int,
        budget: dict[str, int],
        low: float,
        policy: str,
        first: list[dict[str, Any]],
        asked: list[int],
    ) -> None:
        chosen, judged = POLICIES[policy]
        self.clock = m.Clock()
        self.grid = directions(dim)
        self.store = MemoryStore(dim, Budget(**budget), chosen, low_watermark=low, clock=self.clock)
        self.model = m.Model(budget, judged, low, entry_bytes(dim, chosen), self.clock)
        self.plans: list[tuple[Any, Any]] = []
        for item in first:
            self.add(item)
        for q in asked:
            self.search(q, 2, 0, True)

    def both(self, ours: Any, theirs: Any) -> tuple[Any, Any]:
        """The store's answer and the model's; a refusal must come from both, and be of the same kind."""
        try:
            expected = theirs()
        except m.Exceeded:
            with pytest.raises(BudgetExceeded):
                ours()
            return None, None
        except m.Unknown:
            with pytest.raises(UnknownEntry):
                ours()
            return None, None
        except m.KeepsNothing:
            with pytest.raises(InvalidValue, match="at least one entry, unless force"):
                ours()
            return None, None
        return ours(), expected

    def an_id(self, draw: int) -> int:
        """Most often an entry that is held, sometimes one that is gone or was never given."""
        if draw % 10 == 0 or not self.model.entries:
            return draw % (self.model.next_id + 1)
        return self.model.entries[draw % len(self.model.entries)]["id"]

    def direction(self, draw: int) -> list[float]:
        return self.grid[draw % len(self.grid)]

    @rule(seconds=st.sampled_from([0.5, 60.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(item=newcomers)
    def add(self, item: dict[str, Any]) -> None:
        item = {**item, "vector": self.direction(item["vector"])}
        ours, expected = self.both(
            lambda: self.store.add(**item), lambda: self.model.add_many([item])
        )
        assert expected is None or [ours] == expected

    @rule(batch=st.lists(newcomers, max_size=30))
    def add_many(self, batch: list[dict[str, Any]]) -> None:
        arguments = columns(batch, self.grid)
        rows = np.array(arguments.pop("vectors")).reshape(len(batch), self.store.dim)
        created_at = batch[0]["created_at"] if batch else None
        items = [
            {**item, "vector": row, "created_at": created_at}
            for item, row in zip(batch, rows, strict=True)
        ]
        ours, expected = self.both(
            lambda: self.store.add_many(rows, created_at=created_at, **arguments),
            lambda: self.model.add_many(items),
        )
        assert expected is None or ours.tolist() == expected

    @rule(q=st.integers(0, 99), k=st.integers(1, 15), where=st.integers(0, 5), touch=touches)
    def search(self, q: int, k: int, where: int, touch: bool | int) -> None:
        asked, test = FILTERS[where]
        hits = self.store.search(self.direction(q), k, where=asked, touch=touch)
        expected = self.model.search(self.direction(q), k, test, touch)
        assert [(hit.id, hit.score) for hit in hits] == expected
        assert all(hit.metadata == self.model.find([hit.id])[0]["metadata"] for hit in hits)

    @rule(
        qs=st.lists(st.integers(0, 99), min_size=1, max_size=25),
        k=st.integers(1, 15),
        where=st.integers(0, 5),
        touch=touches,
    )
    def search_many(self, qs: list[int], k: int, where: int, touch: bool | int) -> None:
        asked, test = FILTERS[where]
        found = self.store.search_many([self.direction(q) for q in qs], k, where=asked, touch=touch)
        expected = [self.model.search(self.direction(q), k, test, touch) for q in qs]
        assert [[(hit.id, hit.score) for hit in hits] for hits in found] == expected

    @rule(draws=st.lists(st.integers(0, 99), max_size=4), used=st.booleans())
    def feedback(self, draws: list[int], used: bool) -> None:
        ids = [self.an_id(d) for d in draws]
        self.both(
            lambda: self.store.feedback(ids, used=used), lambda: self.model.feedback(ids, used)
        )

    @rule(draws=st.lists(st.integers(0, 99), max_size=3), pinned=st.booleans())
    def pin_or_unpin(self, draws: list[int], pinned: bool) -> None:
        ids = [self.an_id(d) for d in draws]
        deed = self.store.pin if pinned else self.store.unpin
        self.both(lambda: deed(ids), lambda: self.model.pin(ids, pinned))

    @rule(
        draw=st.integers(0, 99),
        changes=st.fixed_dictionaries(
            {},
            optional={
                "cost": costs,
                "metadata": metadata,
                "importance": importances,
                "vector": st.integers(0, 99),
            },
        ),
    )
    def update(self, draw: int, changes: dict[str, Any]) -> None:
        if "vector" in changes:
            changes = {**changes, "vector": self.direction(changes["vector"])}
        id_ = self.an_id(draw)
        self.both(
            lambda: self.store.update(id_, **changes), lambda: self.model.update(id_, changes)
        )

    @rule(draws=st.lists(st.integers(0, 99), max_size=4))
    def delete(self, draws: list[int]) -> None:
        ids = [self.an_id(d) for d in draws]
        self.both(lambda: self.store.delete(ids), lambda: self.model.delete(ids))

    @rule(
        goal=targets,
        force=st.booleans(),
        policy=st.sampled_from([None, None, *sorted(POLICIES)]),
        context=st.one_of(st.none(), st.lists(st.integers(0, 99), max_size=4)),
    )
    def plan(self, goal: Any, force: bool, policy: str | None, context: list[int] | None) -> None:
        ours, expected = self.both(*self.planned("plan", goal, force, policy, context))
        if ours is not None:
            assert ours.victims.tolist() == sorted(expected["victims"])
            self.plans = [*self.plans, (ours, expected)][-3:]

    @precondition(lambda self: self.plans)
    @rule(draw=st.integers(0, 2))
    def apply(self, draw: int) -> None:
        """A plan of a while ago: what was touched, pinned or changed since then is spared."""
        ours, expected = self.plans[draw % len(self.plans)]
        self.compare(self.store.apply(ours), self.model.apply(expected))

    @rule(goal=targets, force=st.booleans(), policy=st.sampled_from([None, *sorted(POLICIES)]))
    def compact(self, goal: Any, force: bool, policy: str | None) -> None:
        ours, expected = self.both(*self.planned("compact", goal, force, policy, None))
        if ours is not None:
            self.compare(ours, self.model.apply(expected))

    def planned(
        self, method: str, target: Any, force: bool, policy: str | None, context: Any
    ) -> tuple[Any, Any]:
        """One question to the store and to the model."""
        chosen, judged = (None, None) if policy is None else POLICIES[policy]
        queries = None if context is None else [self.direction(q) for q in context]
        given_ = Budget(**target) if isinstance(target, dict) else target
        return (
            lambda: getattr(self.store, method)(given_, chosen, queries, force=force),
            lambda: self.model.plan(target, judged, queries, force),
        )

    @staticmethod
    def compare(ours: Any, expected: dict[str, Any]) -> None:
        assert {
            "dropped": ours.dropped.tolist(),
            "spared": ours.spared.tolist(),
            "forced": ours.forced,
            "before": ours.before._asdict(),
            "after": ours.after._asdict(),
        } == expected

    # ---- after every step --------------------------------------------------------------------

    @invariant()
    def budget_holds(self) -> None:
        assert self.store.budget.fits(self.store.stats().size)

    @invariant()
    def figures_agree(self) -> None:
        stats, model = self.store.stats(), self.model
        assert stats.size._asdict() == m.size_of(model.entries)
        assert (stats.entries, stats.tick) == (len(model.entries), model.tick)
        assert len(self.store) == len(model.entries)
        assert stats.pinned == sum(e["pinned"] for e in model.entries)
        assert {name: getattr(stats, name) for name in model.counts} == model.counts
        assert stats.added - stats.evicted - stats.deleted == stats.entries

    @invariant()
    def entries_agree(self) -> None:
        """Each id ever given: held with the model's values, or gone for good."""
        held = {e["id"]: e for e in self.model.entries}
        for id_, entry in enumerate(self.store.get(range(self.model.next_id + 1))):
            expected = held.get(id_)
            assert (id_ in self.store) == (entry is not None) == (expected is not None)
            if entry is None:
                continue
            assert entry.vector.tolist() == expected["row"]
            for name in expected.keys() - {"row", "nbytes", "changed"}:
                assert getattr(entry, name) == expected[name], name

    @invariant()
    def window_agrees(self) -> None:
        assert self.store.view().context.tolist() == self.model.queries


TestStoreRules = StoreRules.TestCase
TestStoreRules.settings = settings(
    max_examples=4 * m.EXAMPLES,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


# ---- one and many --------------------------------------------------------------------------------


class LoggedStore(MemoryStore):
    """A store that remembers each compaction's victims, of automatic ones as well."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.log: list[list[int]] = []
        self._apply, self._memory.apply = self._memory.apply, self.logged

    def logged(self, plan: Any) -> Any:
        done = self._apply(plan)
        self.log.append(done.dropped.tolist())
        return done


def without_marks(dumped: dict[str, Any]) -> dict[str, Any]:
    """A dump without the marks of change, which count calls, and the room ahead, which depends on growth."""
    kept = {name: value for name, value in dumped.items() if name != "revision"}
    kept["stats"] = {name: v for name, v in dumped["stats"].items() if name != "bytes"}
    return kept


twins = st.fixed_dictionaries(
    {
        "budget": limits,
        "low": st.sampled_from([0.97, 1.0, 0.5, 0.1]),
        "policy": st.sampled_from(sorted(POLICIES)),
        "first": st.lists(newcomers, max_size=8),
        "queries": st.lists(st.integers(0, 99), max_size=5),
    }
)


def pair(story: dict[str, Any]) -> tuple[LoggedStore, LoggedStore, list[list[float]]]:
    """Two stores with the same past."""
    grid = directions(4)
    out = []
    for _ in range(2):
        store = LoggedStore(
            4,
            Budget(**story["budget"]),
            POLICIES[story["policy"]][0],
            low_watermark=story["low"],
            clock=m.Clock(),
        )
        for item in story["first"]:
            with contextlib.suppress(BudgetExceeded):
                store.add(**{**item, "vector": grid[item["vector"] % len(grid)], "pinned": False})
        for q in story["queries"]:
            store.search(grid[q % len(grid)], 2)
        out.append(store)
    return out[0], out[1], grid


@settings(max_examples=2 * m.EXAMPLES, deadline=None)
@given(story=twins, batch=st.lists(newcomers, min_size=1, max_size=40))
def test_a_batch_is_the_same_as_its_entries_one_by_one(
    story: dict[str, Any], batch: list[dict[str, Any]]
) -> None:
    one, many, grid = pair(story)
    before = m.dump(many)
    arguments = columns(batch, grid)
    vectors = arguments.pop("vectors")
    try:
        ids = [
            one.add(v, **{name: values[i] for name, values in arguments.items()})
            for i, v in enumerate(vectors)
        ]
    except BudgetExceeded:
        with pytest.raises(BudgetExceeded):
            many.add_many(vectors, **arguments)
        assert m.dump(many) == before
        return
    assert many.add_many(vectors, **arguments).tolist() == ids
    assert many.log == one.log
    assert without_marks(m.dump(many)) == without_marks(m.dump(one))


@settings(max_examples=2 * m.EXAMPLES, deadline=None)
@given(
    story=twins,
    queries=st.lists(st.integers(0, 99), min_size=1, max_size=50),
    k=st.integers(1, 6),
    touch=touches,
    where=st.integers(0, 5),
)
def test_a_batch_of_searches_is_the_same_as_searching_in_turn(
    story: dict[str, Any], queries: list[int], k: int, touch: bool | int, where: int
) -> None:
    one, many, grid = pair(story)
    asked = [grid[q % len(grid)] for q in queries]
    named: dict[str, Any] = {"k": k, "touch": touch, "where": FILTERS[where][0]}
    assert many.search_many(asked, **named) == [one.search(q, **named) for q in asked]
    assert without_marks(m.dump(many)) == without_marks(m.dump(one))
    if len(one.view().context) and len(one):
        for window in (1, 2, 20):
            np.testing.assert_allclose(
                many.view().cosine_max(window), one.view().cosine_max(window), atol=1e-6
            )


@pytest.mark.parametrize("dim", [3, 17, 96, 768])
def test_one_and_many_store_the_same_bytes(dim: int) -> None:
    rows = np.random.default_rng(dim).normal(size=(400, dim)).astype(np.float32)
    one, many = MemoryStore(dim), MemoryStore(dim)
    for row in rows:
        one.add(row)
    many.add_many(rows)
    assert m.dump(one)["vectors"] == m.dump(many)["vectors"]


# ---- inputs that once went wrong -----------------------------------------------------------------


def test_a_pinned_newcomer_may_push_out_an_earlier_one_of_its_batch() -> None:
    """One by one the second pushes the first out; as a batch this was refused."""
    store = MemoryStore(2, budget=1)
    ids = store.add_many([[1, 0], [0, 1]], pinned=[False, True])
    assert [entry is not None for entry in store.get(ids)] == [False, True]


def test_pins_ahead_of_a_newcomer_in_its_batch_still_count() -> None:
    store = MemoryStore(2, budget=1)
    with pytest.raises(BudgetExceeded, match="Nothing was changed"):
        store.add_many([[1, 0], [0, 1]], pinned=[True, False])
    assert len(store) == 0


class Fickle:
    """A stranger's policy whose choices for different sizes have nothing in common."""

    name = "fickle"

    def select_survivors(self, view: Any, size: int, context_window: Any = None) -> Any:
        rows = np.argsort(view.cost, kind="stable")
        chosen = rows[:size] if size % 2 else rows[len(view) - size :]
        return np.sort(chosen)


@pytest.mark.parametrize("limit", range(6, 40))
def test_the_budget_holds_under_a_policy_whose_choices_are_not_nested(limit: int) -> None:
    store = MemoryStore(2, Budget(cost=limit), Fickle(), low_watermark=0.1)
    for cost in (1, 1, 1, 1, 5, 1, 6, 5, 1, 1, 1, 6, 1, 1, 5, 1, 1, 1, 1):
        store.add([1, 0], cost=cost)
        assert store.stats().size.cost <= limit


@pytest.mark.parametrize("target", [Budget(cost=0), Budget(cost=4), Budget(bytes=1)])
def test_a_target_that_nothing_survives_needs_force(target: Budget) -> None:
    """Only a literal 0 was refused: a budget too small for any entry emptied the store."""
    store = MemoryStore(2)
    store.add_many([[1, 0], [0, 1]], cost=5)
    with pytest.raises(InvalidValue, match="force=True"):
        store.compact(target)
    assert len(store) == 2
    assert len(store.compact(target, force=True).dropped) == 2


def test_a_plan_made_before_a_change_spares_what_changed() -> None:
    """a b c d are the victims: a is searched for, b pinned, c used, d's cost changed, e deleted; f leaves."""
    store = MemoryStore(3, policy=FifoPolicy())
    a, b, c, d, e, f, _ = store.add_many([[1, 0, 0]] + [[0, 1, 0]] * 6).tolist()
    plan = store.plan(1)
    store.search([1, 0, 0], k=1)
    store.pin(b)
    store.feedback(c)
    store.update(d, cost=2)
    store.delete(e)
    done = store.apply(plan)
    assert done.spared.tolist() == [a, b, c, d]
    assert done.dropped.tolist() == [f]


@pytest.mark.parametrize("name", ["$gt", "$gte", "$lt", "$lte"])
def test_order_filters_agree_with_python(name: str) -> None:
    compare = getattr(operator, {"$gt": "gt", "$gte": "ge", "$lt": "lt", "$lte": "le"}[name])
    store = MemoryStore(2)
    values = [0, 1, 1.5, -3, True, "1", None, "b"]
    store.add_many([[1, 0]] * len(values), metadata=[{"v": v} for v in values])
    found = {h.id for h in store.search([1, 0], 20, where={"v": {name: 1}})}
    expected = {i for i, v in enumerate(values) if type(v) in (int, float) and compare(v, 1)}
    assert found == expected
