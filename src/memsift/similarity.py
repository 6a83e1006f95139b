"""Coherence for free: the similarities that searches computed anyway, kept for the window's queries.

An exact search multiplies every row with the query. Written straight into a ring row instead of a scratch
buffer, those products are the sliding window's similarities, and a compaction reads them instead of
multiplying all rows with all queries again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.context import ContextWindow

Float32 = npt.NDArray[np.float32]


class SimilarityRing:
    """Similarities of every slot to each query of the window: (window, capacity) float32.

    Row r belongs to the query in row r of the `ContextWindow`. A slot whose entry came after a query holds
    `ABSENT` there until `of` fills it in. Slots beyond the table's length are `ABSENT` throughout,
    so appending entries costs nothing here.

    A search that did not see every entry writes no row: the row is `skipped`, whatever it holds, until `of` fills it.

    Invariant: an entry that has the window's oldest query of those not skipped has every later one of them, since each
    search that writes a row writes all of it.
    """

    def __init__(self, window: int, capacity: int) -> None:
        self.rows: Float32 = np.full((window, capacity), kernels.ABSENT, dtype=np.float32)
        self._skipped = np.zeros(window, np.bool_)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes

    def row(self, place: int) -> Float32:
        """The row of a new query, for a search that will write all of it."""
        self._skipped[place] = False
        row: Float32 = self.rows[place]
        return row

    def skip(self, place: int) -> None:
        """The row of a new query whose search sees only some entries."""
        self._skipped[place] = True

    def resize(self, capacity: int, n: int) -> None:
        """Change the capacity; the first `n` slots stay."""
        rows = np.full((len(self.rows), capacity), kernels.ABSENT, dtype=np.float32)
        rows[:, :n] = self.rows[:, :n]
        self.rows = rows

    def move(self, holes: kernels.Rows, movers: kernels.Rows, n: int) -> None:
        """Follow the table: slots `movers` went to `holes`, and only `n` slots are left."""
        for row in self.rows:  # a row at a time: two fancy axes at once are 2.5 times slower
            row[holes] = row[movers]
        self.rows[:, n:] = kernels.ABSENT

    def forget(self, slots: npt.NDArray[np.intp]) -> None:
        """The vectors of these slots changed: their similarities are unknown."""
        self.rows[:, slots] = kernels.ABSENT

    def forget_all(self) -> None:
        """The window holds other queries now."""
        self.rows[:] = kernels.ABSENT

    def of(
        self, vectors: Float32, context: ContextWindow, window: int, ordered: bool = True
    ) -> Sequence[Float32] | Float32:
        """The cosines of all entries to each of the last `window` queries: live rows, (n,) float32 each.

        Oldest first if `ordered`; if not, they may come as one array, which is reduced faster.
        """
        n = len(vectors)
        places, queries = context.rows(len(context)), context.recent()
        skipped = self._skipped[places]
        known = places[~skipped]
        if known.size:
            late = np.flatnonzero(self.rows[known[0], :n] == kernels.ABSENT)
            for start in range(0, late.size, kernels.BLOCK):
                part = late[start : start + kernels.BLOCK]
                self._fill(known, part, np.dot(vectors[part], queries[~skipped].T))
        if skipped.any():
            for start in range(0, n, kernels.BLOCK):
                block = slice(start, min(start + kernels.BLOCK, n))
                self._fill(places[skipped], block, np.dot(vectors[block], queries[skipped].T))
            self._skipped[places] = False
        if not ordered and window == len(self.rows) == places.size:
            return self.rows[:, :n]
        return [self.rows[row, :n] for row in context.rows(window)]

    def _fill(
        self, rows: npt.NDArray[np.intp], slots: npt.NDArray[np.intp] | slice, products: Float32
    ) -> None:
        # One row at a time, as the searches write them.
        for row, column in zip(rows, products.T, strict=True):
            self.rows[row, slots] = column
