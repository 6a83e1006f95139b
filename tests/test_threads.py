"""Several threads at one store: no error, no broken budget, no wrong value left behind."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from memsift import Budget, CoherencePolicy, MemoryStore
from memsift.errors import StaleView, UnknownEntry
from model import dump

DIM = 16
SECONDS = 3.0


@pytest.fixture(autouse=True)
def hasty_switching() -> Iterator[None]:
    """Threads change places a hundred times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 100)
    yield
    sys.setswitchinterval(usual)


def run(jobs: list[Callable[[np.random.Generator], None]], seconds: float) -> int:
    """Repeat each job in a thread of its own until the time is over; how often they ran in all.

    The first error of any of them is raised here.
    """
    over = time.monotonic() + seconds
    errors: list[BaseException] = []
    rounds = [0] * len(jobs)

    def repeat(place: int) -> None:
        rng = np.random.default_rng(place)
        try:
            while time.monotonic() < over and not errors:
                jobs[place](rng)
                rounds[place] += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=repeat, args=(i,)) for i in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 30)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]
    assert min(rounds) > 0
    return sum(rounds)


def check_whole(store: MemoryStore) -> None:
    """All that the store says about itself agrees."""
    view, stats = store.view(), store.stats()
    assert store.budget.fits(stats.size)
    assert stats.size == (len(view), int(view.nbytes.sum()), int(view.cost.sum()))
    assert stats.added - stats.evicted - stats.deleted == len(view)
    assert np.unique(view.ids).size == len(view)
    assert store.holds(view.ids).all()
    np.testing.assert_allclose(np.linalg.norm(view.vectors, axis=1), 1.0, atol=1e-6)
    for entry in store.get(view.ids):
        # Each entry carries its own mark in all its parts.
        assert entry.metadata == {"cost": entry.cost}
    exact = (view.vectors.astype(np.float64) @ view.context.astype(np.float64).T).max(1)
    np.testing.assert_allclose(view.cosine_max(20), exact, rtol=0, atol=1e-6)
    assert dump(store) == dump(store)


def newcomers(rng: np.random.Generator, n: int) -> dict[str, object]:
    costs = rng.integers(0, 9, n).tolist()
    return {
        "vectors": rng.normal(size=(n, DIM)),
        "cost": costs,
        "metadata": [{"cost": c} for c in costs],
    }


def test_searchers_an_adder_a_compactor_and_a_pinner() -> None:
    store = MemoryStore(DIM, Budget(entries=300, cost=1000), CoherencePolicy())
    store.add_many(**newcomers(np.random.default_rng(99), 300))

    def search(rng: np.random.Generator) -> None:
        before = store.stats().added
        hits = store.search(rng.normal(size=DIM), k=10, touch=int(rng.integers(0, 11)))
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert len({hit.id for hit in hits}) == len(hits) > 0
        assert all(0 <= hit.id < before + 10_000 and hit.metadata["cost"] < 9 for hit in hits)

    def add(rng: np.random.Generator) -> None:
        store.add_many(**newcomers(rng, int(rng.integers(1, 20))))
        look()

    def compact(rng: np.random.Generator) -> None:
        plan = store.plan(0.9)
        done = store.apply(plan)
        assert not store.holds(done.dropped).any()
        look()

    def pin(rng: np.random.Generator) -> None:
        ids = rng.choice(store.view().ids, 3, replace=False)
        try:
            store.pin(ids)
            store.feedback(ids, used=bool(rng.integers(2)))
        except UnknownEntry:
            pass  # evicted since the look
        else:
            found = [entry for entry in store.get(ids) if entry is not None]
            assert len(found) == 3, "a pinned entry has left"
        pinned = store.view()
        store.unpin(pinned.ids[pinned.pinned])

    def look() -> None:
        assert len(store) <= 300
        assert store.budget.fits(store.stats().size)

    run([search, search, add, compact, pin], SECONDS)
    check_whole(store)


def test_views_in_other_threads_leave_the_store_right() -> None:
    """A view's cosines fill in the ring: unlocked, they wrote into places that others had taken meanwhile."""
    store = MemoryStore(DIM, 400, CoherencePolicy(), low_watermark=0.6)
    rng = np.random.default_rng(99)
    store.add_many(**newcomers(rng, 400))
    store.search(rng.normal(size=DIM))

    def look(rng: np.random.Generator) -> None:
        view = store.view()
        with contextlib.suppress(StaleView):
            assert view.cosine_max(20).shape == (len(view),)

    def change(rng: np.random.Generator) -> None:
        store.add_many(**newcomers(rng, int(rng.integers(50, 150))))
        store.search(rng.normal(size=DIM))
        store.delete(store.view().ids[::7])

    for _ in range(4):
        run([look, look, change], SECONDS / 4)
        check_whole(store)


def test_a_view_in_another_thread_is_right_or_stale() -> None:
    """Rows that moved while a view was computing gave cosines of other entries, without a word."""
    rows = np.random.default_rng(5).normal(size=(997, 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    store = MemoryStore(64, 4_000, low_watermark=0.7)  # the entry of id i holds row i % 997
    store.add_many(rows[np.arange(4_000) % 997])
    store.search_many(rows[:3])
    queries = store.view().context.astype(np.float64)
    expected = (rows.astype(np.float64) @ queries.T).max(1)

    def look(rng: np.random.Generator) -> None:
        view = store.view()
        places = np.arange(len(view))
        few = places[::3]
        for ids, ask in (
            (view.ids, lambda: view.cosine_max(20)),
            (view.ids, lambda: view.exact_cosine_max(20, places)),
            (view.ids, lambda: view.with_context(queries).cosine_max(20)),
            (view.ids[few], lambda: view.take(few).cosine_max(20)),
        ):
            with contextlib.suppress(StaleView):
                np.testing.assert_allclose(ask(), expected[ids % 997], rtol=0, atol=1e-5)

    def change(rng: np.random.Generator) -> None:
        start = store.stats().added
        store.add_many(rows[np.arange(start, start + int(rng.integers(50, 400))) % 997])
        store.delete(store.view().ids[::7])

    run([look, look, change], SECONDS / 2)


def test_the_budget_holds_at_every_look_of_another_thread() -> None:
    """`len` did not wait for an addition to end, and saw the entry that tipped the budget over."""
    store = MemoryStore(2, 50, low_watermark=1.0)

    def add(rng: np.random.Generator) -> None:
        store.add([1, 0])

    def look(rng: np.random.Generator) -> None:
        assert len(store) <= 50
        assert repr(store).startswith("MemoryStore(")

    run([add, look], SECONDS / 4)
