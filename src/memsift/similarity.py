"""Coherence for free: the similarities that searches computed anyway, kept for the window's queries.

An exact search multiplies every row with the query. Written straight into a ring row instead of a scratch
buffer, those products are the sliding window's similarities, and a compaction reads them instead of
multiplying all rows with all queries again.
"""

from __future__ import annotations

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

    Invariant: an entry that has the window's oldest query has every later one, since each search writes all rows.
    """

    def __init__(self, window: int, capacity: int) -> None:
        self.rows: Float32 = np.full((window, capacity), kernels.ABSENT, dtype=np.float32)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes

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

    def of(self, vectors: kernels.Vectors, context: ContextWindow, window: int) -> list[Float32]:
        """The cosines of all entries to each of the last `window` queries, oldest first: live rows, (n,) float32."""
        n = len(vectors)
        known = context.rows(len(context))
        late = np.flatnonzero(self.rows[known[0], :n] == kernels.ABSENT)
        if late.size:
            queries = context.recent()
            for start in range(0, late.size, kernels.BLOCK):
                part = late[start : start + kernels.BLOCK]
                # One row at a time, as the searches write them.
                for row, column in zip(known, np.dot(vectors[part], queries.T).T, strict=True):
                    self.rows[row, part] = column
        return [self.rows[row, :n] for row in context.rows(window)]
