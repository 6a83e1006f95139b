"""The reference's three policies (crate ruvector-agent-memory 0.1.0, its ADR 252)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.kernels import Float64, Rows
from memsift.policies.base import ScoredPolicy, Term
from memsift.signals import Coherence, Frequency, Recency, Signal
from memsift.view import MemoryView


@dataclass(frozen=True)
class LruPolicy(ScoredPolicy):
    """Least recently used leaves: the latest accessed_tick stays."""

    name: ClassVar[str] = "lru"
    needs: ClassVar[frozenset[str]] = frozenset({"accessed_tick"})

    def terms(self, view: MemoryView) -> list[Term]:
        return [Term("recency", 1.0, Recency().values(view))]

    def exact(self, view: MemoryView, rows: Rows) -> npt.NDArray[np.int64]:
        return view.accessed_tick[rows]


@dataclass(frozen=True)
class LfuPolicy(ScoredPolicy):
    """Least frequently used leaves: the highest access_count stays.

    Most counts in a real memory are 0, so the rule for ties decides much of what this policy does.
    """

    name: ClassVar[str] = "lfu"
    needs: ClassVar[frozenset[str]] = frozenset({"access_count"})

    def terms(self, view: MemoryView) -> list[Term]:
        return [Term("frequency", 1.0, Frequency().values(view))]

    def exact(self, view: MemoryView, rows: Rows) -> npt.NDArray[np.int64]:
        return view.access_count[rows]


@dataclass(frozen=True)
class CoherencePolicy(ScoredPolicy):
    """alpha * recency + beta * frequency + gamma * coherence with the last queries.

    Before the first query there is no window, and entries are kept as `LfuPolicy` keeps them.

    Parameters
    ----------
    alpha, beta, gamma : float, at least 0
        Weights; the reference's are 0.25, 0.35 and 0.40.
    window : int, 1 to 10,000
        How many of the last queries count.
    """

    name: ClassVar[str] = "coherence"
    needs: ClassVar[frozenset[str]] = frozenset(
        {"accessed_tick", "access_count", "vectors", "context"}
    )

    alpha: float = 0.25
    beta: float = 0.35
    gamma: float = 0.40
    window: int = 20

    def __post_init__(self) -> None:
        for name in ("alpha", "beta", "gamma"):
            weight = checks.at_least_zero(getattr(self, name), f"CoherencePolicy.{name}")
            object.__setattr__(self, name, weight)
        object.__setattr__(
            self, "window", checks.integer(self.window, "CoherencePolicy.window", 1, 10_000)
        )

    @property
    def queries(self) -> int:
        return self.window

    @property
    def scale(self) -> float:
        return self.alpha + self.beta + self.gamma or 1.0

    @property
    def parts(self) -> tuple[tuple[float, Signal], ...]:
        return (
            (self.alpha, Recency()),
            (self.beta, Frequency()),
            (self.gamma, Coherence(self.window)),
        )

    def terms(self, view: MemoryView) -> list[Term]:
        if not len(view.context):
            return LfuPolicy().terms(view)
        return [Term.of(signal, weight, view) for weight, signal in self.parts]

    def exact(self, view: MemoryView, rows: Rows) -> npt.NDArray[np.int64] | Float64:
        if not len(view.context):
            return LfuPolicy().exact(view, rows)
        total = np.zeros(rows.size)
        for weight, signal in self.parts:
            total += weight * signal.exact(view, rows)
        return total
