"""float16 and int8: half and a quarter of the memory, with some loss and nothing beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.kernels import Float32, Rows
from memsift.planes.base import Plane
from memsift.planes.codes import Codes, Half, Int8


class CodedPlane(Plane):
    """Unit rows as codes over their own length. Putting back what was read changes nothing.

    What a row was before it was rounded is forgotten, all but its sum, by which a file tells whether it is damaged.
    """

    kind: ClassVar[type[Codes]]

    def __init__(self, dim: int, capacity: int) -> None:
        self.dim = dim
        self._rows = self.kind(dim, capacity)
        self._sums = np.empty(capacity, np.uint32)

    def __len__(self) -> int:
        return len(self._sums)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + self._sums.nbytes

    def take(self, slots: Rows) -> Float32:
        return self._rows.rows(slots)

    def span(self, start: int, stop: int, step: int = 1) -> Float32:
        return self._rows.rows(slice(start, stop, step))

    def append(self, start: int, vectors: Float32) -> None:
        for at in range(0, len(vectors), self._rows.step):
            rows = vectors[at : at + self._rows.step]
            part = slice(start + at, start + at + len(rows))
            self._rows.codes[part], self._rows.factor[part] = self._coded(rows)
            self._sums[part] = kernels.word_sums(rows)

    def replace(self, slot: int, vector: Float32) -> None:
        self.append(slot, vector[None])

    def move(self, holes: Rows, movers: Rows, gone: Rows) -> None:
        self._rows.move(holes, movers)
        self._sums[holes] = self._sums[movers]

    def resize(self, capacity: int, n: int) -> None:
        self._rows.resize(capacity, n)
        sums = np.empty(capacity, np.uint32)
        sums[:n] = self._sums[:n]
        self._sums = sums

    def scrub(self, n: int) -> None:
        self._rows.codes[n:] = 0
        self._rows.factor[n:] = 0.0
        self._sums[n:] = 0

    def reach(self, queries: Float32) -> float:
        return self._rows.dropped(queries)

    def scan(self, query: Float32, out: Float32, step: int = 1) -> float:
        return self._rows.scan(query, out, step)

    def blocks(self, queries: Float32, start: int, stop: int) -> Iterator[Float32]:
        return self._rows.blocks(queries, start, stop)

    def off(self, slots: Rows | slice, scores: Float32, queries: Float32) -> Float32 | None:
        reach = self._rows.dropped(queries)
        return np.full(len(scores), reach + kernels.NOISE, np.float32) if reach else None

    def differs(self, slots: Rows, vectors: Float32) -> npt.NDArray[np.bool_]:
        changed: npt.NDArray[np.bool_] = (self._coded(vectors)[0] != self._rows.codes[slots]).any(1)
        return changed

    def sums(self, slots: Rows) -> npt.NDArray[np.uint32]:
        return self._sums[slots]

    def _coded(self, vectors: Float32) -> tuple[npt.NDArray[np.generic], Float32]:
        codes = self._rows.encode(vectors)
        wide = codes.astype(np.float64)
        return codes, (1.0 / np.sqrt(np.vecdot(wide, wide))).astype(np.float32)


class Float16Plane(CodedPlane):
    """2 bytes per element. Cosines are off by about 1e-4."""

    name: ClassVar[str] = "float16"
    kind = Half


class Int8Plane(CodedPlane):
    """1 byte per element. Cosines are off by about 5e-4, 2.5e-3 at most."""

    name: ClassVar[str] = "int8"
    kind = Int8
