"""The compactor in the background: it plans early, lets go in a quiet moment, and never makes an addition wait."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memsift.background
from memsift import Budget, LruPolicy, MemoryStore
from memsift.background import Compactor, occupancy
from memsift.errors import InvalidType, InvalidValue, PolicyError, StoreBusy
from memsift.upkeep import Upkeep

DIM = 8
Made = Callable[..., MemoryStore]


def rows(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=(n, DIM))


@pytest.fixture(params=["in RAM", "in a file"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Made]:
    """Makes stores of one kind."""
    stores: list[MemoryStore] = []

    def make(budget: Any = 100, policy: Any = None, name: str = "m") -> MemoryStore:
        chosen = LruPolicy() if policy is None else policy
        if request.param == "in RAM":
            store = MemoryStore(DIM, budget, chosen)
        else:
            store = MemoryStore.open(tmp_path / f"{name}.memsift", DIM, "n", budget, chosen)
        stores.append(store)
        return store

    yield make
    for store in stores:
        store.close()


class Clock:
    """Stands for the module `time`; moved by hand."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(memsift.background, "time", clock)
    return clock


class Watched:
    """LRU by a stranger's hand, which may do something before it answers."""

    name = "watched"
    needs = frozenset({"accessed_tick"})

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self.before = before

    def select_survivors(self, view: Any, size: int, window: Any = None) -> Any:
        self.before()
        return np.sort(np.argsort(view.accessed_tick, kind="stable")[-size:])


def ids_of(store: MemoryStore) -> list[int]:
    return sorted(store.view().ids.tolist())


# ---- the story, a step at a time -----------------------------------------------------------------


def test_a_plan_is_made_when_the_store_is_nearly_full_and_carried_out_when_it_is_quiet(
    made: Made, clock: Clock
) -> None:
    store, twin = made(100), made(100, name="twin")
    for one in (store, twin):
        one.add_many(rows(92))
        one.search(rows(1, seed=9)[0], k=5)
    compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=2.0)
    assert compactor.due()
    assert compactor.step() is None
    assert compactor.state().planned == 1
    assert len(store) == 92, "a plan changes nothing"
    assert compactor.step() == memsift.background.NAP_SECONDS  # two seconds at most, in naps
    clock.now += 1.9
    touched = store.search(rows(1, seed=10)[0], k=1)[0].id
    assert compactor.step() > 0, "somebody asked: the wait begins anew"
    clock.now += 1.9
    assert compactor.step() > 0
    assert len(store) == 92
    clock.now += 0.1
    assert compactor.step() is None
    plan = twin.plan(80)
    victims = set(plan.view.ids[plan.victims].tolist()) - {touched}
    assert ids_of(store) == sorted(set(range(92)) - victims)
    assert not compactor.due()
    state = compactor.state()
    assert (state.planned, state.applied, state.evicted) == (1, 1, len(victims))


def test_below_the_high_watermark_there_is_nothing_to_do(made: Made) -> None:
    store = made(100)
    store.add_many(rows(89))
    assert not Compactor(store, high=0.9, low=0.8).due()


def test_without_a_budget_there_is_never_anything_to_do(made: Made) -> None:
    store = made(None)
    store.add_many(rows(50))
    assert not Compactor(store).due()


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(Budget(entries=10), 0.4), (Budget(entries=100, cost=8), 0.5), (Budget(cost=0), 1.0)],
)
def test_the_fullest_unit_counts(budget: Budget, expected: float) -> None:
    store = MemoryStore(DIM)
    store.add_many(rows(4))
    store._memory.budget = budget
    assert occupancy(store._memory) == expected


def test_a_store_that_is_all_but_full_is_not_kept_waiting(made: Made, clock: Clock) -> None:
    store = made(100)
    store.add_many(rows(99))
    compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=1e9)
    compactor.step()
    compactor.step()
    assert len(store) == 80


def test_who_is_touched_between_plan_and_deed_stays(made: Made, clock: Clock) -> None:
    store = made(100)
    vectors = rows(95)
    store.add_many(vectors)
    compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=1.0)
    compactor.step()
    oldest = store.search(vectors[0], k=1)[0].id
    store.pin([1])
    compactor.step()
    clock.now += 1.0
    compactor.step()
    assert {oldest, 1} <= set(ids_of(store))
    assert store.last_compaction is not None
    assert store.last_compaction.spared.tolist() == [0, 1]


def test_a_plan_that_room_was_made_without_is_dropped(made: Made, clock: Clock) -> None:
    store = made(100)
    store.add_many(rows(95))
    compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=1.0)
    compactor.step()
    store.compact(50)
    assert compactor.due(), "a plan that lies here holds a view, which is to go"
    clock.now += 5.0
    compactor.step()
    assert not compactor.due()
    assert len(store) == 50
    assert compactor.state().applied == 0


def test_a_small_budget_that_cannot_shrink_is_left_alone(made: Made) -> None:
    store = made(3)
    store.add_many(rows(3))
    assert not Compactor(store).due()


# ---- it never empties a store (reports 31) ----------------------------------------------------------


def test_pinned_entries_stay_and_it_does_not_spin(made: Made, clock: Clock) -> None:
    store = made(100)
    store.add_many(rows(95), pinned=True)
    compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=0, pause_seconds=1.0)
    pauses = []
    for _ in range(4):
        compactor.step()
        pauses.append(compactor.state().retry_in)
        clock.now += pauses[-1]
    assert pauses == [1.0, 2.0, 4.0, 8.0]
    assert len(store) == 95
    assert compactor.state().last_error is None


@settings(max_examples=40, deadline=None)
@given(
    entries=st.integers(1, 40),
    costs=st.lists(st.integers(0, 50), min_size=40, max_size=40),
    pins=st.lists(st.booleans(), min_size=40, max_size=40),
    low=st.floats(0.01, 0.98),
    span=st.floats(0.01, 1.0),
    equal=st.booleans(),
)
def test_at_most_half_leave_in_one_pass_and_nobody_who_is_pinned(
    entries: int, costs: list[int], pins: list[bool], low: float, span: float, equal: bool
) -> None:
    vectors = np.ones((entries, DIM)) if equal else rows(entries)
    costs, pins = costs[:entries], pins[:entries]
    store = MemoryStore(DIM, Budget(entries=entries, cost=sum(costs)), LruPolicy())
    store.add_many(vectors, cost=costs, pinned=pins)
    high = min(1.0, low + span * (1.0 - low))
    compactor = Compactor(store, low=low, high=high, quiet_seconds=0, pause_seconds=1e6)
    for _ in range(200):
        before = len(store)
        if not compactor.due() or compactor.state().retry_in:
            break
        compactor.step()
        assert 2 * (before - len(store)) <= before
    else:
        pytest.fail("it does not come to an end")
    assert len(store) >= 1
    assert store.holds([i for i, pin in enumerate(pins) if pin]).all()


# ---- when something goes wrong (report 45) ----------------------------------------------------------


def test_an_error_is_reported_and_tried_again_later_and_later(
    made: Made, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = made(100)
    store.add_many(rows(95))
    compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=0, pause_seconds=1.0)
    right = memsift.background.automatic_plan

    def wrong(*_: Any) -> Any:
        raise PolicyError("scores must be finite")

    monkeypatch.setattr(memsift.background, "automatic_plan", wrong)
    pauses = []
    for _ in range(11):
        compactor.step()
        pauses.append(compactor.state().retry_in)
        assert compactor.step() == min(0.5, pauses[-1]), "it sleeps through the pause in naps"
        assert compactor.state().retry_in == pauses[-1]
        clock.now += pauses[-1]
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert compactor.state().last_error == "PolicyError: scores must be finite"

    monkeypatch.setattr(memsift.background, "automatic_plan", right)
    compactor.step()
    compactor.step()
    assert len(store) == 80
    assert compactor.state().retry_in == 0
    monkeypatch.setattr(memsift.background, "automatic_plan", wrong)
    store.add_many(rows(15))
    compactor.step()
    assert compactor.state().retry_in == 1.0, "after a success, pauses are short again"


def test_a_strangers_error_is_named_but_not_quoted(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore(DIM, 100, LruPolicy())
    store.add_many(rows(95))
    compactor = Compactor(store, high=0.9, low=0.8)

    def wrong(*_: Any) -> Any:
        raise KeyError("canary")

    monkeypatch.setattr(memsift.background, "automatic_plan", wrong)
    compactor.step()
    assert compactor.state().last_error == "KeyError"


def test_a_busy_file_is_tried_again(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "m.memsift"
    with (
        MemoryStore.open(path, DIM, budget=100, busy_timeout=0.01) as store,
        MemoryStore.open(path, busy_timeout=0.01) as other,
    ):
        store.add_many(rows(95))
        compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=0)
        compactor.step()
        with other._writing:
            compactor.step()
        assert (compactor.state().last_error or "").startswith(StoreBusy.__name__)
        clock.now += 1.0
        compactor.step()
        compactor.step()
        assert len(store) == 80


def test_additions_past_the_budget_are_refused_while_a_policy_fails_and_not_kept_without_bounds() -> (
    None
):
    failing = threading.Event()

    def perhaps() -> None:
        if failing.is_set():
            raise ZeroDivisionError

    store = MemoryStore(DIM, 100, Watched(perhaps))
    compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=0, pause_seconds=0.001).start()
    failing.set()
    store.add_many(rows(100))
    for i in range(20):
        with pytest.raises(ZeroDivisionError):
            store.add(rows(1, seed=i)[0])
        assert len(store) == 100
    failing.clear()
    compactor.wake()
    assert compactor.settle()
    assert len(store) == 80
    assert store.stats().compactor.last_error in (None, "ZeroDivisionError")


# ---- with its thread -----------------------------------------------------------------------------


def test_a_started_one_keeps_the_store_below_its_budget(made: Made) -> None:
    store = made(100)
    compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=0).start()
    for i in range(30):
        store.add_many(rows(7, seed=i))
        assert compactor.settle()
        assert len(store) < 90
    state = store.stats().compactor
    assert state == compactor.state()
    assert state.applied >= 5
    assert state.last_error is None
    assert state.evicted + len(store) == 210
    assert store.stats().to_dict()["compactor"]["applied"] == state.applied


def test_what_it_would_have_to_compact_is_there_already(made: Made) -> None:
    store = made(100)
    store.add_many(rows(95))
    assert Compactor(store, high=0.9, low=0.8, quiet_seconds=0).start().settle()
    assert len(store) == 80


def test_additions_do_not_wait_for_a_plan_that_takes_its_time(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread thinks until this test lets it go; meanwhile the store is filled three times over."""
    store = made(100)
    thinks, may_go = threading.Event(), threading.Event()
    right = memsift.background.automatic_plan

    def slow(*about: Any) -> Any:
        thinks.set()
        assert may_go.wait(60)
        return right(*about)

    monkeypatch.setattr(memsift.background, "automatic_plan", slow)
    compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=0).start()
    store.add_many(rows(95))
    assert thinks.wait(60)
    for i in range(60):
        store.add_many(rows(5, seed=i))
        assert len(store) <= 100
    assert store.stats().compactions >= 5, "in line, by the additions themselves"
    may_go.set()
    assert compactor.settle()
    assert 80 <= len(store) < 90


def test_it_is_closed_with_its_store(made: Made) -> None:
    store = made(100)
    store.add_many(rows(95))
    compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=1e6).start()
    store.close()
    assert not compactor.due()
    assert not compactor.state().running
    with pytest.raises(InvalidValue, match="closed cannot be started"):
        compactor.start()


def test_closing_takes_no_time_while_somebody_holds_the_lock(made: Made) -> None:
    store = made(100)
    compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=0)
    with store._lock:
        store.add_many(rows(95))
        compactor.start()
        compactor.close()
        assert not compactor.state().running
    assert len(store) == 95
    assert store.stats().compactor is None


def test_closing_does_not_wait_for_who_waits_to_carry_out_a_plan(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = made(100)
    thinks, may_go = threading.Event(), threading.Event()
    right = memsift.background.automatic_plan

    def slow(*about: Any) -> Any:
        thinks.set()
        assert may_go.wait(60)
        return right(*about)

    monkeypatch.setattr(memsift.background, "automatic_plan", slow)
    compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=0).start()
    store.add_many(rows(95))
    assert thinks.wait(60)
    with store._lock:
        may_go.set()
        while not (compactor.state().planned and compactor._plan is None):
            threading.Event().wait(0.001)
        compactor.close()
        assert not compactor.state().running
    assert len(store) == 95


def test_between_two_steps_the_thread_sleeps_for_as_long_as_the_step_said() -> None:
    class Sleeps(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            slept.append(timeout)
            return False

    class Owner:
        lock = threading.RLock()
        answers: ClassVar[list[float | None]] = [7.0, None, 0.5]

        def due(self) -> bool:
            return bool(self.answers)

        def step(self) -> float | None:
            return self.answers.pop(0)

        def failed(self) -> None: ...

    slept: list[float | None] = []
    owner = Owner()
    upkeep = Upkeep(owner, "sleeper")
    upkeep._stop = Sleeps()
    assert upkeep.settle()
    assert slept == [7.0, 0.5]


def test_a_store_has_one_at_a_time(made: Made) -> None:
    store = made(100)
    first = Compactor(store).start()
    assert first.start() is first
    with pytest.raises(InvalidValue, match="store must have no compactor yet"):
        Compactor(store).start()
    first.close()
    first.close()
    second = Compactor(store).start()
    assert store.stats().compactor == second.state()


@pytest.mark.parametrize("kind", ["in RAM", "in a file"])
def test_a_forgotten_store_takes_it_along(kind: str, tmp_path: Path) -> None:
    if kind == "in RAM":
        store = MemoryStore(DIM, 100, LruPolicy())
    else:
        store = MemoryStore.open(tmp_path / "m.memsift", DIM, budget=100, policy=LruPolicy())
    store.add_many(rows(95))
    compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=1e6).start()
    thread = compactor._upkeep._thread
    assert thread is not None
    forgotten = weakref.ref(store)
    del store, compactor
    # The thread may hold the last reference for the length of a step.
    thread.join(60)
    gc.collect()
    assert not thread.is_alive()
    assert forgotten() is None


# ---- several processes ---------------------------------------------------------------------------


def test_two_that_planned_at_once_do_not_evict_twice(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "m.memsift"
    with MemoryStore.open(path, DIM, budget=100) as here, MemoryStore.open(path) as there:
        here.add_many(rows(95))
        assert len(there) == 95
        ours, theirs = (Compactor(s, high=0.9, low=0.8, quiet_seconds=0) for s in (here, there))
        ours.step()
        theirs.step()
        theirs.step()
        assert len(there) == 80
        ours.step()
        assert len(here) == 80
        assert ours.state().applied == 0
        assert ids_of(here) == ids_of(there)
        assert len(list(here.audit.bodies())) == 1


CHILD = """
import sys
import numpy as np
from memsift import MemoryStore
from memsift.background import Compactor
path, seed = sys.argv[1], int(sys.argv[2])
with MemoryStore.open(path, 8, busy_timeout=60.0) as store:
    compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=0, pause_seconds=0.01).start()
    chance = np.random.default_rng(seed)
    for i in range(60):
        print(*store.add_many(chance.normal(size=(3, 8))))
        assert len(store) <= 100
    assert compactor.settle(), compactor.state()
"""


def test_three_processes_with_one_each_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.memsift"
    MemoryStore.open(path, DIM, budget=100, archive=10_000).close()
    crew = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path), str(seed)], stdout=subprocess.PIPE, text=True
        )
        for seed in range(3)
    ]
    said = [child.communicate(timeout=120)[0].split() for child in crew]
    assert [child.returncode for child in crew] == [0, 0, 0]
    given = sorted(int(i) for out in said for i in out)
    assert given == list(range(3 * 180)), "each addition got ids of its own"
    with MemoryStore.open(path) as store:
        live, resting = ids_of(store), store.archived().tolist()
        assert len(live) < 90
        assert sorted(live + resting) == given, "whoever left rests in the archive, once"
        found = store.verify()
        assert found.ok, found


FORKS = """
import os, sys
import numpy as np
from memsift import LruPolicy, MemoryStore
from memsift.background import Compactor
from memsift.errors import ForkedStore
kind, path = sys.argv[1:]
vectors = np.random.default_rng(0).normal(size=(95, 8))
if kind == "ram":
    store = MemoryStore(8, 100, LruPolicy())
else:
    store = MemoryStore.open(path, 8, budget=100, policy=LruPolicy())
store.add_many(vectors[:80])
compactor = Compactor(store, high=0.9, low=0.8, quiet_seconds=0).start()
for i in range(20):
    if i == 10:
        store.add_many(vectors[80:])  # so that it is amid its work
    pid = os.fork()
    if not pid:
        try:
            store.add_many(vectors[:15])
            fine = compactor.settle(30) and len(store) < 90
        except ForkedStore:
            fine = kind == "file" and compactor.settle(30) and not compactor.due()
        os._exit(0 if fine else 1)
    assert os.waitpid(pid, 0)[1] == 0
assert compactor.settle(30)
assert len(store) == 80
assert compactor.state().last_error is None
"""


@pytest.mark.skipif(not hasattr(memsift.upkeep.os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", ["ram", "file"])
def test_a_fork_finds_it_whole(kind: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS, kind, str(tmp_path / "m.memsift")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""
    assert done.returncode == 0


# ---- parameters ----------------------------------------------------------------------------------


def test_parameters_are_checked() -> None:
    store = MemoryStore(DIM, 100)
    with pytest.raises(InvalidType, match="store must be a MemoryStore"):
        Compactor(3)  # type: ignore[arg-type]
    for high, low in [(0.5, 0.5), (0.5, 0.9)]:
        with pytest.raises(InvalidValue, match="low must be below high"):
            Compactor(store, high=high, low=low)
    for wrong in ({"high": 1.5}, {"low": 0.0}, {"quiet_seconds": -1}, {"pause_seconds": -1}):
        with pytest.raises(InvalidValue, match=next(iter(wrong))):
            Compactor(store, **wrong)


def test_by_default_it_begins_halfway_between_the_stores_watermark_and_the_budget() -> None:
    for watermark, low, high in [(0.9, 0.9, 0.95), (1.0, 0.97, 0.985)]:
        compactor = Compactor(MemoryStore(DIM, 100, low_watermark=watermark))
        assert (compactor.low, compactor.high) == (low, high)
