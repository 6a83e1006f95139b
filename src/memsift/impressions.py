"""First impressions: what an entry was like beside the others when it was added.

They are measured once, kept with the entry and never change, so that a compaction needs no neighbours. Everything
here is exact to nine decimals: two machines have the same impressions of the same entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.clusters import Clusters
from memsift.kernels import Float32, Float64, Rows

# A newcomer is compared with at most so many entries, and a batch with at most so many pairs in all: beyond that,
# with an evenly spread sample of them. One addition then costs no more than a search.
COMPARED = 8192
PAIRS = 2**23
BLOCK = 512
# In larger batches a newcomer is compared with the mean of the blocks before its own.
BULK = 4096
# An entry is seen beside this many added before it.
BEFORE = 3
NAMES = frozenset({"nearest", "typicality", "adjacency", "cluster"})


class Mean(NamedTuple):
    """The sum of all unit rows that were ever added, (dim,) float64, and their number."""

    total: Float64
    seen: int

    def without(self, vectors: Float32) -> Mean:
        """As if these rows (m, dim) had never come."""
        count = max(0, self.seen - len(vectors))
        return Mean((self.total - vectors.sum(0, dtype=np.float64)) * (count > 0), count)


class Impressions:
    """Measures newcomers.

    Parameters
    ----------
    dim : int

    Attributes
    ----------
    mean : Mean
    clusters : Clusters
    """

    def __init__(self, dim: int) -> None:
        self.mean = Mean(np.zeros(dim), 0)
        self.clusters = Clusters(dim)

    def of(
        self, vectors: kernels.Vectors, start: int, before: Float32, wanted: frozenset[str]
    ) -> dict[str, npt.NDArray[Any]]:
        """Columns of the entries in rows `start` and after of `vectors`, as if they had come one by one.

        Parameters
        ----------
        vectors : (n, dim) float32
            All rows, the newcomers last.
        before : (up to 3, dim) float32
            Those added last before them, oldest first.
        wanted : set of names
            Of the columns that somebody reads; the others are not measured.
        """
        new = vectors[start:]
        columns: dict[str, npt.NDArray[Any]] = {}
        if "nearest" in wanted:
            columns["nearest"] = nearest(vectors, start)
        if "typicality" in wanted:
            columns["typicality"] = self._typicality(new)
        else:
            total = self.mean.total + new.sum(0, dtype=np.float64)
            self.mean = Mean(total, self.mean.seen + len(new))
        if "adjacency" in wanted:
            columns["adjacency"] = adjacency(new, before)
        if "cluster" in wanted:
            columns["cluster"] = self.clusters.join(new)
        return columns

    def forget(self, vectors: Float32) -> None:
        """As if these rows (m, dim) had never come: no copy of one is kept, nor a mean that is one."""
        self.mean = self.mean.without(vectors)
        self.clusters.forget(vectors)

    def _typicality(self, new: Float32) -> Float32:
        out = np.full(len(new), np.nan, np.float32)
        bulk = len(new) > BULK
        for at in range(0, len(new), BLOCK):
            rows = new[at : at + BLOCK].astype(np.float64)
            if bulk:
                sums, counts = self.mean.total, np.full(len(rows), self.mean.seen)
                products = np.vecdot(rows, sums)
            else:
                sums = self.mean.total + np.cumsum(rows, 0) - rows
                counts = self.mean.seen + np.arange(len(rows))
                products = np.vecdot(rows, sums)
            known = counts > 0
            out[at : at + BLOCK][known] = (products[known] / counts[known]).round(kernels.DECIMALS)
            self.mean = Mean(self.mean.total + rows.sum(0), self.mean.seen + len(rows))
        return out


def nearest(vectors: kernels.Vectors, start: int) -> Float32:
    """The largest cosine of each row from `start` on to one before it: (m,) float32, NaN where there is none."""
    if len(vectors) == start + 1 and start and not isinstance(vectors, np.ndarray):
        return _nearest_by_scan(vectors, start)
    m = len(vectors) - start
    out = np.full(m, np.nan, np.float32)
    for at in range(0, m, BLOCK):
        first = start + at
        new = vectors[first : first + BLOCK]
        step = max(1, -(-first // min(COMPARED, max(1, PAIRS // m))))
        known = vectors[:first:step]
        found = np.full((len(new), len(known) + len(new)), kernels.ABSENT, np.float32)
        if len(known):
            if len(new) == 1:
                kernels.scan(known, new[0], found[0, : len(known)])
            else:
                found[:, : len(known)] = np.dot(new, np.ascontiguousarray(known).T)
        if len(new) > 1:
            among = np.dot(new, new.T)
            among[np.triu_indices(len(new))] = kernels.ABSENT
            found[:, len(known) :] = among
        best = found.max(1)
        near = found >= (best - 2 * kernels.NOISE)[:, None]
        alone = np.flatnonzero((best > kernels.ABSENT) & (np.count_nonzero(near, 1) == 1))
        places = found.argmax(1)[alone]
        rows = np.where(places < len(known), places * step, first + places - len(known))
        pairs = np.vecdot(new[alone].astype(np.float64), vectors[rows].astype(np.float64))
        out[at + alone] = np.clip(pairs.round(kernels.DECIMALS), -1.0, 1.0)
        for row in np.flatnonzero((best > kernels.ABSENT) & (np.count_nonzero(near, 1) > 1)):
            places = np.flatnonzero(near[row])
            rows = np.where(places < len(known), places * step, first + places - len(known))
            out[at + row] = kernels.exact_cosines(vectors, rows, new[row]).max()
    return out


def _nearest_by_scan(vectors: Any, start: int) -> Float32:
    """`nearest` of the one row after `start`, where a plane scans faster than it gives rows."""
    step = max(1, -(-start // COMPARED))
    scores, new = np.empty(-(-start // step), np.float32), vectors[start]
    margin = 2 * (kernels.NOISE + vectors.scan(new, scores, step))
    near = np.flatnonzero(scores >= scores.max() - np.float32(margin)) * step
    best = kernels.exact_cosines(vectors, vectors.plane.narrowed(new, near, 1), new).max()
    return np.full(1, best, np.float32)


def adjacency(new: Float32, before: Float32) -> Float32:
    """The mean cosine of each new row to the three that came before it: (m,) float32, NaN if none did."""
    out = np.empty(len(new), np.float32)
    for at in range(0, len(new), BLOCK):
        part = new[at : at + BLOCK].astype(np.float64)
        rows = np.concatenate([before[-BEFORE:], part])
        total, count = np.zeros(len(rows)), np.zeros(len(rows))
        for lag in range(1, BEFORE + 1):
            total[lag:] += np.vecdot(rows[lag:], rows[:-lag])
            count[lag:] += 1
        with np.errstate(invalid="ignore"):
            means = (total / count).round(kernels.DECIMALS)
        out[at : at + BLOCK] = means[len(rows) - len(part) :]
        before = rows
    return out


def last_added(ids: npt.NDArray[np.int64]) -> Rows:
    """Rows of the entries that came last, oldest first: (up to 3,)."""
    few = min(BEFORE, ids.size)
    rows = np.argpartition(ids, ids.size - few)[ids.size - few :] if few else np.empty(0, np.intp)
    found: Rows = rows[np.argsort(ids[rows])]
    return found
