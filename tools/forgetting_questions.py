"""The reference design's five open questions, and where the gate opens: what is measured beside the suite.

Each function gives JSON-ready values; `forgetting_page` prints them. Workloads that are not there are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from forgetting_hostile import hostile

from memsift.evaluation import report
from memsift.evaluation.cell import Cell
from memsift.evaluation.readers import read_manual, read_npz
from memsift.evaluation.replay import VARIANTS, Lives, replay
from memsift.evaluation.suite import known_policies, seeded
from memsift.evaluation.synthetic import SYNTHETIC
from memsift.evaluation.trace import Trace
from memsift.policies import CoherencePolicy, CompactionPolicy, to_text
from memsift.policies.base import Decision
from memsift.store import MemoryStore

BUDGET, WATERMARK = 0.25, 0.97
SEEDS = (0, 1, 2)

# alpha, beta, gamma: the corners, the sides, the middle, and one of each at most of the weight.
MIXES = (
    (0.25, 0.35, 0.4), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.5, 0.5, 0), (0.5, 0, 0.5), (0, 0.5, 0.5),
    (0.6, 0.2, 0.2), (0.2, 0.6, 0.2), (0.2, 0.2, 0.6),
)  # fmt: skip
SHARES = (0, 0.1, 0.2, 0.3, 0.5)

Place = tuple[str, str, Callable[[], Trace]]


def places(folder: Path | None, wanted: Sequence[tuple[str, str]]) -> Iterator[Place]:
    """Name, variant and reader of each wanted workload that is there."""
    for name, variant in wanted:
        if name in SYNTHETIC:
            yield name, variant, partial(seeded, name, SYNTHETIC[name], SEEDS)
        elif name == "manual":
            yield name, variant, read_manual
        elif folder is not None and (path := folder / f"{name}.npz").exists():
            yield name, variant, partial(read_npz, path, variant)


def cells_of(
    where: Iterator[Place], policies: Sequence[CompactionPolicy], tell: Callable[[str], None]
) -> dict[str, Any]:
    """Each policy at a quarter of each workload, as `report.to_json` writes it."""
    cells = []
    for name, variant, load in where:
        lives = Lives(load())
        for policy in policies:
            tell(f"{name} {variant}: {to_text(policy)}")
            cells.append(lives.cell(policy, BUDGET, variant, WATERMARK))
    return report.to_json([replace(cell, seconds=round(cell.seconds, 3)) for cell in cells])


def weights(folder: Path | None, tell: Callable[[str], None]) -> dict[str, Any]:
    """Which weights of recency, frequency and coherence are best, and whether one choice serves all."""
    wanted = (
        ("locomo", "interleaved"), ("beam", "interleaved"), ("taubench", "log"),
        ("reference-like", "log"), ("drift", "log"), ("shift", "log"),
    )  # fmt: skip
    mixes = [CoherencePolicy(*map(float, mix)) for mix in MIXES]
    return cells_of(places(folder, wanted), mixes, tell)


def floors(folder: Path | None, tell: Callable[[str], None]) -> dict[str, Any]:
    """What a floor under every cluster costs, and whom it saves."""
    wanted = (
        ("topics", "log"), ("fixation", "log"), ("drift", "log"),
        ("locomo", "interleaved"), ("taubench", "log"),
    )  # fmt: skip
    bases = [CoherencePolicy().with_floor(share) for share in SHARES]
    ours, _ = known_policies([f"adaptive:floor={share}" for share in SHARES])
    return cells_of(places(folder, wanted), [*bases, *ours], tell)


def gate(folder: Path | None, tell: Callable[[str], None]) -> dict[str, Any]:
    """How much each workload's queries recur, and what each end of the gate would do there."""
    wanted = (
        *(("locomo", v) for v in ("end-traffic", "interleaved")),
        *(("beam", v) for v in ("end-traffic", "interleaved")),
        ("taubench", "log"), ("intercode", "log"), ("manual", "log"),
        *((name, "log") for name in SYNTHETIC),
    )  # fmt: skip
    policies, unknown = known_policies(
        ["adaptive", "adaptive:goal=evidence", "adaptive:goal=replay"]
    )
    if unknown:
        return {"measured": [], "ends": {"cells": []}}
    measured, cells = [], []
    for name, variant, load in places(folder, wanted):
        trace = load()
        tell(f"{name} {variant}: the gate")
        found = [_gate_of(trace, number, variant) for number in range(len(trace.streams))]
        known, opened = zip(*found, strict=True)
        measured.append(
            {"workload": name, "variant": variant, "streams": len(found)}
            | {
                n: round(float(f(known)), 4)
                for n, f in (("low", min), ("middle", np.median), ("high", max))
            }
            | {"open": round(float(np.mean(opened)), 4)}
        )
        lives = Lives(trace)
        for policy in policies:
            tell(f"{name} {variant}: {to_text(policy)}")
            cells.append(lives.cell(policy, BUDGET, variant, WATERMARK))
    return {"measured": measured, "ends": report.to_json(cells)}


def _gate_of(trace: Trace, number: int, variant: str) -> tuple[float, float]:
    """The share of a stream's queries that recur when it ends, and how far the gate stands open."""
    from memsift.policies import AdaptivePolicy

    stream = trace.streams[number]
    stores: list[MemoryStore] = []
    cap = max(1, int(BUDGET * len(stream)))
    replay(
        stream, AdaptivePolicy(), cap, VARIANTS[variant], watermark=WATERMARK, at_end=stores.append
    )
    policy = stores[0].policy
    assert isinstance(policy, AdaptivePolicy)
    known = 0.0 if policy.learned is None else policy.learned.traffic.confidence
    return known, policy.weights_["gate"]


class Checked(CoherencePolicy):
    """Coherence that decides twice at each compaction: from the searches' own products, and from new ones."""

    def decide(self, view: Any, limits: Any, locked: Any) -> Decision:
        found = super().decide(view, limits, locked)
        if len(view.context):
            started = time.perf_counter()
            online = view.cosine_max(self.window)
            between = time.perf_counter()
            again = view.with_context(view.context)
            anew = again.cosine_max(self.window)
            spent = between - started, time.perf_counter() - between
            same = bool((super().decide(again, limits, locked).keep == found.keep).all())
            apart = float(np.abs(online - anew).max(initial=0.0))
            LOG.append((same, apart, *spent, len(view)))
        return found


LOG: list[tuple[bool, float, float, float, int]] = []


def online(folder: Path | None, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Whether coherence kept up by the searches is what a recomputation gives, and what each costs."""
    rows = []
    wanted = (
        ("locomo", "interleaved"),
        ("taubench", "log"),
        ("intercode", "log"),
        ("drift", "log"),
    )
    for name, variant, load in places(folder, wanted):
        tell(f"{name} {variant}: coherence twice")
        LOG.clear()
        for stream in load().streams:
            cap = max(1, int(0.5 * len(stream)))
            replay(stream, Checked(), cap, VARIANTS[variant], watermark=WATERMARK)
        same, apart, kept, anew, n = map(np.array, zip(*LOG, strict=True))
        rows.append(
            {
                "workload": name,
                "variant": variant,
                "compactions": len(LOG),
                "same": int(same.sum()),
                "apart": float(apart.max()),
                "entries": int(np.median(n)),
                "kept_us": round(1e6 * float(np.median(kept)), 1),
                "anew_us": round(1e6 * float(np.median(anew)), 1),
            }
        )
    return rows


def all_questions(folder: Path | None, tell: Callable[[str], None]) -> dict[str, Any]:
    """Everything that is measured beside the suite."""
    return {
        "weights": weights(folder, tell),
        "online": online(folder, tell),
        "floors": floors(folder, tell),
        "gate": gate(folder, tell),
        "feedback": hostile(folder, tell),
    }


def loaded(data: dict[str, Any]) -> list[Cell]:
    """The cells of one of these tables."""
    return report.from_json(data)
