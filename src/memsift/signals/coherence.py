"""The signal from what the agent asked lately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from memsift import checks
from memsift.kernels import Float32, Float64, Rows
from memsift.signals.base import Signal
from memsift.view import MemoryView


@dataclass(frozen=True)
class Coherence(Signal):
    """max(0, max over the last `window` queries of cosine(entry, query)); in [0, 1] (ruvector ADR-252).

    0 for every entry while nothing was asked.

    Parameters
    ----------
    window : int, 1 to 10,000
        How many of the last queries count.
    """

    name: ClassVar[str] = "coherence"
    needs: ClassVar[frozenset[str]] = frozenset({"vectors", "context"})

    window: int = 20

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "window", checks.integer(self.window, "Coherence.window", 1, 10_000)
        )

    @property
    def queries(self) -> int:
        return self.window

    def values(self, view: MemoryView) -> Float32:
        if not len(view.context):
            return np.zeros(len(view), dtype=np.float32)
        best = view.cosine_max(self.window)
        return np.maximum(best, np.float32(0.0), out=best)

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        if not len(view.context):
            return np.zeros(rows.size)
        return np.maximum(view.exact_cosine_max(self.window, rows), 0.0)
