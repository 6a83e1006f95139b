"""How close entries are to their nearest others: exact cosines, and never n x n of them at once.

Float32 products say which others are nearest; where noise could confuse two of them, and for the sum that comes out,
float64 decides. So the numbers are the same whatever the BLAS, and wherever the entries lie.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.kernels import ABSENT, DECIMALS, NOISE, Float32, Float64, Rows

Mask = npt.NDArray[np.bool_]
# Up to so many entries each is compared with every other one; beyond, with a sample of so many, and at least the
# nearest few of it. Rank correlation with the truth at 20,000 entries: 0.93 in a seventh of the time.
EXACT = 10_000
SAMPLE = 2048
FEWEST = 3
SEED = 20
# Products at a time: 16 MiB of them.
PRODUCTS = 1 << 22


class Sample(NamedTuple):
    """With how many entries each one is compared, and how many of them, the nearest, count."""

    size: int
    nearest: int


def sample_for(n: int, neighbours: int) -> Sample:
    """What stands for the `neighbours` nearest in a memory of n entries: all of it, or its due share of a sample."""
    return Sample(n, min(neighbours, n - 1)) if n <= EXACT else estimate_for(n, neighbours)


def estimate_for(n: int, neighbours: int) -> Sample:
    """The same from a sample, however few there are."""
    size = min(n, SAMPLE)
    return Sample(size, min(size - 1, max(FEWEST, round(neighbours * size / max(1, n)))))


def sampled(ids: kernels.Rows, size: int) -> Rows:
    """Rows of the entries that stand for all: (up to size,), in the order of their ids.

    By their ids alone, and hardly others when a few come or go.
    """
    if size >= ids.size:
        return np.argsort(ids)
    chosen = np.argsort(kernels.spread(ids, SEED))[:size]
    found: Rows = chosen[np.argsort(ids[chosen])]
    return found


class Others:
    """Entries to be near to.

    Parameters
    ----------
    vectors : (n, dim) float32
        Unit rows, not to be changed.
    count : int
        How many of them, the nearest, an entry is measured by; fewer if there are no more.
    """

    def __init__(self, vectors: Float32, count: int) -> None:
        self._vectors, self._count = vectors, count

    @cached_property
    def _wide(self) -> Float64:
        return self._vectors.astype(np.float64)

    @property
    def block(self) -> int:
        """How many rows to ask for at a time."""
        return max(16, min(1024, PRODUCTS // max(1, len(self._vectors))))

    def closeness(self, rows: Float32, own: Rows) -> Float64:
        """The mean cosine of each of these rows to its nearest: (m,) float64, rounded to 9 decimals; 0 among none.

        Parameters
        ----------
        rows : (m, dim) float32
        own : (m,) intp
            Where each of them stands among the others, since nobody is near to itself; -1 where it does not.
        """
        out = np.zeros(len(rows))
        count = min(self._count, len(self._vectors) - 1)
        if count > 0:
            products = np.dot(rows, self._vectors.T)
            there = np.flatnonzero(own >= 0)
            products[there, own[there]] = ABSENT
            few, near, sure = _nearest(products, count)
            out[sure] = self._mean(rows[sure], near[sure, :count])
            doubtful = few & ~sure
            out[doubtful] = self._mean_of_best(rows[doubtful], near[doubtful], count)
            out[~few] = self._mean_of_all(rows[~few], own[~few], count)
        return np.clip(out.round(DECIMALS), -1.0, 1.0)

    def _mean(self, rows: Float32, near: Rows) -> Float64:
        """The mean cosine of rows to these others, (m, count): one product with the sum of them."""
        total = np.zeros(rows.shape)
        for column in near.T:
            total += self._vectors[column]
        found: Float64 = np.vecdot(total, rows.astype(np.float64)) / near.shape[1]
        return found

    def _mean_of_best(self, rows: Float32, near: Rows, count: int) -> Float64:
        """The same to the best of these, (m, at least count); -1 is nobody."""
        out = np.empty(len(rows))
        step = max(1, PRODUCTS // max(1, near.shape[1] * rows.shape[1]))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            vectors = self._vectors[near[part]].astype(np.float64)
            cosines = np.vecdot(vectors, rows[part, None].astype(np.float64))
            cosines[near[part] < 0] = ABSENT
            out[part] = _top(cosines, count).mean(1)
        return out

    def _mean_of_all(self, rows: Float32, own: Rows, count: int) -> Float64:
        """The same to the best of all."""
        out = np.empty(len(rows))
        step = max(1, self.block // 2)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            cosines = np.dot(rows[part].astype(np.float64), self._wide.T)
            there = np.flatnonzero(own[part] >= 0)
            cosines[there, own[part][there]] = ABSENT
            out[part] = _top(cosines, count).mean(1)
        return out


def _nearest(products: Float32, count: int) -> tuple[Mask, Rows, Mask]:
    """Where in rows of products (m, n) the `count` largest must be.

    Returns
    -------
    few : (m,) bool
        Rows in which not too many come into question.
    near : (m, at least count) intp
        Those that do, the largest first, then -1.
    sure : (m,) bool
        Rows in which the first `count` are the ones, beyond doubt.
    """
    m, n = products.shape
    groups = 8 * count
    if n >= 2 * groups:
        # The largest of strided groups: the count-th of them bounds the count-th of all from below.
        whole = n // groups * groups
        best = products[:, :whole].reshape(m, -1, groups).max(1)
    else:
        best = products
    bound = _top(best, count).min(1)
    found = products >= (bound - 2 * NOISE)[:, None]
    few: Mask = np.count_nonzero(found, axis=1) <= groups
    found[~few] = False
    row, column = found.nonzero()
    crowd = np.bincount(row, minlength=m)
    place = np.arange(row.size) - np.repeat(np.cumsum(crowd) - crowd, crowd)
    width = max(count + 1, int(crowd.max(initial=0)))
    values = np.full((m, width), 2 * ABSENT, np.float32)
    near = np.full((m, width), -1, np.intp)
    values[row, place], near[row, place] = products[row, column], column
    order = np.argsort(-values, axis=1)
    values = np.take_along_axis(values, order, axis=1)
    sure = few & (values[:, count - 1] - values[:, count] > 2 * NOISE)
    return few, np.take_along_axis(near, order, axis=1), sure


def _top(rows: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """The `count` largest of each row, in any order: (m, count)."""
    least = rows.shape[1] - count
    return np.partition(rows, least, axis=1)[:, least:]
