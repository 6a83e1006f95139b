"""A story of calls that follows from a seed and the store's own state: two equal stores live through the same one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memsift import Budget, MemoryStore
from memsift.durable import DurableStore
from memsift.errors import BudgetExceeded, UnknownEntry

DIM = 8
BUDGET = Budget(entries=24, cost=60)
ARCHIVE = Budget(entries=16)


@dataclass
class Clock:
    """A second per call of the story: two equal ones see equal times."""

    now: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def opened(path: Path, clock: Clock, **changes: Any) -> DurableStore:
    options: dict[str, Any] = {"budget": BUDGET, "archive": ARCHIVE, "grace_seconds": 4000.0}
    options |= {"touch_flush_seconds": 1000.0, "busy_timeout": 20.0} | changes
    return MemoryStore.open(path, dim=DIM, clock=clock, **options)


def _some(rng: np.random.Generator, store: Any, most: int) -> list[int]:
    ids = np.sort(store.view().ids)
    return [int(i) for i in rng.permutation(ids)[: int(rng.integers(1, most + 1))]]


def _add(rng: np.random.Generator, store: Any) -> None:
    note = {"n": int(rng.integers(9)), "text": "é" * int(rng.integers(40))}
    store.add(rng.normal(size=DIM), note if rng.random() < 0.6 else None, cost=int(rng.integers(4)))


def _add_many(rng: np.random.Generator, store: Any) -> None:
    n = int(rng.integers(1, 40))
    notes = [{"i": i} if rng.random() < 0.5 else None for i in range(n)]
    store.add_many(rng.normal(size=(n, DIM)), notes, cost=rng.integers(0, 4, n).tolist())


def _say(rng: np.random.Generator, store: Any) -> None:
    """Entries with texts, or other texts for some that there are: each with its own in one transaction."""
    if not isinstance(store, DurableStore):
        return
    with store.transaction():
        n = int(rng.integers(1, 12))
        ids = store.add_many(rng.normal(size=(n, DIM)))
        here = ids[store.holds(ids)]
        store.texts.put(here, [f"{i} says ü{'y' * int(rng.integers(200))}" for i in here])
        if rng.random() < 0.5 and (others := _some(rng, store, 4)):
            store.texts.put(others, ["anew"] * len(others))


def _search(rng: np.random.Generator, store: Any) -> None:
    store.search(rng.normal(size=DIM), k=int(rng.integers(1, 6)), touch=bool(rng.random() < 0.8))


def _update(rng: np.random.Generator, store: Any) -> None:
    if ids := _some(rng, store, 1):
        changes = {"vector": rng.normal(size=DIM), "metadata": {"changed": int(rng.integers(99))}}
        store.update(ids[0], **changes)


def _compact(rng: np.random.Generator, store: Any) -> None:
    if len(store):
        store.compact(float(rng.uniform(0.3, 1.0)))


def _restore(rng: np.random.Generator, store: Any) -> None:
    if isinstance(store, DurableStore) and (ids := store.archived()).size:
        store.restore(np.sort(rng.permutation(ids)[: int(rng.integers(1, 6))]))


def _erase(rng: np.random.Generator, store: Any) -> None:
    ids = _some(rng, store, 3) + store.archived()[: int(rng.integers(3))].tolist()
    if ids:
        store.erase(ids, vacuum=bool(rng.random() < 0.5))


def _pin(rng: np.random.Generator, store: Any) -> None:
    if ids := _some(rng, store, 2):
        store.pin(ids) if rng.random() < 0.3 else store.unpin(ids)


CALLS: list[tuple[str, float, Callable[[np.random.Generator, Any], None]]] = [
    ("add", 6, _add),
    ("add_many", 3, _add_many),
    ("say", 3, _say),
    ("search", 6, _search),
    ("feedback", 2, lambda rng, store: store.feedback(_some(rng, store, 3))),
    ("pin", 1, _pin),
    ("update", 2, _update),
    ("delete", 1, lambda rng, store: store.delete(_some(rng, store, 2))),
    ("compact", 2, _compact),
    ("restore", 2, _restore),
    ("erase", 1.5, _erase),
    ("plan", 1, lambda rng, store: store.plan(0.9) if len(store) else None),
    ("flush", 1, lambda rng, store: store.flush()),
]
WEIGHTS = np.array([weight for _, weight, _ in CALLS]) / sum(weight for _, weight, _ in CALLS)


def step(rng: np.random.Generator, store: Any, clock: Clock) -> str:
    """One call; what it was."""
    clock.now += 1.0
    name, _, call = CALLS[int(rng.choice(len(CALLS), p=WEIGHTS))]
    with contextlib.suppress(BudgetExceeded, UnknownEntry):
        call(rng, store)
    return name
