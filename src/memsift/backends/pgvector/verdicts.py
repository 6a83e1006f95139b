"""What the statement could not settle: who stays of those at the cut, by the policy itself, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.backends.base import Share
from memsift.backends.ids import Id, numbers, to_json
from memsift.backends.pgvector.scoring import Scoring
from memsift.backends.planning import SHOWN, view_of
from memsift.errors import BudgetExceeded
from memsift.policies.base import by_rule, policy_name
from memsift.signals import Coherence, Frequency

# Vectors at the cut that are in RAM at one time.
CHUNK = 500
Vectors = Callable[[list[Id]], npt.NDArray[np.float32]]


@dataclass
class Memory:
    """One memory of a plan: what its scores are relative to, and its victims and doubtful entries, aligned."""

    tenant: str | None
    low: int = 0
    high: int = 0
    most: int = 0
    held: int = 0
    pins: int = 0
    room: int = 0
    cut: float | None = None
    ids: list[Id] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def mark(self, row: int) -> str:
        """What an entry is like, as `Table.mark` writes it."""
        return f"{self.ticks[row]}/{self.counts[row]}/{self.versions[row]}"


def read(rows: Iterable[tuple[Any, ...]]) -> dict[str | None, Memory]:
    """The memories of a statement's rows, by tenant.

    Raises
    ------
    BudgetExceeded
        In one of them the pinned entries are more than may stay.
    """
    found: dict[str | None, Memory] = {}
    for id_, tenant, version, tick, count, score, place, high, held, pins in rows:
        memory = found.get(tenant) or found.setdefault(tenant, Memory(tenant))
        if id_ is None:
            memory.low, memory.high, memory.most = tick, high, count
            memory.held, memory.pins, memory.room, memory.cut = held, pins, place, score
            continue
        memory.ids.append(id_)
        memory.versions.append(version)
        memory.ticks.append(tick)
        memory.counts.append(count)
        memory.scores.append(score)
        memory.places.append(place)
    for (
        memory
    ) in found.values():  # not before all rows are read, or the connection is left amid them
        if memory.pins > memory.room:
            raise BudgetExceeded(
                f"pinned entries must fit into the target of {memory.room:,} entries; "
                f"they take {memory.pins:,}"
            )
    order = sorted(found, key=lambda tenant: (tenant is not None, (tenant or "").encode()))
    return {tenant: found[tenant] for tenant in order}


def victims(memory: Memory, scoring: Scoring, vectors: Vectors) -> list[int]:
    """Rows of the memory's victims, worst first; the scores of those at the cut are made exact in place."""
    places = np.array(memory.places, np.int64)
    room = memory.room - memory.pins
    if scoring.band is not None and memory.cut is not None:
        scores = np.array(memory.scores)
        doubtful = np.flatnonzero(scores >= memory.cut - scoring.band)
        if doubtful.size > 1:
            order = doubtful[_exact_order(memory, scoring, doubtful, vectors)]
            # They share out the places among themselves that they had together.
            places[order] = np.sort(places[doubtful])
            stays = np.flatnonzero(places[order] <= room)
            if stays.size:
                memory.cut = memory.scores[int(order[stays[-1]])]
    leaving = np.flatnonzero(places > room)
    return [int(row) for row in leaving[np.argsort(-places[leaving], kind="stable")]]


def _exact_order(
    memory: Memory, scoring: Scoring, rows: npt.NDArray[np.intp], vectors: Vectors
) -> npt.NDArray[np.intp]:
    """The order of some rows, best first, as the store in RAM has it."""
    policy = scoring.policy
    keys = np.empty(rows.size)
    ticks = np.array([memory.ticks[row] for row in rows], np.int64)
    counts = np.array([memory.counts[row] for row in rows], np.int64)
    ids = [memory.ids[row] for row in rows]
    for start in range(0, rows.size, CHUNK):
        part = slice(start, start + CHUNK)
        found = vectors(ids[part])
        # Two more rows carry the extremes of the whole memory, which recency and frequency are relative to.
        ends = np.zeros((2, found.shape[1]), np.float32)
        view = view_of(
            range(len(found) + 2),
            {
                "vectors": np.concatenate([found, ends]),
                "accessed_tick": np.concatenate([ticks[part], [memory.low, memory.high]]),
                "access_count": np.concatenate([counts[part], [0, memory.most]]),
            },
            scoring.context,
        )
        keys[part] = policy.keys(view, np.arange(len(found)))
    for row, key in zip(rows.tolist(), keys.tolist(), strict=True):
        memory.scores[row] = key * policy.scale
    return by_rule(keys, ticks, numbers(ids))


def share_of(memory: Memory, leaving: list[int]) -> Share:
    """What the plan does to the memory."""
    cut = None if memory.cut is None else float(memory.cut)
    return Share(memory.tenant, memory.held, memory.pins, len(leaving), cut)


def reasons(memory: Memory, scoring: Scoring, leaving: list[int]) -> list[dict[str, Any]]:
    """Why the worst victims leave, and those nearest to the cut."""
    return [
        _reason(memory, scoring, row)
        for row in dict.fromkeys([*leaving[:SHOWN], *leaving[-SHOWN:]])
    ]


def _reason(memory: Memory, scoring: Scoring, row: int) -> dict[str, Any]:
    span = memory.high - memory.low
    recency = (memory.ticks[row] - memory.low) / span if span else 0.0
    frequency = memory.counts[row] / memory.most if memory.most else 0.0
    score = float(memory.scores[row])
    parts = []
    for weight, signal in scoring.parts:
        value = frequency if isinstance(signal, Frequency) else recency
        parts.append((signal.name, weight, 0.0 if isinstance(signal, Coherence) else value))
    # The coherence is what is left of the score.
    rest = score - sum(weight * value for _, weight, value in parts)
    signals = {}
    for name, weight, value in parts:
        if name == Coherence.name and weight:
            value = max(0.0, rest / weight)
        signals[name] = {
            "value": round(value, 6),
            "weight": weight,
            "contribution": round(weight * value, 6),
        }
    margin = None if memory.cut is None else min(0.0, round(score - memory.cut, 6))
    return {
        "id": to_json(memory.ids[row]),
        "tenant": memory.tenant,
        "verdict": "evict",
        "policy": policy_name(scoring.policy),
        "signals": signals,
        "score": round(score, 6),
        "margin": margin,
    }
