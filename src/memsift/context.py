"""The context window: the last queries of a store, by which coherence is measured."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]


class ContextWindow:
    """The last `window` unit query vectors, in a ring.

    Parameters
    ----------
    window : int, at least 0
        How many queries are remembered (W).
    dim : int
    """

    def __init__(self, window: int, dim: int) -> None:
        self._ring = np.zeros((window, dim), dtype=np.float32)
        self.seen = 0  # queries ever pushed

    def __len__(self) -> int:
        return min(self.seen, len(self._ring))

    @property
    def window(self) -> int:
        return len(self._ring)

    @property
    def nbytes(self) -> int:
        return self._ring.nbytes

    @property
    def next_row(self) -> int:
        """The ring row that the next query takes."""
        return self.seen % len(self._ring)

    def push(self, query: Float32) -> None:
        """Remember a unit query vector, (dim,) float32; the oldest leaves."""
        if len(self._ring):
            self._ring[self.next_row] = query
        self.seen += 1

    def restore(self, queries: Float32, seen: int) -> None:
        """Hold these queries, (w, dim), oldest first, as if `seen` had ever been pushed."""
        self._ring[:] = 0.0
        self.seen = max(0, seen - len(queries))
        for query in queries:
            self.push(query)

    def recent(self, count: int | None = None) -> Float32:
        """A copy of the last `count` queries (all by default), oldest first: (w, dim) float32."""
        count = len(self) if count is None else min(count, len(self))
        first = (self.seen - count) % max(1, len(self._ring))
        if first + count <= len(self._ring):
            return self._ring[first : first + count].copy()
        head = self._ring[first:]
        return np.concatenate([head, self._ring[: count - len(head)]])

    def rows(self, count: int) -> npt.NDArray[np.intp]:
        """Ring rows of the last `count` queries, oldest first."""
        count = min(count, len(self))
        return np.arange(self.seen - count, self.seen, dtype=np.intp) % max(1, len(self._ring))
