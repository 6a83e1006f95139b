"""What a policy costs where another was better: regret to the best fixed policy of each cell, known with hindsight."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memsift.evaluation.cell import Cell, Parts
from memsift.evaluation.replay import CEILINGS
from memsift.evaluation.statistics import DECIMALS, Interval, Measure, averaged_parts, paired

ADAPTS = ("adaptive",)
"""Names of policies that change with what they see; all others are fixed."""


@dataclass(frozen=True)
class Entry:
    """One policy in one place: the mean over its seeds."""

    policy: str
    recall: float
    kept: float
    fidelity: float
    occupancy: float
    parts: Parts


@dataclass(frozen=True)
class Place:
    """One workload, driven in one way, at one budget, with every policy that was replayed there."""

    workload: str
    variant: str
    budget: float
    watermark: float
    need: str
    queries: int
    entries: dict[str, Entry]
    everything: Entry | None

    @property
    def fixed(self) -> tuple[Entry, ...]:
        """What regret is measured against: neither ceilings nor policies that adapt."""
        return tuple(e for e in self.entries.values() if is_fixed(e.policy))

    def best(self, measure: Measure = "recall") -> Entry:
        """The best fixed policy here; of equals the first that was replayed."""
        return max(self.fixed, key=lambda e: _known(getattr(e, measure)))

    def regret(self, policy: str, measure: Measure = "recall") -> float:
        """How much more the best fixed policy finds; below 0 where this one is better."""
        best = getattr(self.best(measure), measure)
        return float(best - getattr(self.entries[policy], measure))

    def against(self, policy: str, other: str, measure: Measure = "recall") -> Interval:
        """`policy` minus `other`, with its interval."""
        return paired(self.entries[policy].parts, self.entries[other].parts, measure)

    @property
    def name(self) -> str:
        return f"{self.workload} · {self.variant} · {100 * self.budget:.4g} %"


def is_fixed(policy: str) -> bool:
    """Whether a policy's label is one of a policy that does not adapt, and no ceiling."""
    return policy not in CEILINGS and policy.partition(":")[0] not in ADAPTS


def places_of(cells: Iterable[Cell]) -> list[Place]:
    """One place per workload, variant, watermark and budget, in the order of their first cells."""
    groups: dict[tuple[str, str, float, float], dict[str, list[Cell]]] = {}
    everything: dict[tuple[str, str, float], Cell] = {}
    for cell in cells:
        if cell.policy == CEILINGS[0]:
            everything[cell.workload, cell.variant, cell.watermark] = cell
        else:
            key = cell.workload, cell.variant, cell.watermark, cell.budget
            groups.setdefault(key, {}).setdefault(cell.policy, []).append(cell)
    places = []
    for (workload, variant, watermark, budget), policies in groups.items():
        all_kept = everything.get((workload, variant, watermark))
        some = next(iter(policies.values()))[0]
        places.append(
            Place(
                workload,
                variant,
                budget,
                watermark,
                some.need,
                some.queries,
                {policy: _entry(same) for policy, same in policies.items()},
                None if all_kept is None else _entry([all_kept]),
            )
        )
    return places


@dataclass(frozen=True)
class Regret:
    """One policy over many places, in shares.

    Parameters
    ----------
    mean, worst : float
    where : Place
        The place of the worst.
    within : float
        Share of the places in which it is within one point of the best fixed policy.
    places : int
    """

    policy: str
    mean: float
    worst: float
    where: Place
    within: float
    places: int


def regrets(places: Sequence[Place], measure: Measure = "recall") -> list[Regret]:
    """Every policy that was replayed in all places that carry the measure, least mean regret first."""
    told = [p for p in places if p.fixed and _known(getattr(p.best(measure), measure)) >= 0]
    if not told:
        return []
    everywhere = set.intersection(*(set(p.entries) for p in told)) - set(CEILINGS)
    found = []
    for policy in everywhere:
        each = [p.regret(policy, measure) for p in told]
        worst = max(range(len(each)), key=each.__getitem__)
        near = sum(r <= 0.01 for r in each) / len(each)
        mean = math.fsum(each) / len(each)
        found.append(Regret(policy, mean, each[worst], told[worst], near, len(each)))
    return sorted(found, key=lambda r: (r.mean, r.policy))


@dataclass(frozen=True)
class Loss:
    """A place in which a policy is below the best fixed one by more than chance."""

    place: Place
    best: str
    by: Interval


def losses(places: Sequence[Place], policy: str, measure: Measure = "recall") -> list[Loss]:
    """Every place in which `policy` is significantly below the best fixed one, worst first."""
    found = []
    for place in places:
        if policy in place.entries and place.fixed:
            best = place.best(measure).policy
            by = place.against(policy, best, measure)
            if by.below:
                found.append(Loss(place, best, by))
    return sorted(found, key=lambda loss: loss.by.value)


def _entry(cells: Sequence[Cell]) -> Entry:
    def mean(name: str) -> float:
        values = [v for cell in cells if (v := getattr(cell, name)) == v]
        return math.fsum(values) / len(values) if values else math.nan

    return Entry(
        cells[0].policy,
        mean("recall"),
        mean("kept"),
        mean("fidelity"),
        mean("occupancy"),
        averaged_parts([cell.parts for cell in cells]),
    )


def _known(value: float) -> float:
    """A figure to compare by; what lies beyond nine decimals is the machine's."""
    return round(value, DECIMALS) if value == value else -math.inf
