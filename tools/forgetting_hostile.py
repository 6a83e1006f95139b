"""What feedback does to the default policy, honest and hostile: measured beside the suite.

A caller says after each question that needs something which hits helped: nothing, the needed ones, all the others, or
one of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memsift.evaluation.readers import read_npz
from memsift.evaluation.trace import Stream
from memsift.store import MemoryStore

BUDGETS = (0.5, 0.25, 0.1)
WATERMARK = 0.97
# How a caller answers, given the hits, best first, and what was needed.
CALLERS: dict[str, Callable[[Any, Any], Any]] = {
    "silent": lambda hits, need: hits[:0],
    "honest": np.intersect1d,
    "one useless hit": lambda hits, need: np.setdiff1d(hits, need)[:1],
    "every useless hit": np.setdiff1d,
}


def hostile(folder: Path | None, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Found, by workload and caller, at each budget."""
    rows = []
    for name, variant in (("locomo", "used"), ("beam", "used"), ("taubench", "used")):
        path = None if folder is None else folder / f"{name}.npz"
        if path is None or not path.exists():
            continue
        trace = read_npz(path, variant)
        for caller in CALLERS:
            tell(f"{name} {variant}: {caller}")
            found = [
                float(
                    np.mean(
                        [
                            _found(s, budget, caller, trace.score_from, trace.need)
                            for s in trace.streams
                        ]
                    )
                )
                for budget in BUDGETS
            ]
            rows.append({"workload": name, "caller": caller, "found": [round(f, 4) for f in found]})
    return rows


def _found(stream: Stream, budget: float, caller: str, score_from: float, need_kind: str) -> float:
    """The share of what was needed that a store with that caller found."""
    cap = max(1, int(budget * len(stream)))
    store = MemoryStore(stream.vectors.shape[1], cap, low_watermark=WATERMARK)
    shares: list[float] = []
    for kind, row in stream.events():
        if kind == "add":
            cost = 1 if stream.cost is None else int(stream.cost[row])
            store.add(stream.vectors[row], cost=cost)
        elif kind == "query":
            hits = np.array([hit.id for hit in store.search(stream.queries[row], touch=5)], int)
            need = stream.need.of(row)
            if not need.size:
                continue
            if stream.asked[row] >= score_from * len(stream):
                shares.append(_share(stream, row, hits, need_kind))
            store.feedback(CALLERS[caller](hits, need))
    return float(np.mean(shares))


def _share(stream: Stream, row: int, hits: Sequence[int], need_kind: str) -> float:
    need = stream.need.of(row)
    found = np.isin(need, hits)
    if need_kind != "coverage":
        return float(found.mean())
    groups = stream.need.groups_of(row)
    return np.unique(groups[found]).size / np.unique(groups).size
