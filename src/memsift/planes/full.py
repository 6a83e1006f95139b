"""float32: the rows as they came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from memsift import kernels
from memsift.kernels import Float32, Rows
from memsift.planes.base import Plane


class Float32Plane(Plane):
    """One array, scanned and read in place: 4 bytes per element."""

    name: ClassVar[str] = "float32"

    def __init__(self, dim: int, capacity: int) -> None:
        self.dim = dim
        self.rows = np.empty((capacity, dim), np.float32)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes

    def live(self, n: int) -> Float32:
        return self.rows[:n]

    def take(self, slots: Rows) -> Float32:
        return self.rows[slots]

    def span(self, start: int, stop: int, step: int = 1) -> Float32:
        return self.rows[start:stop:step]

    def append(self, start: int, vectors: Float32) -> None:
        self.rows[start : start + len(vectors)] = vectors

    def room(self, start: int, count: int) -> Iterator[Float32]:
        yield self.rows[start : start + count]

    def replace(self, slot: int, vector: Float32) -> None:
        self.rows[slot] = vector

    def move(self, holes: Rows, movers: Rows, gone: Rows) -> None:
        kernels.fill_holes(self.rows, holes, movers)

    def resize(self, capacity: int, n: int) -> None:
        self.rows = self.roomy(capacity, self.live(n)).rows

    def roomy(self, capacity: int, rows: Float32) -> Float32Plane:
        other = Float32Plane(self.dim, capacity)
        other.rows[: len(rows)] = rows
        return other

    def scrub(self, n: int) -> None:
        self.rows[n:] = 0.0

    def scan(self, query: Float32, out: Float32, step: int = 1) -> float:
        kernels.scan(self.rows[: len(out) * step : step], query, out)
        return 0.0
