"""What a caller finds useful, learned from confirmed use alone: being returned teaches nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from memsift.kernels import Float64

# One step's length, and the share of it by which what was learned shrinks back to nothing learned.
RATE = 0.05
SHRINK = 0.002


class Taste(NamedTuple):
    """Weights of standardised features, added to a standardised score.

    Parameters
    ----------
    weights : tuple of floats
        Empty before the first lesson.
    lessons : int
        Confirmed uses that it learned from.
    """

    weights: tuple[float, ...] = ()
    lessons: int = 0

    def taught(
        self, used: Float64, others: Float64, lead: Float64
    ) -> Taste:
        """After one confirmed use: the used entry should score above each of some others.

        A step of online gradient descent (Zinkevich 2003) on the pairwise logistic loss (RankNet, Burges et al. 2005),
        shrunk towards the prior, which is 0.

        Parameters
        ----------
        used : (f,) float64
            Standardised features of the entry that was used.
        others : (m, f) float64
            Those of entries that were not.
        lead : (m,) float64
            By how much the used one's standardised score leads each of them without what was learned.
        """
        weights = np.array(self.weights or (0.0,) * used.size)
        for other, ahead in zip(others, lead, strict=True):
            apart = used - other
            doubt = 1.0 / (1.0 + np.exp(np.clip(ahead + weights @ apart, -30.0, 30.0)))
            weights = weights + RATE / len(others) * doubt * apart
        weights = weights * (1.0 - RATE * SHRINK)
        return Taste(tuple(weights.round(9).tolist()), self.lessons + 1)
