"""How vectors are held: tiered answers as float32 does, float16 and int8 answer for the rounded vectors, exactly."""

from __future__ import annotations

import errno
import gc
import os
import stat
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsift import (
    AdaptivePolicy,
    Budget,
    Coherence,
    CoherencePolicy,
    Density,
    LruPolicy,
    MemoryStore,
    Recency,
)
from memsift.errors import DiskTrouble, ForkedStore, InvalidValue
from memsift.index import ExactIndex
from memsift.planes import PLANES, Plane, integers, make_plane
from memsift.planes.tiered import TieredPlane
from memsift.testing import IndexTests
from memsift.testing.index import brute_force, unit
from model import EXAMPLES
from test_index import Rows

LOSSY = ("float16", "int8")
OTHERS = tuple(name for name in PLANES if name != "float32")
every_plane = pytest.mark.parametrize("name", PLANES)


@pytest.fixture(params=["numkong", "numpy"])
def arithmetic(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the extra `fast`, and as if it were not there."""
    if request.param == "numpy":
        monkeypatch.setattr(integers, "numkong", lambda: None)
    else:
        pytest.importorskip("numkong")
    return str(request.param)


def awkward(n: int, dim: int, seed: int) -> np.ndarray:
    """Unit rows that quantise well and badly: smooth, of equal elements, of one, of powers, close to each other."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, dim))
    kind = rng.integers(0, 7, n)
    rows[kind == 1] = rng.choice([-1.0, 1.0], (int((kind == 1).sum()), dim))
    rows[kind == 2] *= 10.0 ** rng.uniform(-4, 0, (int((kind == 2).sum()), dim))
    rows[kind == 3] = np.eye(dim)[rng.integers(0, dim, int((kind == 3).sum()))] + 0.004
    rows[kind == 4] = rows[0] + 1e-3 * rng.normal(size=(int((kind == 4).sum()), dim))
    rows[kind == 5] = np.round(rng.integers(-127, 128, (int((kind == 5).sum()), dim))) + 0.5
    return unit(rows)


def filled(name: str, vectors: np.ndarray, room: int = 0) -> Plane:
    plane = make_plane(name, vectors.shape[1], len(vectors) + room)
    plane.append(0, vectors)
    return plane


# ---- the index ---------------------------------------------------------------------------------------------------


class TestTieredIndex(IndexTests):
    @pytest.fixture(autouse=True)
    def _arithmetic(self, arithmetic: str) -> None: ...

    def make(self, vectors: Any, ids: Any) -> ExactIndex:
        return ExactIndex(Rows(filled("tiered", vectors).live(len(vectors)), ids))


class TestTieredIndexWide(TestTieredIndex):
    dim = 640


class TestTieredIndexOfThree(TestTieredIndex):
    """Int8 can hardly tell near rows apart."""

    dim = 3


@pytest.mark.parametrize("name", LOSSY)
def test_lossy_planes_find_the_best_of_what_they_hold(name: str, arithmetic: str) -> None:
    for n, dim in ((1, 5), (300, 3), (5000, 48)):
        plane = filled(name, awkward(n, dim, n))
        held, ids = plane.take(np.arange(n)), np.random.default_rng(1).permutation(n)
        index = ExactIndex(Rows(plane.live(n), ids))
        queries = awkward(20, dim, 7)
        for query in queries:
            rows, scores = index.search(query, 10)
            assert (rows.tolist(), scores.tolist()) == brute_force(held, ids, query, 10)
        for query, (rows, scores) in zip(queries, index.search_many(queries, 10)[0], strict=True):
            assert (rows.tolist(), scores.tolist()) == brute_force(held, ids, query, 10)


# ---- bounds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 7, 64, 384, 2000])
def test_no_cosine_is_farther_off_than_the_plane_says(dim: int, arithmetic: str) -> None:
    """The proof in numbers: every row, the sharp bound and the one for all, queries near and far."""
    for seed in range(3):
        vectors = awkward(600, dim, seed)
        plane = filled("tiered", vectors)
        assert isinstance(plane, TieredPlane)
        every = np.arange(len(vectors))
        for query in np.concatenate([awkward(10, dim, 99 + seed), vectors[:10], -vectors[10:13]]):
            true = vectors.astype(np.float64) @ query.astype(np.float64)
            scanned = np.empty(len(vectors), np.float32)
            widest = plane.scan(query, scanned)
            assert (np.abs(scanned - true) <= widest + 1e-5).all()
            sharp = np.dot(plane._hot.rows(every), query)
            assert (np.abs(sharp - true) <= plane._off(every, sharp)).all()
            off = plane.off(every, scanned, query[None])
            assert (np.abs(scanned - true) <= off).all()
            assert off.max() <= widest + 1e-4


def test_few_rows_are_read_again() -> None:
    """The bound is of use only if it is narrow: of 20,000 rows around 100 topics a search reads some dozens."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(100, 128))
    vectors = unit(centres[rng.integers(0, 100, 20_000)] + rng.normal(size=(20_000, 128)))
    plane = filled("tiered", vectors)
    read: list[int] = []
    take = plane.take
    plane.take = lambda slots: read.append(len(slots)) or take(slots)  # type: ignore[method-assign,func-returns-value]
    index = ExactIndex(Rows(plane.live(20_000), np.arange(20_000)))
    for query in unit(centres[:50] + rng.normal(size=(50, 128))):
        index.search(query, 10)
    assert len(read) == 50
    assert max(read) < 200


# ---- rows come and go --------------------------------------------------------------------------------------------


@every_plane
def test_rows_stay_theirs_whatever_moves(name: str, tmp_path: Path) -> None:
    """A plane against a list of rows: additions, removals into holes, replacements, growth and shrinking."""
    for seed in range(EXAMPLES // 3):
        rng = np.random.default_rng(seed)
        dim = int(rng.integers(1, 9))
        plane = make_plane(name, dim, 64, tmp_path)
        model: list[np.ndarray] = []
        for _ in range(30):
            new = awkward(
                int(rng.integers(1, 400 if rng.random() < 0.1 else 30)), dim, int(rng.integers(1e6))
            )
            choice = rng.random()
            if choice < 0.5:
                if len(model) + len(new) > len(plane):
                    plane.resize(len(model) + len(new) + 64, len(model))
                plane.append(len(model), new)
                model += list(new)
            elif choice < 0.8 and model:
                keep = rng.random(len(model)) < rng.random()
                left, gone = int(keep.sum()), np.flatnonzero(~keep)
                holes, movers = gone[gone < left], left + np.flatnonzero(keep[left:])
                plane.move(holes, movers, gone)
                for hole, mover in zip(holes, movers, strict=True):
                    model[hole] = model[mover]
                model = model[:left]
                if rng.random() < 0.3:
                    plane.resize(left + 10, left)
            elif model:
                slot = int(rng.integers(len(model)))
                plane.replace(slot, new[0])
                model[slot] = new[0]
            check(plane, np.array(model).reshape(-1, dim), rng)


def check(plane: Plane, vectors: np.ndarray, rng: np.random.Generator) -> None:
    n = len(vectors)
    expected = vectors
    if plane.name in LOSSY:
        expected = filled(plane.name, vectors).take(np.arange(n))
    some = rng.integers(0, n, 5) if n else np.empty(0, np.intp)
    live = plane.live(n)
    assert live[some].tobytes() == expected[some].tobytes()
    assert live[: n // 2].tobytes() == expected[: n // 2].tobytes()
    assert live[n // 3 : n : 3].tobytes() == expected[n // 3 :: 3].tobytes()
    assert len(live) == n
    assert plane.sums(some).tolist() == filled("float32", vectors).sums(some).tolist()
    assert not plane.differs(some, expected[some]).any()
    assert n == 0 or live[-1].tobytes() == expected[-1].tobytes()


@pytest.mark.parametrize("name", LOSSY)
def test_what_was_read_can_be_put_back_without_a_change(name: str) -> None:
    for dim in (1, 2, 3, 50, 384):
        vectors = awkward(500, dim, dim)
        plane = filled(name, vectors)
        held = plane.take(np.arange(500))
        lengths = np.sqrt((held.astype(np.float64) ** 2).sum(1))
        assert np.abs(lengths - 1).max() <= 5e-7  # what the door takes for a unit row
        assert filled(name, held).take(np.arange(500)).tobytes() == held.tobytes()


@pytest.mark.parametrize(("name", "loss"), [("float16", 2e-4), ("int8", 2.5e-3)])
def test_the_loss_is_as_documented(name: str, loss: float) -> None:
    rng = np.random.default_rng(0)
    vectors, queries = unit(rng.normal(size=(2000, 384))), unit(rng.normal(size=(50, 384)))
    held = filled(name, vectors).take(np.arange(2000))
    assert np.abs(held @ queries.T - vectors @ queries.T).max() < loss


def test_half_precision_is_widened_without_an_error() -> None:
    """Every float16 from -1 to 1, against numpy's own slow way."""
    plane = make_plane("float16", 1, 1)
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    every = every[np.abs(every) <= 1]
    out = np.empty(every.shape, np.float32)
    plane._rows.widen(every, out)  # type: ignore[attr-defined]
    assert out.tobytes() == every.astype(np.float32).tobytes()


# ---- stores ------------------------------------------------------------------------------------------------------


def history(store: MemoryStore, seed: int) -> Iterator[Any]:
    """Calls by chance, the same ones for the same seed, and what each returned."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        step = rng.random()
        rows = awkward(int(rng.integers(1, 40)), store.dim, int(rng.integers(1e6)))
        ids = store.view().ids
        some = ids[rng.permutation(ids.size)[: int(rng.integers(0, 4))]]
        if step < 0.4:
            yield store.add_many(rows, [{"n": i % 3} for i in range(len(rows))]).tolist()
        elif step < 0.6:
            where = {"n": 1} if rng.random() < 0.3 else None
            yield store.search(rows[0], int(rng.integers(1, 30)), where=where)
        elif step < 0.7:
            yield store.search_many(rows, 5)
        elif step < 0.75:
            yield store.delete(some)
        elif step < 0.8 and ids.size:
            yield store.update(int(ids[0]), vector=rows[0])
        elif step < 0.85 and ids.size:
            yield store.compact(float(rng.uniform(0.2, 0.9))).dropped.tolist()
        elif step < 0.9:
            yield store.feedback(some)
        else:
            yield [(e.id, e.vector.tobytes()) if e else None for e in store.get(ids[:3])]
    yield np.sort(store.view().ids).tolist()


@pytest.mark.parametrize("policy", [None, CoherencePolicy(window=5)])
def test_a_tiered_store_answers_and_forgets_as_one_of_float32(policy: Any, arithmetic: str) -> None:
    for seed in range(EXAMPLES // 3):
        dim = (2, 8, 30)[seed % 3]
        stores = [
            MemoryStore(dim, 90, policy, vectors=name, clock=lambda: 0.0)
            for name in ("float32", "tiered")
        ]
        for ours, theirs in zip(*(history(store, seed) for store in stores), strict=True):
            assert ours == theirs


POLICIES = (
    CoherencePolicy(),
    CoherencePolicy(0.0, 0.0, 1.0, window=3),
    AdaptivePolicy(),
    AdaptivePolicy("replay"),
    LruPolicy(),
    0.3 * Recency() + -1.0 * Coherence(2) + 0.5 * Density(4, 0.9, 0.05),
    CoherencePolicy(window=7).with_floor(0.4),
)
UNITS = ({"entries": 1}, {"bytes": 500}, {"cost": 2}, {"entries": 1, "cost": 2})


def crowd(n: int, dim: int, seed: int) -> np.ndarray:
    """Rows that are awkward, and among them the same ones again, exactly or nearly."""
    rng = np.random.default_rng(seed)
    rows = awkward(n, dim, seed)
    again = rows[rng.integers(0, n, n)]
    close = 10.0 ** rng.choice([-9.0, -7, -6, -5, -4, -3], (n, 1)) * rng.normal(size=(n, dim))
    kind = rng.integers(0, 3, (n, 1))
    return unit(np.where(kind == 0, rows, np.where(kind == 1, again, again + close)))


def test_whatever_the_policy_the_victims_are_those_of_float32(arithmetic: str) -> None:
    """Two stores with one history are asked for plans again and again: by what searches left, and by a window given."""
    plans = 0
    for seed in range(EXAMPLES):
        rng = np.random.default_rng((seed, 77))
        dim = int(rng.choice([2, 3, 8, 24, 64]))
        window = POLICIES[seed % len(POLICIES)]
        stores = [
            MemoryStore(dim, policy=window, vectors=name, clock=lambda: 0.0)
            for name in ("float32", "tiered")
        ]
        rows = crowd(400, dim, seed)
        for step in range(6):
            count = int(rng.integers(1, 60))
            part = rows[60 * step : 60 * step + count]
            cost = rng.integers(0, 4, count)
            queries = np.concatenate([crowd(3, dim, int(rng.integers(1e6))), part[:1], rows[:1]])
            leaves = rng.random()
            for store in stores:
                store.add_many(part, cost=cost, pinned=np.arange(count) == 7)
                for query in queries[: int(leaves * 6)]:
                    store.search(query, 3)
                if leaves < 0.3:
                    store.delete(store.view().ids[::7])
            for policy in POLICIES:
                held = len(stores[0])
                units = UNITS[int(rng.integers(len(UNITS)))]
                share = rng.uniform(0.5, 1.0)
                target = Budget(
                    **{u: int(held * each * share) + 10 * each for u, each in units.items()}
                )
                context = queries if rng.random() < 0.5 else None
                ours, theirs = (store.plan(target, policy, context, force=True) for store in stores)
                assert ours.victims.tolist() == theirs.victims.tolist(), (seed, step, policy)
                plans += 1
            for done in zip(
                *(store.compact(0.8).dropped.tolist() for store in stores), strict=True
            ):
                assert done[0] == done[1]
    assert plans == 6 * EXAMPLES * len(POLICIES)


@pytest.mark.parametrize("name", LOSSY)
def test_lossy_stores_do_the_same_with_and_without_the_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numkong")
    fast = [
        list(history(MemoryStore(8, 90, vectors=name, clock=lambda: 0.0), s)) for s in range(10)
    ]
    monkeypatch.setattr(integers, "numkong", lambda: None)
    slow = [
        list(history(MemoryStore(8, 90, vectors=name, clock=lambda: 0.0), s)) for s in range(10)
    ]
    assert fast == slow


@pytest.mark.parametrize("name", LOSSY)
def test_a_lossy_store_tells_of_the_vectors_that_it_holds(name: str) -> None:
    vectors = awkward(200, 12, 0)
    store = MemoryStore(12, vectors=name)
    ids = store.add_many(vectors)
    held = np.array([entry.vector for entry in store.get(ids) if entry])
    assert held.tobytes() == store.view().vectors.tobytes() != vectors.tobytes()
    for hit in store.search(vectors[0], 20):
        assert hit.score == pytest.approx(float(held[hit.id].astype(float) @ vectors[0]), abs=2e-9)


@every_plane
def test_a_graph_may_stand_over_every_plane(name: str) -> None:
    """The index that knows nothing of planes: what it finds is true of what the store holds, and nearly all."""
    pytest.importorskip("usearch")
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(20, 32))
    vectors = unit(centres[rng.integers(0, 20, 6000)] + rng.normal(size=(6000, 32)))
    with MemoryStore(32, policy=CoherencePolicy(), index="hnsw", vectors=name) as store:
        store.add_many(vectors[:5000])
        assert store._memory.index.settle()
        store.compact(0.8)
        ids = store.add_many(vectors[5000:])
        store.update(int(ids[0]), vector=vectors[0])
        store.search_many(vectors[:5])
        view, found = store.view(), 0
        for query in vectors[5000:5030]:
            hits = store.search(query, 10)
            best, scores = brute_force(view.vectors, view.ids, query, 10)
            true = dict(zip(view.ids[best].tolist(), scores, strict=True))
            assert hits[0].score == scores[0]
            assert all(true.get(hit.id, hit.score) == hit.score for hit in hits)
            found += sum(hit.id in true for hit in hits)
        assert found >= 0.95 * 300


def test_a_name_that_is_none_is_refused() -> None:
    for wrong in ("float64", "Tiered", "", None, 8):
        with pytest.raises(
            InvalidValue, match="vectors must be one of float32, tiered, float16, int8; got"
        ):
            MemoryStore(2, vectors=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", OTHERS)
def test_neither_search_nor_plan_makes_a_copy_of_all_vectors(name: str, arithmetic: str) -> None:
    n, dim = 10_000, 512
    store = MemoryStore(dim, vectors=name, policy=CoherencePolicy())
    store.add_many(awkward(n, dim, 0))
    queries = awkward(3, dim, 1)
    gc.collect()
    tracemalloc.start()
    try:
        for query in queries:
            store.search(query)
        store.plan(0.5, context=queries)
        assert tracemalloc.get_traced_memory()[1] < n * dim * 4 / 2
    finally:
        tracemalloc.stop()


# ---- files -------------------------------------------------------------------------------------------------------


def test_one_file_may_be_held_in_every_way(tmp_path: Path) -> None:
    """Each opening adds, changes and evicts; the next, in another mode, finds float32 and a file that is whole."""
    path, added = tmp_path / "a.memsift", []
    for round_, name in enumerate((*PLANES, *reversed(PLANES))):
        with MemoryStore.open(
            path, 16, budget=120, vectors=name, touch_flush_seconds=1000.0
        ) as store:
            rows = awkward(40, 16, round_)
            ids = store.add_many(rows, [{"round": round_}] * 40)
            added += list(zip(ids.tolist(), rows, strict=True))
            store.search(rows[0])
            held = ids[store.holds(ids)]
            store.feedback(held[:5])
            store.update(int(held[-1]), metadata={"new": 1})
            store.update(int(held[-2]), vector=rows[0])
            added = [(i, rows[0] if i == held[-2] else row) for i, row in added]
            found = store.verify()
            assert found.ok, str(found)
            if len(store.archived()):
                store.restore(store.archived()[:3])
            assert store.verify().ok
    with MemoryStore.open(path) as store:
        for id_, row in added:
            entry = store.get(id_)[0]
            assert entry is None or entry.vector.tobytes() == row.tobytes()


@pytest.mark.parametrize("name", OTHERS)
def test_two_processes_may_hold_one_file_differently(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.memsift"
    with MemoryStore.open(path, 8) as first, MemoryStore.open(path, vectors=name) as second:
        rows = awkward(30, 8, 0)
        ids = first.add_many(rows[:20])
        more = second.add_many(rows[20:])
        first.update(int(ids[3]), vector=rows[0])
        second.feedback(ids[:4])
        assert first.verify().ok
        assert second.verify().ok
        assert [e.vector.tobytes() for e in first.get(more) if e] == [
            r.tobytes() for r in rows[20:]
        ]


def cold_bytes(store: MemoryStore) -> bytes:
    plane = store._memory.table.plane
    assert isinstance(plane, TieredPlane)
    file = plane._cold._file.fileno()
    return os.pread(file, os.fstat(file).st_size, 0)


def test_the_cold_file_is_private_and_in_no_folder(tmp_path: Path) -> None:
    for store in (
        MemoryStore(8, vectors="tiered", folder=tmp_path),
        MemoryStore.open(tmp_path / "a.memsift", 8, vectors="tiered"),
    ):
        store.add_many(awkward(30, 8, 0))
        plane = store._memory.table.plane
        assert isinstance(plane, TieredPlane)
        status = os.fstat(plane._cold._file.fileno())
        assert stat.S_IMODE(status.st_mode) == 0o600
        assert status.st_nlink == 0
        assert status.st_dev == tmp_path.stat().st_dev
        assert not [p.name for p in tmp_path.iterdir() if "cold" in p.name]
        store.close()


def test_what_is_erased_is_in_no_plane(tmp_path: Path) -> None:
    rows = unit(np.random.default_rng(0).normal(size=(60, 16)))
    with MemoryStore.open(tmp_path / "a.memsift", 16, vectors="tiered") as store:
        ids = store.add_many(rows)
        assert rows[40].tobytes() in cold_bytes(store)
        codes = store._memory.table.plane._hot.codes  # type: ignore[attr-defined]
        code = codes[40].tobytes()
        assert code in codes.tobytes()
        store.erase(ids[40:])
        for row in rows[40:]:
            assert row.tobytes() not in cold_bytes(store)
        assert code not in store._memory.table.plane._hot.codes.tobytes()  # type: ignore[attr-defined]
        assert rows[39].tobytes() in cold_bytes(store)


def test_places_of_the_cold_file_are_used_again(tmp_path: Path) -> None:
    store = MemoryStore(32, budget=1000, vectors="tiered", folder=tmp_path)
    sizes = set()
    for seed in range(12):
        store.add_many(awkward(900, 32, seed))
        sizes.add(store.stats().cold_bytes)
    assert len(sizes) <= 2
    store.compact(0.5)
    for _ in range(12):
        store.delete(store.view().ids[: len(store) // 2])
    assert store.search(awkward(1, 32, 3)[0])


def test_a_file_that_most_rows_left_is_made_anew(tmp_path: Path) -> None:
    plane = make_plane("tiered", 4, 50_000, tmp_path)
    rows = awkward(50_000, 4, 0)
    plane.append(0, rows)
    before = plane.cold_bytes
    plane.move(np.empty(0, np.intp), np.empty(0, np.intp), np.arange(100, 50_000))
    plane.resize(128, 100)
    assert plane.cold_bytes < before / 5
    assert plane.take(np.arange(100)).tobytes() == rows[:100].tobytes()


def test_a_full_disk_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(8, vectors="tiered")
    rows = awkward(40, 8, 0)
    store.add_many(rows[:10])
    before = store.view().vectors.tobytes(), len(store), store.stats().added

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        for call in (
            lambda: store.add(rows[10]),
            lambda: store.add_many(rows[10:]),
            lambda: store.update(3, vector=rows[20]),
        ):
            with pytest.raises(DiskTrouble, match="cold vectors could not be written"):
                call()
            assert (store.view().vectors.tobytes(), len(store), store.stats().added) == before
    store.add_many(rows[10:])
    assert store.view().vectors.tobytes() == rows.tobytes()


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(DiskTrouble, match="no file for cold vectors"):
        MemoryStore(8, vectors="tiered", folder="/nowhere/at/all")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_gets_an_error_and_leaves_the_parent_s_rows(
    capfd: pytest.CaptureFixture[str],
) -> None:
    store = MemoryStore(8, vectors="tiered")
    rows = awkward(20, 8, 0)
    store.add_many(rows[:10])
    calls: list[Callable[[], Any]] = [lambda: store.add(rows[11]), lambda: store.get(0)]
    child = os.fork()
    if child == 0:
        refused = 0
        for call in calls:
            try:
                call()
            except ForkedStore:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    store.add_many(rows[10:])
    assert store.view().vectors.tobytes() == rows.tobytes()
