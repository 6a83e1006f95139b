"""Selection: the best entries within limits, in O(n), and the same ones whatever the machine.

Entries are ranked by score; the longest prefix of that ranking that is within every limit stays. Scores come
in float32, whose last digits depend on the BLAS and its threads, so they only decide what is clearly above or
below the cut. The few entries near it are ranked by exact keys and then by rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memsift.kernels import NOISE, Float32, Rows

Mask = npt.NDArray[np.bool_]
Order = Callable[[Rows], Rows]


class Limit(NamedTuple):
    """At most `room` of a unit in all, each entry taking its weight: (n,) int64, or 1 each if None."""

    weights: npt.NDArray[np.int64] | None
    room: int
    unit: str = "entries"

    def of(self, rows: Rows) -> npt.NDArray[np.int64]:
        return np.ones(rows.size, np.int64) if self.weights is None else self.weights[rows]

    def total(self, rows: Rows) -> int:
        return rows.size if self.weights is None else int(self.weights[rows].sum())

    def beside(self, held: Mask) -> Limit:
        """What is left of it beside the entries that are held, (n,) bool; may be below 0."""
        weight = int(np.count_nonzero(held) if self.weights is None else self.weights[held].sum())
        return self._replace(room=self.room - weight)

    def scaled(self, share: float) -> Limit:
        """The same with a share of the room, rounded down."""
        return self._replace(room=int(share * max(0, self.room)))


class Doubt(NamedTuple):
    """How far scores may be off, (n,) float32, and what computes those of some rows right to float32."""

    off: Float32
    near: Callable[[Rows], Float32]


def keep_best_of_doubtful(
    scores: Float32,
    doubt: Doubt,
    limits: list[Limit],
    locked: Mask,
    order: Order,
    scale: float = 1.0,
) -> Mask:
    """`keep_best` as by right scores, where these may be off: (n,) bool.

    Of most entries it is plain on which side of the cut they are, by how much however they and the cut are off. Of the
    others the right scores are computed and written into `scores`, those first that are nearest to the cut, since they
    say where it is.
    """
    free = np.flatnonzero(~locked)
    rest = [limit.beside(locked) for limit in limits]
    values, off = (
        (scores, doubt.off) if free.size == locked.size else (scores[free], doubt.off[free])
    )
    cut = _highest(values, free, rest)
    if not np.isfinite(cut):
        return keep_best(scores, limits, locked, order, scale)
    margin = 2 * NOISE * max(scale, abs(cut))
    # The right cut is no farther from this one than any score is off.
    above, doubtful = values - np.float32(cut), off + np.float32(float(off.max()) + margin)
    keep = locked.copy()
    keep[free[above > doubtful]] = True
    near = free[np.abs(above, out=above) <= doubtful]
    rest = [
        limit.beside(keep)._replace(weights=None if limit.weights is None else limit.weights[near])
        for limit in limits
    ]
    right, reach = scores[near], doubt.off[near]
    every, nobody = np.arange(near.size), np.zeros(near.size, np.bool_)
    while True:
        low, high = (_highest(right + side * reach, every, rest) for side in (-1, 1))
        open_ = (reach > 0) & (right + reach >= low - margin) & (right - reach <= high + margin)
        if not open_.any():
            break
        middle = open_ & (np.abs(right - _highest(right, every, rest)) <= reach)
        rows = np.flatnonzero(middle if middle.any() else open_)
        right[rows], reach[rows] = doubt.near(near[rows]), 0.0
    scores[near] = right

    def ranked(rows: Rows) -> Rows:
        return np.searchsorted(near, order(near[rows]))

    keep[near] = keep_best(right, rest, nobody, ranked, scale)
    return keep


def _highest(values: Float32, rows: Rows, limits: list[Limit]) -> float:
    """The highest cut of any limit, see `_cut`."""
    return max((_cut(values, rows, limit) for limit in limits), default=-np.inf)


def keep_best(
    scores: Float32, limits: list[Limit], locked: Mask, order: Order, scale: float = 1.0
) -> Mask:
    """Which entries stay.

    Parameters
    ----------
    scores : (n,) float32, finite
    limits : list of Limit
        Locked entries must fit into every one of them.
    locked : (n,) bool
        Entries that stay whatever their score.
    order : callable
        Sorts rows by exact key and rule, best first. Called once, with the rows near the cut.
    scale : float, above 0
        What float32 noise in the scores is proportional to.

    Returns
    -------
    (n,) bool
    """
    keep = locked.copy()
    rest = [limit.beside(locked) for limit in limits]
    free = np.flatnonzero(~locked)
    values = scores[free] if free.size < locked.size else scores
    cut = _highest(values, free, rest)
    if cut == -np.inf:
        keep[free] = True
        return keep
    if cut == np.inf:
        return keep
    margin = NOISE * max(scale, abs(cut))
    # One difference for both tests, in float64: no entry may fall between them.
    above = np.subtract(values, cut, dtype=np.float64)
    sure = free[np.flatnonzero(above > margin)]
    keep[sure] = True
    near = free[np.flatnonzero(np.abs(above, out=above) <= margin)]
    if near.size > 1:  # mostly there is only the one at the cut
        near = order(near)
    fits = np.ones(near.size, np.bool_)
    for limit in rest:
        fits &= limit.total(sure) + np.cumsum(limit.of(near)) <= limit.room
    # A prefix of the ranking: whatever comes after the first that does not fit leaves as well.
    keep[near[np.logical_and.accumulate(fits)]] = True
    return keep


def _cut(values: Float32, rows: Rows, limit: Limit) -> float:
    """The score at which the ranking of `rows` meets the limit; -inf if all fit, inf if none may."""
    if limit.weights is None:
        if limit.room >= rows.size:
            return -np.inf
        if limit.room <= 0:
            return np.inf
        return float(np.partition(values, rows.size - limit.room)[rows.size - limit.room])
    weights = limit.weights[rows]
    if int(weights.sum()) <= limit.room:
        return -np.inf
    # Weighted quickselect: the half that holds the crossing is halved again, n + n/2 + n/4 ... in all.
    part, room = np.arange(rows.size), limit.room
    while part.size > 1:
        middle = part.size // 2
        split = part[np.argpartition(values[part], part.size - middle)]
        upper = split[part.size - middle :]
        weight = int(weights[upper].sum())
        if weight > room:
            part = upper
        else:
            part, room = split[: part.size - middle], room - weight
    return float(values[part[0]])
