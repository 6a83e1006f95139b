"""Signals from when and how often an entry was returned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from memsift.kernels import Float64, Rows
from memsift.signals.base import ColumnSignal, faded, ratio
from memsift.view import MemoryView


@dataclass(frozen=True)
class Recency(ColumnSignal):
    """(accessed_tick - min) / (max - min), 0 if max = min; in [0, 1] (ruvector ADR-252)."""

    name: ClassVar[str] = "recency"
    needs: ClassVar[frozenset[str]] = frozenset({"accessed_tick"})

    def of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        ticks = view.accessed_tick
        low, high = (int(ticks.min()), int(ticks.max())) if len(view) else (0, 0)
        return ratio(ticks[rows], low, high - low)


@dataclass(frozen=True)
class StackDistance(ColumnSignal):
    """1 - d / (n - 1), d = entries that were added or returned since this one was; in [0, 1], 1 if n = 1.

    Recency in structural time: the depth in the stack of Mattson, Gecsei, Slutz and Traiger (1970), so that a pause
    and a burst of searches over the same few entries age nothing. Entries of the same tick share a depth. What left the
    memory is not counted.
    """

    name: ClassVar[str] = "stack_distance"
    needs: ClassVar[frozenset[str]] = frozenset({"accessed_tick"})

    def of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        ticks = np.sort(view.accessed_tick)
        not_since = np.searchsorted(ticks, view.accessed_tick[rows], side="right")
        depths = ticks.size - not_since
        return 1.0 - depths / max(1, ticks.size - 1)


@dataclass(frozen=True)
class Frequency(ColumnSignal):
    """access_count / max(access_count), 0 if max = 0; in [0, 1] (ruvector ADR-252)."""

    name: ClassVar[str] = "frequency"
    needs: ClassVar[frozenset[str]] = frozenset({"access_count"})

    def of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        counts = view.access_count
        return ratio(counts[rows], 0, int(counts.max()) if len(view) else 0)


@dataclass(frozen=True)
class Heat(ColumnSignal):
    """heat * 0.995^(tick - accessed_tick), how often it was returned lately; in [0, 200] returns.

    Frequency with exponential decay, as in LRFU (Lee et al. 2001): each return adds 1, which fades by half in 138
    ticks. 200 is returned by every search. 0 throughout in a store whose policy does not ask for it.
    """

    name: ClassVar[str] = "heat"
    needs: ClassVar[frozenset[str]] = frozenset({"heat", "accessed_tick"})

    def of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        return faded(view.heat, view, rows)


@dataclass(frozen=True)
class Attention(ColumnSignal):
    """attention * 0.995^(tick - accessed_tick), the share of the searches' attention; in [0, 200] searches.

    Each search spreads 1 over its hits by softmax(cosine / 0.05), which fades by half in 138 ticks: the accumulated
    attention that keeps heavy hitters in a cache of keys and values (H2O, Zhang et al. 2023). 0 throughout in a store
    whose policy does not ask for it.
    """

    name: ClassVar[str] = "attention"
    needs: ClassVar[frozenset[str]] = frozenset({"attention", "accessed_tick"})

    def of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        return faded(view.attention, view, rows)
