"""Rows of small numbers with one factor each: what the lossy planes and the hot half of the tiered one consist of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.kernels import Float32, Rows
from memsift.planes import integers

# Elements that are float32 at a time: what a core's cache holds.
ELEMENTS = 2**18
# Queries at a time for which int8 pays.
MANY = 64


class Codes(ABC):
    """Row i stands for `factor[i] * codes[i]`.

    Attributes
    ----------
    codes : (capacity, dim)
    factor : (capacity,) float32
    """

    dtype: np.dtype[Any]

    def __init__(self, dim: int, capacity: int) -> None:
        self.step = max(1, ELEMENTS // dim)  # rows that are float32 at a time
        self.codes: npt.NDArray[Any] = np.empty((capacity, dim), self.dtype)
        self.factor: Float32 = np.empty(capacity, np.float32)

    @abstractmethod
    def encode(self, vectors: Float32) -> npt.NDArray[Any]:
        """The codes of unit rows (m, dim), the largest element of each as large as can be."""

    @abstractmethod
    def widen(self, codes: npt.NDArray[Any], out: Float32) -> None:
        """The same numbers as float32, into `out`."""

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.factor.nbytes

    def rows(self, slots: Rows | slice) -> Float32:
        """What these rows stand for: (m, dim) float32."""
        codes = self.codes[slots]
        out = np.empty(codes.shape, np.float32)
        self.widen(codes, out)
        out *= self.factor[slots][:, None]
        return out

    def move(self, holes: Rows, movers: Rows) -> None:
        kernels.fill_holes(self.codes, holes, movers)
        self.factor[holes] = self.factor[movers]

    def resize(self, capacity: int, n: int) -> None:
        for name in ("codes", "factor"):
            old = getattr(self, name)
            new = np.empty((capacity, *old.shape[1:]), old.dtype)
            new[:n] = old[:n]
            setattr(self, name, new)

    def scan(self, query: Float32, out: Float32, step: int = 1) -> float:
        """Products of every `step`-th row with `query`, as many as `out` (m,) takes; returns what `dropped` does."""
        block = min(self.step, len(out))
        wide = np.empty((block, query.size), np.float32)
        for at in range(0, len(out), max(1, block)):
            part = slice(at * step, min(at + block, len(out)) * step, step)
            codes, scores = self.codes[part], out[at : at + block]
            self.widen(codes, wide[: len(codes)])
            np.dot(wide[: len(codes)], query, out=scores)
            scores *= self.factor[part]
        return 0.0

    def blocks(self, queries: Float32, start: int, stop: int) -> Iterator[Float32]:
        """Products of a range of rows with each of `queries` (m, dim), by blocks: (m, rows) each."""
        for at in range(start, stop, self.step):
            yield np.dot(queries, self.rows(slice(at, min(at + self.step, stop))).T)

    def dropped(self, queries: Float32) -> float:
        """How far products with any of `queries` (m, dim) may be off by rounding it."""
        return 0.0


class Int8(Codes):
    """Whole numbers from -127 to 127."""

    dtype = np.dtype(np.int8)

    def encode(self, vectors: Float32) -> npt.NDArray[np.int8]:
        largest = np.abs(vectors).max(1, keepdims=True)
        codes: npt.NDArray[np.int8] = np.rint(vectors * (np.float32(127.0) / largest)).astype(
            np.int8
        )
        return codes

    def widen(self, codes: npt.NDArray[np.int8], out: Float32) -> None:
        np.copyto(out, codes)

    def scan(self, query: Float32, out: Float32, step: int = 1) -> float:
        off = integers.scan(self.codes[: len(out) * step : step], query, out)
        if off is None:
            return super().scan(query, out, step)
        out *= self.factor[: len(out) * step : step]
        return off

    def blocks(self, queries: Float32, start: int, stop: int) -> Iterator[Float32]:
        if integers.numkong() is None or len(queries) > MANY:  # float32 matrix products are faster
            yield from super().blocks(queries, start, stop)
            return
        for block in integers.blocks(self.codes[start:stop], queries):
            block *= self.factor[start : start + block.shape[1]]
            start += block.shape[1]
            yield block

    def dropped(self, queries: Float32) -> float:
        if integers.numkong() is None:
            return 0.0
        return integers.dropped(queries, *integers.rounded(queries))


class Half(Codes):
    """float16, from -1 to 1."""

    dtype = np.dtype(np.float16)

    def encode(self, vectors: Float32) -> npt.NDArray[np.float16]:
        codes: npt.NDArray[np.float16] = vectors / np.abs(vectors).max(1, keepdims=True)
        return codes.astype(np.float16)

    def widen(self, codes: npt.NDArray[np.float16], out: Float32) -> None:
        # numpy converts one element after the other; moving sign, exponent and fraction to their places as integers is
        # ten times faster. The exponent then lacks 112.
        bits = out.view(np.int32)
        np.copyto(bits, codes.view(np.int16))
        np.left_shift(bits, 13, out=bits)
        np.bitwise_and(bits, np.int32(-0x70002000), out=bits)
        np.multiply(out, np.float32(2.0**112), out=out)
