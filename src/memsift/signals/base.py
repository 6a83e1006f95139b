"""What a signal is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from memsift.kernels import DECIMALS, Float32, Float64, Rows
from memsift.view import FADE, MemoryView, Rough

if TYPE_CHECKING:
    from memsift.policies.weighted import WeightedPolicy

ALL = slice(None)


@dataclass(frozen=True)
class Signal:
    """A pure function of the view: one number per entry, higher = keep.

    A subclass is a frozen dataclass with a `name`, the view's columns that it `needs`, and `values`.
    Signals are added with weights: `0.5 * Recency() + 0.5 * Coherence()` is a policy.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()

    @property
    def queries(self) -> int:
        """How many of the last queries the signal looks at."""
        return 0

    @property
    def crowd(self) -> int:
        """How many nearest others the signal looks at."""
        return 0

    @property
    def noise(self) -> float:
        """How many times the float32 noise of a cosine its `values` may be off by, at least 1."""
        return 1.0

    def values(self, view: MemoryView) -> Float32:
        """One value per entry: (n,) float32."""
        raise NotImplementedError(f"{type(self).__name__} must define values(view)")

    def rough(self, view: MemoryView) -> Rough:
        """`values` as near as the store has them without reading vectors, and how far each may be off: (n,) each.

        None in place of the second says that they are right to float32. A signal that overrides this overrides `near`.
        """
        return self.values(view), None

    def near(self, view: MemoryView, rows: Rows) -> Float32:
        """The values of some rows, right to float32: (rows,) float32."""
        return self.values(view)[rows]

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        """The values of some rows in float64, for decisions that float32 noise must not make: (rows,) float64.

        Only signals whose `values` depend on the order of a sum need to override this.
        """
        return self.values(view)[rows].astype(np.float64)

    def bound(self, view: MemoryView) -> Signal:
        """The signal that judges this view: one that judges by more than the view shows says by what."""
        return self

    def __rmul__(self, weight: float) -> WeightedPolicy:
        # An expression of signals is a policy, one line above this one in the house.
        from memsift.policies.weighted import WeightedPolicy

        return WeightedPolicy(((weight, self),))

    def __add__(self, other: WeightedPolicy | Signal) -> WeightedPolicy:
        return 1.0 * self + other

    def configuration(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}


class ColumnSignal(Signal):
    """A signal of columns alone, computed in float64 throughout: a subclass defines `of`."""

    def of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        """The values of some rows: (rows,) float64."""
        raise NotImplementedError(f"{type(self).__name__} must define of(view, rows)")

    def values(self, view: MemoryView) -> Float32:
        return self.of(view, ALL).astype(np.float32)

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        return self.of(view, rows)


def ratio(values: npt.NDArray[np.int64], low: int, span: int) -> Float64:
    """(values - low) / span in float64, in [0, 1]; 0 if the span is 0."""
    if span == 0:
        return np.zeros(values.size)
    # The difference in integers: two ticks beyond 2**53 may be the same float64.
    return (values - low) / span


def filled(column: Float32, rows: Rows | slice) -> Float64:
    """Some rows of a column in float64, unknown ones (NaN) as the mean of all known, 0 if none is: (rows,)."""
    out = column[rows].astype(np.float64)
    missing = np.isnan(out)
    if missing.any():
        known = column[~np.isnan(column)]
        # Rounded, so that the order of the slots does not show.
        out[missing] = round(float(known.mean(dtype=np.float64)), DECIMALS) if known.size else 0.0
    return out


def faded(column: Float32, view: MemoryView, rows: Rows | slice) -> Float64:
    """Some rows of a mass as of accessed_tick, times 0.995 for each tick since: (rows,) float64."""
    age = np.maximum(0, view.tick - view.accessed_tick[rows])
    return column[rows].astype(np.float64) * np.power(FADE, age.astype(np.float64))
