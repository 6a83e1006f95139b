"""The reference's two calls, as its users know them (crate ruvector-agent-memory 0.1.0)."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from memsift import checks
from memsift.errors import InvalidValue
from memsift.policies.base import CompactionPolicy
from memsift.store import MemoryStore
from memsift.types import Compaction


def compact(
    store: MemoryStore,
    policy: CompactionPolicy,
    target_size: int,
    context_window: npt.ArrayLike | None = None,
) -> Compaction:
    """Compact `store` to `target_size` entries by `policy`, judged by `context_window` (w, dim).

    Without a window the store's own last queries count. Pinned entries stay.
    """
    return store.compact(checks.integer(target_size, "target_size", 0), policy, context_window)


def recall_at_k(store: MemoryStore, queries: npt.ArrayLike, truth: Any, k: int = 10) -> float:
    """The mean share of each query's true neighbours that the store still finds; in [0, 1].

    Parameters
    ----------
    queries : (q, dim) array-like
        Searched without touching anything.
    truth : (q, t) ids
        What each query should find.
    k : int
        How many hits may be looked at.
    """
    found = store.search_many(queries, k, touch=False)
    if len(truth) != len(found) or not found:
        raise InvalidValue(
            f"truth must have one row per query ({len(found)}, at least 1); got {len(truth)}"
        )
    if min(map(len, truth)) == 0:
        raise InvalidValue("truth must name at least one neighbour for each query; got none")
    shares = [
        len({hit.id for hit in hits} & set(map(int, true))) / len(true)
        for hits, true in zip(found, truth, strict=True)
    ]
    return float(sum(shares) / len(shares))
