"""Tiered: int8 in RAM, scanned for every query, over exact float32 in a file, read for the few rows that may matter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from memsift.errors import DiskTrouble
from memsift.kernels import NOISE, Float32, Rows
from memsift.planes import codes
from memsift.planes.base import Plane
from memsift.planes.cold import ColdFile
from memsift.sketch import Int8, sketched

# What float32 rounding may add to the square of a cosine, so that 1 - cosine^2 is never too small.
SLACK = 1e-4
# Rows that move to another file at a time.
COPIED = 4096


class TieredPlane(Plane):
    """A quarter of the memory, and the same answers as with float32.

    A row x is held as a + r: a is the codes times the factor that leaves r shortest, so that r stands upright on a. For
    a unit query q at the cosine s, |x.q - a.q| = |r.q| is at most |r| sqrt(1 - s^2), by Cauchy and Schwarz in the space
    beside a. |r| is kept for every row: about 0.007 at 384 dimensions. Rows that by this bound may be among the best
    are read from the file and scored again: about thirty for the best ten.

    Parameters
    ----------
    dim, capacity : int
    folder : Path, optional
        Where the file of exact rows lies.
    """

    name: ClassVar[str] = "tiered"

    def __init__(self, dim: int, capacity: int, folder: Path | None = None) -> None:
        self.dim = dim
        self._folder = folder
        self._hot = codes.Int8(dim, capacity)
        self._rest = np.empty(capacity, np.float32)
        self._places = np.empty(capacity, np.int32)
        self._cold = ColdFile(dim, folder)
        self.widest = 0.0  # the longest rest

    def __len__(self) -> int:
        return len(self._rest)

    @property
    def nbytes(self) -> int:
        beside = self._rest.nbytes + self._places.nbytes + self._cold.overhead
        return self._hot.nbytes + beside

    @property
    def cold_bytes(self) -> int:
        return self._cold.nbytes

    def take(self, slots: Rows) -> Float32:
        return self._cold.take(self._places[slots])

    def span(self, start: int, stop: int, step: int = 1) -> Float32:
        return self._cold.take(self._places[start:stop:step])

    def append(self, start: int, vectors: Float32) -> None:
        for at in range(0, len(vectors), self._hot.step):
            rows = vectors[at : at + self._hot.step]
            part = slice(start + at, start + at + len(rows))
            try:
                self._places[part] = self._cold.add(rows)
            except DiskTrouble:
                self._cold.release(self._places[start : start + at])
                raise
            self._warm(part, rows)

    def replace(self, slot: int, vector: Float32) -> None:
        self._cold.write(self._places[slot : slot + 1], vector[None])
        self._warm(slice(slot, slot + 1), vector[None])

    def move(self, holes: Rows, movers: Rows, gone: Rows) -> None:
        self._cold.release(self._places[gone])
        self._hot.move(holes, movers)
        for column in (self._rest, self._places):
            column[holes] = column[movers]

    def resize(self, capacity: int, n: int) -> None:
        self._hot.resize(capacity, n)
        for name in ("_rest", "_places"):
            old = getattr(self, name)
            new = np.empty(capacity, old.dtype)
            new[:n] = old[:n]
            setattr(self, name, new)
        self.widest = float(self._rest[:n].max(initial=0.0))
        if len(self._cold) > 4 * n + 2 * COPIED:
            self._repack(n)

    def scrub(self, n: int) -> None:
        self._hot.codes[n:] = 0
        self._hot.factor[n:] = self._rest[n:] = 0.0
        self._cold.scrub()

    def scan(self, query: Float32, out: Float32, step: int = 1) -> float:
        return self._hot.scan(query, out, step) + self.widest

    def blocks(self, queries: Float32, start: int, stop: int) -> Iterator[Float32]:
        return self._hot.blocks(queries, start, stop)

    def near(self, slots: Rows) -> Float32:
        return self._hot.rows(slots)

    def reach(self, queries: Float32) -> float:
        return self._hot.dropped(queries) + self.widest

    def off(self, slots: Rows | slice, scores: Float32, queries: Float32) -> Float32:
        return self._off(slots, scores, self._hot.dropped(queries))

    def narrowed(self, query: Float32, rows: Rows, k: int) -> Rows:
        if rows.size <= k:
            return rows
        scores = np.empty(rows.size, np.float32)
        for at in range(0, rows.size, self._hot.step):
            part = slice(at, at + self._hot.step)
            np.dot(self._hot.rows(rows[part]), query, out=scores[part])
        off = self._off(rows, scores)
        low = scores - off
        bound = np.partition(low, low.size - k)[low.size - k]
        found: Rows = rows[scores + off >= bound]
        return found

    def _off(self, rows: Rows | slice, scores: Float32, dropped: float = 0.0) -> Float32:
        """How far cosines may be from these products of the rows' codes and a query that lost so much: (m,) float32."""
        off = np.abs(scores)
        off -= np.float32(dropped)
        np.maximum(off, 0.0, out=off)
        off *= off
        np.subtract(np.float32(1.0 + SLACK), off, out=off)
        # Beyond one by rounding or by a crooked query: what is left is the slack.
        np.sqrt(np.maximum(off, np.float32(SLACK), out=off), out=off)
        off *= self._rest[rows]
        off += np.float32(dropped + NOISE)
        return off

    def _warm(self, part: slice, vectors: Float32) -> None:
        """Codes, factors and what they drop, of rows that the file has."""
        rest = self._rest[part]
        self._hot.codes[part], self._hot.factor[part], rest[:] = sketched(vectors)
        self.widest = max(self.widest, float(rest.max(initial=0.0)))

    def sketched(self, slots: Rows) -> tuple[Int8, Float32, Float32]:
        return self._hot.codes[slots], self._hot.factor[slots], self._rest[slots]

    def _repack(self, n: int) -> None:
        """Most of the file is free: another one of the rows that are left."""
        cold = ColdFile(self.dim, self._folder)
        places = np.empty_like(self._places)
        for start in range(0, n, COPIED):
            stop = min(start + COPIED, n)
            places[start:stop] = cold.add(self.span(start, stop))
        self._cold, self._places = cold, places
