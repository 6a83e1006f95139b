"""Policies that look at nothing but order or chance. Every table shows them: they are hard to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.kernels import Rows, spread
from memsift.policies.base import ScoredPolicy, Term
from memsift.signals.base import ratio
from memsift.view import MemoryView


@dataclass(frozen=True)
class FifoPolicy(ScoredPolicy):
    """First in, first out: the newest stay."""

    name: ClassVar[str] = "fifo"
    needs: ClassVar[frozenset[str]] = frozenset({"created_tick"})

    def terms(self, view: MemoryView) -> list[Term]:
        ticks = view.created_tick
        low, high = (int(ticks.min()), int(ticks.max())) if len(view) else (0, 0)
        return [Term("newness", 1.0, ratio(ticks, low, high - low).astype(np.float32))]

    def exact(self, view: MemoryView, rows: Rows) -> npt.NDArray[np.int64]:
        return view.created_tick[rows]


@dataclass(frozen=True)
class RandomPolicy(ScoredPolicy):
    """Chance decides, anew at each tick: the floor of every table.

    A pure function of seed, tick and id, so that a replay repeats it.

    Parameters
    ----------
    seed : int, at least 0
    """

    name: ClassVar[str] = "random"

    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.integer(self.seed, "RandomPolicy.seed", 0))

    def terms(self, view: MemoryView) -> list[Term]:
        draws = self.exact(view, np.arange(len(view)))
        return [Term("chance", 1.0, (draws / 2.0**63).astype(np.float32))]

    def exact(self, view: MemoryView, rows: Rows) -> npt.NDArray[np.int64]:
        start = (self.seed * 0x9E3779B97F4A7C15 + view.tick * 0xD1B54A32D192ED03) % 2**64
        return (spread(view.ids[rows], start) >> np.uint64(1)).astype(np.int64)
