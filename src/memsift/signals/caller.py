"""Signals from what the caller said of an entry: how long it is, what it is worth, that it helped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from memsift import checks
from memsift.kernels import Float32, Float64, Rows
from memsift.signals.base import ColumnSignal, Signal
from memsift.view import MemoryView


@dataclass(frozen=True)
class Use(ColumnSignal):
    """ln(1 + use_count), how often the caller said that it helped; in [0, 44].

    Being returned is not being used: only `feedback` counts.
    """

    name: ClassVar[str] = "use"
    needs: ClassVar[frozenset[str]] = frozenset({"use_count"})

    def of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        return np.log1p(view.use_count[rows].astype(np.float64))


@dataclass(frozen=True)
class Size(ColumnSignal):
    """ln(1 + min(cost, cap)), how much an entry says; in [0, ln(1 + cap)].

    Length is the plainest prior of relevance (Singhal, Buckley and Mitra 1996), and a risky one: hence the cap.

    Parameters
    ----------
    cap : int, 1 to 2**40
        In the unit of the costs, words or tokens; longer ones are no better.
    """

    name: ClassVar[str] = "size"
    needs: ClassVar[frozenset[str]] = frozenset({"cost"})

    cap: int = 48

    def __post_init__(self) -> None:
        cap = checks.integer(self.cap, "Size.cap", 1, checks.LARGEST_COST)
        object.__setattr__(self, "cap", cap)

    def of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        return np.log1p(np.minimum(view.cost[rows], self.cap).astype(np.float64))


@dataclass(frozen=True)
class Importance(Signal):
    """The importance that the caller gave; in [0, 1] (the third factor of Park et al. 2023).

    Parameters
    ----------
    unset : float in [0, 1]
        What an entry counts as whose importance nobody gave.
    """

    name: ClassVar[str] = "importance"
    needs: ClassVar[frozenset[str]] = frozenset({"importance"})

    unset: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "unset", checks.fraction(self.unset, "Importance.unset"))

    def values(self, view: MemoryView) -> Float32:
        # In float32 as those that were given, so that an equal one is equal.
        return np.where(np.isnan(view.importance), np.float32(self.unset), view.importance)
