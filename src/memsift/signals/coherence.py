"""Signals from what the agent asked lately."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from memsift import checks
from memsift.errors import InvalidValue
from memsift.kernels import BLOCK, Float32, Float64, Rows
from memsift.signals.base import Signal
from memsift.view import MemoryView, Rough


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

    def rough(self, view: MemoryView) -> Rough:
        if not len(view.context):
            return self.values(view), None
        best, off = view.rough_cosine_max(self.window)
        return np.maximum(best, np.float32(0.0), out=best), off

    def near(self, view: MemoryView, rows: Rows) -> Float32:
        if not len(view.context):
            return self.values(view)[rows]
        return np.maximum(view.near_cosine_max(self.window, rows), np.float32(0.0))

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        if not len(view.context):
            return np.zeros(rows.size)
        return np.maximum(view.exact_cosine_max(self.window, rows), 0.0)


@dataclass(frozen=True)
class Density(Signal):
    """Sum over the last `window` queries of decay^age * exp((cosine - 1) / temperature); in [0, window].

    Age 0 is the newest. How densely the queries lie around an entry: a kernel density (Parzen 1962) with kernels of
    von Mises and Fisher. Where coherence asks for one close query, this counts them. 0 for every entry while nothing
    was asked.

    Parameters
    ----------
    window : int, 1 to 10,000
        How many of the last queries count.
    decay : float, above 0, up to 1
        What is left of a query's weight with each one after it.
    temperature : float, at least 0.001
        The width of the kernel: at a cosine of 1 - temperature a query counts 0.37.
    """

    name: ClassVar[str] = "density"
    needs: ClassVar[frozenset[str]] = frozenset({"vectors", "context"})

    window: int = 20
    decay: float = 0.99
    temperature: float = 0.1

    def __post_init__(self) -> None:
        window = checks.integer(self.window, "Density.window", 1, 10_000)
        decay = checks.fraction(self.decay, "Density.decay", zero=False)
        temperature = checks.real(self.temperature, "Density.temperature", "of at least 0.001")
        if temperature < 0.001:
            raise InvalidValue(
                f"Density.temperature must be a number of at least 0.001; got {temperature!r}"
            )
        for name, value in (("window", window), ("decay", decay), ("temperature", temperature)):
            object.__setattr__(self, name, value)

    @property
    def queries(self) -> int:
        return self.window

    @property
    def noise(self) -> float:
        """The steepest that the sum can be: each query's weight over the temperature, at least 1."""
        return max(1.0, float(self._weights(self.window).sum()) / self.temperature)

    def values(self, view: MemoryView) -> Float32:
        if len(view) and len(view.context):
            return view.over_cosines(self.window, self._sum)
        return np.zeros(len(view), np.float32)

    def rough(self, view: MemoryView) -> Rough:
        if not len(view.context):
            return self.values(view), None
        cosines, off = view.rough_cosines(self.window)
        out = self._sum(cosines)
        # All kernels grow by the same factor at most.
        return out, None if off is None else out * np.expm1(off / np.float32(self.temperature))

    def near(self, view: MemoryView, rows: Rows) -> Float32:
        if rows.size == len(view):
            return self.values(view)
        return self.exact(view, rows).astype(np.float32)

    def _sum(self, cosines: Sequence[Float32] | Float32) -> Float32:
        """The sum of the kernels of some rows of cosines, oldest first."""
        out = np.zeros(cosines[0].size, np.float32)
        room = np.empty_like(out)
        for weight, row in zip(self._weights(len(cosines)), cosines, strict=True):
            # weight * exp((cosine - 1) / temperature) in one buffer and without a product.
            np.multiply(row, np.float32(1 / self.temperature), out=room)
            room += np.float32(math.log(weight) - 1 / self.temperature)
            out += np.exp(room, out=room)
        return out

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        out = np.zeros(rows.size)
        recent = view.context[-self.window :].astype(np.float64)
        weights = self._weights(len(recent))
        for start in range(0, rows.size if len(recent) else 0, BLOCK):
            part = rows[start : start + BLOCK]
            cosines = np.dot(view.take(part).vectors.astype(np.float64), recent.T)
            near = np.exp((np.minimum(cosines, 1.0) - 1.0) / self.temperature)
            np.dot(near, weights, out=out[start : start + BLOCK])
        return out

    def _weights(self, count: int) -> Float64:
        """The weight of each query, oldest first: (count,) float64."""
        return np.power(self.decay, np.arange(count, dtype=np.float64)[::-1])
