"""The store's default: judged by need or by recurrence, whichever the store's own queries call for."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np

from memsift import checks
from memsift.errors import InvalidValue
from memsift.kernels import Float32, Float64, Rows
from memsift.learning import Learned
from memsift.policies.base import Mask, ScoredPolicy, Term
from memsift.policies.floor import floor
from memsift.selection import Limit
from memsift.view import FADE, MemoryView

GOALS = ("auto", "evidence", "replay")
LONGEST = 48
WINDOW = 20


@dataclass(frozen=True)
class AdaptivePolicy(ScoredPolicy):
    """Placeholder docstring."""

    name: ClassVar[str] = "adaptive"
    needs: ClassVar[frozenset[str]] = frozenset(
        "created_tick accessed_tick access_count use_count cost nearest typicality adjacency "
        "cluster attention heat vectors context".split()
    )

    goal: str = "auto"
    learn: bool = True
    probation: float = 0.1
    floor: float = 0.2
    opens: float = 0.6
    open: float = 0.8
    learned: Learned = field(default=Learned(), repr=False, compare=False)
    gate: float | None = field(default=None, repr=False)
    per: str | None = field(default=None, repr=False)

    @property
    def queries(self) -> int:
        return WINDOW

    @property
    def scale(self) -> float:
        return 20.0

    def bound(self, view: MemoryView, limits: list[Limit]) -> AdaptivePolicy:
        gate = self.gate
        if gate is None:
            known = self.learned.traffic.confidence
            gate = min(1.0, max(0.0, (known - self.opens) / (self.open - self.opens)))
            gate = {"evidence": 0.0, "replay": 1.0}.get(self.goal, gate)
        tight = [x for x in limits if x.weights is not None and int(x.weights.sum()) > x.room]
        tight.sort(key=lambda x: x.room / max(1, int(x.weights.sum())))  # type: ignore[union-attr]
        return replace(self, gate=gate, per=tight[0].unit if tight else None)

    def terms(self, view: MemoryView) -> list[Term]:
        g = self.gate or 0.0
        out = []
        if g < 1:
            out += [
                Term("size", 2 * (1 - g), np.log1p(np.minimum(view.cost, LONGEST)).astype(np.float32)),
                Term("nearest", -8 * (1 - g), known(view.nearest)),
                Term("typicality", -4 * (1 - g), known(view.typicality)),
            ]
        if g > 0:
            age = np.maximum(0, view.tick - view.accessed_tick).astype(np.float32)
            mass = view.attention * np.float32(FADE) ** age
            out += [
                Term("frequency", g, np.log1p(view.access_count).astype(np.float32)),
                Term("recency", -g, np.log1p(age)),
                Term("attention", g, np.log(mass + np.float32(1e-4))),
            ]
            if len(view.context):
                cosines = view.cosines(WINDOW)
                out += [Term("coherence", 2 * g, np.maximum(0, cosines.max(0)))]
                dens = np.exp((cosines - 1) / np.float32(0.1)).sum(0)
                out += [Term("density", 0.3 * g, np.log(dens + np.float32(1e-6)))]
        out += [Term("use", 1.0, np.log1p(view.use_count).astype(np.float32))]
        return out

    def protected(
        self, view: MemoryView, limits: list[Limit], locked: Mask, scores: Float32
    ) -> dict[str, Mask]:
        newest = np.zeros(len(view), np.bool_)
        order = np.lexsort((-view.ids, -view.created_tick))
        order = order[~locked[order]]
        fits = np.ones(order.size, np.bool_)
        for limit in limits:
            fits &= np.cumsum(limit.of(order)) <= limit.beside(locked).scaled(self.probation).room
        newest[order[np.logical_and.accumulate(fits)]] = True
        out = {"probation": newest}
        if self.floor:
            out["floor"] = floor(self, view, limits, locked | newest, scores, self.floor)
        return out


def known(column: Float32) -> Float32:
    """A column with its mean where nothing is known."""
    missing = np.isnan(column)
    if not missing.any():
        return column
    out = column.copy()
    out[missing] = column[~missing].mean() if not missing.all() else 0.0
    return out
