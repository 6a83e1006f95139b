"""Policies that look at one column: rows of every table, and hard to beat on the memories that suit them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from memsift.kernels import Rows
from memsift.policies.base import ScoredPolicy, Term
from memsift.signals.base import ratio
from memsift.view import MemoryView


@dataclass(frozen=True)
class OldestPolicy(ScoredPolicy):
    """The newest leave: what came first stays, as in a memory that is full and takes nothing more."""

    name: ClassVar[str] = "oldest"
    needs: ClassVar[frozenset[str]] = frozenset({"created_tick"})

    def terms(self, view: MemoryView) -> list[Term]:
        return [_first(view.created_tick, "age")]

    def exact(self, view: MemoryView, rows: Rows) -> npt.NDArray[np.int64]:
        return -view.created_tick[rows]


@dataclass(frozen=True)
class LongestPolicy(ScoredPolicy):
    """The shortest leave: the largest cost stays."""

    name: ClassVar[str] = "longest"
    needs: ClassVar[frozenset[str]] = frozenset({"cost"})

    def terms(self, view: MemoryView) -> list[Term]:
        low, high = (int(view.cost.min()), int(view.cost.max())) if len(view) else (0, 0)
        return [Term("length", 1.0, ratio(view.cost, low, high - low).astype(np.float32))]

    def exact(self, view: MemoryView, rows: Rows) -> npt.NDArray[np.int64]:
        return view.cost[rows]


@dataclass(frozen=True)
class ShortestPolicy(ScoredPolicy):
    """The longest leave: the smallest cost stays, and so, of a budget in cost, the largest number of entries."""

    name: ClassVar[str] = "shortest"
    needs: ClassVar[frozenset[str]] = frozenset({"cost"})

    def terms(self, view: MemoryView) -> list[Term]:
        return [_first(view.cost, "brevity")]

    def exact(self, view: MemoryView, rows: Rows) -> npt.NDArray[np.int64]:
        return -view.cost[rows]


def _first(column: npt.NDArray[np.int64], name: str) -> Term:
    """The term by which the smallest stay: (max - value) / (max - min), 0 if max = min."""
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    return Term(name, 1.0, ratio(high - column, 0, high - low).astype(np.float32))
