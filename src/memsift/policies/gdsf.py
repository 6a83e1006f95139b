"""The policy of web caches: what each entry is worth for the room that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from memsift import checks
from memsift.kernels import Float64, Rows
from memsift.policies.base import ScoredPolicy, Term
from memsift.signals import Importance
from memsift.signals.base import ALL
from memsift.signals.clock import one_of
from memsift.view import MemoryView

UNITS = {"cost": "cost", "bytes": "nbytes"}
# What a value counts as at most, so that no ratio of a full counter to a tiny importance leaves float32; and at
# least, in medians, where the mean of 1 / V is taken, so that one worthless entry does not stand for all.
MOST = 1e18
LEAST = 0.01


@dataclass(frozen=True)
class GdsfPolicy(ScoredPolicy):
    """Greedy-Dual-Size-Frequency (Cherkasova 1998): the lowest H = L + F * C / S leaves, value for room.

    F = 1 + access_count, C = what losing it costs (its importance, 0.5 where none was given), S = what it takes up, at
    least 1.

    Greedy-Dual raises L to the H of whatever it evicts, and an entry's H holds the L of its last access: so the
    frequent age. A score must follow from the view alone, so L is the line along which it climbs in a steady state. An
    entry of value V = F * C / S that is not returned again lasts for V / r additions, r = the rise of L per addition,
    and as many leave as come: the sum of r / V over all n entries is 1. In units of n additions, then,

        H = V * mean(1 / V) + aging * additions before its last access / n

    On traces of caches this hits as often as the algorithm with its state (`tests/test_more_policies.py`). Where
    nothing is returned, value for room means that the shortest stay.

    Parameters
    ----------
    per : "cost" or "bytes"
        The S: tokens, or bytes as a budget counts them.
    aging : float, at least 0
        0 is value alone, which never forgets what was once in demand; 1 is Greedy-Dual's.
    """

    name: ClassVar[str] = "gdsf"
    needs: ClassVar[frozenset[str]] = frozenset(
        {"ids", "created_tick", "accessed_tick", "access_count", "importance", "cost", "nbytes"}
    )

    per: str = "cost"
    aging: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "per", one_of(self.per, "GdsfPolicy.per", tuple(UNITS)))
        aging = checks.at_least_zero(self.aging, "GdsfPolicy.aging")
        object.__setattr__(self, "aging", aging)

    @property
    def scale(self) -> float:
        return 1.0 + self.aging

    def terms(self, view: MemoryView) -> list[Term]:
        return [
            Term("value", 1.0, self._value(view, ALL).astype(np.float32)),
            Term("inflation", self.aging, _inflation(view, ALL).astype(np.float32)),
        ]

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        return self._value(view, rows) + self.aging * _inflation(view, rows)

    def _value(self, view: MemoryView, rows: Rows | slice) -> Float64:
        """V * mean(1 / V): (rows,) float64."""
        size = np.maximum(1, getattr(view, UNITS[self.per]))
        value = (1.0 + view.access_count) * Importance().values(view).astype(np.float64) / size
        # In order, so that a sum is the same wherever entries lie.
        ranked = np.sort(value)
        middle = float(ranked[ranked.size // 2]) if ranked.size else 0.0
        usual = middle or float(ranked.max(initial=0.0)) or 1.0
        rate = float((usual / np.maximum(ranked, LEAST * usual)).mean()) if ranked.size else 1.0
        out: Float64 = np.minimum(value[rows] / usual * rate, MOST)
        return out


def _inflation(view: MemoryView, rows: Rows | slice) -> Float64:
    """Additions before the last access of some rows, from the earliest such number, over n: (rows,) float64."""
    if not len(view):
        return np.empty(0)
    # Ids count additions: the highest among those that were there at a tick.
    order = np.argsort(view.created_tick)
    count = np.maximum.accumulate(view.ids[order])
    there = np.searchsorted(view.created_tick[order], view.accessed_tick, side="right")
    additions = count[np.maximum(0, there - 1)]
    out: Float64 = (additions[rows] - additions.min()) / len(view)
    return out
