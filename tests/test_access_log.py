"""The access log: what goes in comes out, it stays within its limit, and bad bytes are refused by name."""

from __future__ import annotations

import io
import os
import sqlite3
import stat
import weakref
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsift.accesslog import ADD, NEED, QUERY, USE, AccessLog
from memsift.accesslog.events import SMALLEST, kept_within
from memsift.accesslog.file import ARRAYS
from memsift.errors import CorruptStore, InvalidType, InvalidValue
from memsift.evaluation.readers import read_log
from memsift.evaluation.replay import grid
from memsift.policies import LruPolicy
from memsift.storage.logbook import Logbook, pack, read_log_of, unpack
from memsift.storage.schema import TABLES
from memsift.store import MemoryStore

DIM = 4
A, B, C, D = np.eye(DIM, dtype=np.float32)


def plain(log: AccessLog) -> list:
    """Everything that a log says, in values that compare."""
    return [
        [*e[:2], e.ids.tolist(), np.array(e.vector).tobytes(), *e[4:8], e.groups.tolist()]
        for e in log.events
    ]


def filled(steps: list[tuple], dim: int = DIM) -> AccessLog:
    """A log of (what, number) steps; directions come from the numbers."""
    log, next_id = AccessLog(dim), 0
    for at, (what, number) in enumerate(steps):
        vector = np.random.default_rng(number).standard_normal(dim)
        some = np.arange(0, next_id, 1 + number % 3)
        if what == "add":
            next_id += number % 3
            log.add([next_id], [vector], [number], float(at))
            next_id += 1
        elif what == "query":
            log.query(
                vector, some[::-1], 1 + number, number % 7, float(at), filtered=number % 2 == 1
            )
        elif what == "use":
            log.use(some, float(at), direct=number % 2 == 1)
        elif log.count(QUERY):
            log.need(some, None if number % 2 else some % 5)
    return log


def small() -> AccessLog:
    return filled(
        [("add", 1), ("add", 5), ("query", 2), ("need", 4), ("add", 9), ("query", 3), ("use", 0)]
    )


lives = st.lists(
    st.tuples(st.sampled_from(["add", "query", "use", "need"]), st.integers(0, 50)), max_size=30
)


# ---- there and back --------------------------------------------------------------------------


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lives)
def test_a_saved_log_is_the_log(tmp_path, steps):
    log = filled(steps)
    log.save(tmp_path / "log.npz")
    again = AccessLog.load(tmp_path / "log.npz")
    assert plain(again) == plain(log)
    assert (again.dim, again.score_from, again.nbytes) == (log.dim, log.score_from, log.nbytes)


@settings(deadline=None)
@given(lives)
def test_rows_of_a_file_are_the_log(steps):
    log, book = filled(steps), in_file()
    book.append(log.events)
    assert plain(book.read()) == plain(log)


def test_a_saved_log_is_its_owner_s_alone_and_no_link_is_followed(tmp_path):
    path, link = tmp_path / "log.npz", tmp_path / "link.npz"
    small().save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    link.symlink_to(path)
    with pytest.raises(InvalidValue, match="regular file"):
        small().save(link)
    with pytest.raises(CorruptStore, match="symbolic link"):
        AccessLog.load(link)
    with pytest.raises(InvalidValue, match="folder that exists"):
        small().save(tmp_path / "no" / "log.npz")
    with pytest.raises(InvalidValue, match="No such file"):
        AccessLog.load(tmp_path / "none.npz")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.npz", "log.npz"]


def test_vectors_are_kept_bit_for_bit_and_nobody_else_s():
    mine = np.array([[0.6, 0.8, 0, 0]], np.float32)
    log = AccessLog(DIM)
    log.add([0], mine, [1], 0.0)
    mine[:] = 7
    assert log.events[0].vector.tobytes() == np.array([0.6, 0.8, 0, 0], np.float32).tobytes()


# ---- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda log: log.add([3], [A], [1], 0.0), InvalidValue, "ascend"),
        (lambda log: log.add([9], [A, B], [1], 0.0), InvalidValue, "equally many"),
        (lambda log: log.add([9], [A], [-1], 0.0), InvalidValue, "cost"),
        (lambda log: log.add([9], [A[:3]], [1], 0.0), InvalidValue, "4 dimensions"),
        (lambda log: log.query(A, [0], 0, 5, 0.0), InvalidValue, "k must be"),
        (lambda log: log.query(A, [0], 10, -1, 0.0), InvalidValue, "touch must be"),
        (lambda log: log.use([-1], 0.0), InvalidValue, "ids"),
        (lambda log: log.use([0], float("nan")), InvalidValue, "at must be"),
        (lambda log: log.need([0]), InvalidValue, "must follow the query"),
        (lambda log: AccessLog(4, limit=10), InvalidValue, "limit must be"),
        (lambda log: AccessLog(4, score_from=1.0), InvalidValue, "score_from"),
        (lambda log: AccessLog("4"), InvalidType, "dim"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(call, error, words):
    log = AccessLog(DIM)
    log.add([5], [A], [1], 0.0)
    with pytest.raises(error, match=words):
        call(log)
    assert len(log) == 1


def rewritten(tmp_path: Path, **changed) -> Path:
    path = tmp_path / "bad.npz"
    small().save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    np.savez(path, **{k: v for k, v in (arrays | changed).items() if v is not None})
    return path


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"version": np.array([9])}, "version must be 1"),
        ({"score_from": np.array([1.5])}, "score_from"),
        ({"kind": np.array([1, 1, 2, 4, 1, 2, 9], np.uint8)}, "kind must be"),
        ({"kind": np.array([1, 1, 2, 4, 1, 2, 3], np.int64)}, "kind must be |u1"),
        ({"kind": None}, "must hold version, score_from, kind"),
        ({"extra": np.zeros(1)}, "differs at extra"),
        ({"at": np.zeros(3)}, "at must hold 7"),
        ({"at": np.full(7, np.nan)}, "at must be"),
        ({"size": np.full(7, 2**62)}, "size must add up"),
        ({"ids": np.array([2**40])}, "size must add up"),
        ({"groups": np.zeros(9, np.int64)}, "groups must hold one"),
        ({"vectors": np.zeros((5, 4), np.float32)}, "length one"),
        ({"vectors": np.full((5, 4), np.nan, np.float32)}, "length one"),
        ({"vectors": np.zeros((2, 4), np.float32)}, "vectors must hold 5"),
        ({"vectors": np.zeros((5, 4))}, "vectors must be <f4"),
        ({"vectors": np.zeros((5, 0), np.float32)}, "dim must be"),
        ({"cost": np.full(7, -3)}, "cost must be"),
        ({"kind": np.array([object()] * 7)}, "kind"),
    ],
)
def test_an_array_that_is_not_as_it_should_be_is_named(tmp_path, changed, words):
    with pytest.raises(CorruptStore) as caught:
        AccessLog.load(rewritten(tmp_path, **changed))
    assert words in str(caught.value)
    assert caught.value.section == "log"


def test_a_header_that_promises_too_much_allocates_nothing(tmp_path):
    path = tmp_path / "log.npz"
    small().save(path)
    liar = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        liar, {"descr": "<f4", "fortran_order": False, "shape": (2**40, 2**20)}
    )
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, raw in members.items():
            archive.writestr(name, liar.getvalue() if name == "vectors.npy" else raw)
    with pytest.raises(CorruptStore, match="vectors must hold what its shape"):
        AccessLog.load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)
    with pytest.raises(CorruptStore, match="without compression"):
        AccessLog.load(path)


def test_bad_bytes_are_refused_or_change_nothing(tmp_path):
    path = tmp_path / "log.npz"
    log = small()
    log.save(path)
    good, said = path.read_bytes(), plain(log)
    assert len(ARRAYS) == 12
    refused = 0
    for place in range(0, len(good), 3):
        bad = bytearray(good)
        bad[place] ^= 1 << place % 8
        path.write_bytes(bad)
        try:
            assert plain(AccessLog.load(path)) == said
        except CorruptStore:
            refused += 1
    assert refused > len(good) / 6
    for length in range(0, len(good), 97):
        path.write_bytes(good[:length])
        with pytest.raises(CorruptStore):
            AccessLog.load(path)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_a_row_of_any_bytes_is_refused(raw):
    with pytest.raises(CorruptStore):
        unpack(raw, DIM)


def test_a_row_with_a_flipped_bit_is_refused():
    for event in small().events:
        row = pack(event)
        for place in range(8 * len(row)):
            bad = bytearray(row)
            bad[place // 8] ^= 1 << place % 8
            with pytest.raises(CorruptStore, match="sum must fit"):
                unpack(bytes(bad), DIM)


# ---- bounded ---------------------------------------------------------------------------------


def long_life(log, n: int, dim: int) -> None:
    chance = np.random.default_rng(0)
    for i in range(n):
        vector = chance.standard_normal(dim).astype(np.float32)
        vector /= np.linalg.norm(vector)
        log.add(np.array([i]), vector[None], np.array([1]), float(i))
        log.query(vector, np.array([i, i // 2]), 10, 5, float(i))
        if isinstance(log, Logbook):
            log.flush()
            log.written()
        log.use(np.array([i // 2]), float(i))


@pytest.mark.parametrize("kind", ["ram", "file"])
@pytest.mark.parametrize("held", [0, 200, 100_000])
def test_a_full_log_lets_the_oldest_go_and_is_a_trace_still(kind, held):
    dim, n = 256, 1200

    def holds(ids):
        return ids < held

    log = AccessLog(dim, SMALLEST, holds=holds) if kind == "ram" else in_file(dim, SMALLEST, holds)
    long_life(log, n, dim)
    if kind == "file":
        size = log._db.execute("SELECT sum(length(row)) FROM log").fetchone()[0]
        log = log.read()
    else:
        size = log.nbytes
        assert size == sum(event.nbytes for event in log.events)
    assert SMALLEST / 2 < size <= SMALLEST
    ids = [int(e.ids[0]) for e in log.events if e.kind == ADD]
    assert ids == sorted(ids)
    assert ids[-1] == n - 1
    # What the store still holds outlives the rest; if that is too much, the newest of it.
    window = [i for i in ids if i >= held]
    assert window == list(range(n - len(window), n))
    assert ids[0] == (0 if held == 200 else n - len(ids))
    trace = read_log(log)
    cells = list(grid(trace, [LruPolicy()], [0.5], variant="log"))
    assert cells[0].queries > 100
    assert all(0.0 <= cell.recall <= 1.0 for cell in cells)


@given(
    st.lists(st.tuples(st.integers(1, 50), st.booleans()), min_size=1, max_size=60),
    st.integers(200, 500),  # no event is larger than a quarter of a log
)
def test_what_is_kept_is_what_is_held_and_a_newest_part(events, limit):
    sizes, held = (np.array(column) for column in zip(*events, strict=True))
    keep = kept_within(limit, sizes, held)
    assert sizes[keep].sum() <= limit - limit // 8
    cut = int(np.flatnonzero(~keep)[-1]) + 1 if not keep.all() else 0
    assert held[:cut][keep[:cut]].all()
    assert keep.any()


def test_a_recording_begins_with_what_is_there():
    for log in (AccessLog(DIM), in_file()):
        log.begin(np.array([7, 3]), np.array([B, A]), np.array([1, 2]), np.array([20.0, 10.0]))
        log.begin(np.array([3, 9, 7]), np.array([A, C, B]), np.array([2, 3, 1]), np.zeros(3))
        found = log.read() if isinstance(log, Logbook) else log
        assert [(e.ids[0], e.cost) for e in found.events] == [(3, 2), (7, 1), (9, 3)]


# ---- erasing ---------------------------------------------------------------------------------


def erasable(log) -> None:
    for i, vector in enumerate((A, B, C)):
        log.add(np.array([i]), vector[None], np.array([1]), 0.0)
    log.query(A, np.array([1]), 1, 1, 1.0)  # as good as A, whose id it does not name
    log.query(D, np.array([2, 0]), 2, 1, 2.0)  # names A
    log.query(C, np.array([2]), 1, 1, 3.0)
    if isinstance(log, Logbook):
        log.flush()
        log.written()
    log.use(np.array([0, 2]), 4.0)
    log.use(np.array([2]), 5.0)


@pytest.mark.parametrize("kind", ["ram", "file"])
def test_erasing_leaves_no_trace_of_an_entry(kind):
    log = AccessLog(DIM) if kind == "ram" else in_file()
    erasable(log)
    gone = log.erase(np.array([0]), np.empty((0, DIM), np.float32))
    left = log if kind == "ram" else log.read()
    assert gone == 4
    assert [(e.kind, e.ids.tolist()) for e in left.events] == [
        (ADD, [1]),
        (ADD, [2]),
        (QUERY, [2]),
        (USE, [2]),
    ]
    assert all(not np.array_equal(e.vector, A) for e in left.events)
    # By its vector alone.
    log.erase(np.empty(0, np.int64), C[None])
    assert QUERY not in {e.kind for e in (log if kind == "ram" else log.read()).events}


def test_what_was_said_of_an_erased_query_goes_with_it():
    log = AccessLog(DIM)
    log.add([0, 1], [A, B], [1, 1], 0.0)
    log.query(B, [1], 1, 1, 1.0)
    log.query(A, [0], 1, 1, 1.0)
    log.need([1])
    log.use([1], 2.0, direct=True)
    log.erase([0])
    assert [e.kind for e in log.events] == [ADD, QUERY]


def test_a_row_that_cannot_be_read_is_erased_too():
    book = in_file()
    erasable(book)
    book._db.execute("UPDATE log SET row = x'00' WHERE seq = (SELECT max(seq) FROM log)")
    with pytest.raises(CorruptStore):
        book.read()
    book.erase(np.array([0]), A[None])
    assert book.read().count(QUERY) == 1
    book.clear()
    assert len(book.read()) == 0


# ---- in a store's file -----------------------------------------------------------------------


def in_file(dim: int = DIM, limit: int = SMALLEST, holds=None) -> Logbook:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute(TABLES["log"])
    return Logbook(db, 1, dim, limit, holds)


def test_queries_wait_until_the_transaction_that_wrote_them_is_true():
    book = in_file()
    book.query(A, np.array([0]), 10, 5, 1.0)
    book._db.execute("BEGIN")
    book.flush()
    book._db.execute("ROLLBACK")
    assert (book.waiting, len(book.read())) == (1, 0)
    book._db.execute("BEGIN")
    book.flush()
    book.use(np.array([0]), 2.0)
    book._db.execute("COMMIT")
    book.written()
    assert (book.waiting, [e.kind for e in book.read().events]) == (0, [QUERY, USE])


def test_a_rolled_back_trim_does_not_lift_the_limit():
    book = in_file(256)
    long_life(book, 600, 256)
    book._db.execute("BEGIN")
    book.flush()
    for i in range(600, 700):
        book.add(np.array([i]), np.eye(1, 256, dtype=np.float32), np.array([1]), 0.0)
    book._db.execute("ROLLBACK")
    for i in range(600, 1600):
        book.flush()
        book.add(np.array([i]), np.eye(1, 256, dtype=np.float32), np.array([1]), 0.0)
        book.written()
        assert book._db.execute("SELECT sum(length(row)) FROM log").fetchone()[0] <= SMALLEST


def test_the_log_of_a_store_s_file_is_read_without_opening_the_store(tmp_path):
    path = tmp_path / "agent.memsift"
    with MemoryStore.open(path, dim=DIM, budget=7) as store:
        live(store)
    log, config = read_log_of(path, "default")
    assert log.count(QUERY) == 2
    assert config.budget.limits["entries"] == 7
    with pytest.raises(InvalidValue, match="dim must be given"):
        read_log_of(path, "other")


# ---- told by a store -------------------------------------------------------------------------


def live(store: MemoryStore, log: AccessLog | bool = True, vectors=(A, B, C, D)) -> None:
    """Something is there, a recording begins, and everything that is written down happens, and some that is not."""
    A, B, C, D = vectors
    store.add_many([A, B], cost=[2, 3], metadata=[{"n": 1}, {"n": 2}])
    store.record(log)
    store.add(C, cost=5)
    store.search(A, 2, touch=1)
    store.search(A, 2, touch=False)  # leaves no trace
    store.search(B, 1, where={"n": 2})
    store.feedback([1, 0])
    store.feedback([2], used=False)
    store.pin(0)
    with pytest.raises(InvalidValue):
        store.add_many([D, np.zeros(DIM)])


def said(log: AccessLog) -> list:
    return [(e.kind, e.ids.tolist(), e.cost, e.k, e.touch, e.flag) for e in log.events]


TOLD = [
    (ADD, [0], 2, 0, 0, False),
    (ADD, [1], 3, 0, 0, False),
    (ADD, [2], 5, 0, 0, False),
    (QUERY, [0, 1], 0, 2, 1, False),
    (QUERY, [1], 0, 1, 1, True),
    (USE, [0, 1], 0, 0, 0, False),
]


def test_a_store_in_ram_tells_what_it_was_told_and_asked():
    store, log = MemoryStore(DIM), AccessLog(DIM)
    live(store, log)
    assert said(log) == TOLD
    store.record(None)
    store.add(D)
    assert said(log) == TOLD
    with pytest.raises(InvalidValue, match="dim"):
        store.record(AccessLog(3))


def test_a_store_in_a_file_tells_it_and_goes_on_in_another_process(tmp_path):
    path = tmp_path / "agent.memsift"
    with MemoryStore.open(path, dim=DIM) as store:
        live(store)
        store.flush()
        assert said(store.access_log()) == TOLD
        store.search(C, 1)  # waits, and is written when the store is closed
    with MemoryStore.open(path) as store:
        store.add(D)  # nobody has asked for a recording yet
        store.record()
        store.feedback([3])
        more = [
            (QUERY, [2], 0, 1, 1, False),
            (ADD, [3], 1, 0, 0, False),
            (USE, [3], 0, 0, 0, False),
        ]
        assert said(store.access_log()) == TOLD + more
        store.record(False)
        store.search(A, 1)
    assert said(read_log_of(path, "default")[0]) == TOLD + more


def test_erasing_from_a_store_erases_from_its_log(tmp_path):
    path = tmp_path / "agent.memsift"
    directions = np.linalg.qr(np.random.default_rng(0).standard_normal((DIM, DIM)))[0]
    vectors = directions.astype(np.float32)
    with MemoryStore.open(path, dim=DIM) as store:
        live(store, vectors=vectors)
        store.search(vectors[0], 1)
        store.flush()
        stored = store.access_log().events[0].vector.tobytes()
        store.erase([0])
        log = store.access_log()
        assert [(e.kind, e.ids.tolist()) for e in log.events] == [
            (ADD, [1]),
            (ADD, [2]),
            (QUERY, [1]),
        ]
    assert stored not in path.read_bytes()


def test_what_a_failed_call_would_have_added_is_not_in_the_log(tmp_path):
    class Broken(LruPolicy):
        def terms(self, view):
            raise RuntimeError("no")

    path = tmp_path / "agent.memsift"
    stores = [
        (MemoryStore(DIM, 2, Broken()), AccessLog(DIM)),
        (MemoryStore.open(path, dim=DIM, budget=2, policy=Broken()), True),
    ]
    for store, log in stores:
        store.record(log)
        store.add_many([A, B])
        store.search(A, 1)
        with pytest.raises(RuntimeError):
            store.add(C)
        found = log if isinstance(log, AccessLog) else store.access_log()
        assert [e.kind for e in found.events][:2] == [ADD, ADD]
        assert [int(e.ids[0]) for e in found.events if e.kind == ADD] == [0, 1]
        store.feedback([0])
        found = log if isinstance(log, AccessLog) else store.access_log()
        assert [e.kind for e in found.events] == [ADD, ADD, QUERY, USE]
        store.close()


@pytest.mark.parametrize("kind", ["ram", "file"])
def test_a_full_log_keeps_what_its_store_still_holds(tmp_path, kind):
    dim = 512
    log = AccessLog(dim, limit=SMALLEST)
    path = tmp_path / "a.memsift"
    store = MemoryStore(dim, 20) if kind == "ram" else MemoryStore.open(path, dim, budget=20)
    store.record(log if kind == "ram" else True)
    if kind == "file":
        store._memory.log.limit = SMALLEST
    ids = store.add_many(np.eye(10, dim), pinned=True)
    for vector in np.random.default_rng(0).standard_normal((400, dim)):
        store.add(vector)
        store.search(vector, 1)
    found = log if kind == "ram" else store.access_log()
    known = [int(e.ids[0]) for e in found.events if e.kind == ADD]
    assert known[:10] == ids.tolist()
    assert known[10] > 100
    store.close()


@pytest.mark.parametrize("kind", ["ram", "file"])
def test_a_log_does_not_keep_its_store_alive(tmp_path, kind):
    log = AccessLog(DIM)
    store = MemoryStore(DIM) if kind == "ram" else MemoryStore.open(tmp_path / "a.memsift", DIM)
    store.record(log if kind == "ram" else True)
    store.add(A)
    gone = weakref.ref(store)
    del store
    assert gone() is None
    log.query(A, [0], 1, 1, 0.0)  # nobody answers for the store, and nobody needs to


# ---- as a trace ------------------------------------------------------------------------------


def test_uses_are_needs_of_the_query_that_returned_them_and_feedback_of_the_last():
    log = AccessLog(DIM)
    log.add([4, 6, 8], [A, B, C], [1, 2, 3], 10.0)
    log.query(A, [4, 6], 2, 2, 11.0)
    log.query(B, [6], 1, 1, 12.0)
    log.use([4, 8, 99], 13.0)  # 8 was returned by none, 99 is not in the log
    stream = read_log(log).streams[0]
    assert [stream.need.of(i).tolist() for i in (0, 1)] == [[0], []]
    assert [stream.used.of(i).tolist() for i in (0, 1)] == [[], [0, 2]]
    assert stream.cost.tolist() == [1, 2, 3]
    assert stream.created_at.tolist() == [10.0] * 3


def test_without_uses_the_exact_nearest_are_needed_and_copies_are_as_good():
    log = AccessLog(DIM)
    log.add([0, 1, 2, 3], [A, B, A, C], [1] * 4, 0.0)
    log.query(A, [1], 1, 1, 1.0)  # a smaller store had lost both copies
    log.query(A, [1], 1, 1, 1.0, filtered=True)
    trace = read_log(log)
    stream = trace.streams[0]
    assert trace.need == "coverage"
    assert stream.need.of(0).tolist() == [0, 2, 1, 3]
    assert stream.need.groups_of(0).tolist() == [0, 0, 1, 2]
    assert stream.exact.of(0).tolist() == [0, 2, 1, 3]
    assert stream.need.of(1).size == 0  # nobody knows what the filter let through
    cell = next(grid(trace, [], [], variant="log"))
    assert (cell.recall, cell.fidelity) == (1.0, 1.0)


def test_labels_from_outside_count_alone():
    log = AccessLog(DIM, score_from=0.0)
    log.add([0, 1, 2], [A, B, C], [1] * 3, 0.0)
    log.query(A, [0], 1, 1, 1.0)
    log.need([0, 1], [3, 3])
    log.need([2])
    log.use([0], 2.0)
    trace = read_log(log, "mine")
    stream = trace.streams[0]
    assert (trace.name, trace.need, trace.score_from) == ("mine", "coverage", 0.0)
    assert stream.need.groups_of(0).tolist() == [0, 0, 1]
    assert stream.used.of(0).tolist() == [0]
    assert stream.exact is None


def test_a_log_without_queries_is_no_trace():
    log = AccessLog(DIM)
    log.add([0], [A], [1], 0.0)
    with pytest.raises(InvalidValue, match="memories and queries to be replayed; got 1 and 0"):
        read_log(log)


def test_a_full_disk_leaves_the_old_log(tmp_path, monkeypatch):
    path = tmp_path / "log.npz"
    small().save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        filled([("add", 3)]).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["log.npz"]


def test_needs_are_told_apart():
    assert {e.kind for e in small().events} == {ADD, QUERY, USE, NEED}
