"""Several calls as one commit, what entries say, and the calls that came with them: touch, retire, get."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crash.state import differences, dump

from memsift import FifoPolicy, LruPolicy, MemoryStore
from memsift.durable import DurableStore
from memsift.errors import BudgetExceeded, CorruptStore, InvalidValue, UnknownEntry

ROWS = np.random.default_rng(5).normal(size=(40, 4)).astype(np.float32)


def opened(folder: Path, **options: Any) -> DurableStore:
    options = {"policy": FifoPolicy(), "touch_flush_seconds": 1000.0} | options
    return MemoryStore.open(folder / "a.memsift", 4, **options)


def commits(store: DurableStore) -> int:
    return int(store._db.execute("SELECT generation FROM namespace").fetchone()[0])


def seen_elsewhere(folder: Path) -> dict[str, Any]:
    with opened(folder) as other:
        return dump(other)


# ---- transactions --------------------------------------------------------------------------------


def test_many_calls_are_one_commit(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        before = commits(store)
        with store.transaction():
            ids = store.add_many(ROWS[:5])
            with store.transaction():  # nested: the outer one commits
                store.texts.put(ids, list("abcde"))
                store.pin(0)
            store.delete(4)
            with sqlite3.connect(tmp_path / "a.memsift") as other:
                assert other.execute("SELECT count(*) FROM entry").fetchone() == (0,)
        assert commits(store) == before + 1
        assert seen_elsewhere(tmp_path) == dump(store)
        with store.transaction():
            pass
        assert commits(store) == before + 1


def test_an_error_undoes_all_of_it(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.texts.put(store.add_many(ROWS[:5]), list("abcde"))
        store.search(ROWS[2], 2)
        store.flush()
        before = dump(store)
        with pytest.raises(RuntimeError, match="the caller's own"), store.transaction():  # noqa: PT012
            store.add_many(ROWS[5:10])
            store.texts.put(0, ["other"])
            store.delete([1, 2])
            store.search(ROWS[0], 3)
            raise RuntimeError("the caller's own")
        assert differences(before, dump(store)) == []
        store.search(ROWS[3], 2)
        waiting = dump(store)
        with pytest.raises(KeyError), store.transaction():  # noqa: PT012
            store.search(ROWS[0], 3)  # it never happened
            raise KeyError
        assert differences(waiting, dump(store)) == []
        store.flush()
        assert seen_elsewhere(tmp_path) == dump(store)
        assert store.verify().ok


def test_an_error_that_was_swallowed_undoes_it_at_the_end(tmp_path: Path) -> None:
    """A call that failed half-way must not be made true by who catches its error."""
    with opened(tmp_path, budget=3) as store:
        store.add(ROWS[0])
        before = dump(store)
        with pytest.raises(InvalidValue, match="a call failed"), store.transaction():  # noqa: PT012
            store.add_many(ROWS[1:3])
            with pytest.raises(UnknownEntry):
                store.delete(99)
        assert dump(store) == before
        with store.transaction():  # and the next one knows nothing of it
            store.add(ROWS[1])
        assert len(store) == 2


def test_touches_within_are_written_with_the_rest(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.add_many(ROWS[:4])
        with store.transaction():
            store.search(ROWS[1], 1)
            store.add(ROWS[4])
            store.search(ROWS[2], 2)
        assert [entry.access_count for entry in store.get([1, 2])] == [1, 1]
        assert seen_elsewhere(tmp_path) == dump(store)
        assert store.verify().ok


def test_a_touch_within_goes_into_the_archive_with_its_entry(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.add_many(ROWS[:4])
        with store.transaction():
            store.search(ROWS[0], 1)
            store.retire(0)
        store.restore(0)
        assert store.get(0)[0].access_count == 1


def test_what_does_not_belong_into_one(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.add_many(ROWS[:2])
        for name, call in {
            "erase": lambda: store.erase(0),
            "close": store.close,
            "reembed": lambda: store.reembed(lambda texts: ROWS[: len(texts)], 4, "x"),
        }.items():
            with (
                pytest.raises(InvalidValue, match=f"^{name} must be called outside"),
                store.transaction(),
            ):
                call()
        assert len(store) == 2
        assert store.verify().ok


def test_other_threads_wait(tmp_path: Path) -> None:
    done: list[int] = []
    with opened(tmp_path) as store:
        thread = threading.Thread(target=lambda: done.append(store.add(ROWS[1])))
        with store.transaction():
            thread.start()
            assert store.add(ROWS[0]) == 0
            assert done == []
        thread.join()
        assert done == [1]


# ---- texts ---------------------------------------------------------------------------------------


def test_texts_live_and_leave_with_their_entries(tmp_path: Path) -> None:
    with opened(tmp_path, archive=2) as store:
        ids = store.add_many(ROWS[:5])
        store.texts.put(ids, ["a", "b", "cü", "d", "e"])
        store.texts.put([1], ["B"])
        assert store.texts.get([4, 1, 77, 1, 2**62]) == ["e", "B", None, "B", None]
        assert (store.texts.nbytes(), store.texts.count()) == (7, 5)
        store.compact(4)
        assert store.texts.get(0) == ["a"]
        store.texts.put(0, ["resting"])
        store.restore(0)
        assert store.texts.get(0) == ["resting"]
        store.delete(0)
        store.compact(1)  # three leave, two may rest
        assert store.texts.get(range(5)) == [None, None, "cü", "d", "e"]
        assert store.texts.all() == [(2, "cü"), (3, "d"), (4, "e")]
        store.erase([2, 4])
        assert store.texts.count() == 1
        assert store.verify().ok
        with pytest.raises(UnknownEntry):
            store.texts.put([3, 2], ["kept?", "gone"])
        assert store.texts.all() == [(3, "d")]


def test_texts_of_others_are_seen_at_once(tmp_path: Path) -> None:
    with opened(tmp_path) as one, opened(tmp_path) as other:
        id_ = one.add(ROWS[0])
        one.texts.put(id_, ["first"])
        assert other.texts.get(id_) == ["first"]
        other.texts.put(id_, ["second"])
        assert one.texts.get(id_) == ["second"]
        assert one.texts.find(["second", "first", "second"]) == [[0], [], [0]]
        with MemoryStore.open(tmp_path / "a.memsift", 4, "elsewhere") as third:
            third.texts.put(third.add(ROWS[0]), ["second"])
            assert one.texts.all() == [(0, "second")]
            assert one.texts.find(["second"]) == third.texts.find(["second"]) == [[0]]


DAMAGE = {
    "UPDATE payload SET text = 'other' WHERE key & 0xff = 2": "sum must fit",
    "UPDATE payload SET hash = 1 WHERE key & 0xff = 2": "sum must fit",
    "UPDATE payload SET text = CAST(x'ff41' AS TEXT) WHERE key & 0xff = 2": "sum must fit",
    "UPDATE payload SET text = zeroblob(3) WHERE key & 0xff = 2": "sum must fit",
    "UPDATE payload SET sum = 'x' WHERE key & 0xff = 2": "sum must fit",
    "DELETE FROM payload WHERE key & 0xff = 2": "one is gone",
}


@pytest.mark.parametrize("statement", DAMAGE)
def test_a_damaged_text_is_noticed(tmp_path: Path, statement: str) -> None:
    with opened(tmp_path) as store:
        store.texts.put(store.add_many(ROWS[:4]), ["secret one", "two", "three", "four"])
        store._db.execute(statement)
        with pytest.raises(CorruptStore, match=f"^payload: .*{DAMAGE[statement]}") as caught:
            store.texts.get([1, 2])
        assert "secret" not in str(caught.value)
        assert store.texts.get([1, 3]) == ["two", "four"]
        found = store.verify()
        assert found.checks["texts"] != "ok"


def test_texts_that_changed_places_are_noticed(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.texts.put(store.add_many(ROWS[:2]), ["one", "two"])
        store._db.executescript(
            "UPDATE payload SET key = 1 WHERE key & 0xff = 0; UPDATE payload SET key = key - 1 WHERE key & 0xff = 1;"
            "UPDATE payload SET key = (1 << 40) + 1 WHERE key = 1"
        )
        for id_ in (0, 1):
            with pytest.raises(CorruptStore):
                store.texts.get(id_)


def test_a_stray_text_is_noticed(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.texts.put(store.add_many(ROWS[:2]), ["one", "two"])
        store._db.execute("DELETE FROM entry WHERE key & 0xff = 1")
        store._db.execute("DELETE FROM vector WHERE key & 0xff = 1")
        assert "payload" in store.verify().checks["strays"]


# ---- touch, retire, get --------------------------------------------------------------------------


def test_a_touch_is_an_access(tmp_path: Path) -> None:
    now = [100.0]
    with opened(tmp_path, policy=LruPolicy(), clock=lambda: now[0]) as store:
        store.add_many(ROWS[:3])
        plan = store.plan(1)
        assert plan.victims.tolist() == [0, 1]
        now[0] = 200.0
        store.touch([0, 0])
        entry = store.get(0)[0]
        assert (entry.access_count, entry.accessed_tick, entry.accessed_at) == (1, 4, 200.0)
        assert store.apply(plan).spared.tolist() == [0]
        assert store.plan(1).victims.tolist() == [2]
        with pytest.raises(UnknownEntry):
            store.touch([0, 99])
        store.touch([])
        assert store.stats().tick == 4
        assert seen_elsewhere(tmp_path) == dump(store)


def test_retired_entries_rest(tmp_path: Path) -> None:
    with opened(tmp_path, archive=2, budget=9) as store:
        store.texts.put(store.add_many(ROWS[:5], [{"i": i} for i in range(5)]), list("abcde"))
        store.pin(3)
        with pytest.raises(UnknownEntry):
            store.retire([1, 99])
        assert len(store) == 5
        store.retire([3, 1, 1])
        assert store.archived().tolist() == [1, 3]
        assert store.ids().tolist() == [0, 2, 4]
        found = store.get([3, 0, 99, 1], include_archived=True)
        assert [entry and (entry.id, entry.metadata, entry.pinned) for entry in found] == [
            (3, {"i": 3}, True), (0, {"i": 0}, False), None, (1, {"i": 1}, False),
        ]  # fmt: skip
        assert store.get([3, 0])[0] is None
        assert np.allclose(found[0].vector, ROWS[3] / np.linalg.norm(ROWS[3]), atol=1e-6)
        store.restore(3)
        assert store.get(3)[0].pinned
        store.retire([0, 2])  # three would rest; the longest resting leaves
        assert store.archived().tolist() == [0, 2]
        assert store.texts.get(range(5)) == ["a", None, "c", "d", "e"]
        assert store.verify().ok
        assert seen_elsewhere(tmp_path) == dump(store)
    with opened(tmp_path, archive=0) as store:
        store.retire(4)
        assert store.archived().size == 0


def test_a_budget_that_cannot_be_held_undoes_the_texts_too(tmp_path: Path) -> None:
    with opened(tmp_path, budget=2) as store:
        store.texts.put(store.add_many(ROWS[:2], pinned=True), ["one", "two"])
        with pytest.raises(BudgetExceeded), store.transaction():  # noqa: PT012
            store.texts.put(0, ["changed"])
            store.add(ROWS[2])
        assert store.texts.get(0) == ["one"]
