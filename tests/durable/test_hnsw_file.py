"""The graph beside a durable store: used again if it is whole, ours and in time; else not believed."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crash.scan import canary, scan, secret, spellings

from memsift import CoherencePolicy, FifoPolicy, MemoryStore
from memsift.durable import DurableStore
from memsift.errors import MissingExtra
from memsift.index.hnsw import build, graph, saved, search

pytest.importorskip("usearch", reason="needs memsift[ann]")

DIM = 32
N = 400


@pytest.fixture(autouse=True)
def small_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph from a hundred entries on, for which the search need not be worth it, and saved at once."""
    monkeypatch.setattr(search, "SMALLEST", 100)
    monkeypatch.setattr(search, "LULL_SECONDS", 0.0)
    monkeypatch.setattr(search, "SHARE", 0)
    monkeypatch.setattr(search, "SCANNED_FLOATS", 0)
    monkeypatch.setattr(build, "TAIL", 1)
    monkeypatch.setattr(search, "TAIL", 1)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the graphs that were built from scratch."""
    sizes: list[int] = []
    begun = build.Build.__init__

    def counted(self: Any, table: Any, epoch: int) -> None:
        sizes.append(len(table))
        begun(self, table, epoch)

    monkeypatch.setattr(build.Build, "__init__", counted)
    return sizes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.memsift"


def opened(path: Path, **options: Any) -> DurableStore:
    options = {"policy": FifoPolicy(), "touch_flush_seconds": 1000.0, "index": "hnsw"} | options
    return MemoryStore.open(path, DIM, **options)


def rows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, DIM))


def companion(path: Path, namespace: str = "default") -> Path:
    return path.with_name(f"{path.name}.{namespace}.hnsw")


def made(path: Path, n: int = N, **options: Any) -> None:
    """A store with a graph beside it."""
    with opened(path, **options) as store:
        store.add_many(rows(n))
        assert store.wait_for_index()
        assert store.stats().index.graph == n
    assert companion(path, options.get("namespace", "default")).exists()


def check(store: MemoryStore, seed: int = 9) -> None:
    """By the graph, every search finds true hits and nearly all."""
    assert store.wait_for_index()
    state = store.stats(probe=True).index
    assert (state.kind, state.error, state.scanned) == ("hnsw", None, 0)
    assert state.graph - state.dead == len(store)
    assert state.recall >= 0.97
    view = store.view()
    for row in rows(10, seed):
        unit = (row / np.linalg.norm(row)).astype(np.float32).astype(np.float64)
        truth = dict(zip(view.ids.tolist(), view.vectors.astype(np.float64) @ unit, strict=True))
        for hit in store.search(row, touch=False):
            assert abs(hit.score - truth[hit.id]) < 1e-6


# ---- used again ----------------------------------------------------------------------------------


def test_a_graph_is_saved_on_close_and_used_again(path: Path, built: list[int]) -> None:
    made(path)
    assert built == [N]
    assert stat.S_IMODE(companion(path).stat().st_mode) == 0o600
    with opened(path) as store:
        check(store)
        assert store.verify().ok
    assert built == [N], "it was built again"
    assert sorted(p.name for p in path.parent.iterdir()) == ["a.memsift", "a.memsift.default.hnsw"]


def test_it_is_saved_after_a_rebuild_as_well(path: Path, built: list[int]) -> None:
    """A process that is killed later loses nothing of it."""
    with opened(path) as store:
        store.add_many(rows(N))
        assert store.wait_for_index()
        first = companion(path).read_bytes()
        store.delete(store.view().ids[::2])
        assert store.wait_for_index()
        second = companion(path).read_bytes()
        assert len(second) < len(first)
        copy = path.parent / "elsewhere"
        copy.mkdir()
        for file in path.parent.glob("a.memsift*"):
            shutil.copy(file, copy / file.name)
    assert built == [N, N // 2]
    with opened(copy / path.name) as store:
        check(store)
    assert built == [N, N // 2]


def test_it_catches_up_with_what_happened_without_it(path: Path, built: list[int]) -> None:
    """Additions, deletions, evictions, restorations and changed vectors by a process that did not look at it."""
    made(path)
    fresh, other = rows(30, 1), rows(1, 2)[0]
    with opened(path) as store:
        store.add_many(fresh)
        store.delete([3, 4, 5])
        store.update(7, vector=other)
        store.update(8, metadata={"only": "metadata"})
        gone = store.compact(N).dropped
        store.restore(gone[:5])
    with opened(path) as store:
        check(store)
        assert built == [N]
        for number, row in enumerate(fresh):
            assert store.search(row, 1)[0].id == N + number
        assert store.search(other, 1)[0].id == 7
        everything = {hit.id for row in rows(20, 5) for hit in store.search(row, 200)}
        assert not everything & {3, 4, 5, *gone[5:].tolist()}
        assert set(gone[:5].tolist()) <= {hit.id for hit in store.search(rows(1, 5)[0], 10_000)}


def test_two_processes_share_it(path: Path, built: list[int]) -> None:
    made(path)
    with opened(path) as one, opened(path) as two:
        check(one)
        check(two)
        id_ = one.add(rows(1, 6)[0])
        assert two.search(rows(1, 6)[0], 1)[0].id == id_
        two.delete(id_)
        assert one.search(rows(1, 6)[0], 1)[0].id != id_
        check(one)
        check(two)
    assert built == [N]


def test_a_memory_that_is_read_anew_keeps_its_graph(path: Path, built: list[int]) -> None:
    """Another process changed the budget: everything is read again, and the entries are the same."""
    made(path)
    with opened(path) as store:
        check(store)
        with opened(path, budget=10 * N) as other:
            other.add_many(rows(20, 3))
            other.delete([1, 2])
        assert len(store) == N + 18
        assert store.budget.entries == 10 * N
        check(store)
        assert store.stats().index.dead == 2
    assert built == [N]


def test_namespaces_have_graphs_of_their_own(path: Path, built: list[int]) -> None:
    made(path)
    made(path, 150, namespace="other.one")
    assert companion(path).exists()
    with opened(path) as store, opened(path, namespace="other.one") as other:
        check(store)
        check(other)
    assert built == [N, 150]


def test_few_changes_are_not_worth_a_file(path: Path) -> None:
    """A thousand bytes in, a whole file out: the next opening catches up instead."""
    made(path)
    before = companion(path).stat()
    with opened(path) as store:
        assert store.wait_for_index()
        store.add_many(rows(3, 1))
        assert store.wait_for_index()
    assert companion(path).stat().st_ino == before.st_ino
    with opened(path) as store:
        check(store)
        store.add_many(rows(10, 2))
        check(store)
    assert companion(path).stat().st_ino != before.st_ino


def test_the_coherence_of_a_durable_store_is_right_in_any_mode(path: Path) -> None:
    """Searches by the graph and by scan, in two processes, with evictions, restorations and openings in between."""
    rng = np.random.default_rng(0)
    kinds = set()
    store = opened(path, policy=CoherencePolicy(window=8), budget=300, low_watermark=0.8)
    other = opened(path, policy=None)
    for turn in range(60):
        step = turn % 6
        here = store if rng.random() < 0.7 else other
        if step in (0, 3):
            here.add_many(rng.normal(size=(int(rng.integers(1, 80)), DIM)))
        elif step == 1:
            here.compact(float(rng.uniform(0.3, 0.9)))
        elif step == 2 and here.archived().size:
            here.restore(rng.choice(here.archived(), 3))
        elif step == 4:
            store.wait_for_index()
        elif turn % 5 == 0:
            store.close()
            here = store = opened(path, policy=CoherencePolicy(window=8))
        for row in rng.normal(size=(int(rng.integers(0, 4)), DIM)):
            here.search(row)
        view = store.view()
        kinds.add(store.stats().index.kind)
        if len(view.context) and len(view):
            wide = view.context[-8:].astype(np.float64)
            expected = (view.vectors.astype(np.float64) @ wide.T).max(1)
            np.testing.assert_allclose(view.cosine_max(8), expected, rtol=0, atol=1e-6)
    assert kinds == {"exact", "hnsw"}
    store.close()
    other.close()


# ---- never believed ------------------------------------------------------------------------------


def flipped(at: float) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        data = bytearray(file.read_bytes())
        data[int(at * (len(data) - 1))] ^= 0x10
        file.write_bytes(data)

    return damage


def cut(at: float) -> Callable[[Path], None]:
    return lambda file: os.truncate(file, int(at * file.stat().st_size))


def written(data: bytes) -> Callable[[Path], None]:
    return lambda file: file.write_bytes(data) and None


def foreign(**options: Any) -> Callable[[Path], None]:
    """The graph of another store, of another namespace of this one, or of one of another dimension."""

    def damage(file: Path) -> None:
        store = file.parent / options.get("name", "b.memsift")
        namespace = options.get("namespace", "foreign")
        with MemoryStore.open(
            store, options.get("dim", DIM), namespace, index="hnsw", policy=FifoPolicy()
        ) as made_there:
            made_there.add_many(np.random.default_rng(0).normal(size=(N, made_there.dim)))
            assert made_there.wait_for_index()
        shutil.copy(companion(store, namespace), file)

    return damage


def replaced_by(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        file.unlink()
        make(file)

    return damage


def elsewhere_linked(file: Path) -> None:
    shutil.move(file, file.parent / "elsewhere")
    file.symlink_to(file.parent / "elsewhere")


def with_header(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda file: file.write_bytes(change(file.read_bytes())) and None


DAMAGES: dict[str, Callable[[Path], None]] = {
    "gone": lambda file: file.unlink(),
    "empty": cut(0.0),
    "one byte": written(b"M"),
    "its magic alone": written(saved.MAGIC),
    "zeros": written(bytes(100_000)),
    "text": written(b"not a graph\n" * 1000),
    "cut at a tenth": cut(0.1),
    "cut in the middle": cut(0.5),
    "cut by a little": cut(0.9999),
    "longer": with_header(lambda data: data + b"\0"),
    "magic flipped": flipped(0.0),
    "early flip": flipped(0.001),
    "an id flipped": flipped(0.01),
    "flip in the middle": flipped(0.5),
    "last byte flipped": flipped(1.0),
    "another version": with_header(lambda data: data[:8] + b"\x02\0\0\0" + data[12:]),
    "a header of 4 GB": with_header(lambda data: data[:12] + b"\xff\xff\xff\xff" + data[16:]),
    "another store's": foreign(),
    "another namespace's": foreign(name="a.memsift"),
    "another dimension's": foreign(dim=DIM + 1),
    "a folder": replaced_by(lambda file: file.mkdir()),
    "a link": elsewhere_linked,
    "a link to nowhere": replaced_by(lambda file: file.symlink_to("nowhere")),
    "a pipe": replaced_by(lambda file: os.mkfifo(file)),
    "a file of terabytes": lambda file: os.truncate(file, 1 << 40),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_in_doubt_is_built_again(
    path: Path, built: list[int], monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """usearch does not see a byte of it: it would crash, or find what is not there."""
    made(path)
    before = len(built)
    DAMAGES[damage](companion(path))
    built.clear()

    def seen(*args: Any) -> Any:
        raise AssertionError("usearch saw it")

    monkeypatch.setattr(graph.Graph, "of", seen)
    with opened(path) as store:
        assert len(store.search(rows(1, 3)[0])) == 10
        assert store.wait_for_index()
        state = store.stats(probe=True).index
        assert (state.kind, state.graph) == ("hnsw", N)
        assert state.recall >= 0.97
        assert store.verify().ok
    assert (before >= 1, built) == (True, [N])
    monkeypatch.undo()
    if damage not in ("a folder", "a link", "a link to nowhere", "a pipe"):
        small = pytest.MonkeyPatch()
        small.setattr(search, "SMALLEST", 100)
        with opened(path) as store:  # and written anew
            assert store.wait_for_index()
            assert store.stats().index.graph == N
        small.undo()
        assert built == [N]


def test_a_graph_of_another_usearch_is_not_read(
    path: Path, built: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(path)
    monkeypatch.setattr(graph, "version", lambda: "2.99.0")
    with opened(path) as store:
        check(store)
    assert built == [N, N]


def test_somebody_s_database_under_that_name_is_left_alone(path: Path) -> None:
    """It says what it is in its first bytes; erasing removed it, and saving wrote over it."""
    with MemoryStore.open(companion(path), DIM) as other:
        other.add_many(rows(20))
    made_before = companion(path).read_bytes()
    with opened(path) as store:
        store.add_many(rows(N))
        assert store.wait_for_index()
        store.erase(0)
        assert store.wait_for_index()
    assert companion(path).read_bytes() == made_before


def test_a_disk_that_refuses_is_no_trouble(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saved, "write_all", full)
    with opened(path) as store:
        store.add_many(rows(N))
        assert store.wait_for_index()
        assert store.stats().index.error == "OSError: [Errno 28] No space left on device"
        assert len(store.search(rows(1, 3)[0])) == 10
    assert [p.name for p in path.parent.iterdir()] == ["a.memsift"]


def test_what_a_killed_writer_left_is_cleared_away(path: Path) -> None:
    left, young = (companion(path).with_name(f"{companion(path).name}.{x}.tmp") for x in "ab")
    for file in (left, young):
        file.write_bytes(b"half a graph")
    os.utime(left, (0, 0))
    made(path)
    assert not left.exists()
    assert young.exists(), "somebody may be writing it"
    with opened(path) as store:
        store.erase(0)
    assert not young.exists()


# ---- the setting ---------------------------------------------------------------------------------


def test_the_file_remembers_which_index_it_uses(path: Path) -> None:
    for given, expected in (
        (None, "exact"),
        ("hnsw", "hnsw"),
        (None, "hnsw"),
        ("auto", "auto"),
        (None, "auto"),
        ("exact", "exact"),
        (None, "exact"),
    ):
        with opened(path, index=given) as store:
            assert store.stats().index.asked == expected


def test_another_process_changes_the_index(path: Path) -> None:
    made(path)
    with opened(path) as store:
        check(store)
        opened(path, index="exact").close()
        assert store.stats().index.asked == "exact"
        assert len(store.search(rows(1, 3)[0])) == 10
        opened(path, index="hnsw").close()
        check(store)


def test_a_file_that_wants_usearch_says_so_where_it_is_not(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    made(path)
    for name in [name for name in sys.modules if name.split(".")[0] == "usearch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "usearch", None)
    with pytest.raises(MissingExtra, match=r"memsift\[ann\].*open with index='exact'"):
        opened(path, index=None)
    for index in ("auto", "exact"):
        with opened(path, index=index) as store:
            assert store.stats().index.kind == "exact"
            assert len(store.search(rows(1, 3)[0])) == 10


# ---- erasing -------------------------------------------------------------------------------------

CANARIES = 4


def planted(path: Path) -> tuple[DurableStore, list[int]]:
    store = opened(path)
    ids = [store.add(canary(number), {"text": secret(number)}) for number in range(CANARIES)]
    store.add_many(rows(N))
    assert store.wait_for_index()
    return store, ids


def traces(folder: Path) -> list[str]:
    return [hit for n in range(CANARIES) for hit in scan(folder, spellings(canary(n), secret(n)))]


def graphs(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if ".hnsw" in p.name)


def test_the_scanner_sees_the_int8_rows_of_a_graph(path: Path) -> None:
    store, _ = planted(path)
    store.close()
    found = [hit for hit in traces(path.parent) if hit.startswith(companion(path).name)]
    assert found == ["a.memsift.default.hnsw: int8, scaled by row"] * CANARIES


def test_erasing_removes_the_graph_and_what_is_built_later_knows_nothing(
    path: Path, built: list[int]
) -> None:
    store, ids = planted(path)
    receipt = store.erase(ids[:2])
    assert receipt.complete
    assert receipt.places["graphs"] == "erased"
    assert graphs(path.parent) == []
    assert store.stats().index.graph == 0, "the graph in memory still holds it"
    store.erase(ids[2:])
    assert traces(path.parent) == []
    check(store)
    assert graphs(path.parent) == [companion(path).name]
    assert traces(path.parent) == []
    store.close()
    assert traces(path.parent) == []
    assert built[-1] == N


def test_erasing_by_a_process_that_uses_no_index(path: Path) -> None:
    store, ids = planted(path)
    store.close()
    with opened(path, index="exact") as plain:
        plain.erase(ids)
    assert graphs(path.parent) == []
    assert traces(path.parent) == []


def test_an_erased_one_that_had_left_before_was_in_the_graph_as_well(path: Path) -> None:
    """It rested in the archive; its node was dead, and its row was still there."""
    store, ids = planted(path)
    store.pin(store.view().ids[CANARIES:])
    store.compact(N)
    assert store.archived().tolist() == ids
    assert store.stats().index.dead == CANARIES
    store.erase(ids)
    store.close()
    assert traces(path.parent) == []


def test_the_graph_of_another_process_is_not_saved_after_an_erasure(path: Path) -> None:
    """It held the erased rows in its memory, and wrote them down when it was closed."""
    store, ids = planted(path)
    with opened(path) as other:
        assert other.wait_for_index()
        other._memory.index._serving.saved = None  # it is to be saved on close
        store.erase(ids)
        store._memory.index.stop()
        assert graphs(path.parent) == []
    assert graphs(path.parent) == []
    assert traces(path.parent) == []
    store.close()
    assert traces(path.parent) == []


def test_another_process_lets_go_of_erased_rows_at_its_next_call(path: Path) -> None:
    store, ids = planted(path)
    with opened(path) as other:
        check(other)
        store.erase(ids)
        assert len(other) == N
        assert other.stats().index.graph == 0
        check(other)
    store.close()
    assert traces(path.parent) == []


@pytest.mark.parametrize("moment", ["before it is filled", "while it is filled"])
def test_an_erasure_while_another_process_writes_its_graph(
    path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    store, ids = planted(path)
    store._memory.index.stop()
    other = opened(path)
    assert other.wait_for_index()
    home = other._memory.index._home
    erased = []

    def erase() -> None:
        if not erased:
            erased.append(store.erase(ids))

    if moment == "before it is filled":
        known = home.erasures
        home.erasures = lambda: erase() or known()
    else:
        wrote = saved.write_all
        monkeypatch.setattr(saved, "write_all", lambda fd, data: (wrote(fd, data), erase()))
    other._memory.index._serving.saved = None
    other.close()
    assert len(erased) == 1
    assert graphs(path.parent) == []
    store.close()
    assert traces(path.parent) == []


def test_an_old_graph_that_comes_back_is_not_believed(path: Path, built: list[int]) -> None:
    """From a backup, say: it is ours and whole, but it knows an erased row."""
    store, ids = planted(path)
    store.close()
    old = companion(path).read_bytes()
    with opened(path) as store:
        store.erase(ids)
    companion(path).write_bytes(old)
    with opened(path) as store:
        check(store)
    assert built[-1] == N
    assert traces(path.parent) == []


def test_a_graph_that_cannot_be_removed_is_pending(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, ids = planted(path)

    def refused(file: Any) -> None:
        raise PermissionError(13, "not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(saved.os, "unlink", refused)
        receipt = store.erase(ids)
    assert not receipt.complete
    assert receipt.places["graphs"].startswith("pending: ")
    store.close()
    opened(path, index="exact").close()  # the next opening tries again
    assert graphs(path.parent) == []
    assert traces(path.parent) == []
