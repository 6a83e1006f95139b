"""Clusters that cost an addition one small product: each newcomer joins its nearest leader, or leads a new one.

Leader clustering (Hartigan 1975, chapter 3). Coarse by intent: they say which topics there are, so that none of
them dies, not which entries are alike.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.kernels import Float32

# A newcomer whose cosine to every leader is lower leads a cluster of its own, while there are fewer than LEADERS.
ALIKE = 0.5
LEADERS = 64

Numbers = npt.NDArray[np.int64]


class Clusters:
    """Leaders, and the number of the cluster that each leads.

    Attributes
    ----------
    leaders : (c, dim) float32
        Unit rows.
    numbers : (c,) int64
        From 1, ascending, never used again.
    born : int
        How many there ever were.
    """

    def __init__(self, dim: int) -> None:
        self.leaders: Float32 = np.empty((0, dim), np.float32)
        self.numbers: Numbers = np.empty(0, np.int64)
        self.born = 0

    def join(self, rows: Float32) -> Numbers:
        """The cluster of each of these rows (m, dim), as if they had come one by one: (m,) int64."""
        out = np.zeros(len(rows), np.int64)
        start = 0
        while start < len(rows):
            # All of them against the leaders so far; the first that finds none leads, and the rest look again.
            part = rows[start : start + (kernels.BLOCK if len(self.leaders) == LEADERS else 256)]
            scores = self._scores(part)
            best = scores.max(1, initial=-2.0)
            lonely = np.flatnonzero(best < ALIKE) if len(self.leaders) < LEADERS else np.empty(0)
            stop = int(lonely[0]) if lonely.size else len(part)
            if stop:
                out[start : start + stop] = self.numbers[scores[:stop].argmax(1)]
            start += stop
            if lonely.size:
                self._lead(part[stop])
                out[start] = self.born
                start += 1
        return out

    def keep(self, living: Numbers) -> bool:
        """Once there is no room for more, let go of leaders of clusters without members; whether there were any."""
        if len(self.numbers) < LEADERS:
            return False
        alive = np.isin(self.numbers, living)
        if alive.all():
            return False
        self.leaders, self.numbers = self.leaders[alive].copy(), self.numbers[alive]
        return True

    def forget(self, vectors: Float32) -> bool:
        """Let go of leaders that are as good as one of these unit rows; whether there were any."""
        if not len(vectors) or not len(self.leaders):
            return False
        away = kernels.cosine_max(self.leaders, vectors) <= 0.999
        if away.all():
            return False
        self.leaders, self.numbers = self.leaders[away].copy(), self.numbers[away]
        return True

    def saved(self) -> tuple[Float32, Numbers, int]:
        """What `restore` takes."""
        return self.leaders, self.numbers, self.born

    def restore(self, leaders: Float32, numbers: Numbers, born: int) -> None:
        """Be what was saved."""
        self.leaders, self.numbers, self.born = leaders, numbers, born

    def _lead(self, row: Float32) -> None:
        self.born += 1
        self.leaders = np.concatenate([self.leaders, row[None]])
        self.numbers = np.append(self.numbers, self.born)

    def _scores(self, rows: Float32) -> kernels.Float64:
        """Cosines of rows to leaders, (m, c) float64; exact where noise could decide, so that ties go to the older."""
        scores: kernels.Float64 = np.dot(rows, self.leaders.T).astype(np.float64)
        best = scores.max(1, initial=-2.0)[:, None]
        near = np.count_nonzero(scores >= best - 2 * kernels.NOISE, 1) > 1
        near |= np.abs(best[:, 0] - ALIKE) <= 2 * kernels.NOISE
        for row in np.flatnonzero(near):
            scores[row] = kernels.exact_cosines(
                self.leaders, np.arange(len(self.leaders)), rows[row]
            )
        return scores
