"""What a signal is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from memsift.kernels import Float32, Float64, Rows
from memsift.view import MemoryView

if TYPE_CHECKING:
    from memsift.policies.weighted import WeightedPolicy


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

    def values(self, view: MemoryView) -> Float32:
        """One value per entry: (n,) float32."""
        raise NotImplementedError(f"{type(self).__name__} must define values(view)")

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        """The values of some rows in float64, for decisions that float32 noise must not make: (rows,) float64.

        Only signals whose `values` depend on the order of a sum need to override this.
        """
        return self.values(view)[rows].astype(np.float64)

    def __rmul__(self, weight: float) -> WeightedPolicy:
        # An expression of signals is a policy, one line above this one in the house.
        from memsift.policies.weighted import WeightedPolicy

        return WeightedPolicy(((weight, self),))

    def __add__(self, other: WeightedPolicy | Signal) -> WeightedPolicy:
        return 1.0 * self + other

    def configuration(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}


def ratio(values: npt.NDArray[np.int64], low: int, span: int) -> Float64:
    """(values - low) / span in float64, in [0, 1]; 0 if the span is 0."""
    if span == 0:
        return np.zeros(values.size)
    # The difference in integers: two ticks beyond 2**53 may be the same float64.
    return (values - low) / span
