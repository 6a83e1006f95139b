"""What a large store remembers of its entries' neighbours: by whom a value was measured, and when; and the thread."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forks import in_a_fork, needs_fork
from memsift import Distinctiveness, LruPolicy, MemoryStore, MemoryView, Recency, crowding, upkeep
from memsift import neighbours as room
from memsift.audit import State, commitment, confirms, evicted_commitment, link, replay
from memsift.errors import StaleView
from memsift.kernels import spread
from memsift.neighbours import Others, Sample, estimate_for, sample_for
from test_threads import run

DIM, NEAREST = 6, 4
POLICY = 1.0 * Distinctiveness(NEAREST)
SIGNAL = Distinctiveness(NEAREST)
NOTHING = crowding.Measured(np.empty(0, np.int64), np.empty(0), Sample(0, 0), 0)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of more than 12 counts as large, and one of more than 40 as too large for all pairs."""
    monkeypatch.setattr(crowding, "AFRESH", 12)
    monkeypatch.setattr(crowding, "COPIED", 7)
    monkeypatch.setattr(room, "EXACT", 40)
    monkeypatch.setattr(room, "SAMPLE", 10)
    monkeypatch.setattr(room, "PRODUCTS", 200)


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread: `measure` does its work."""
    monkeypatch.setattr(upkeep.Upkeep, "wake", lambda _: None)


def measure(store: MemoryStore) -> None:
    known = store._memory.crowding
    while known.due():
        known.step()


def rows(n: int, seed: int = 0) -> npt.NDArray[np.float64]:
    """Around five centres, some of them copies."""
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(5, DIM))[rng.integers(0, 5, n)] + 0.4 * rng.normal(size=(n, DIM))
    found[rng.random(n) < 0.1] = found[0]
    return found


def dumb(view: MemoryView, row: int, sample: Sample) -> float:
    """The mean cosine of an entry to its nearest among those that stand for all."""
    order = sorted(range(len(view)), key=lambda i: int(spread(view.ids[i : i + 1], room.SEED)[0]))
    chosen = range(len(view)) if sample.size >= len(view) else order[: sample.size]
    wide = view.vectors.astype(np.float64)
    cosines = sorted((float(wide[row] @ wide[i]) for i in chosen if i != row), reverse=True)
    best = cosines[: min(sample.nearest, len(chosen) - 1)]
    return min(1.0, max(-1.0, sum(best) / len(best))) if best else 0.0


def pure(view: MemoryView) -> dict[int, float]:
    """What anybody would measure on this view."""
    sample = sample_for(len(view), NEAREST)
    return {int(id_): dumb(view, row, sample) for row, id_ in enumerate(view.ids)}


def said(view: MemoryView) -> dict[int, float]:
    """What the store says of its entries' closeness."""
    found = 1.0 - SIGNAL.exact(view, np.arange(len(view)))
    np.testing.assert_allclose(1.0 - SIGNAL.values(view), found, atol=1e-6)
    return dict(zip(view.ids.tolist(), found.tolist(), strict=True))


def close(found: dict[int, float], wanted: dict[int, float]) -> bool:
    return found.keys() == wanted.keys() and all(abs(found[i] - wanted[i]) < 2e-9 for i in found)


class Remembering:
    """The dumb model: for each id what was measured last, and how it was measured then."""

    def __init__(self) -> None:
        self.values: dict[int, float] = {}
        self.sample = Sample(0, 0)

    def measured(self, store: MemoryStore) -> None:
        view = store.view()
        self.values, self.sample = pure(view), sample_for(len(view), NEAREST)

    def of(self, view: MemoryView) -> dict[int, float]:
        if len(view) <= 12:
            return pure(view)
        known = {int(i): self.values[int(i)] for i in view.ids if int(i) in self.values}
        sample = self.sample
        if 2 * len(known) < len(view):
            known, sample = {}, estimate_for(len(view), NEAREST)
        return {
            int(id_): known[int(id_)] if int(id_) in known else dumb(view, row, sample)
            for row, id_ in enumerate(view.ids)
        }


steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "bulk", "delete", "update", "compact", "measure", "step"]),
        st.integers(0, 2**32 - 1),
    ),
    max_size=25,
)


def live(store: MemoryStore, what: str, seed: int) -> None:
    """One change of a store."""
    rng = np.random.default_rng(seed)
    ids = store.view().ids
    if what == "add":
        store.add_many(rows(int(rng.integers(1, 4)), seed))
    elif what == "bulk":
        store.add_many(rows(int(rng.integers(20, 60)), seed))
    elif what == "delete" and ids.size:
        store.delete(rng.choice(ids, int(rng.integers(1, min(5, ids.size) + 1)), replace=False))
    elif what == "update" and ids.size:
        store.update(int(rng.choice(ids)), vector=rows(1, seed)[0])
    elif what == "compact" and ids.size:
        store.compact(float(rng.uniform(0.5, 1.0)))


@settings(max_examples=40, deadline=None)
@given(steps)
@pytest.mark.usefixtures("by_hand")
def test_an_entry_is_worth_what_was_measured_last_and_a_newcomer_what_is_measured_now(
    history: list[tuple[str, int]],
) -> None:
    store, model = MemoryStore(DIM, 70, POLICY, low_watermark=0.9), Remembering()
    for what, seed in history:
        before = store._memory.crowding.due()
        if what == "measure":
            measure(store)
            if before:
                model.measured(store)
        else:
            held = {int(i): store.get(i)[0].vector.tobytes() for i in store.view().ids}
            live(store, what, seed)
            for entry in store.get(store.view().ids):
                if entry is not None and held.get(entry.id, entry.vector.tobytes()) != (
                    entry.vector.tobytes()
                ):
                    model.values.pop(entry.id, None)
        view = store.view()
        assert close(said(view), model.of(view))


@settings(max_examples=40, deadline=None)
@given(steps)
@pytest.mark.usefixtures("by_hand")
def test_a_decision_without_a_mark_is_one_that_anybody_would_make(
    history: list[tuple[str, int]],
) -> None:
    """Changes come amid a measurement too. In the end, with nothing left to do, all is as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crowding, "WORN", 10**9)
        store = MemoryStore(DIM, 70, POLICY, low_watermark=0.9)
        store.add_many(rows(30))
        for what, seed in history:
            if what == "measure":
                measure(store)
            elif what == "step":
                for _ in range(seed % 9):
                    if store._memory.crowding.due():
                        store._memory.crowding.step()
            else:
                live(store, what, seed)
            view = store.view()
            if SIGNAL.bound(view).measured is None:
                assert close(said(view), pure(view))
            assert np.isfinite(SIGNAL.values(view)).all()
        measure(store)
        view = store.view()
        assert SIGNAL.bound(view).measured is None
        assert close(said(view), pure(view))


@pytest.mark.usefixtures("by_hand")
def test_it_is_measured_again_once_a_tenth_came_or_went() -> None:
    store = MemoryStore(DIM, policy=POLICY)
    known = store._memory.crowding
    store.add_many(rows(12))
    assert not known.due(), "small stores are measured at each decision"
    store.add_many(rows(18))
    assert known.due()
    measure(store)
    store.add_many(rows(2))
    assert not known.due()
    store.delete([0])
    store.view()
    assert known.due(), "two came and one went"
    measure(store)
    for id_ in (5, 6, 7):
        assert not known.due()
        store.update(id_, vector=rows(1, id_)[0])
    assert known.due(), "three of 32 have other vectors"


@pytest.mark.usefixtures("by_hand")
def test_a_view_says_the_same_whatever_is_measured_after_it() -> None:
    store = MemoryStore(DIM, policy=POLICY)
    store.add_many(rows(60))
    measure(store)
    store.add_many(rows(5, 1))
    view = store.view()
    before = said(view)
    twin = store.view()
    store.add_many(rows(20, 2))
    measure(store)
    assert said(view) == before
    assert close(said(twin), before), "asked for the first time after the measurement"


@pytest.mark.usefixtures("by_hand")
def test_what_is_known_of_all_that_stay_is_no_longer_current_once_somebody_left() -> None:
    store = MemoryStore(DIM, policy=POLICY)
    store.add_many(rows(60))
    measure(store)
    assert SIGNAL.bound(store.view()).measured is None
    before = said(store.view())
    store.delete([4])
    view = store.view()
    assert SIGNAL.bound(view).measured is not None
    assert said(view) == {id_: value for id_, value in before.items() if id_ != 4}


@pytest.mark.usefixtures("by_hand")
def test_a_view_does_not_hear_of_vectors_that_are_replaced_after_it() -> None:
    store = MemoryStore(DIM, policy=POLICY)
    store.add_many(rows(60))
    measure(store)
    view = store.view()
    before = said(store.view())
    store.update(7, vector=-rows(1, 9)[0])
    assert said(view) == before
    assert said(store.view())[7] != before[7]


@pytest.mark.usefixtures("by_hand")
def test_a_vector_that_is_replaced_amid_a_measurement_is_measured_anew() -> None:
    store = MemoryStore(DIM, policy=POLICY)
    store.add_many(rows(60))
    known = store._memory.crowding
    for _ in range(6):
        known.step()
    for id_ in (0, 30, 59):
        store.update(id_, vector=-rows(1, id_ + 100)[0])
    store.delete([1, 31, 58])
    while known._job is not None:
        known.step()
    view = store.view()
    assert SIGNAL.bound(view).measured is not None
    sample = sample_for(60, NEAREST)
    found = said(view)
    for id_ in (0, 30, 59):
        row = int(np.flatnonzero(view.ids == id_)[0])
        assert found[id_] == pytest.approx(dumb(view, row, sample), abs=2e-9)


@pytest.mark.usefixtures("by_hand")
def test_two_numbers_of_neighbours_are_kept_apart() -> None:
    store = MemoryStore(DIM, policy=1.0 * Distinctiveness(2) + 1.0 * Distinctiveness(9))
    store.add_many(rows(30))
    measure(store)
    assert store.stats().crowding.measured == 30
    view = store.view()
    for neighbours in (2, 9):
        signal = Distinctiveness(neighbours)
        alone = MemoryView.from_arrays(view.vectors, ids=view.ids)
        everyone = np.arange(30)
        assert signal.exact(view, everyone).tolist() == signal.exact(alone, everyone).tolist()


class FailsOnce(type(POLICY)):  # type: ignore[misc]
    """As POLICY, but one decision fails."""

    decisions = 0

    def terms(self, view: MemoryView) -> Any:
        FailsOnce.decisions += 1
        if FailsOnce.decisions == 2:
            raise ValueError("enough")
        return super().terms(view)


@pytest.mark.usefixtures("by_hand")
def test_an_addition_that_fails_leaves_nothing_behind_for_its_ids() -> None:
    """The ids of a batch that was refused are given out again, to others."""
    store, model = MemoryStore(DIM, 30, FailsOnce(POLICY.parts), low_watermark=0.9), Remembering()
    store.add_many(rows(30))
    measure(store)
    model.measured(store)
    with pytest.raises(ValueError, match="enough"):
        store.add_many(rows(20, 1))
    assert store._memory.next_id == 30
    assert close(said(store.view()), model.of(store.view()))
    store.add_many(-rows(5, 2))
    assert store.holds([34]).all()
    assert close(said(store.view()), model.of(store.view()))


@pytest.mark.usefixtures("by_hand")
def test_of_an_erased_entry_nothing_is_kept(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path / "a.memsift", DIM, policy=POLICY) as store:
        store.add_many(rows(60))
        measure(store)
        known = store._memory.crowding
        store.add_many(rows(20, 1))
        known.step()
        known.step()
        assert known._job is not None
        store.erase([3, 70])
        assert known._job is None, "it held a copy of the vectors"
        assert not np.isin([3, 70], known._measured[NEAREST].ids).any()
        # The same amid the last step of a measurement.
        store.add_many(rows(40, 2))
        while known._job is None or known._job.wants().size:
            known.step()
        wants = known._job.wants
        known._job.wants = lambda: (known.erased(np.array([5])), wants())[1]
        known.step()
        assert not np.isin([3, 5, 70], known._measured.get(NEAREST, NOTHING).ids).any()
        measure(store)
        assert close(said(store.view()), pure(store.view()))


# ---- the record ------------------------------------------------------------------------------------------------

KEY = bytes(range(32))


def recorded(plan: Any) -> Any:
    """The record that a store would write."""
    return link(
        None,
        "s",
        kind="compaction",
        time=1.0,
        policy=replay.policy_fields(plan.policy),
        budget=plan.target.limits,
        before=State(*plan.before, commitment.sealed(KEY, plan.digest)),
        after=State(*plan.after, "0" * 64),
        context_digest=commitment.context_digest(KEY, plan.view.context),
        evicted_count=len(plan.victims),
        evicted_commitment=evicted_commitment(KEY, plan.victims.tolist()),
        spared=0,
        forced=plan.forced,
    )


def grown(measured_at: int) -> MemoryStore:
    """The same 60 entries, last measured when there were so many of them."""
    store = MemoryStore(DIM, policy=0.5 * Recency() + 0.5 * SIGNAL, clock=lambda: 1.7e9)
    for place, row in enumerate(rows(60)):
        if place == measured_at:
            measure(store)
        store.add(row)
    if measured_at == 60:
        measure(store)
    return store


@pytest.mark.usefixtures("by_hand")
def test_a_record_is_confirmed_or_says_that_it_cannot_be() -> None:
    plan = grown(50).plan(20)
    record = recorded(plan)
    assert len(plan.policy.parts[1][1].measured) == 64
    assert confirms(record, KEY, grown(50).plan(20)), "the same was remembered"
    for others in (grown(40), grown(60)):
        again = others.plan(20)
        assert "measured" in replay.differences(record, KEY, again)
        assert set(replay.differences(record, KEY, again)) <= {"measured", "evicted_commitment"}
    # One that was made by what anybody can measure is confirmed by whoever holds the entries.
    record = recorded(grown(60).plan(20))
    view = grown(60).view()
    small = MemoryStore(DIM, policy=LruPolicy(), clock=lambda: 1.7e9)
    for row in rows(60):
        small.add(row)
    afresh = small.plan(20, policy=0.5 * Recency() + 0.5 * SIGNAL)
    assert afresh.view.digest() == view.digest()
    assert replay.differences(record, KEY, afresh) == []


@pytest.mark.usefixtures("by_hand")
def test_another_policy_is_told_from_another_measurement() -> None:
    record = recorded(grown(50).plan(20))
    other = grown(50).plan(20, policy=0.5 * Recency() + 0.25 * SIGNAL)
    assert "policy" in replay.differences(record, KEY, other)
    assert "measured" not in replay.differences(record, KEY, other)


@pytest.mark.usefixtures("by_hand")
def test_a_file_s_own_record_is_run_again(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path / "a.memsift", DIM, policy=POLICY) as store:
        store.add_many(rows(60))
        measure(store)
        store.add_many(rows(4, 1))
        plan = store.plan(40)
        store.apply(plan)
        assert store.audit.replay(1, plan) == []


# ---- the thread ------------------------------------------------------------------------------------------------


class Gate:
    """Holds the thread amid a measurement until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        closeness = Others.closeness

        def waiting(this: Others, *more: Any) -> Any:
            if threading.current_thread().name == "memsift-crowding":
                self.reached.set()
                assert self.open.wait(30)
            return closeness(this, *more)

        monkeypatch.setattr(Others, "closeness", waiting)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "memsift-crowding"]


def settled(store: MemoryStore) -> bool:
    return store._memory.crowding.settle(30)


def test_it_measures_only_for_a_large_store_whose_policy_asks() -> None:
    with MemoryStore(DIM) as other:
        other.add_many(rows(60))
        assert threads() == []
        assert other.stats().crowding is None
        assert close(said(other.view()), pure(other.view()))
        assert SIGNAL.bound(other.view()).measured is None
    with MemoryStore(DIM, policy=POLICY) as store:
        store.add_many(rows(12))
        assert threads() == []
        assert store.stats().crowding.measured == 0
        store.add_many(rows(48))
        assert settled(store)
        assert store.stats().crowding.measured == 60
        assert store.stats().bytes["crowding"] == 60 * 16
        assert store.stats().to_dict()["crowding"] == {
            "measured": 60,
            "running": False,
            "error": None,
        }
        assert close(said(store.view()), pure(store.view()))


def test_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    with MemoryStore(DIM, 100, POLICY) as store:
        store.add_many(rows(60))
        assert gate.reached.wait(30)
        store.add_many(rows(70, 1))
        assert len(store) <= 100
        assert len(store.search(rows(1)[0], 3)) == 3
        store.apply(store.plan(50))
        assert len(store) == 50
        assert store.stats().crowding.running
        assert store.stats().crowding.measured == 0
        gate.open.set()
        assert settled(store)
        assert close(said(store.view()), pure(store.view()))


def test_no_measurement_of_all_pairs_is_made_by_a_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where nothing is known yet: a sample of ten is what a decision compares with."""
    gate = Gate(monkeypatch)
    compared = []
    made = Others.__init__

    def spy(self: Others, vectors: Any, count: int) -> None:
        if threading.current_thread().name != "memsift-crowding":
            compared.append(len(vectors))
        made(self, vectors, count)

    monkeypatch.setattr(Others, "__init__", spy)
    with MemoryStore(DIM, policy=POLICY) as store:
        store.add_many(rows(39))
        assert gate.reached.wait(30)
        plan = store.plan(20)
        assert plan.policy.parts[0][1].measured is not None, "40 are measured in full by others"
        assert compared == [10]
        gate.open.set()


def test_closing_ends_it_amid_a_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    store = MemoryStore(DIM, policy=POLICY)
    store.add_many(rows(300))
    assert gate.reached.wait(30)
    assert len(threads()) == 1
    gate.open.set()
    store.close()
    assert threads() == []
    store.add_many(rows(300, 1))
    assert threads() == []
    assert len(store.compact(100).dropped) == 500


def test_closing_while_it_waits_for_the_store_s_lock() -> None:
    store = MemoryStore(DIM, policy=POLICY)
    with store._memory.lock:
        store.add_many(rows(300))
        assert len(threads()) == 1
        store.close()
    assert threads() == []


def test_a_forgotten_store_takes_it_along(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    store = MemoryStore(DIM, policy=POLICY)
    store.add_many(rows(300))
    assert gate.reached.wait(30)
    (thread,) = threads()
    del store
    gc.collect()
    gate.open.set()
    thread.join(30)
    assert not thread.is_alive()


def test_what_went_wrong_is_told_and_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    closeness = Others.closeness

    def broken(this: Others, *more: Any) -> Any:
        if threading.current_thread().name == "memsift-crowding":
            raise MemoryError("no room")
        return closeness(this, *more)

    with MemoryStore(DIM, policy=POLICY) as store:
        monkeypatch.setattr(Others, "closeness", broken)
        store.add_many(rows(60))
        assert settled(store)
        state = store.stats().crowding
        assert (state.measured, state.running, state.error) == (0, False, "MemoryError: no room")
        store.add_many(rows(60, 1))
        assert threads() == [], "not again for a while"
        assert len(store.compact(50).dropped) == 70
        monkeypatch.setattr(Others, "closeness", closeness)
        store._memory.crowding._upkeep._not_before = 0.0
        store.add_many(rows(60, 2))
        assert settled(store)
        assert store.stats().crowding.measured == 110


def test_a_file_is_measured_when_it_is_opened_and_follows_other_writers(tmp_path: Path) -> None:
    path = tmp_path / "a.memsift"
    with MemoryStore.open(path, DIM, policy=POLICY) as first:
        first.add_many(rows(60))
    with MemoryStore.open(path) as store, MemoryStore.open(path) as other:
        assert settled(store)
        assert store.stats().crowding.measured == 60
        assert close(said(store.view()), pure(store.view()))
        other.update(7, vector=-rows(1, 9)[0])
        view = store.view()
        row = int(np.flatnonzero(view.ids == 7)[0])
        found = dumb(view, row, sample_for(60, NEAREST))
        assert said(view)[7] == pytest.approx(found, abs=2e-9)
        assert SIGNAL.bound(view).measured is not None
    assert threads() == []


def test_writers_and_planners_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value lies in its range; in the end, when all has been measured, all is as it is."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 100)
    monkeypatch.setattr(crowding, "WORN", 10**9)
    store = MemoryStore(DIM, 200, POLICY, low_watermark=0.8)
    store.add_many(rows(150))

    def add(rng: np.random.Generator) -> None:
        store.add_many(rows(int(rng.integers(1, 30)), int(rng.integers(1000))))

    def change(rng: np.random.Generator) -> None:
        ids = store.view().ids
        if ids.size < 10:
            return
        with contextlib.suppress(KeyError):
            store.update(int(rng.choice(ids)), vector=rows(1, int(rng.integers(1000)))[0])
            store.delete(rng.choice(ids, 2, replace=False))

    def plan(rng: np.random.Generator) -> None:
        made = store.plan(float(rng.uniform(0.7, 0.99)))
        assert len(made.victims) < len(made.view)
        store.apply(made)

    def look(rng: np.random.Generator) -> None:
        with contextlib.suppress(StaleView):
            values = SIGNAL.values(store.view())
            assert ((values >= 0) & (values <= 2)).all()

    try:
        run([add, change, plan, look], 2.0)
    finally:
        sys.setswitchinterval(usual)
    store.view()
    assert settled(store)
    assert store.stats().crowding.error is None
    view = store.view()
    assert close(said(view), pure(view))
    assert SIGNAL.bound(view).measured is None
    store.close()


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_amid_a_measurement_makes_its_own() -> None:
    store = MemoryStore(DIM, policy=POLICY)

    def child() -> object:
        store.add_many(rows(100, 4))
        there = store._memory.crowding.settle(8)
        view = store.view()
        return there, store.stats().crowding.measured == len(store), close(said(view), pure(view))

    for number in range(5):
        store.add_many(rows(60, number))
        assert in_a_fork(child) == "(True, True, True)"
    assert settled(store)
    store.close()


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_does_not_wait_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread is stuck amid a step: the child does without what it was about."""
    monkeypatch.setattr(upkeep, "FORK_SECONDS", 0.1)
    gate = Gate(monkeypatch)
    store = MemoryStore(DIM, policy=POLICY)
    store.add_many(rows(60))
    assert gate.reached.wait(30)

    def child() -> object:
        gate.open.set()
        job = store._memory.crowding._job
        return job, len(store.compact(30).dropped), store._memory.crowding.settle(8)

    assert in_a_fork(child) == "(None, 30, True)"
    gate.open.set()
    assert settled(store)
    store.close()


def test_a_process_that_ends_amid_a_measurement_ends_well() -> None:
    code = (
        "import numpy as np\n"
        "from memsift import Distinctiveness, MemoryStore\n"
        "store = MemoryStore(64, policy=1.0 * Distinctiveness())\n"
        "store.add_many(np.random.default_rng(0).normal(size=(9000, 64)))\n"
        "while store._memory.crowding._job is None:\n"
        "    pass\n"
        "print('measuring')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == ("measuring\n", "", 0)
