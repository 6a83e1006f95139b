"""The clairvoyant policy: it knows what will be asked. No policy should beat it by much; it is the ceiling.

Bélády's rule for a cache is exact; choosing which memories to keep for top-k search is a covering problem, so this
one is greedy: first what is needed most in future, then what stands in the way of needed ones least.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from memsift.evaluation.trace import Stream
from memsift.kernels import DECIMALS, Rows
from memsift.policies.base import ScoredPolicy, Term
from memsift.view import MemoryView

# Scratch for similarities: this many at a time.
BLOCK = 4_000_000


class Future:
    """What the rest of a stream still needs, kept up to date while it is replayed.

    Attributes
    ----------
    need : (n,) float64
        For each memory, the sum over queries to come of 1 / (number of things that the query needs).
    harm : (n,) int64
        How often a memory outranks one that a query to come needs.
    """

    def __init__(self, stream: Stream, k: int = 10) -> None:
        n, q = len(stream), len(stream.queries)
        self._share: list[tuple[npt.NDArray[np.int64], float]] = []
        self._harm = np.zeros((q, n), dtype=np.uint8)
        popular = np.bincount(stream.need.indices, minlength=n)
        block = max(1, BLOCK // max(1, n))
        for start in range(0, q, block):
            similar = np.dot(stream.queries[start : start + block], stream.vectors.T)
            for i, row in enumerate(similar, start):
                needed = _one_each(stream, i, row[: stream.asked[i]], popular, k)
                self._share.append((needed, 1.0 / needed.size if needed.size else 0.0))
                for one in needed:
                    above = row > row[one]
                    above[needed] = False
                    self._harm[i] += above
        self.need = np.zeros(n)
        self.harm = self._harm.sum(0, dtype=np.int64)
        for needed, share in self._share:
            self.need[needed] += share

    def copy(self) -> Future:
        """The same future, to be lived through once more."""
        twin = object.__new__(Future)
        twin._share, twin._harm = self._share, self._harm
        twin.need, twin.harm = self.need.copy(), self.harm.copy()
        return twin

    def asked(self, query: int) -> None:
        """Query `query` has been answered; queries come in order."""
        needed, share = self._share[query]
        self.need[needed] -= share
        self.harm -= self._harm[query]


def _one_each(
    stream: Stream,
    query: int,
    similar: npt.NDArray[np.float32],
    popular: npt.NDArray[np.int64],
    k: int,
) -> npt.NDArray[np.int64]:
    """The rows that answer a query, one of each group: findable ones first, then those needed most often."""
    rows, groups = stream.need.of(query), stream.need.groups_of(query)
    if not rows.size:
        return rows
    top = np.partition(similar, similar.size - k)[similar.size - k] if similar.size > k else -1.0
    order = np.lexsort((-popular[rows], similar[rows] < top, groups))
    _, first = np.unique(groups[order], return_index=True)
    return rows[order[first]]


@dataclass(frozen=True)
class OraclePolicy(ScoredPolicy):
    """Keeps what the future needs most, then what harms it least. Ids must be rows of the stream."""

    name: ClassVar[str] = "oracle"

    future: Future = field(repr=False)

    def terms(self, view: MemoryView) -> list[Term]:
        need = self.future.need[view.ids]
        harm = self.future.harm[view.ids]
        wanted = need > 1e-9
        # Any need outweighs any harm: need starts at 1, harm stays below it.
        score = np.where(wanted, 1.0 + need, -harm / (1.0 + harm.max(initial=0)))
        return [Term("future", 1.0, score.astype(np.float32))]

    def ranked(self, view: MemoryView, rows: Rows) -> Rows:
        """By score, then the newer: no access shows, so that one replay serves however a stream is driven."""
        keys = self.exact(view, rows).round(DECIMALS)
        return rows[np.lexsort((-view.ids[rows], -keys))]

    def __repr__(self) -> str:
        return "oracle"
