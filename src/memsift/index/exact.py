"""Exact search: one pass over all rows per query, and the best k of it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.planes import stored

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

    # Scratch for the scores of a batch: this many at most.
    BATCH_SCORES = 8_000_000

    def __init__(self, table: Searchable) -> None:
        self._table = table
        self._scratch = np.full(kernels.LANES, kernels.ABSENT, dtype=np.float32)

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
        return self._best(out[: kernels.padded(n)], n, query, k, mask, off)

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
        found = []
        block = max(1, min(m, self.BATCH_SCORES // kernels.padded(n)))
        scores = np.full((block, kernels.padded(n)), kernels.ABSENT, dtype=np.float32)
        for start in range(0, m, block):
            part = queries[start : start + block]
            off = stored(vectors).products(part, scores[: len(part), :n])
            for row, query in enumerate(part):
                place = start + row - (m - len(kept))
                if place >= 0:
                    kept[place] = scores[row, :n]
                found.append(self._best(scores[row], n, query, k, mask, off))
        return found, kept

    def _best(
        self,
        scores: kernels.Float32,
        n: int,
        query: kernels.Float32,
        k: int,
        mask: Mask | None,
        off: float,
    ) -> Found:
        if mask is not None:
            allowed = np.flatnonzero(mask)
            k = min(k, allowed.size)
            if allowed.size <= kernels.LANES * k:
                rows = allowed
                if k and k < rows.size:
                    found = scores[rows]
                    bound = np.partition(found, found.size - k)[found.size - k]
                    rows = rows[found >= bound - np.float32(2 * (kernels.NOISE + off))]
            else:
                masked = scores.copy()
                masked[:n][~mask] = kernels.ABSENT
                rows = kernels.candidates(masked, n, k, off)
        else:
            k = min(k, n)
            rows = kernels.candidates(scores, n, k, off) if k else np.empty(0, np.intp)
        if off and k:
            rows = stored(self._table.vectors).narrowed(query, rows, k)
        exact = kernels.exact_cosines(self._table.vectors, rows, query)
        order = np.lexsort((self._table.column("ids")[rows], -exact))[:k]
        return rows[order], exact[order]

    def _room(self, n: int) -> kernels.Float32:
        if self._scratch.size < n:
            self._scratch = np.empty(kernels.padded(n + n // 8), dtype=np.float32)
        self._scratch[n:] = kernels.ABSENT
        return self._scratch
