"""What handles on one file see of each other, and what touches that wait become."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crash.state import dump

import memsift.storage.journal as journal
import model as m
from memsift import Budget, FifoPolicy, LruPolicy, MemoryStore
from memsift.errors import BudgetExceeded, CorruptStore, UnknownEntry

EYE = np.eye(4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.memsift"


@pytest.fixture
def pair(path: Path) -> Iterator[tuple[Any, Any]]:
    """Two handles that write no touches by themselves."""
    one = MemoryStore.open(path, 4, budget=100, touch_flush_seconds=1000.0)
    one.add_many(EYE)
    two = MemoryStore.open(path, touch_flush_seconds=1000.0)
    yield one, two
    one.close()
    two.close()


# ---- two handles ---------------------------------------------------------------------------------


def test_each_sees_the_others_commits_at_its_next_call(pair: tuple[Any, Any]) -> None:
    one, two = pair
    id_ = two.add([1, 1, 0, 0], {"a": 1})
    assert one.search([1, 1, 0, 0], 1, touch=False)[0].id == id_
    one.update(id_, metadata={"a": 2}, vector=[0, 0, 1, 1])
    assert two.get(id_)[0].metadata == {"a": 2}
    assert two.search([0, 0, 1, 1], 1, touch=False)[0].id == id_
    two.delete(id_)
    assert id_ not in one
    one.compact(2)
    assert len(two) == 2
    assert two.archived().size == 2
    two.restore(two.archived())
    assert len(one) == 4
    assert two.audit.head().hash == one.audit.head().hash


def test_a_batch_beyond_the_budget_is_seen_whole(path: Path) -> None:
    """The change log kept a window onto the table's ids, which the batch's own compaction then moved."""
    one = MemoryStore.open(path, 4, budget=3, policy=LruPolicy())
    one.add(EYE[0])
    two = MemoryStore.open(path)
    assert len(two) == 1
    one.add_many(np.ones((4, 4)))
    assert set(two.view().ids.tolist()) == set(one.view().ids.tolist())
    assert two.verify().ok
    one.close()
    two.close()


def test_searches_that_wait_are_counted_beside_what_others_wrote(pair: tuple[Any, Any]) -> None:
    """The other handle's state took the place of the count."""
    one, two = pair
    for _ in range(3):
        one.search(EYE[0], 1)
    two.add(EYE[0])
    assert one.stats().searches == 3
    one.flush()
    assert two.stats().searches == 3
    assert two._memory.context.seen == one._memory.context.seen == 3


def test_ticks_of_two_handles_never_collide(pair: tuple[Any, Any]) -> None:
    """A touch waits with tick 5; the other handle's addition takes tick 5. The table kept both."""
    one, two = pair
    one.search(EYE[0], 1)
    one.search(EYE[1], 1)
    two.add(EYE[2])
    for store in (one, two):
        one.flush()
        entries = store.get(range(5))
        assert [e.accessed_tick for e in entries] == [6, 7, 3, 4, 5]
        assert store.stats().tick == 7


def test_many_handles_that_take_turns_give_every_event_a_tick_of_its_own(path: Path) -> None:
    rng = np.random.default_rng(0)
    stores = [MemoryStore.open(path, 4, touch_flush_seconds=1000.0) for _ in range(3)]
    ids = [int(store.add(rng.normal(size=4))) for store in stores]
    for _ in range(200):
        store = stores[rng.integers(3)]
        if rng.random() < 0.2:
            ids.append(store.add(rng.normal(size=4)))
        elif rng.random() < 0.2:
            store.flush()
        else:
            store.search(rng.normal(size=4), 1)
    for store in stores:
        store.flush()
    entries = [e for e in stores[0].get(ids) if e]
    ticks = [e.created_tick for e in entries]
    ticks += [e.accessed_tick for e in entries if e.access_count]
    assert len(set(ticks)) == len(ticks)
    assert dump(stores[0]) == dump(stores[1]) == dump(stores[2])
    stats = stores[0].stats()
    assert stats.tick == stats.searches + stats.added
    for store in stores:
        store.close()


def test_touches_of_an_entry_that_another_deleted_are_let_go(pair: tuple[Any, Any]) -> None:
    one, two = pair
    one.search(EYE[0], 2)
    two.delete(0)
    one.flush()
    assert 0 not in one
    assert two.get(1)[0].access_count == 1
    assert two.verify().ok


def test_touches_add_up(pair: tuple[Any, Any]) -> None:
    one, two = pair
    for store in (one, two, one):
        store.search(EYE[0], 1)
    two.pin(0)
    one.feedback(0)
    for store in (one, two):
        entry = store.get(0)[0]
        assert (entry.access_count, entry.use_count, entry.pinned) == (3, 1, True)


def test_a_full_counter_stays_full_when_touches_meet(pair: tuple[Any, Any]) -> None:
    one, two = pair
    one._memory.table._columns.own("access_count")[0] = 2**63 - 2
    one.pin(0)
    two.search(EYE[0], 1)
    two.search(EYE[0], 1)
    one.feedback(0)
    assert two.get(0)[0].access_count == 2**63 - 1
    two.flush()
    assert one.get(0)[0].access_count == 2**63 - 1


def test_a_refused_call_costs_no_touch_and_no_reading_anew(pair: tuple[Any, Any]) -> None:
    one, _ = pair
    one.search(EYE[0], 1)
    table = one._memory.table
    with pytest.raises(UnknownEntry):
        one.pin(99)
    assert one._memory.table is table
    assert one.get(0)[0].access_count == 1
    one.flush()
    assert one.verify().ok


def test_whoever_slept_too_long_reads_everything_anew(
    pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "REMEMBERED", 5)
    one, two = pair
    two.search(EYE[3], 1)  # waits through it all
    for i in range(20):
        one.add(EYE[i % 4])
    assert one._db.execute("SELECT count(*) FROM change").fetchone()[0] == 5
    table = two._memory.table
    assert len(two) == 24
    assert two._memory.table is not table
    two.flush()
    assert dump(one) == dump(two)


def test_the_change_log_is_cut_at_its_real_length(path: Path) -> None:
    with MemoryStore.open(path, 2) as one, MemoryStore.open(path) as two:
        one.add([1, 0])
        assert len(two) == 1
        for _ in range(journal.REMEMBERED + 5):
            one.pin(0)
        one.unpin(0)
        count = one._db.execute("SELECT count(*) FROM change").fetchone()[0]
        assert count == journal.REMEMBERED
        assert dump(one) == dump(two)


# ---- when touches are written --------------------------------------------------------------------


def written(path: Path) -> int:
    with MemoryStore.open(path) as look:
        return int(look.get(0)[0].access_count)


def test_touches_are_written_within_their_time(path: Path) -> None:
    with MemoryStore.open(path, 4, touch_flush_seconds=0.1) as store:
        store.add(EYE[0])
        store.search(EYE[0], 1)
        until = time.monotonic() + 5
        while written(path) == 0 and time.monotonic() < until:
            time.sleep(0.02)
        assert written(path) == 1


def test_touches_are_written_on_close_and_before_a_plan(path: Path) -> None:
    with MemoryStore.open(path, 4, touch_flush_seconds=1000.0) as store:
        store.add(EYE[0])
        store.search(EYE[0], 1)
        assert written(path) == 0
        store.plan(1)
        assert written(path) == 1
        store.search(EYE[0], 1, touch=0)  # moves the clock, touches nothing
        store.search(EYE[0], 1)
    assert written(path) == 2


def test_touches_are_written_by_a_store_that_nobody_closed(path: Path) -> None:
    """The timer looked for a store that was no more."""
    store = MemoryStore.open(path, 4, touch_flush_seconds=1000.0)
    store.add(EYE[0])
    store.search(EYE[0], 1)
    del store
    assert written(path) == 1


# ---- the archive ---------------------------------------------------------------------------------


def test_undo(path: Path) -> None:
    """Compact, then restore: the victims are back with their counters and their metadata."""
    clock = m.Clock()
    with MemoryStore.open(path, 4, policy=FifoPolicy(), clock=clock) as store:
        ids = store.add_many(np.eye(4), [{"i": i} for i in range(4)], cost=[1, 2, 3, 4])
        store.search(EYE[0], 1)
        store.feedback(1)
        before = store.get(ids)
        done = store.compact(1)
        assert done.dropped.tolist() == [0, 1, 2]
        assert store.archived().tolist() == [0, 1, 2]
        clock.now += 60
        assert store.restore(done.dropped) is None
        assert store.archived().size == 0
        for old, new in zip(before, store.get(ids), strict=True):
            assert new.vector.tobytes() == old.vector.tobytes()
            kept = ("created_tick", "created_at", "access_count", "use_count", "cost", "metadata")
            assert [getattr(new, name) for name in kept] == [getattr(old, name) for name in kept]
        assert store.get(0)[0].accessed_at == clock.now
        assert [b for b in store.audit.bodies() if b'"kind":"restore"' in b]
    with MemoryStore.open(path) as again:
        assert len(again) == 4
        assert again.verify().ok


def test_restoring_what_is_nowhere_changes_nothing(path: Path) -> None:
    with MemoryStore.open(path, 4) as store:
        store.add_many(EYE)
        store.compact(2)
        before = dump(store)
        with pytest.raises(UnknownEntry, match="99"):
            store.restore([*store.archived(), 99])
        assert dump(store) == before
        assert store.restore(store.view().ids) is None
        assert dump(store) == before


def test_restoring_beside_pins_that_fill_the_budget_changes_nothing(path: Path) -> None:
    with MemoryStore.open(path, 4, budget=2) as store:
        store.add_many(EYE)
        store.pin(store.view().ids)
        before, last = dump(store), store.last_compaction
        with pytest.raises(BudgetExceeded):
            store.restore(store.archived()[:1])
        assert dump(store) == before
        assert store.last_compaction == last
        assert store.verify().ok


def test_the_archives_budget_and_grace_hold(path: Path) -> None:
    clock = m.Clock()
    with MemoryStore.open(
        path, 4, budget=10, archive=5, grace_seconds=100, policy=FifoPolicy(), clock=clock
    ) as store:
        for i in range(40):
            clock.now += 1
            store.add(EYE[i % 4])
            assert store.archived().size <= 5
        newest = store.archived().tolist()
        assert newest == list(range(25, 30))
        clock.now += 101
        store.compact(9)
        assert store.archived().tolist() == [30]
        assert store.verify().ok
        clock.now += 101
    with MemoryStore.open(path, clock=clock) as store:
        assert store.archived().size == 0, "what rested too long leaves when the store is opened"


def test_a_smaller_archive_holds_from_the_opening_on(path: Path) -> None:
    with MemoryStore.open(path, 4, archive=100) as store:
        store.add_many(np.eye(4).repeat(5, 0))
        store.compact(1)
    with MemoryStore.open(path, archive=Budget(entries=3)) as store:
        assert store.archived().size == 3
        assert store.verify().ok
    with MemoryStore.open(path, archive=0) as store:
        assert store.archived().size == 0


def test_an_archive_of_nothing_keeps_nothing(path: Path) -> None:
    with MemoryStore.open(path, 4, archive=0) as store:
        store.add_many(EYE, [{"i": i} for i in range(4)])
        done = store.compact(1)
        assert store.archived().size == 0
        with pytest.raises(UnknownEntry):
            store.restore(done.dropped)
        for table in ("entry", "vector", "note"):
            assert store._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 1


def test_victims_can_be_searched_until_they_leave(path: Path) -> None:
    with MemoryStore.open(path, 4, policy=FifoPolicy()) as store:
        store.add_many(EYE, [{"i": i} for i in range(4)])
        store.compact(1)
        assert store.search(EYE[0], 1)[0].id == 3
        hits = store.search(EYE[0], 2, include_archived=True)
        assert [(h.id, h.metadata) for h in hits] == [(0, {"i": 0}), (1, {"i": 1})]


# ---- growth and time -----------------------------------------------------------------------------


def test_growth_with_reopening_at_each_size(path: Path) -> None:
    rng = np.random.default_rng(4)
    held = 0
    for size in (999, 1000, 1001, 1024, 16_384, 16_385):
        with MemoryStore.open(path, 8) as store:
            assert len(store) == held
            ids = store.add_many(rng.normal(size=(size - held, 8)))
            assert ids.tolist() == list(range(held, size))
            held = size
        with MemoryStore.open(path) as store:
            assert np.array_equal(np.sort(store.view().ids), np.arange(size))
            found = store.verify()
            assert found.ok, str(found)


def test_ids_are_never_given_twice(path: Path) -> None:
    seen: list[int] = []
    for _ in range(5):
        with MemoryStore.open(path, 4, budget=3) as store:
            seen += store.add_many(np.eye(4)).tolist()
            store.delete(store.view().ids)
            identity = store.audit.store_id
    with MemoryStore.open(path) as store:
        assert store.audit.store_id == identity
    assert seen == list(range(20))


def test_disk_is_bounded_under_churn(path: Path) -> None:
    rng = np.random.default_rng(0)
    with MemoryStore.open(path, 32, budget=200, archive=0) as store:
        for _ in range(100):
            store.add_many(rng.normal(size=(100, 32)))
        log = sum(map(len, store.audit.bodies()))  # grows until it is pruned
    assert path.stat().st_size < 30 * 16_384 + 2 * log
    assert not os.path.exists(f"{path}-wal")


# ---- damage that an open handle meets ------------------------------------------------------------


def test_a_handle_that_met_damage_does_not_go_on_with_half_of_it(pair: tuple[Any, Any]) -> None:
    """The second call served what the first one had not finished reading."""
    one, two = pair
    good = one._db.execute("SELECT key, row FROM entry WHERE key & 255 = 2").fetchone()
    two.add_many(EYE)
    two._db.execute("UPDATE entry SET row = zeroblob(length(row)) WHERE key = ?", (good[0],))
    two._db.execute("DELETE FROM change")
    for _ in range(2):
        with pytest.raises(CorruptStore):
            one.search(EYE[0], 1)
        with pytest.raises(CorruptStore):
            one.add(EYE[0])
    two._db.execute("UPDATE entry SET row = ? WHERE key = ?", (good[1], good[0]))
    assert len(one) == 8
    assert one.verify().ok


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM note WHERE key & 255 = 1",
        "UPDATE note SET json = '{}' WHERE key & 255 = 1",
        "UPDATE entry SET archived_at = 1.0 WHERE key & 255 = 1",
        "UPDATE entry SET archived_at = NULL",
        "DELETE FROM entry WHERE key & 255 = 1",
        "DELETE FROM vector WHERE key & 255 = 1",
        "UPDATE vector SET row = zeroblob(16) WHERE key & 255 = 1",
        "UPDATE namespace SET dim = 2",
        "UPDATE namespace SET name = 'defaulu'",
        "UPDATE namespace SET store_id = substr(store_id, 2) || 'g'",
        "UPDATE namespace SET secret = zeroblob(32)",
        "UPDATE namespace SET state = replace(state, '\"tick\":5', '\"tick\":1')",
        "UPDATE namespace SET context = zeroblob(16)",
        "DELETE FROM namespace",
    ],
)
def test_a_row_that_was_changed_or_is_gone_is_noticed(path: Path, statement: str) -> None:
    """A note that was gone, a flipped archive mark, another secret or name: nobody noticed."""
    with MemoryStore.open(path, 4, policy=FifoPolicy()) as store:
        store.add_many(EYE, [{"i": i} for i in range(4)])
        store.search(EYE[0], 1)
        store.compact(3)
        assert store.archived().tolist() == [0]
    db = sqlite3.connect(path)
    db.execute(statement)
    db.commit()
    db.close()
    for options in ({}, {"budget": 50}):
        with pytest.raises((CorruptStore, ValueError)) as caught:
            MemoryStore.open(path, 4, **options)
        assert isinstance(caught.value, CorruptStore) or "dim must be" in str(caught.value)


def test_a_failed_commit_leaves_no_trace_in_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryStore.open(path, 4, budget=4) as store:
        store.add_many(EYE, [{"i": i} for i in range(4)])
        store.search(EYE[0], 2)
        before, last = dump(store), store.last_compaction

        def refuse(*_: Any) -> None:
            raise MemoryError

        with monkeypatch.context() as patched:
            patched.setattr(store._journal, "_write_state", refuse)
            for call in (
                lambda: store.add_many(EYE),
                lambda: store.compact(1),
                lambda: store.feedback(0),
                lambda: store.update(0, vector=[0, 1, 0, 1]),
                lambda: store.delete(0),
            ):
                with pytest.raises(MemoryError):
                    call()
                assert dump(store) == before
                assert store.last_compaction == last
        store.feedback(0)
        assert store.verify().ok
