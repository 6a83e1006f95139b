"""Who may open what: files, modes, names, versions, processes, and what each is told."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crash.state import dump

from memsift import Budget, LfuPolicy, LruPolicy, MemoryStore
from memsift.errors import (
    BudgetExceeded,
    ClosedStore,
    CorruptStore,
    DimensionMismatch,
    ForkedStore,
    InvalidType,
    InvalidValue,
    MemsiftError,
    StoreBusy,
)

EYE = np.eye(4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.memsift"


def filled(path: Path, **options: Any) -> Any:
    store = MemoryStore.open(path, 4, **options)
    store.add_many(EYE, [{"i": i} for i in range(4)])
    return store


# ---- names ---------------------------------------------------------------------------------------

ODD_NAMES = [
    *("..", "a/../b", "/abs", "C:\\x", "CON", ".", "", "a\0", "a\n", "x" * 300, "~", "%2e%2e"),
    *("A", "ä", "-a", "_a", " a", "a ", "a/b", "a\\b", "'; DROP TABLE entry; --", "x" * 65),
]


@pytest.mark.parametrize("name", [*ODD_NAMES, None, 5, b"a", ["a"]], ids=lambda n: repr(n)[:20])
def test_a_bad_namespace_is_refused_before_anything_is_made(path: Path, name: Any) -> None:
    with pytest.raises((InvalidValue, InvalidType), match="namespace must be"):
        MemoryStore.open(path, 4, name)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("name", ["a", "0", "a..b", "con", "a" * 64, "a-b_c.d"])
def test_a_good_namespace_makes_no_file_of_its_own(path: Path, name: str) -> None:
    with MemoryStore.open(path, 4, name) as store:
        assert store.namespace == name
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("bad", ["a\0b", 5, None, b"a.memsift", ["a"]], ids=repr)
def test_a_path_that_is_none_is_refused(bad: Any) -> None:
    """NUL gave a bare ValueError, bytes and numbers a bare TypeError."""
    with pytest.raises((InvalidValue, InvalidType), match="path must"):
        MemoryStore.open(bad, 4)


def test_a_file_called_memory_is_a_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite takes the name `:memory:` for no file at all."""
    monkeypatch.chdir(path.parent)
    MemoryStore.open(":memory:", 4).close()
    assert (path.parent / ":memory:").stat().st_size > 0


def test_namespaces_are_apart(path: Path) -> None:
    one, two = filled(path, namespace="one", archive=9), filled(path, namespace="two", archive=9)
    one.compact(1)
    assert (len(one), len(two)) == (1, 4)
    assert (one.archived().size, two.archived().size) == (3, 0)
    assert (len(one.audit), len(two.audit)) == (1, 0)
    assert one.audit.store_id != two.audit.store_id
    two.erase([0])
    assert one.archived().size == 3
    before = dump(one)
    two.add([1, 1, 1, 1], {"secret": 1})
    assert dump(one) == before
    assert [
        h
        for h in one.search(EYE[0], 9, include_archived=True, touch=False)
        if "secret" in h.metadata
    ] == []
    for id_ in (
        2**40,
        2**40 + 1,
        2**41 + 1,
        2**63 - 1,
    ):  # another namespace's keys, if ids were added to
        assert id_ not in one
        for call in (one.restore, one.erase, one.delete, one.pin):
            with pytest.raises(KeyError):
                call([id_])
    assert dump(one) == before
    one.close()
    two.close()


# ---- modes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_every_file_is_for_its_owner_only(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = filled(path)
        store.compact(2)
        store.audit.export(path.with_suffix(".jsonl"))
        store.save_rvf(path.with_suffix(".rvf"))
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()}
        store.close()
    finally:
        os.umask(before)
    names = {path.name + end for end in ("", "-wal", "-shm")} | {"a.jsonl", "a.rvf"}
    assert modes == dict.fromkeys(names, 0o600)


def test_links_folders_and_loose_modes_are_refused(path: Path, tmp_path: Path) -> None:
    filled(path).close()
    link, loose, folder = tmp_path / "link", tmp_path / "loose", tmp_path / "folder"
    link.symlink_to(path)
    loose.write_bytes(path.read_bytes())
    folder.mkdir()
    for mode in (0o620, 0o602, 0o666):
        loose.chmod(mode)
        with pytest.raises(InvalidValue, match="writable for others"):
            MemoryStore.open(loose)
    for bad in (link, folder):
        with pytest.raises(InvalidValue, match="regular file"):
            MemoryStore.open(bad, 4)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(InvalidValue, match="regular file"):
        MemoryStore.open(tmp_path / "pipe", 4)
    with pytest.raises(InvalidValue, match="folder that exists"):
        MemoryStore.open(tmp_path / "nowhere" / "a", 4)
    with pytest.raises(InvalidValue, match="existing store"):
        MemoryStore.open(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()


def test_a_dangling_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(InvalidValue):
        MemoryStore.open(tmp_path / "link", 4)
    assert not (tmp_path / "target").exists()


# ---- what is no store, or another's --------------------------------------------------------------


def refused(path: Path, section: str) -> None:
    before = path.read_bytes()
    for dim in (4, None):
        with pytest.raises(CorruptStore) as caught:
            MemoryStore.open(path, dim)
        assert caught.value.section == section
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("data", [b"x", b"hello" * 999, b"SQLite format 3\0" + b"\xff" * 5000])
def test_what_is_no_database_is_refused(path: Path, data: bytes) -> None:
    os.close(os.open(path, os.O_CREAT, 0o600))
    path.write_bytes(data)
    refused(path, "database")


@pytest.mark.parametrize(
    ("statement", "section"),
    [
        ("PRAGMA application_id = 0", "header"),
        ("PRAGMA application_id = 7", "header"),
        ("PRAGMA user_version = 4", "header"),
        ("PRAGMA user_version = 0", "header"),
        ("PRAGMA user_version = -1", "header"),
        ("CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM audit; END", "schema"),
        ("CREATE VIEW v AS SELECT * FROM entry", "schema"),
        ("CREATE TABLE foreign_one (x)", "schema"),
        ("CREATE INDEX i ON entry (row)", "schema"),
        ("DROP TABLE change", "schema"),
        ("ALTER TABLE note ADD COLUMN more", "schema"),
    ],
)
def test_a_file_that_is_not_ours_to_the_letter_is_refused(
    path: Path, statement: str, section: str
) -> None:
    filled(path).close()
    db = sqlite3.connect(path)
    db.execute(statement)
    db.commit()
    db.close()
    refused(path, section)


def test_another_programs_database_is_refused(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT, 0o600))
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs (x)")
    db.close()
    refused(path, "header")


# ---- opening with other settings -----------------------------------------------------------------


def test_another_dimension_is_refused_with_both_named(path: Path) -> None:
    filled(path).close()
    with pytest.raises(DimensionMismatch, match=r"dim must be 4.*got 5"):
        MemoryStore.open(path, 5)
    with pytest.raises(InvalidValue, match="dim must be given"):
        MemoryStore.open(path, namespace="new")
    assert len(MemoryStore.open(path)) == 4


def test_a_smaller_budget_holds_at_once_and_for_every_handle(path: Path) -> None:
    one = filled(path, budget=4)
    two = MemoryStore.open(path, budget=2)
    assert len(two) == len(one) == 2
    assert one.budget == two.budget == Budget(2)
    one.close()
    two.close()
    with MemoryStore.open(path) as again:
        assert again.budget == Budget(2)


def test_a_budget_that_the_pins_exceed_changes_nothing(path: Path) -> None:
    """It was written to the file all the same, and the store could not be opened any more."""
    with filled(path, budget=10) as store:
        store.pin(range(4))
    with pytest.raises(BudgetExceeded):
        MemoryStore.open(path, budget=2, policy=LruPolicy())
    with MemoryStore.open(path) as store:
        assert (store.budget, len(store)) == (Budget(10), 4)
        assert store.policy != LruPolicy()


def test_another_policy_is_adopted_by_handles_that_are_open(path: Path) -> None:
    one = filled(path, policy=LruPolicy())
    two = MemoryStore.open(path, policy=LfuPolicy())
    assert len(one) == 4
    assert one.policy == LfuPolicy()
    one.close()
    two.close()


class Stranger:
    name = "stranger"

    def select_survivors(self, view: Any, size: int, context_window: Any = None) -> Any:
        return np.arange(size)


def test_a_strangers_policy_is_remembered_by_name_and_not_forgotten_by_others(path: Path) -> None:
    """Another handle wrote an empty name in its place, and both read everything anew at each call."""
    one = filled(path, policy=Stranger(), budget=10)
    two = MemoryStore.open(path)
    for store in (one, two, one, two):
        table = store._memory.table
        store.add([1, 0, 0, 1])
        assert store._memory.table is table, "everything was read anew"
    assert isinstance(one.policy, Stranger)
    assert b'"stranger"' in one._db.execute("SELECT config FROM namespace").fetchone()[0].encode()
    one.close()
    two.close()


# ---- processes and threads -----------------------------------------------------------------------


def in_a_fork(work: Any, seconds: float = 2.0) -> str:
    """What `work()` says in a forked child; it must say it within two seconds."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = str(work())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(theirs, said.encode())
        os._exit(0)
    os.close(theirs)
    until = time.monotonic() + seconds
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            os.close(ours)
            return "it hangs"
        time.sleep(0.01)
    with os.fdopen(ours) as stream:
        return stream.read()


CALLS = {
    "search": lambda s: s.search(EYE[0]),
    "add": lambda s: s.add(EYE[0]),
    "plan": lambda s: s.plan(1),
    "flush": lambda s: s.flush(),
    "erase": lambda s: s.erase([0]),
    "restore": lambda s: s.restore([0]),
    "archived": lambda s: s.archived(),
    "verify": lambda s: s.verify(),
    "audit.verify": lambda s: s.audit.verify(),
    "audit.head": lambda s: s.audit.head(),
    "len": len,
    "stats": lambda s: s.stats(),
}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("held", [False, True], ids=["free", "lock held by another thread"])
@pytest.mark.parametrize("name", CALLS)
def test_a_forked_child_is_told_to_reopen(path: Path, name: str, held: bool) -> None:
    """plan, flush, erase, close and the audit log took the lock before they looked: the child hung for ever."""
    with filled(path) as store:
        holding, over = threading.Event(), threading.Event()

        def hold() -> None:
            with store._lock:
                holding.set()
                over.wait(20)

        thread = threading.Thread(target=hold)
        if held:
            thread.start()
            holding.wait(5)
        try:
            assert in_a_fork(lambda: CALLS[name](store)).startswith(ForkedStore.__name__)
            assert in_a_fork(store.close) == "None"
        finally:
            over.set()
            if held:
                thread.join()
        assert store.add(EYE[0]) == 4
        assert store.verify().ok


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_that_reopens_writes_beside_its_parent(path: Path) -> None:
    def child() -> int:
        with MemoryStore.open(path) as own:
            return own.add(EYE[1])

    with filled(path) as store:
        assert in_a_fork(child, 10) == "4"
        assert len(store) == 5
        assert store.add(EYE[0]) == 5


def test_another_program_opens_it_while_it_is_open(path: Path) -> None:
    code = "import sys; from memsift import MemoryStore; s = MemoryStore.open(sys.argv[1]); print(s.add([1, 0, 0, 0]))"
    with filled(path) as store:
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True
        )
        assert done.stdout == "4\n", done.stderr
        assert 4 in store


@pytest.mark.parametrize("name", CALLS)
def test_a_closed_store_says_so(path: Path, name: str) -> None:
    """Writing gave SQLite's own error, the audit log called the file corrupt."""
    store = filled(path)
    store.close()
    store.close()
    if name == "flush":
        CALLS[name](store)  # nothing waits
        return
    with pytest.raises(ClosedStore):
        CALLS[name](store)


def test_a_busy_file_is_waited_for_and_then_given_up(path: Path) -> None:
    with filled(path, busy_timeout=0.2) as store:
        before = dump(store)
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        calls = [CALLS[name] for name in ("add", "erase", "restore")]
        for call in [*calls, lambda s: s.compact(1), lambda s: s.pin(0)]:
            began = time.monotonic()
            with pytest.raises(StoreBusy):
                call(store)
            assert 0.15 < time.monotonic() - began < 5
        assert store.search(EYE[0], 1, touch=False)[0].id == 0
        with pytest.raises(StoreBusy):
            MemoryStore.open(path, busy_timeout=0.1)
        blocker.execute("ROLLBACK")
        blocker.close()
        assert dump(store) == before
        assert store.add(EYE[0]) == 4


def test_a_writer_that_finishes_in_time_is_waited_for(path: Path) -> None:
    with filled(path) as store:
        blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        blocker.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.3, lambda: blocker.execute("ROLLBACK"))
        timer.start()
        assert store.add(EYE[0]) == 4
        timer.join()
        blocker.close()


def test_threads_share_one_store(path: Path) -> None:
    with filled(path, budget=50) as store:
        errors: list[BaseException] = []
        ids: list[int] = []

        def work(seed: int) -> None:
            rng = np.random.default_rng(seed)
            try:
                for _ in range(60):
                    ids.append(store.add(rng.normal(size=4)))
                    store.search(rng.normal(size=4), 3)
                    assert len(store) <= 50
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert len(set(ids)) == 240
        assert store.verify().ok
        before = dump_flushed(store)
    with MemoryStore.open(path) as again:
        assert dump(again) == before


def dump_flushed(store: Any) -> Any:
    store.flush()
    return dump(store)


def test_many_openings_leave_nothing_behind(path: Path) -> None:
    """Handles and threads stay constant."""
    filled(path).close()

    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc")
    before = held()
    for _ in range(20):
        with MemoryStore.open(path, touch_flush_seconds=0.01) as store:
            store.search(EYE[0])
    with pytest.raises(MemsiftError):
        MemoryStore.open(path, 7)
    time.sleep(0.05)
    assert held() == before
