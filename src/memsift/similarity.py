"""Coherence for free: the similarities that searches computed anyway, kept for the window's queries.

An exact search multiplies every row with the query. Written straight into a ring row instead of a scratch
buffer, those products are the sliding window's similarities, and a compaction reads them instead of
multiplying all rows with all queries again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.context import ContextWindow
from memsift.planes import Stored

Float32 = npt.NDArray[np.float32]
Found = TypeVar("Found")
# Rows of cosines, (n,) each, or (w, n) in one.
Cosines = Sequence[Float32] | Float32
# A cosine of one as int16.
STEPS = 16_000


class SimilarityRing:
    """Similarities of every slot to each query of the window: (window, capacity) float32.

    Row r belongs to the query in row r of the `ContextWindow`. A slot whose entry came after a query holds
    `ABSENT` there until `of` fills it in. Slots beyond the table's length are `ABSENT` throughout,
    so appending entries costs nothing here.

    A search that did not see every entry writes no row: the row is `skipped`, whatever it holds, until `of` fills it.

    Invariant: an entry that has the window's oldest query of those not skipped has every later one of them, since each
    search that writes a row writes all of it.
    """

    absent: ClassVar[Any] = kernels.ABSENT
    off: ClassVar[float] = 0.0  # how far a row may be from what a search wrote

    def __init__(self, window: int, capacity: int) -> None:
        self.rows = self._empty(window, capacity)
        self._skipped = np.zeros(window, np.bool_)

    def _empty(self, window: int, capacity: int) -> npt.NDArray[Any]:
        return np.full((window, capacity), self.absent)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes

    def row(self, place: int, n: int) -> Float32:
        """Where the next search writes the similarities of all `n` entries: `ABSENT` from n on, before and after."""
        self._skipped[place] = False
        found: Float32 = self.rows[place]
        return found

    def skip(self, place: int) -> None:
        """The row of a new query whose search sees only some entries."""
        self.settle()
        self._skipped[place] = True

    def settle(self) -> None:
        """What a search has written is kept in the rows."""

    def coded(self, cosines: Float32) -> npt.NDArray[Any]:
        """Cosines as the rows keep them."""
        return cosines

    def cosines(self, rows: npt.NDArray[Any]) -> Float32:
        """What the rows keep, as cosines."""
        return rows

    def resize(self, capacity: int, n: int) -> None:
        """Change the capacity; the first `n` slots stay."""
        self.settle()
        rows = self._empty(len(self.rows), capacity)
        rows[:, :n] = self.rows[:, :n]
        self.rows = rows

    def move(self, holes: kernels.Rows, movers: kernels.Rows, left: int, n: int) -> None:
        """Follow the table: of n slots, `movers` went to `holes`, and only `left` are left."""
        self.settle()
        for row in self.rows:  # a row at a time: two fancy axes at once are 2.5 times slower
            row[holes] = row.take(movers)
        self.rows[:, left:n] = self.absent

    def forget(self, slots: npt.NDArray[np.intp]) -> None:
        """The vectors of these slots changed: their similarities are unknown."""
        self.settle()
        self.rows[:, slots] = self.absent

    def forget_all(self) -> None:
        """The window holds other queries now."""
        self.settle()
        self.rows[:] = self.absent

    def of(
        self, vectors: Any, context: ContextWindow, window: int, ordered: bool = True
    ) -> Cosines:
        """The similarities of all entries to each of the last `window` queries: live rows, (n,) each.

        Oldest first if `ordered`; if not, they may come as one array, which is reduced faster. They are as far off as
        those of a scan of `vectors`, an array or a plane's rows, and as `off`; `cosines` makes cosines of them.
        """
        self.fill(vectors, context)
        n = len(vectors)
        if not ordered and window == len(self.rows) == len(context):
            return self.rows[:, :n]
        return [self.rows[row, :n] for row in context.rows(window)]

    def fill(self, vectors: Any, context: ContextWindow, most: int | None = None) -> bool:
        """Compute what the searches did not see, or only of `most` newcomers: whether there are more of those."""
        if not len(self.rows):
            return False
        self.settle()
        places = context.rows(len(context))
        skipped = self._skipped[places]
        known = places[~skipped]
        if known.size:
            late = np.flatnonzero(self.rows[known[0], : len(vectors)] == self.absent)
            if late.size:
                self._fill(vectors, known, context.recent()[~skipped], late[:most])
            if most is not None:
                return late.size > most
        if skipped.any() and most is None:
            everybody = np.arange(len(vectors))
            self._fill(vectors, places[skipped], context.recent()[skipped], everybody)
            self._skipped[places] = False
        return False

    def _fill(
        self, vectors: Any, rows: npt.NDArray[np.intp], queries: Float32, slots: kernels.Rows
    ) -> None:
        """Compute the similarities of some slots to the queries of these rows."""
        plane = isinstance(vectors, Stored)
        size = kernels.COPIED if plane else kernels.BLOCK
        for start in range(0, slots.size, size):
            part = slots[start : start + size]
            found = vectors.plane.near(part) if plane else vectors[part]
            # One row at a time, as the searches write them.
            for row, column in zip(rows, np.dot(found, queries.T).T, strict=True):
                self.rows[row, part] = self.coded(column)


class RoundedRing(SimilarityRing):
    """The same as int16, half the memory, where scans are off by more than that anyway."""

    absent = np.int16(-2 * STEPS)
    off = 0.6 / STEPS

    def __init__(self, window: int, capacity: int) -> None:
        super().__init__(window, capacity)
        self._written: int | None = None  # the row that `_room` belongs to
        self._room: Float32 = np.empty(0, np.float32)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self._room.nbytes

    def row(self, place: int, n: int) -> Float32:
        self.settle()
        self._skipped[place] = False
        if len(self._room) != self.rows.shape[1]:
            self._room = np.empty(self.rows.shape[1], np.float32)
        self._room[n:] = kernels.ABSENT
        self._written = place
        return self._room

    def settle(self) -> None:
        if self._written is not None:
            place, self._written = self._written, None
            np.rint(np.multiply(self._room, np.float32(STEPS), out=self._room), out=self._room)
            self.rows[place] = self._room

    def coded(self, cosines: Float32) -> npt.NDArray[np.int16]:
        codes: npt.NDArray[np.int16] = np.rint(cosines * np.float32(STEPS)).astype(np.int16)
        return codes

    def cosines(self, rows: npt.NDArray[Any]) -> Float32:
        found: Float32 = np.multiply(rows, np.float32(1 / STEPS), dtype=np.float32)
        return found


class LiveSimilarity:
    """What a live store knows of the cosines of its entries to its last queries, for a view of it.

    Parameters
    ----------
    recent : (w, dim) float32
        All queries of the context.
    vectors : function
        The view's rows; raises `StaleView` once the store has moved them.
    lock : context manager
        Keeps others from moving entries while something is computed.
    """

    def __init__(
        self,
        ring: SimilarityRing,
        context: ContextWindow,
        recent: Float32,
        vectors: Callable[[], Any],
        lock: AbstractContextManager[object],
    ) -> None:
        self._ring, self._context, self._vectors, self._lock = ring, context, vectors, lock
        self._seen, self._recent = context.seen, recent

    def exact(
        self, window: int, use: Callable[[Cosines], Float32], *, ordered: bool = True
    ) -> Float32:
        """What `use` makes of the rows of cosines to the last queries, right to float32; oldest first if `ordered`."""
        queries = self._recent[-window:]
        with self._lock:
            vectors = self._vectors()
            plain = not isinstance(vectors, Stored) or not vectors.plane.reach(queries)
            plain &= not self._ring.off
            rows = self._known(vectors, window, ordered) if plain else None
            if rows is not None:
                return use(rows)
        return still(self._vectors, lambda vectors: use(kernels.products(vectors, queries)))

    def each(self, window: int) -> tuple[Float32, Float32 | None]:
        """Cosines to each of the last queries as a scan has them, and how far each entry's may be off: (w, n), (n,)."""
        queries = self._recent[-window:]
        with self._lock:
            vectors = self._vectors()
            rows = self._known(vectors, window, True)
            if rows is not None:
                found = self._ring.cosines(stacked(rows))
                return found, self._off(vectors, np.zeros(len(vectors), np.float32), queries)
        return still(self._vectors, lambda vectors: scanned(vectors, queries))

    def largest(self, window: int) -> tuple[Float32, Float32 | None]:
        """The largest cosine to any of the last queries as a scan has it, and how far it may be off: (n,) each."""
        queries = self._recent[-window:]
        with self._lock:
            vectors = self._vectors()
            rows = self._known(vectors, window, False)
            if rows is not None:
                best = self._ring.cosines(largest(rows))
                return best, self._off(vectors, best, queries)
        return still(self._vectors, lambda vectors: scanned_largest(vectors, queries))

    def _off(self, vectors: Any, scores: Float32, queries: Float32) -> Float32 | None:
        off = vectors.off(scores, queries) if isinstance(vectors, Stored) else None
        if off is not None:
            off += np.float32(self._ring.off)
        return off

    def _known(self, vectors: Any, window: int, ordered: bool) -> Cosines | None:
        """Rows of the ring; None if it is narrower, or the store was asked something since."""
        queries = min(window, len(self._context))
        if self._context.seen != self._seen or queries > len(self._ring.rows):
            return None
        return self._ring.of(vectors, self._context, queries, ordered)


def still(vectors: Callable[[], Any], use: Callable[[Any], Found]) -> Found:
    """What `use` makes of a view's vectors; `StaleView` if another thread has moved them meanwhile."""
    try:
        return use(vectors())
    finally:
        vectors()


def scanned(vectors: Any, queries: Float32) -> tuple[Float32, Float32 | None]:
    """Cosines to each of `queries` (w, dim), and how far each row's may be off, None if not: (w, n), (n,)."""
    if isinstance(vectors, Stored):
        return vectors.products(queries)
    return kernels.products(vectors, queries), None


def scanned_largest(vectors: Any, queries: Float32) -> tuple[Float32, Float32 | None]:
    """The largest cosine to any of `queries` (w, dim), and how far it may be off: (n,) each."""
    if isinstance(vectors, Stored):
        return vectors.largest(queries)
    return kernels.cosine_max(vectors, queries), None


def stacked(rows: Cosines) -> Float32:
    """(w, n), a copy."""
    return np.stack(list(rows))


def largest(rows: Cosines) -> Float32:
    """The largest of each column: (n,), a copy."""
    if isinstance(rows, np.ndarray):
        best: Float32 = np.maximum.reduce(rows)
        return best
    out = rows[0].copy()
    for row in rows[1:]:
        np.maximum(out, row, out=out)
    return out
