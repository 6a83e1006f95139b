"""Exact search: one pass over all rows per query, and the best k of it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.planes import stored
from memsift.types import IndexState

Mask = npt.NDArray[np.bool_]
Found = tuple[kernels.Rows, kernels.Float64]


class Searchable(Protocol):
    """What an exact search needs to see: unit rows, an array or a plane's, and the ids that settle ties."""

    @property
    def vectors(self) -> Any: ...

    def column(self, name: str) -> npt.NDArray[np.int64]: ...


class ExactIndex:
    """Brute force over the rows of a table, which it reads in place and never copies.

    Where a plane scans something smaller than its rows, whatever may be among the best by how far that is off is scored
    again, so the answers are the same.
    """

    # Scratch for the scores of a batch: this many at most, of so many queries at once.
    BATCH_SCORES, BATCH = 4_000_000, 128
    # Every search looks at every entry, there is nothing to keep, and no copy of what is erased.
    sees_all = True

    def __init__(self, table: Searchable) -> None:
        self._table = table
        self._scratch = np.full(kernels.LANES, kernels.ABSENT, dtype=np.float32)

    @property
    def nbytes(self) -> int:
        """Scratch for the scores of one query."""
        return self._scratch.nbytes

    def search(
        self,
        query: kernels.Float32,
        k: int,
        mask: Mask | None = None,
        out: kernels.Float32 | None = None,
    ) -> Found:
        """The best `k` rows for one query.

        Parameters
        ----------
        query : (dim,) float32, unit
        k : int, at least 1
            More than there are rows gives all rows.
        mask : (n,) bool, optional
            Rows that may be returned.
        out : (padded(n) or more,) float32, optional
            Receives all similarities, as near as the plane's scan comes; `ABSENT` from n on, before and after.

        Returns
        -------
        rows : (min(k, allowed rows),) intp
            Best first; equal scores by ascending id.
        scores : the same shape, float64
            Cosines, rounded to 9 decimals.
        """
        vectors = self._table.vectors
        n = len(vectors)
        if out is None:
            out = self._room(n)
        off = stored(vectors).scan(query, out[:n])
        return self._ranked(_contenders(out[: kernels.padded(n)], n, k, mask, off), query, k, off)

    def search_many(
        self, queries: kernels.Float32, k: int, mask: Mask | None = None, last: int = 0
    ) -> tuple[list[Found], kernels.Float32]:
        """`search` for each of `queries` (m, dim), with one matrix product per block of them.

        Returns
        -------
        found : list of m results as of `search`
        similarities : (min(last, m), n) float32
            All similarities to the last queries.
        """
        vectors = self._table.vectors
        n, m = len(vectors), len(queries)
        kept = np.empty((min(last, m), n), dtype=np.float32)
        found: list[Found] = []
        plane = stored(vectors)
        for first in range(0, m, self.BATCH):
            part = queries[first : first + self.BATCH]
            # Of these queries, the last so many are among the last whose similarities are wanted.
            wanted = max(0, min(len(part), first + len(part) - (m - len(kept))))
            place = first + len(part) - wanted - (m - len(kept))
            off = plane.reach(part)
            pools = [_Pool(k, off) for _ in part]
            # A tile of rows meets all queries while it is in cache, so the rows are read once for each part.
            step = max(kernels.LANES, self.BATCH_SCORES // len(part))
            for start in range(0, n, step):
                count = min(step, n - start)
                scores = np.full((len(part), kernels.padded(count)), kernels.ABSENT, np.float32)
                plane.products(part, scores[:, :count], start)
                if wanted:
                    tile = scores[len(part) - wanted :, :count]
                    kept[place : place + wanted, start : start + step] = tile
                allowed = None if mask is None else mask[start : start + step]
                for pool, row in zip(pools, scores, strict=True):
                    pool.add(start, row, count, allowed)
            pairs = zip(pools, part, strict=True)
            found += [self._ranked(pool.rows, query, k, off) for pool, query in pairs]
        return found, kept

    @property
    def exact(self) -> ExactIndex:
        """Itself."""
        return self

    def state(self) -> IndexState:
        """What it is doing at this moment: nothing."""
        return IndexState("exact", "exact", 0, 0, len(self._table.vectors), 0, False, None)

    def settle(self, seconds: float) -> bool:
        """There is nothing to wait for."""
        return True

    def erased(self, epoch: int) -> None:
        """There is nothing to forget."""

    def close(self) -> None:
        """There is nothing to end."""

    def _ranked(self, rows: kernels.Rows, query: kernels.Float32, k: int, off: float) -> Found:
        """The best `k` of some rows that hold them, by exact score and then by id."""
        if off:
            rows = stored(self._table.vectors).narrowed(query, rows, k)
        exact = kernels.exact_cosines(self._table.vectors, rows, query)
        order = np.lexsort((self._table.column("ids")[rows], -exact))[:k]
        return rows[order], exact[order]

    def _room(self, n: int) -> kernels.Float32:
        if self._scratch.size < n:
            self._scratch = np.empty(kernels.padded(n + n // 8), dtype=np.float32)
        self._scratch[n:] = kernels.ABSENT
        return self._scratch


class _Pool:
    """The rows that may be among a query's best k, tile after tile; scores may be `off` by so much."""

    def __init__(self, k: int, off: float) -> None:
        self.k, self.off = k, off
        self.rows: kernels.Rows = np.empty(0, np.intp)
        self.scores: kernels.Float32 = np.empty(0, np.float32)

    def add(self, start: int, scores: kernels.Float32, n: int, mask: Mask | None) -> None:
        """The scores of the `n` rows from `start` on."""
        rows = _contenders(scores, n, self.k, mask, self.off)
        if not self.rows.size:
            self.rows, self.scores = start + rows, scores[rows]
            return
        values = np.concatenate([self.scores, scores[rows]])
        rows = np.concatenate([self.rows, start + rows])
        if rows.size > self.k:
            bound = np.partition(values, values.size - self.k)[values.size - self.k]
            near = values >= bound - np.float32(2 * (kernels.NOISE + self.off))
            rows, values = rows[near], values[near]
        self.rows, self.scores = rows, values


def _contenders(
    scores: kernels.Float32, n: int, k: int, mask: Mask | None, off: float
) -> kernels.Rows:
    """Rows that hold the best `k` of `scores[:n]` that the mask allows, and all that may be confused with them."""
    if mask is None:
        k = min(k, n)
        return kernels.candidates(scores, n, k, off) if k else np.empty(0, np.intp)
    allowed = np.flatnonzero(mask)
    k = min(k, allowed.size)
    if allowed.size > kernels.LANES * k:
        masked = scores.copy()
        masked[:n][~mask] = kernels.ABSENT
        return kernels.candidates(masked, n, k, off)
    if k and k < allowed.size:
        found = scores[allowed]
        bound = np.partition(found, found.size - k)[found.size - k]
        allowed = allowed[found >= bound - np.float32(2 * (kernels.NOISE + off))]
    return allowed
