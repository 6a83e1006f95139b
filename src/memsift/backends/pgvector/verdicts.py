"""What the statement could not settle: who stays of those at the cut, by the policy itself, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.backends.base import Share
from memsift.backends.ids import Id, numbers, to_json
from memsift.backends.pgvector.scoring import Scoring
from memsift.backends.planning import SHOWN, view_of
from memsift.errors import BudgetExceeded
from memsift.kernels import Float64
from memsift.policies.base import by_rule, policy_name
from memsift.signals import Coherence, Frequency

# Vectors at the cut that are in RAM at one time.
CHUNK = 500
Vectors = Callable[[list[Id]], npt.NDArray[np.float32]]


@dataclass
class Memory:
    """One memory of a plan: what its scores are relative to, and its last entries by rank, aligned.

    `room` counts entries that may stay beside the pinned ones, `cut` is the score of the last of them; None without
    such an entry, or if all fit.
    """

    tenant: str | None
    low: int
    high: int
    most: int
    held: int
    pins: int
    room: int
    ids: Sequence[Id] = ()
    versions: Sequence[str] = ()
    ticks: Sequence[int] = ()
    counts: Sequence[int] = ()
    scores: list[float] = field(default_factory=list)
    places: Sequence[int] = ()

    @cached_property
    def cut(self) -> float | None:
        if self.room not in self.places or self.room >= self.held - self.pins:
            return None
        return self.scores[self.places.index(self.room)]

    def marks(self, rows: list[int]) -> list[str]:
        """What some entries are like, as `Table.mark` writes it."""
        ticks, counts, versions = self.ticks, self.counts, self.versions
        return [f"{ticks[row]}/{counts[row]}/{versions[row]}" for row in rows]


def read(rows: list[tuple[Any, ...]]) -> dict[str | None, Memory]:
    """The memories of a statement's rows, by tenant: those without one first, then by name.

    Raises
    ------
    BudgetExceeded
        In one of them the pinned entries are more than may stay.
    """
    found: dict[str | None, Memory] = {}
    for row in rows:
        if row[0] is None:
            _, tenant, low, most, rest, _, room = row
            high, held, pins = map(int, rest.split("/"))
            found[tenant] = Memory(tenant, low, high, most, held, pins, room - pins)
    entries: dict[str | None, list[tuple[Any, ...]]] = {tenant: [] for tenant in found}
    for row in rows:
        if row[0] is not None:
            entries[row[1]].append(row)
    for tenant, memory in found.items():
        own = entries[tenant]
        if memory.room < 0:
            raise BudgetExceeded(
                f"pinned entries must fit into the target of {memory.room + memory.pins:,} "
                f"entries; they take {memory.pins:,}"
            )
        memory.ids = [row[0] for row in own]
        memory.ticks, memory.counts = [row[2] for row in own], [row[3] for row in own]
        memory.versions, memory.scores = [row[4] for row in own], [row[5] for row in own]
        memory.places = [row[6] for row in own]
    order = sorted(found, key=lambda tenant: (tenant is not None, (tenant or "").encode()))
    return {tenant: found[tenant] for tenant in order}


def reaches(memory: Memory, scoring: Scoring) -> bool:
    """Whether the entries that were read are all that may lie on either side of the cut."""
    if scoring.band is None or memory.cut is None or len(memory.ids) == memory.held - memory.pins:
        return True
    return max(memory.scores) > memory.cut + scoring.band


def victims(memory: Memory, scoring: Scoring, vectors: Vectors) -> list[int]:
    """Rows of the memory's victims, worst first; the scores of those at the cut are made exact in place."""
    places = np.array(memory.places, np.int64)
    if scoring.band is not None and memory.cut is not None:
        doubtful = np.flatnonzero(np.abs(np.array(memory.scores) - memory.cut) <= scoring.band)
        if doubtful.size > 1:
            order = doubtful[_exact_order(memory, scoring, doubtful, vectors)]
            # They share out the places among themselves that they had together.
            places[order] = np.sort(places[doubtful])
            memory.cut = memory.scores[int(order[np.flatnonzero(places[order] == memory.room)[0]])]
    leaving = np.flatnonzero(places > memory.room)
    rows: list[int] = leaving[np.argsort(-places[leaving], kind="stable")].tolist()
    return rows


def _exact_order(
    memory: Memory, scoring: Scoring, rows: npt.NDArray[np.intp], vectors: Vectors
) -> npt.NDArray[np.intp]:
    """The order of some rows, best first, as the store in RAM has it."""
    keys = exact_keys(memory, scoring, rows, vectors)
    for row, key in zip(rows.tolist(), keys.tolist(), strict=True):
        memory.scores[row] = key * scoring.policy.scale
    ticks = np.array([memory.ticks[row] for row in rows], np.int64)
    return by_rule(keys, ticks, numbers([memory.ids[row] for row in rows]))


def exact_keys(
    memory: Memory, scoring: Scoring, rows: npt.NDArray[np.intp], vectors: Vectors
) -> Float64:
    """The keys by which the store in RAM would rank some rows: (rows,) float64."""
    keys = np.empty(rows.size)
    for start in range(0, rows.size, CHUNK):
        part = rows[start : start + CHUNK].tolist()
        found = vectors([memory.ids[row] for row in part])
        # Two more rows carry the extremes of the whole memory, which recency and frequency are relative to.
        ends = np.zeros((2, found.shape[1]), np.float32)
        view = view_of(
            range(len(part) + 2),
            {
                "vectors": np.concatenate([found, ends]),
                "accessed_tick": np.array(
                    [*(memory.ticks[row] for row in part), memory.low, memory.high]
                ),
                "access_count": np.array([*(memory.counts[row] for row in part), 0, memory.most]),
            },
            scoring.context,
        )
        keys[start : start + CHUNK] = scoring.policy.keys(view, np.arange(len(part)))
    return keys


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
