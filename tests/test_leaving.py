"""A plan is carried out at once or in parts, and between two parts others go on with the store."""

import threading
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memsift.store as stores
from memsift import CoherencePolicy, LruPolicy, MemoryStore
from memsift.leaving import give_back, leaving
from memsift.types import Compaction

DIM = 4


def store_of(n: int, seed: int = 0, policy: Any = None, **named: Any) -> MemoryStore:
    rng = np.random.default_rng(seed)
    policy = policy or CoherencePolicy(window=3)
    store = MemoryStore(DIM, policy=policy, clock=lambda: 1e9, **named)
    store.add_many(rng.normal(size=(n, DIM)), cost=rng.integers(0, 9, n))
    for query in rng.normal(size=(4, DIM)):
        store.search(query, 3)
    return store


def finished(steps: Any) -> Compaction:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def state(store: MemoryStore) -> dict[str, Any]:
    view, table = store.view(), store._memory.table
    columns = {name: column.tobytes() for name, column in view._columns().items()}
    rows = view.vectors.tolist(), table.ring.rows[:, : len(view)].tolist()
    assert (table.ring.rows[:, len(view) :] == table.ring.absent).all()
    return columns | {
        "rows": rows,
        "size": store.stats().size,
        "ghosts": store._memory.ghosts.ids.tolist(),
    }


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 200),
    st.integers(1, 90),
    st.floats(0.05, 1.0),
    st.sampled_from(["float32", "tiered"]),
    st.integers(0, 99),
)
def test_in_parts_is_the_same_as_at_once(
    n: int, most: int, target: float, held: str, seed: int
) -> None:
    """Down to the slot in which every entry ends up."""
    once, parts = (store_of(n, seed, vectors=held) for _ in range(2))
    done = once._memory.apply(once.plan(target))
    steps = leaving(parts._memory, parts.plan(target), most)
    sizes = []
    by_parts = None
    while by_parts is None:
        try:
            next(steps)
            sizes.append(len(parts))
        except StopIteration as end:
            by_parts = end.value
    assert (np.diff(sizes) == -most).all()
    assert by_parts.dropped.tolist() == done.dropped.tolist()
    assert (by_parts.before, by_parts.after) == (done.before, done.after)
    assert state(parts) == state(once)
    for either in (once, parts):
        either.close()


def test_what_happens_between_two_parts_counts() -> None:
    """Whoever is used, pinned or touched meanwhile stays; newcomers stay; what others remove is not ours."""
    store = store_of(100)
    plan = store.plan(0.3)
    ids = plan.victims.tolist()
    vectors = {entry.id: entry.vector for entry in store.get(range(100)) if entry}
    steps = leaving(store._memory, plan, 10)
    next(steps)
    next(steps)
    there = [id_ for id_ in ids if id_ in store]
    assert len(there) == 60
    used, pinned, deleted, wanted = there[:4]
    store.feedback(used)
    store.pin(pinned)
    store.delete(deleted)
    [hit] = store.search(vectors[wanted], 1)
    assert hit.id == wanted
    newcomers = store.add_many(np.eye(DIM))
    done = finished(steps)
    assert done.spared.tolist() == sorted([used, pinned, wanted])
    assert done.dropped.tolist() == sorted(set(ids) - {used, pinned, deleted, wanted})
    assert done.after.entries == 100 - len(done.dropped)
    kept = (set(range(100)) - set(ids)) | {used, pinned, wanted} | set(newcomers.tolist())
    assert set(store.view().ids.tolist()) == kept
    assert store.stats().evicted == done.dropped.size
    for entry in store.get(sorted(kept - set(newcomers.tolist()))):
        assert entry is not None
        np.testing.assert_array_equal(entry.vector, vectors[entry.id])


def test_another_compaction_between_two_parts() -> None:
    """It moves everybody, and takes some of our victims along: nobody leaves twice, and nobody else leaves."""
    store = store_of(100)
    ours, theirs = store.plan(0.3), store.plan(0.5)
    steps = leaving(store._memory, ours, 20)
    next(steps)
    next(steps)
    there = set(store.view().ids.tolist())
    other = store._memory.apply(theirs)
    done = finished(steps)
    assert set(other.dropped.tolist()) == set(theirs.victims.tolist()) & there
    assert set(done.dropped.tolist()).isdisjoint(other.dropped.tolist())
    assert set(store.view().ids.tolist()) == set(range(100)) - set(ours.victims.tolist())
    assert store.stats().evicted == 70
    assert store._memory.ghosts.regret().evicted == 70


@pytest.mark.parametrize("policy", [CoherencePolicy(window=3), LruPolicy()])
@pytest.mark.parametrize("late", [0, 5000])
def test_what_is_done_ahead_changes_no_plan(
    policy: Any, late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newcomers are seen in parts, and columns copied one by one: the plan is the same."""
    monkeypatch.setattr(stores, "PART_BYTES", 4 * DIM * 256)
    victims = []
    for large in (1000, 10**9):
        monkeypatch.setattr(stores, "LARGE", large)
        store = store_of(3000, policy=policy)
        store.add_many(np.random.default_rng(5).normal(size=(late, DIM)))
        plan = store.plan(0.5)
        assert store.plan(0.5).digest == plan.digest
        victims.append((plan.victims.tolist(), plan.digest, plan.scores.tolist()))
        store.search(np.ones(DIM))
        store.add(np.ones(DIM))
        assert (plan.view.ids == np.arange(3000 + late)).all()
        assert store.plan(0.5).digest != plan.digest
    assert victims[0] == victims[1]


@pytest.mark.parametrize("parts", [0, 1, 5])
def test_who_left_before_an_interrupt_is_counted(
    parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between two parts: the store is whole, and its figures and ghosts tell of all that left."""
    monkeypatch.setattr(stores, "PART_BYTES", 4 * DIM * 256)
    store = store_of(4_000)
    plan = store.plan(0.2)
    pauses = []

    def interrupted(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) > parts:
            raise KeyboardInterrupt

    monkeypatch.setattr(stores.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.apply(plan)
    gone = plan.victims[~store.holds(plan.victims)]
    assert len(store) == 4_000 - gone.size
    assert gone.size == 256 * parts
    stats = store.stats()
    assert (stats.evicted, stats.compactions) == (gone.size, int(parts > 0))
    assert set(store._memory.ghosts.ids.tolist()) <= set(gone.tolist())
    assert (len(store._memory.ghosts.ids) > 0) == (parts > 0)
    assert len(store.compact(0.5).dropped) > 0


def test_large_plans_are_applied_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others add and search meanwhile, and find what they should."""
    monkeypatch.setattr(stores, "PART_BYTES", 4 * DIM * 256)
    monkeypatch.setattr(stores, "LARGE", 1000)
    store = store_of(20_000)
    plan = store.plan(0.2)
    begun, over = threading.Event(), threading.Event()
    done: list[Compaction] = []

    def forget() -> None:
        begun.set()
        done.append(store.apply(plan))
        over.set()

    thread = threading.Thread(target=forget)
    thread.start()
    begun.wait()
    added = []
    while not over.is_set():
        added.append(store.add([1.0, 2.0, 3.0, 4.0 + len(added)]))
        assert added[-1] in store
    thread.join()
    assert len(store) == 20_000 - done[0].dropped.size + len(added)
    assert set(plan.victims.tolist()) == set(done[0].dropped.tolist())
    assert store.holds(added).all()
    fresh = store_of(20_000)
    fresh._memory.apply(fresh.plan(0.2))
    stay = np.flatnonzero(store.view().ids < 20_000)
    assert set(store.view().ids[stay].tolist()) == set(fresh.view().ids.tolist())


class Meanwhile:
    """A lock in whose first gap something happens."""

    def __init__(self, happens: Any) -> None:
        self.happens, self.left = happens, 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.left += 1
        if self.left == 1:
            self.happens()


CHANGES: dict[str, Any] = {
    "nothing": lambda store: None,
    "additions": lambda store: store.add_many(np.ones((20, DIM))),
    "too many": lambda store: store.add_many(np.ones((500, DIM))),
    "a removal": lambda store: store.delete(np.arange(100)),
    "an update": lambda store: store.update(7, vector=[0, 0, 0, 1]),
}


@pytest.mark.parametrize("happens", CHANGES)
@pytest.mark.parametrize("held", ["float32", "int8"])
def test_room_is_given_back_whatever_happens_meanwhile(happens: str, held: str) -> None:
    store, twin = (store_of(4000, vectors=held) for _ in range(2))
    for either in (store, twin):
        either._memory.table.leave(np.arange(1000, 4000), shrink=False)
    table = store._memory.table
    assert table.capacity >= 4000
    give_back(table, Meanwhile(lambda: CHANGES[happens](store)))
    CHANGES[happens](twin)
    assert table.capacity <= 2 * len(store) + 256
    assert state(store) == state(twin)
    give_back(table, nullcontext())  # there is nothing left to give
    assert state(store) == state(twin)
    store.add_many(np.ones((2000, DIM)))
    twin.add_many(np.ones((2000, DIM)))
    assert state(store) == state(twin)
