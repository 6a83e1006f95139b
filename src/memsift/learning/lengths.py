"""Whether long entries say something new in this memory, or only say more."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from memsift.kernels import Float64

# Sums are kept in steps of this: whole numbers add up to the same whatever their order.
STEP = 1e-4
# Entries that count before the correlation is half believed.
DOUBT = 20
# Long entries are trusted fully at a correlation of 0.05, and not at all at -0.05.
STEEPNESS = 10.0


class Lengths(NamedTuple):
    """Sums over all entries that ever came: of their size x, of their content y, and of the products.

    Survivors would not do: a policy that keeps long and new entries makes the two look opposed (Berkson 1946).
    """

    n: int = 0
    x: int = 0
    y: int = 0
    xx: int = 0
    yy: int = 0
    xy: int = 0

    def joined(self, size: Float64, content: Float64) -> Lengths:
        """With some more entries: (m,) each, below 100 in size."""
        x, y = (np.rint(values / STEP).astype(np.int64) for values in (size, content))
        sums = (x.sum(), y.sum(), np.dot(x, x), np.dot(y, y), np.dot(x, y))
        return Lengths(
            self.n + x.size, *(old + int(new) for old, new in zip(self[1:], sums, strict=True))
        )

    @property
    def correlation(self) -> float:
        """Pearson's, nearer to 0 while entries are few; 0 where nothing varies."""
        if self.n < 2:
            return 0.0
        spread = (self.n * self.xx - self.x**2) * (self.n * self.yy - self.y**2)
        if spread <= 0:
            return 0.0
        found = (self.n * self.xy - self.x * self.y) / math.sqrt(spread)
        return found * self.n / (self.n + DOUBT)

    @property
    def trust(self) -> float:
        """How far to believe that a long entry is worth more, in [0, 1]; a half where nothing is known."""
        return round(min(1.0, max(0.0, 0.5 + STEEPNESS * self.correlation)), 6)
