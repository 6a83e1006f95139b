"""What every plane can do, and how its rows look to those who read them."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.kernels import Float32, Rows
from memsift.sketch import Int8, sketched

# Rows that are read from elsewhere at a time.
FILLED = 1024


class Plane(ABC):
    """Vectors on the axis of slots, with room for `len(plane)` of them; how many are in use, the table knows.

    A subclass says how rows are kept. Whatever it keeps, its rows are unit float32 vectors to those who read.

    Attributes
    ----------
    dim : int
    """

    name: ClassVar[str]
    dim: int

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of RAM."""

    @property
    def cold_bytes(self) -> int:
        """Bytes of a file."""
        return 0

    @abstractmethod
    def take(self, slots: Rows) -> Float32:
        """The rows of these slots: (m, dim) float32, a copy."""

    @abstractmethod
    def span(self, start: int, stop: int, step: int = 1) -> Float32:
        """The rows of a range of slots: (m, dim) float32, to be read only; it may be the plane's own memory."""

    @abstractmethod
    def append(self, start: int, vectors: Float32) -> None:
        """Write rows (m, dim) to the slots from `start` on, none of which is in use."""

    @abstractmethod
    def replace(self, slot: int, vector: Float32) -> None:
        """Another row (dim,) for a slot in use."""

    @abstractmethod
    def move(self, holes: Rows, movers: Rows, gone: Rows) -> None:
        """Rows in slots `gone` leave; then those in `movers` go to `holes`, as many of the gone slots."""

    @abstractmethod
    def resize(self, capacity: int, n: int) -> None:
        """Change the room; the first `n` rows stay."""

    def roomy(self, capacity: int, rows: Any) -> Plane | None:
        """Another plane with such room and these rows, what `live` gave; None where that takes more than a copy.

        If rows were changed or moved meanwhile, the answer is not to be used.
        """
        return None

    @abstractmethod
    def scrub(self, n: int) -> None:
        """Overwrite whatever is not a row of the first `n` slots."""

    @abstractmethod
    def scan(self, query: Float32, out: Float32, step: int = 1) -> float:
        """Cosines of every `step`-th of the first rows to `query`, as many as `out` (m,) has room for.

        Returns its `reach`.
        """

    def room(self, start: int, count: int) -> Iterator[Float32]:
        """`append` without a copy: arrays to fill, `count` rows in all, each before the next is asked for."""
        block = np.empty((min(count, FILLED), self.dim), np.float32)
        for at in range(0, count, FILLED):
            part = block[: count - at]
            yield part
            self.append(start + at, part)

    def reach(self, queries: Float32) -> float:
        """How far `scan` may be off for any row and any of `queries` (m, dim), float32 noise aside."""
        return 0.0

    def near(self, slots: Rows) -> Float32:
        """The rows of these slots as `scan` sees them: (m, dim) float32."""
        return self.take(slots)

    def products(self, queries: Float32, out: Float32, start: int = 0) -> None:
        """Cosines of the rows from `start` on to each of `queries` (m, dim), as far off as `reach` says: (m, n)."""
        at = 0
        for block in self.blocks(queries, start, start + out.shape[1]):
            out[:, at : at + block.shape[1]] = block
            at += block.shape[1]

    def largest(self, queries: Float32, out: Float32) -> None:
        """The largest cosine of each row to any of `queries`, as far off as `off` says: into `out` (n,)."""
        at = 0
        for block in self.blocks(queries, 0, len(out)):
            np.ascontiguousarray(block).max(0, out=out[at : at + block.shape[1]])
            at += block.shape[1]

    def blocks(self, queries: Float32, start: int, stop: int) -> Iterator[Float32]:
        """Cosines of a range of rows to each of `queries` (m, dim), by blocks: (m, rows) each."""
        for at in range(start, stop, FILLED):
            yield np.dot(queries, self.span(at, min(at + FILLED, stop)).T)

    def off(self, slots: Rows | slice, scores: Float32, queries: Float32) -> Float32 | None:
        """How far what `scan` or `blocks` says may be off, at most: (m,) float32; None if by float32 noise only.

        Parameters
        ----------
        scores : (m,) float32
            What they say of these slots: cosines to one of `queries` (w, dim), or the largest.
        """
        return None

    def narrowed(self, query: Float32, rows: Rows, k: int) -> Rows:
        """Those of `rows` that may be among the best `k` of them, by a sharper bound than that of `scan`."""
        return rows

    def live(self, n: int) -> Any:
        """The first `n` rows as they are read: an array, or something that makes one of the rows it is asked for."""
        return Stored(self, n)

    def differs(self, slots: Rows, vectors: Float32) -> npt.NDArray[np.bool_]:
        """Where writing `vectors` (m, dim) to these slots would change them: (m,) bool."""
        changed: npt.NDArray[np.bool_] = (self.take(slots) != vectors).any(1)
        return changed

    def sketched(self, slots: Rows) -> tuple[Int8, Float32, Float32]:
        """`sketch.sketched` of the rows of these slots."""
        return sketched(self.take(slots))

    def sums(self, slots: Rows) -> npt.NDArray[np.uint32]:
        """`kernels.word_sums` of the vectors that were put there, also where they are kept with loss: (m,) uint32."""
        return kernels.word_sums(self.take(slots))


class Stored:
    """The first n rows of a plane, read like an array of (n, dim): slices and rows of it are float32 arrays."""

    def __init__(self, plane: Plane, n: int) -> None:
        self.plane, self._n = plane, n

    def __len__(self) -> int:
        return self._n

    @property
    def shape(self) -> tuple[int, int]:
        return self._n, self.plane.dim

    @property
    def size(self) -> int:
        return self._n * self.plane.dim

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            start, stop, step = key.indices(self._n)
            return self.plane.span(start, max(start, stop), step)
        if isinstance(key, np.ndarray):
            return self.plane.take(np.flatnonzero(key) if key.dtype == np.bool_ else key)
        place = operator.index(key)
        return self.plane.take(np.array([place + self._n if place < 0 else place]))[0]

    def scan(self, query: Float32, out: Float32, step: int = 1) -> float:
        """See `Plane.scan`."""
        return self.plane.scan(query, out, step)

    def products(self, queries: Float32) -> tuple[Float32, Float32 | None]:
        """Cosines to each of `queries` (m, dim), oldest first, and how far each row's may be off: (m, n) and (n,)."""
        out = np.empty((len(queries), self._n), np.float32)
        self.plane.products(queries, out)
        return out, self.off(np.zeros(self._n, np.float32), queries)

    def largest(self, queries: Float32) -> tuple[Float32, Float32 | None]:
        """The largest cosine to any of `queries` (m, dim), and how far it may be off: (n,) each."""
        out = np.empty(self._n, np.float32)
        self.plane.largest(queries, out)
        return out, self.off(out, queries)

    def off(self, scores: Float32, queries: Float32) -> Float32 | None:
        """See `Plane.off`, of all rows: (n,) float32."""
        return self.plane.off(slice(0, self._n), scores, queries)


class _Plain:
    """An array as an index reads it: scanned in place, nothing off."""

    def __init__(self, vectors: Float32) -> None:
        self._vectors = vectors

    def scan(self, query: Float32, out: Float32, step: int = 1) -> float:
        kernels.scan(self._vectors[::step], query, out)
        return 0.0

    def reach(self, queries: Float32) -> float:
        return 0.0

    def products(self, queries: Float32, out: Float32, start: int = 0) -> None:
        rows = self._vectors[start : start + out.shape[1]]
        with np.errstate(invalid="ignore"):  # flags over a kernel's padding, see kernels
            np.matmul(queries, rows.T, out=out)

    def narrowed(self, query: Float32, rows: Rows, k: int) -> Rows:
        return rows

    def sketched(self, slots: Rows) -> tuple[Int8, Float32, Float32]:
        return sketched(self._vectors[slots])


def stored(vectors: Any) -> Any:
    """What scans `vectors`, an array or what a plane shows of itself."""
    return vectors.plane if isinstance(vectors, Stored) else _Plain(vectors)
