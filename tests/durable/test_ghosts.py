"""Ghosts in the file: there and back, bad bytes, two processes, erased; and regret as a store tells it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from crash.scan import CANARY_DIM, canary
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import model as m
from memsift import Budget, FifoPolicy, LruPolicy, MemoryStore
from memsift.errors import BudgetExceeded, CorruptStore, UnknownEntry
from memsift.ghosts import Ghosts
from memsift.regret.sketch import sketched
from memsift.regret.watch import GHOST
from memsift.storage import rows
from memsift.storage.ghosts import GhostRows, figures_of, packed, state_of, unpacked

DIM = 8


def unit(rng: np.random.Generator, n: int, dim: int = DIM) -> np.ndarray:
    found = rng.normal(size=(n, dim))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def leave(ghosts: Ghosts, ids: list[int], vectors: np.ndarray, tick: int = 1) -> None:
    scores = np.linspace(0, 1, len(ids), dtype=np.float32)
    ghosts.evicted(np.array(ids), vectors, np.arange(len(ids)), scores, "lru", tick, 100.0)


def want(ghosts: Ghosts, vector: np.ndarray, tick: int = 2) -> None:
    """A query that repeats a vector, where the best hit is far off."""
    ghosts.asked(vector, np.array([0.9]), 1, tick, 200.0)


def content(ghosts: Ghosts) -> list[Any]:
    return [x.tobytes() if isinstance(x, np.ndarray) else x for x in ghosts.saved()]


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.execute("CREATE TABLE ghost (key INTEGER PRIMARY KEY, row BLOB NOT NULL)")
    yield made
    made.close()


def through_json(state: Any) -> Any:
    return json.loads(json.dumps(state, allow_nan=False))


class Process:
    """A process with the file open: what a journal does with ghosts."""

    file: tuple[Any, ...] = (None, [])  # the namespace's state, and the ids of each commit

    def __init__(self, db: sqlite3.Connection, limit: int = 50) -> None:
        self.rows, self.ghosts = GhostRows(db, 1, DIM), Ghosts(DIM, limit)
        self.generation = 0

    def catch_up(self, file: dict[str, Any]) -> None:
        ids = file["changes"][self.generation :]
        if ids:
            known = np.unique(np.concatenate(ids)) if self.generation else None
            self.rows.read(through_json(file["state"]), self.ghosts, known)
            self.generation = len(file["changes"])

    def commit(self, file: dict[str, Any]) -> None:
        file["state"], ids = self.rows.written(self.ghosts)
        self.rows.committed()
        file["changes"].append(ids)
        self.generation += 1


# ---- there and back ------------------------------------------------------------------------------


def test_what_is_written_is_read(db: sqlite3.Connection) -> None:
    rng = np.random.default_rng(0)
    ghosts, there = Ghosts(DIM, 50), GhostRows(db, 1, DIM)
    vectors = unit(rng, 20)
    leave(ghosts, list(range(20)), vectors)
    want(ghosts, vectors[3])
    leave(ghosts, list(range(20, 40)), unit(rng, 20), tick=5)
    ghosts.returned(np.array([1, 2]))
    state, ids = there.written(ghosts)
    there.committed()
    assert sorted(ids.tolist()) == [0, *range(3, 40)]
    again = Ghosts(DIM, 50)
    GhostRows(db, 1, DIM).read(through_json(state), again)
    assert content(again) == content(ghosts)
    assert again.regret() == ghosts.regret()
    assert there.same(ghosts)


def test_only_what_changed_is_written(db: sqlite3.Connection) -> None:
    rng = np.random.default_rng(0)
    ghosts, there = Ghosts(DIM, 50), GhostRows(db, 1, DIM)
    vectors = unit(rng, 20)
    leave(ghosts, list(range(20)), vectors)
    there.written(ghosts)
    there.committed()
    assert there.written(ghosts)[1].size == 0
    want(ghosts, vectors[7])
    ghosts.returned(np.array([4]))
    changes = db.total_changes
    assert sorted(there.written(ghosts)[1].tolist()) == [4, 7]
    assert db.total_changes - changes == 2


def test_a_commit_that_failed_is_made_up_for(db: sqlite3.Connection) -> None:
    """The rows of a transaction that was rolled back are written again by the next."""
    ghosts, there = Ghosts(DIM, 50), GhostRows(db, 1, DIM)
    leave(ghosts, [1, 2], unit(np.random.default_rng(0), 2))
    db.execute("BEGIN")
    there.written(ghosts)
    db.execute("ROLLBACK")
    assert sorted(there.written(ghosts)[1].tolist()) == [1, 2]
    assert db.execute("SELECT count(*) FROM ghost").fetchone() == (2,)


def test_namespaces_keep_to_themselves(db: sqlite3.Connection) -> None:
    rng = np.random.default_rng(0)
    pairs = [(Ghosts(DIM, 50), GhostRows(db, ns, DIM)) for ns in (1, 2)]
    states = []
    for number, (ghosts, there) in enumerate(pairs):
        leave(ghosts, [number, 5], unit(rng, 2))
        states.append(there.written(ghosts)[0])
    pairs[0][1].delete(np.array([0, 5]))
    again = Ghosts(DIM, 50)
    GhostRows(db, 2, DIM).read(states[1], again)
    assert again.ids.tolist() == [1, 5]
    with pytest.raises(CorruptStore, match="ghost: rows must be those that the namespace counts"):
        GhostRows(db, 1, DIM).read(states[0], again)


def test_a_file_of_before_has_no_ghosts(db: sqlite3.Connection) -> None:
    ghosts = Ghosts(DIM, 50)
    GhostRows(db, 1, DIM).read(None, ghosts)
    assert len(ghosts) == 0
    assert ghosts.regret().evicted == 0


# ---- several processes ---------------------------------------------------------------------------


def test_queries_of_two_processes_add_up(db: sqlite3.Connection) -> None:
    """Both want the same ghost before either has written: wanted twice, one regret."""
    vectors = unit(np.random.default_rng(0), 4)
    file: dict[str, Any] = {"state": None, "changes": []}
    one, two = Process(db), Process(db)
    leave(one.ghosts, [0, 1, 2, 3], vectors)
    one.commit(file)
    two.catch_up(file)
    for process, repeats in ((one, 1), (two, 2)):
        for _ in range(repeats):
            want(process.ghosts, vectors[2])
    one.commit(file)
    two.catch_up(file)
    two.commit(file)
    one.catch_up(file)
    for process in (one, two):
        regret = process.ghosts.regret()
        assert (regret.wanted, regret.times, regret.queries) == (1, 3, 3)
        assert [(ghost.id, ghost.times) for ghost in regret.recent] == [(2, 3)]
    assert content(one.ghosts) == content(two.ghosts)


def test_what_is_wanted_here_after_it_left_there_is_dropped_with_it(db: sqlite3.Connection) -> None:
    vectors = unit(np.random.default_rng(0), 4)
    file: dict[str, Any] = {"state": None, "changes": []}
    one, two = Process(db), Process(db)
    leave(one.ghosts, [0, 1, 2, 3], vectors)
    one.commit(file)
    two.catch_up(file)
    want(two.ghosts, vectors[2])
    one.ghosts.returned(np.array([2]))  # restored
    leave(one.ghosts, [2], vectors[2:3], tick=9)  # and evicted again, before the other's query
    one.commit(file)
    two.catch_up(file)
    assert two.ghosts.ids.tolist() == [0, 1, 2, 3]
    regret = two.ghosts.regret()
    assert (regret.wanted, regret.times, regret.evicted) == (0, 1, 5)


@settings(
    max_examples=m.EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from("ewrc"), st.integers(0, 30)), max_size=40
    )
)
def test_processes_agree_once_all_have_written(
    db: sqlite3.Connection, steps: list[tuple[int, str, int]]
) -> None:
    """Evictions, wants and returns by three processes: what each reads is what one process alone would hold."""
    db.execute("DELETE FROM ghost")
    vectors = unit(np.random.default_rng(0), 31)
    file: dict[str, Any] = {"state": None, "changes": []}
    processes, alone = [Process(db, 12) for _ in range(3)], Ghosts(DIM, 12)
    processes[0].commit(file)
    for process in processes[1:]:
        process.catch_up(file)
    for tick, (who, what, draw) in enumerate(steps, 1):
        process = processes[who]
        process.catch_up(file)
        if what == "w":
            want(process.ghosts, vectors[draw], tick)
            want(alone, vectors[draw], tick)
        for ghosts in (process.ghosts, alone):
            if what == "e":
                leave(ghosts, sorted({draw, (draw * 7) % 31, (draw * 3) % 31}), vectors, tick)
            elif what == "r":
                ghosts.returned(np.array([draw, draw + 1]))
        process.commit(file)
    for process in processes:
        process.catch_up(file)
        assert content(process.ghosts) == content(alone)
        fresh = Ghosts(DIM, 12)
        GhostRows(db, 1, DIM).read(through_json(file["state"]), fresh)
        assert content(fresh) == content(alone)
        assert process.rows.same(process.ghosts)


def test_a_failed_call_leaves_the_wants_of_before(db: sqlite3.Connection) -> None:
    """A query found a ghost, then a call failed and everything was read again: the want is not lost."""
    vectors = unit(np.random.default_rng(0), 6)
    file: dict[str, Any] = {"state": None, "changes": []}
    one = Process(db)
    leave(one.ghosts, [0, 1, 2], vectors)
    one.commit(file)
    want(one.ghosts, vectors[1])
    leave(one.ghosts, [3, 4], vectors[3:5], tick=4)  # this is what failed
    one.ghosts.returned(np.array([0]))
    one.rows.read(through_json(file["state"]), one.ghosts)
    assert one.ghosts.ids.tolist() == [0, 1, 2]
    regret = one.ghosts.regret()
    assert (regret.evicted, regret.wanted, regret.times) == (3, 1, 1)


# ---- bad bytes -----------------------------------------------------------------------------------


def some_rows() -> tuple[Ghosts, list[tuple[int, bytes]]]:
    ghosts = Ghosts(DIM, 50)
    vectors = unit(np.random.default_rng(0), 5)
    leave(ghosts, [3, 5, 8, 13, 21], vectors)
    want(ghosts, vectors[2])
    watch = ghosts.saved()
    blobs = packed(watch.held, watch.sketches)
    return ghosts, list(zip(rows.keys(1, watch.held["id"]), blobs, strict=True))


@settings(max_examples=10 * m.EXAMPLES, deadline=None)
@given(
    row=st.integers(0, 4),
    places=st.lists(st.tuples(st.integers(0, 200), st.integers(1, 255)), min_size=1, max_size=4),
    cut=st.one_of(st.none(), st.integers(-120, 120)),
)
def test_a_damaged_row_is_a_typed_error(
    row: int, places: list[tuple[int, int]], cut: int | None
) -> None:
    _, good = some_rows()
    key, blob = good[row]
    bad = bytearray(blob)
    for place, flip in places:
        bad[place % len(bad)] ^= flip
    bad = bad[:cut] if cut is not None and cut < 0 else bad + b"\0" * (cut or 0)
    if bytes(bad) == blob:
        return
    good[row] = (key, bytes(bad))
    with pytest.raises(CorruptStore, match=r"^ghost: "):
        unpacked(good, 1, DIM)


@settings(max_examples=10 * m.EXAMPLES, deadline=None)
@given(data=st.data(), name=st.sampled_from(GHOST.names))
def test_a_forged_row_is_within_bounds_or_refused(data: Any, name: str) -> None:
    """Whoever writes a right sum under wrong values gets a typed error, or a state that works."""
    ghosts, _ = some_rows()
    watch = ghosts.saved()
    held, sketches = watch.held.copy(), watch.sketches
    if GHOST[name].kind == "i":
        value = data.draw(st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2))
    else:
        value = data.draw(st.floats(width=32))
    held[name][data.draw(st.integers(0, 4))] = value
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE ghost (key INTEGER PRIMARY KEY, row BLOB NOT NULL)")
    keys = rows.keys(1, watch.held["id"])
    pairs = list(zip(keys, packed(held, sketches), strict=True))
    db.executemany("INSERT INTO ghost VALUES (?, ?)", pairs)
    again, there = Ghosts(DIM, 50), GhostRows(db, 1, DIM)
    try:
        there.read(state_of(watch), again)
    except CorruptStore:
        return
    finally:
        db.close()
    want(again, unit(np.random.default_rng(0), 5)[1], tick=2**40)
    leave(again, list(range(30, 90)), unit(np.random.default_rng(1), 60), tick=2**40)
    json.dumps(again.regret().to_dict(), allow_nan=False)
    assert figures_of(through_json(state_of(again.saved())), DIM)
    assert unpacked(
        list(zip(rows.keys(1, again.ids), packed(*again.saved()[:2]), strict=True)), 1, DIM
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda found: found.pop(),
        lambda found: found.append(found[0]),
        lambda found: found.reverse(),
        lambda found: found.__setitem__(0, (found[0][0] + 1, found[0][1])),
        lambda found: found.__setitem__(0, (found[0][0], "text")),
        lambda found: found.__setitem__(0, (found[0][0], b"")),
    ],
)
def test_rows_must_be_those_that_were_written(damage: Any) -> None:
    ghosts, found = some_rows()
    damage(found)
    try:
        held, _ = unpacked(found, 1, DIM)
    except CorruptStore:
        pass
    else:  # a row that is missing is noticed by the count
        assert len(held) != state_of(ghosts.saved())["held"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=10 * m.EXAMPLES, deadline=None)
@given(name=st.sampled_from(["held", "queries", "times", "policies", "past"]), value=json_values)
def test_a_damaged_state_is_a_typed_error(name: str, value: Any) -> None:
    ghosts, _ = some_rows()
    state = through_json(state_of(ghosts.saved()))
    for bad in (value, {**state, name: value}, {k: v for k, v in state.items() if k != name}):
        try:
            figures, count = figures_of(bad, DIM)
        except CorruptStore:
            pass
        else:
            assert bad is None or type(count) is int
            assert figures.past.shape == (2, 5)


# ---- a store with ghosts -------------------------------------------------------------------------

EYE = np.eye(4, dtype=np.float32)


def opened(path: Path, budget: Any = 3, policy: Any = None, **options: Any) -> Any:
    options = {"low_watermark": 1.0, "touch_flush_seconds": 1000.0} | options
    return MemoryStore.open(path, 4, budget=budget, policy=policy or FifoPolicy(), **options)


def made(path: Path | None, policy: Any = None) -> Any:
    """In a file or, without a path, in RAM."""
    if path:
        return opened(path, policy=policy)
    return MemoryStore(4, budget=3, policy=policy or FifoPolicy(), low_watermark=1.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.memsift"


@pytest.mark.parametrize("durable", [False, True], ids=["RAM", "file"])
def test_an_entry_that_is_asked_for_after_it_left(path: Path, durable: bool) -> None:
    """Four axes, room for three: the first leaves, and a search along it is a regret."""
    store = made(path if durable else None)
    store.add_many(EYE)
    assert str(store.stats().regret) == "evicted 1, later wanted 0"
    store.search(EYE[0], 1, touch=False)  # leaves no trace, here neither
    store.search(EYE[0], 1, where={"kind": "fact"})  # a ghost has no metadata to be judged by
    assert store.stats().regret.times == 0
    store.search(EYE[0], 1)
    store.search_many(EYE[:2], 1)
    regret = store.stats().regret
    assert (regret.evicted, regret.wanted, regret.times) == (1, 1, 2)
    assert [ghost.id for ghost in regret.recent] == [0]
    assert regret.by_policy == {"FifoPolicy()": (1, 1)}
    assert store.stats().to_dict()["regret"]["wanted"] == 1
    if durable:
        assert regret.restorable == [0]
        store.restore(regret.restorable)
        assert 0 in store
        assert store.stats().regret.recent == []
        assert store.stats().regret.wanted == 1
        assert store.stats().regret.evicted == 2  # one left to make room
        assert store.verify().ok
    else:
        assert regret.restorable is None
    store.close()


def test_regret_survives_reopening(path: Path) -> None:
    with opened(path) as store:
        store.add_many(EYE)
        store.search(EYE[0], 1)
        before = store.stats().regret
    with opened(path) as store:
        assert store.stats().regret == before
        assert store.verify().ok
        store.search(EYE[0], 1)
        assert store.stats().regret.times == 2


def test_handles_share_their_regret(path: Path) -> None:
    one, two = opened(path), opened(path)
    one.add_many(EYE)
    two.search(EYE[0], 1)
    one.search(EYE[0], 1)
    two.flush()
    one.flush()
    for store in (one, two):
        assert (store.stats().regret.wanted, store.stats().regret.times) == (1, 2)
        assert store.verify().ok
    one.restore([0])
    assert two.stats().regret.recent == []
    assert two.verify().ok
    one.close()
    two.close()


class FailsAt(FifoPolicy):
    """A policy that fails once so many decisions were made."""

    left: ClassVar[int] = 0

    def terms(self, view: Any) -> Any:
        FailsAt.left -= 1
        if FailsAt.left < 0:
            raise RuntimeError("no")
        return super().terms(view)


@pytest.mark.parametrize("durable", [False, True], ids=["RAM", "file"])
def test_a_batch_that_fails_leaves_no_ghosts(path: Path, durable: bool) -> None:
    FailsAt.left = 10**9
    store = made(path if durable else None, FailsAt())
    store.add_many(EYE)
    store.search(EYE[0], 1)
    before = store.stats().regret
    FailsAt.left = 2
    with pytest.raises(RuntimeError, match="no"):
        store.add_many(np.concatenate([EYE, EYE]))
    FailsAt.left = 10**9
    assert store.stats().regret == before
    store.search(EYE[0], 1)
    assert store.stats().regret.times == 2
    store.close()


def test_the_scores_of_a_plan_are_those_of_its_victims(path: Path) -> None:
    """Also of an older plan, whose rows have moved since, some of them spared."""
    with opened(path, budget=100, policy=LruPolicy()) as store:
        store.add_many(unit(np.random.default_rng(0), 40, 4))
        plan = store.plan(20)
        expected = {int(i): float(s) for i, s in zip(plan.view.ids, plan.scores, strict=True)}
        store.delete([3, 7])
        store.pin([0])
        done = store.apply(plan)
        held, sketches = store._memory.ghosts.watch[:2]
        assert held["id"].tolist() == done.dropped.tolist()
        assert 0 not in held["id"]
        assert held["score"].tolist() == [np.float32(expected[i]) for i in held["id"].tolist()]
        store.restore(done.dropped)
        vectors = np.stack([entry.vector for entry in store.get(done.dropped)])
        assert np.array_equal(sketches, sketched(vectors)[0])


def test_a_plan_says_what_it_would_cost(path: Path) -> None:
    with opened(path, budget=100, policy=LruPolicy()) as store:
        store.add_many(unit(np.random.default_rng(0), 40, 4))
        for query in EYE:
            store.search(query, 1, touch=0)
        plan = store.plan(20)
        found = plan.expected
        assert found.queries == 4
        assert found.missed > 0
        words = str(plan)
        assert found.lines()[0] in words
        assert found.lines()[1] in words
        store.apply(plan)
        for query in EYE:
            store.search(query, 10)
        again = store.plan(10)
        assert again.expected.watched == 20
        assert again.expected.wanted > 0
        assert all(len(line) <= 78 for line in str(again).splitlines())


# ---- erased --------------------------------------------------------------------------------------


def sketch_of(number: int) -> bytes:
    return sketched(canary(number)[None])[0][0].tobytes()


def planted(path: Path, archive: int | None = None) -> Any:
    """A store whose canaries 0 to 2 have left and haunt it."""
    options: dict[str, Any] = {} if archive is None else {"archive": archive}
    store = MemoryStore.open(
        path, CANARY_DIM, budget=20, policy=FifoPolicy(), touch_flush_seconds=1000.0, **options
    )
    for number in range(3):
        store.add(canary(number))
    store.add_many(np.random.default_rng(0).normal(size=(30, CANARY_DIM)))
    store.search(canary(0), 3)
    assert store.stats().regret.recent[0].id == 0
    store.flush()
    return store


def traces(folder: Path, numbers: Any = range(3)) -> list[str]:
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return [f"{f.name}: {n}" for f in files for n in numbers if sketch_of(n) in f.read_bytes()]


def test_an_erased_entry_leaves_no_ghost(path: Path) -> None:
    store = planted(path)
    assert len(traces(path.parent)) >= 3  # the scanner can see
    sketches = store._memory.ghosts.watch.sketches
    receipt = store.erase([0, 2])
    assert receipt.complete, str(receipt)
    assert traces(path.parent, [0, 2]) == []
    assert len(traces(path.parent, [1])) == 1
    assert sketch_of(0) not in sketches.tobytes()
    assert not np.isin([0, 2], store._memory.ghosts.ids).any()
    assert store.stats().regret.recent == []
    assert store.verify().ok
    store.close()


def test_a_ghost_outlives_its_archived_entry_and_can_be_erased(path: Path) -> None:
    """Nothing of the entry is in the archive any more, but its sketch is almost the vector."""
    store = planted(path, archive=0)
    assert store.archived().size == 0
    assert store.stats().regret.restorable == []
    assert store.erase([0, 1]).complete
    assert traces(path.parent, [0, 1]) == []
    with pytest.raises(UnknownEntry):
        store.erase([0])
    assert store.verify().ok
    store.close()


def test_a_damaged_ghost_is_found(path: Path) -> None:
    store = planted(path)
    store.close()
    db = sqlite3.connect(path)
    db.execute(
        "UPDATE ghost SET row = zeroblob(length(row)) WHERE key = (SELECT min(key) FROM ghost)"
    )
    db.commit()
    db.close()
    with pytest.raises(CorruptStore, match=r"^ghost: "):
        MemoryStore.open(path, CANARY_DIM)


def test_a_refused_restore_changes_no_ghost(path: Path) -> None:
    with opened(path) as store:
        store.add_many(EYE)
        store.pin(store.view().ids)
        before = store._memory.ghosts.ids.tolist()
        with pytest.raises(BudgetExceeded):
            store.restore([0])
        assert store._memory.ghosts.ids.tolist() == before == [0]
        assert store.verify().ok


def test_the_limit_follows_the_budget(path: Path) -> None:
    with opened(path, budget=Budget(entries=8000)) as store:
        assert store._memory.ghosts.limit == 1000
    with opened(path, budget=800) as store:
        assert store._memory.ghosts.limit == 100
