"""Cells arranged for reading: one panel a trace, one row a policy, one spot a budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from memsift.errors import InvalidValue
from memsift.evaluation.cell import Cell

KEEP_EVERYTHING = "keep everything"
ORACLE = "oracle"
RANDOM = "random"
_CEILINGS = (KEEP_EVERYTHING, ORACLE)

Role = Literal["ceiling", "policy", "floor"]
_Key = tuple[str, str, str, float]


@dataclass(frozen=True)
class Spot:
    """One policy at one budget, averaged over seeds. Shares in [0, 1], NaN where unmeasured.

    Parameters
    ----------
    recall, low, high : float
        Mean, least and greatest recall over the seeds.
    std : float
        Sample standard deviation over the seeds; NaN with fewer than two.
    share : float
        `recall` as a share of what keep everything finds.
    kept : float
        Share of the needed memories that were still stored when asked for.
    """

    recall: float
    low: float
    high: float
    std: float
    share: float
    kept: float


@dataclass(frozen=True)
class Row:
    """One policy at every budget at which it was replayed."""

    policy: str
    role: Role
    spots: dict[float, Spot]

    @property
    def mean(self) -> float:
        return _mean(spot.recall for spot in self.spots.values())

    def recall(self, budget: float) -> float:
        """Mean recall at `budget`; NaN where it was not replayed."""
        spot = self.spots.get(budget)
        return math.nan if spot is None else spot.recall


@dataclass(frozen=True)
class Panel:
    """Everything measured on one trace, driven in one way.

    Rows come as they are read: the ceilings, then the policies by falling mean recall. `random`
    keeps its rank among them, so that a policy below the floor is seen below it.
    """

    workload: str
    variant: str
    need: str
    watermark: float
    budgets: tuple[float, ...]
    rows: tuple[Row, ...]
    queries: tuple[int, int]
    occupancy: float

    def row(self, policy: str) -> Row | None:
        return next((row for row in self.rows if row.policy == policy), None)

    @property
    def contenders(self) -> tuple[Row, ...]:
        """All rows but the ceilings; best mean recall first."""
        return tuple(row for row in self.rows if row.role != "ceiling")

    @property
    def seeded(self) -> bool:
        """Whether any figure is a mean over several seeds."""
        return any(spot.std == spot.std for row in self.rows for spot in row.spots.values())

    def best(self, budget: float) -> tuple[Row, ...]:
        """The contenders that no other beats at `budget`, as far as the printed decimal shows."""
        found = {row.policy: round(100 * row.recall(budget), 1) for row in self.contenders}
        top = max((value for value in found.values() if value == value), default=math.nan)
        return tuple(row for row in self.contenders if found[row.policy] == top)


def panels_of(cells: Iterable[Cell]) -> list[Panel]:
    """One panel per (workload, variant), in the order of their first cells.

    Cells of another watermark or need are never averaged with each other: they make a panel of
    their own. Keep everything never compacts, so it belongs to all panels of its trace.
    """
    cells = list(cells)
    if not cells:
        raise InvalidValue("cells must hold at least one cell; got none")
    groups: dict[_Key, list[Cell]] = {}
    for cell in cells:
        if cell.policy != KEEP_EVERYTHING:
            groups.setdefault(_key(cell), []).append(cell)
    for cell in cells:
        if cell.policy == KEEP_EVERYTHING:
            homes = [key for key in groups if key[:3] == _key(cell)[:3]] or [_key(cell)]
            for key in homes:
                groups.setdefault(key, []).append(cell)
    return [_panel(key, group) for key, group in groups.items()]


def _key(cell: Cell) -> _Key:
    return cell.workload, cell.variant, cell.need, cell.watermark


def _panel(key: _Key, cells: Sequence[Cell]) -> Panel:
    capped = [cell for cell in cells if cell.policy != KEEP_EVERYTHING] or list(cells)
    everything = [cell for cell in cells if cell.policy == KEEP_EVERYTHING]
    budgets = tuple(sorted({cell.budget for cell in capped}))
    by_policy: dict[str, dict[float, Spot]] = {}
    for budget in budgets:
        # Without a cap there is no budget to match, so one replay can stand for all of them.
        ceiling = [cell for cell in everything if cell.budget == budget] or everything
        at: dict[str, list[Cell]] = {KEEP_EVERYTHING: ceiling} if ceiling else {}
        for cell in capped:
            if cell.budget == budget and cell.policy != KEEP_EVERYTHING:
                at.setdefault(cell.policy, []).append(cell)
        reference = _mean(cell.recall for cell in ceiling)
        for policy, same in at.items():
            by_policy.setdefault(policy, {})[budget] = _spot(same, reference)
    rows = [Row(policy, _role(policy), spots) for policy, spots in by_policy.items()]
    counts = [cell.queries for cell in cells]
    return Panel(
        *key,
        budgets=budgets,
        rows=tuple(sorted(rows, key=_rank)),
        queries=(min(counts), max(counts)),
        occupancy=_mean(cell.occupancy for cell in capped),
    )


def _spot(cells: Sequence[Cell], reference: float) -> Spot:
    found = [cell.recall for cell in cells if cell.recall == cell.recall]
    mean = _mean(found)
    spread = math.nan
    if len(found) > 1:
        spread = math.sqrt(sum((value - mean) ** 2 for value in found) / (len(found) - 1))
    return Spot(
        recall=mean,
        low=min(found, default=math.nan),
        high=max(found, default=math.nan),
        std=spread,
        share=mean / reference if reference > 0 else math.nan,
        kept=_mean(cell.kept for cell in cells),
    )


def _role(policy: str) -> Role:
    if policy in _CEILINGS:
        return "ceiling"
    return "floor" if policy == RANDOM else "policy"


def _rank(row: Row) -> tuple[int, float, str]:
    if row.role == "ceiling":
        return _CEILINGS.index(row.policy), 0.0, ""
    mean = row.mean
    return len(_CEILINGS), -mean if mean == mean else math.inf, row.policy


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if value == value]
    return math.fsum(known) / len(known) if known else math.nan
