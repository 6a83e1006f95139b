"""What numpy alone needs for the bare work: the measure of everything else."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from memsift.evaluation.speed.data import Float32, Ids
from memsift.evaluation.speed.engines.base import Engine, counted


class Bare(Engine):
    """`X @ q` and a partial sort."""

    name: ClassVar[str] = "numpy"
    churns: ClassVar[int] = 1_000_000

    def __init__(self, dim: int, capacity: int) -> None:
        super().__init__(dim, capacity)
        self.rows = np.empty((0, dim), np.float32)
        self.held = np.empty(0, np.int64)  # ids, ascending
        self.added = 0

    def build(self, vectors: Float32) -> None:
        self.rows, self.held, self.added = vectors, counted(0, vectors), len(vectors)

    def add(self, vectors: Float32) -> None:
        """Normalised and copied to their place, as a store must at least."""
        if len(self.rows) < self.capacity:
            self._room()
        start = len(self.held)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=self.rows[start : start + len(vectors)])
        self.held = np.concatenate([self.held, counted(self.added, vectors)])
        self.added += len(vectors)

    def search(self, query: Float32, k: int) -> Ids:
        n = len(self.held)
        scores = self.rows[:n] @ query
        return np.argpartition(scores, n - k)[n - k :]

    def search_many(self, queries: Float32, k: int) -> Ids:
        n = len(self.held)
        scores = queries @ self.rows[:n].T
        return np.argpartition(scores, n - k, axis=1)[:, n - k :]

    def ids(self, found: Ids) -> Ids:
        return self.held[found]

    def delete(self, ids: Ids) -> None:
        keep = np.ones(len(self.held), np.bool_)
        keep[np.searchsorted(self.held, ids)] = False
        self.rows, self.held = self.rows[: len(keep)][keep], self.held[keep]

    def _room(self) -> None:
        rows = np.empty((self.capacity, self.dim), np.float32)
        rows[: len(self.held)] = self.rows[: len(self.held)]
        self.rows = rows
