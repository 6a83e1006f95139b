"""Signals from when and how often an entry was returned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from memsift.kernels import Float32, Float64, Rows
from memsift.signals.base import Signal, ratio
from memsift.view import MemoryView

ALL = slice(None)


@dataclass(frozen=True)
class Recency(Signal):
    """(accessed_tick - min) / (max - min), 0 if max = min; in [0, 1] (ruvector ADR-252)."""

    name: ClassVar[str] = "recency"
    needs: ClassVar[frozenset[str]] = frozenset({"accessed_tick"})

    def values(self, view: MemoryView) -> Float32:
        return self._of(view, ALL).astype(np.float32)

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        return self._of(view, rows)

    def _of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        ticks = view.accessed_tick
        low, high = (int(ticks.min()), int(ticks.max())) if len(view) else (0, 0)
        return ratio(ticks[rows], low, high - low)


@dataclass(frozen=True)
class Frequency(Signal):
    """access_count / max(access_count), 0 if max = 0; in [0, 1] (ruvector ADR-252)."""

    name: ClassVar[str] = "frequency"
    needs: ClassVar[frozenset[str]] = frozenset({"access_count"})

    def values(self, view: MemoryView) -> Float32:
        return self._of(view, ALL).astype(np.float32)

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        return self._of(view, rows)

    def _of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        counts = view.access_count
        return ratio(counts[rows], 0, int(counts.max()) if len(view) else 0)
