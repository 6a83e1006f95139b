"""Memories to fill a source with, and whom the store in RAM would let go of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from memsift.backends.ids import Id, key_of
from memsift.backends.ram import Row
from memsift.budget import Budget
from memsift.plan import make_plan
from memsift.policies import CoherencePolicy, LfuPolicy, LruPolicy, ScoredPolicy
from memsift.view import MemoryView

DIM = 8
TENANTS = (None, "alice", "bob", "o'brien\"; DROP TABLE x; --", "名前 %s $1 {}")
POLICIES: tuple[ScoredPolicy, ...] = (LruPolicy(), LfuPolicy(), CoherencePolicy())
HOSTILE = (
    "'",
    '"',
    "a'b",
    '";DROP TABLE m;--',
    "%s",
    "$1",
    "{}",
    "\\",
    "ü",
    "名",
    " ",
    "a\nb",
    "-1",
    "NULL",
)


def rows(n: int, seed: int = 0, ids: Callable[[int], Id] = int) -> list[Row]:
    """n memories in use: few were ever returned, some share their ticks, some are pinned, five tenants."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(n):
        created, seen = int(rng.integers(1, n + 2)), bool(rng.random() < 0.4)
        out.append(
            Row(
                id=ids(i),
                vector=rng.normal(size=DIM).astype(np.float32).tolist(),
                created_tick=created,
                accessed_tick=created + (int(rng.integers(0, n)) if seen else 0),
                access_count=int(rng.integers(1, 9)) if seen else 0,
                cost=int(rng.integers(1, 50)),
                pinned=bool(rng.random() < 0.05),
                tenant=TENANTS[int(rng.integers(len(TENANTS)))],
            )
        )
    return out


def queries(count: int, seed: int = 100) -> npt.NDArray[np.float64]:
    """A window of queries: (count, 8)."""
    return np.random.default_rng(seed).normal(size=(count, DIM))


def in_ram(
    entries: Sequence[Row], policy: ScoredPolicy, keep: int, context: npt.ArrayLike | None
) -> set[Id]:
    """The victims that the store in RAM would choose, `keep` entries staying."""
    order = sorted(entries, key=lambda row: key_of(row.id))
    view = MemoryView.from_arrays(
        [row.vector for row in order],
        context=context,
        accessed_tick=[row.accessed_tick for row in order],
        created_tick=[row.created_tick for row in order],
        access_count=[row.access_count for row in order],
        cost=[row.cost for row in order],
        pinned=np.array([row.pinned for row in order]),
    )
    plan = make_plan(view, policy, Budget(keep), view.pinned)
    return {order[row].id for row in plan.victims.tolist()}


def id_of(kind: type, i: int) -> Id:
    if kind is UUID:
        return UUID(int=(i * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128)
    if kind is str:
        # Upper and lower case, umlauts and digits: an order by language would differ from that by bytes.
        return f"{'aBüZ0é名'[i % 7]}-{i}"
    return i * 3


def unit(vector: Any) -> npt.NDArray[np.float64]:
    wide = np.asarray(vector, np.float64)
    return wide / np.linalg.norm(wide)
