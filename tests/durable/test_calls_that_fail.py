"""A call that fails half-way, for whatever reason: what must be as it was. Each input here once showed a fault."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsift import MemoryStore
from memsift.durable import DurableStore
from memsift.errors import DiskTrouble, InvalidValue
from memsift.storage import erasure, ledger
from memsift.storage.journal import Journal


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with MemoryStore.open(tmp_path / "a.db", dim=4, budget=8) as made:
        made.add_many(np.eye(4))
        yield made


def fails(*_: object, **__: object) -> None:
    raise DiskTrouble("the disk refused")


def test_an_interrupt_between_a_change_and_its_note(
    store: DurableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C after the column was written and before the file heard of it: the memory is read again."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store._memory, "changed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.pin([0])
    (entry,) = store.get([0])
    assert entry is not None
    assert not entry.pinned
    store.pin([1])
    assert [e.pinned for e in store.get([0, 1]) if e] == [False, True]


def test_a_compaction_that_was_taken_back_is_not_the_last_one(
    store: DurableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`last_compaction` named an audit record that did not exist."""
    first = store.compact(3)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "commit", fails)
        with pytest.raises(DiskTrouble):
            store.compact(2)
    assert store.last_compaction is first
    assert len(store) == 3
    assert store.audit.head().hash == first.audit_head


def test_a_compaction_stays_the_last_one_when_reading_fails(
    store: DurableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process wrote, and following it failed once: what was read again was not all that was known."""
    done = store.compact(3)
    with MemoryStore.open(store.path) as other:
        other.add([1, 1, 0, 0])
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "follow", fails)
        with pytest.raises(DiskTrouble):
            len(store)
    assert len(store) == 4
    assert store.last_compaction is done


def test_cleaning_after_an_erasure_may_fail_and_is_done_at_the_next_opening(
    store: DurableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The erasure was true already; to raise "nothing was changed" was a lie."""

    def refused(db: Any, statement: str) -> str:
        return "pending: the disk refused" if "DELETE" not in statement else done(db, statement)

    done = erasure._done
    with monkeypatch.context() as patch:
        patch.setattr(erasure, "_done", refused)
        receipt = store.erase([0])
    assert not receipt.complete
    assert store.get([0]) == [None]
    assert erasure.unfinished(store._db)
    with MemoryStore.open(store.path) as other:
        assert not erasure.unfinished(other._db)
    assert store.erase([1]).complete


def test_an_export_that_fails_leaves_nothing(
    store: DurableStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a log stayed behind, so that the second attempt was refused."""
    store.compact(2)
    path = tmp_path / "log.jsonl"

    def full(bodies: Any, stream: Any) -> int:
        stream.write(b"half a rec")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ledger.export, "write", full)
        with pytest.raises(DiskTrouble, match="No space left"):
            store.audit.export(path)
    assert not path.exists()
    assert store.audit.export(path) == 1
    with pytest.raises(InvalidValue, match="must be a new file"):
        store.audit.export(path)
    assert path.read_bytes().count(b"\n") == 1


@pytest.mark.parametrize(
    ("number", "error"),
    [(errno.EIO, DiskTrouble), (errno.ENOSPC, DiskTrouble), (errno.EACCES, InvalidValue)],
)
def test_a_file_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    """A bare OSError came."""

    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(error):
            MemoryStore.open(tmp_path / "new.db", dim=2)
    assert not (tmp_path / "new.db").exists()
