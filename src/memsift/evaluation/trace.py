"""A trace: what an agent stored and asked, in the order in which it happened.

Every reader makes one, every replay consumes one. A trace holds *streams*; each stream is replayed on a
store of its own, and figures are means of stream means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from memsift.errors import InvalidValue

Need = Literal["evidence", "coverage"]


@dataclass(frozen=True)
class Labels:
    """Which memories a query needs, as compressed sparse rows.

    Parameters
    ----------
    indptr : (q + 1,) int64
        The labels of query `i` are `indices[indptr[i]:indptr[i + 1]]`.
    indices : (m,) int64
        Rows of memories in the stream.
    group : (m,) int64 or None
        Labels of one query that share a group are interchangeable: one member is enough.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64] | None = None

    def of(self, query: int) -> npt.NDArray[np.int64]:
        """The memories that `query` needs: rows of the stream."""
        return self.indices[self.indptr[query] : self.indptr[query + 1]]

    def groups_of(self, query: int) -> npt.NDArray[np.int64]:
        """The group of each label of `query`; without groups each label is one of its own."""
        span = slice(self.indptr[query], self.indptr[query + 1])
        if self.group is None:
            return np.arange(self.indptr[query + 1] - self.indptr[query], dtype=np.int64)
        return self.group[span]

    @classmethod
    def from_lists(cls, rows: list[list[int]], groups: list[list[int]] | None = None) -> Labels:
        """Labels from one list of rows per query (and one list of groups, aligned with it)."""
        indptr = np.cumsum([0] + [len(r) for r in rows], dtype=np.int64)
        flat = np.array([i for r in rows for i in r], dtype=np.int64)
        marks = None if groups is None else np.array([g for r in groups for g in r], dtype=np.int64)
        return cls(indptr, flat, marks)


class Event(NamedTuple):
    """One step of a stream: memory `row` is added, query `row` is asked, or what helped with it is said."""

    kind: Literal["add", "query", "use"]
    row: int


@dataclass(frozen=True)
class Stream:
    """One agent's life.

    Parameters
    ----------
    vectors : (n, dim) float32
        Memories in the order in which they were stored.
    queries : (q, dim) float32
        Queries in the order in which they were asked.
    asked : (q,) int64, ascending, 0 to n
        How many memories had been stored when the query was asked.
    need : Labels
        What each query needs; queries without a label are asked but not scored.
    used : Labels or None
        Memories that the agent's log says helped with each query; the replay passes it on as feedback.
    exact : Labels or None
        The exact ten nearest among earlier memories, for fidelity figures.
    meaning : (n,) int64 or None
        Row of the earliest memory that says the same, else the row itself.
    cost : (n,) int64 or None
        Words or tokens of each memory.
    created_at : (n,) float64 or None
        Unix seconds; NaN where unknown.
    titles : list of n str, or None
        A short line for people; never given to the store.
    """

    vectors: npt.NDArray[np.float32]
    queries: npt.NDArray[np.float32]
    asked: npt.NDArray[np.int64]
    need: Labels
    used: Labels | None = None
    exact: Labels | None = None
    meaning: npt.NDArray[np.int64] | None = None
    cost: npt.NDArray[np.int64] | None = None
    created_at: npt.NDArray[np.float64] | None = None
    titles: list[str] | None = None

    def __post_init__(self) -> None:
        n, q = len(self.vectors), len(self.queries)
        if self.asked.shape != (q,):
            raise InvalidValue(
                f"asked must have shape ({q},), one place per query; got {self.asked.shape}"
            )
        if q and (np.any(np.diff(self.asked) < 0) or self.asked[0] < 0 or self.asked[-1] > n):
            raise InvalidValue(f"asked must ascend within 0..{n}, the number of memories")
        for name, labels in (("need", self.need), ("used", self.used), ("exact", self.exact)):
            if labels is not None and labels.indptr.shape != (q + 1,):
                raise InvalidValue(
                    f"{name}.indptr must have shape ({q + 1},); got {labels.indptr.shape}"
                )

    def __len__(self) -> int:
        return len(self.vectors)

    def events(self) -> Iterator[Event]:
        """Everything in order: a query comes after the memories that it may see, a use after its query."""
        stops = np.searchsorted(self.asked, np.arange(len(self.vectors)), side="right")
        start = 0
        for row, stop in enumerate([*stops.tolist(), len(self.queries)]):
            for query in range(start, stop):
                yield Event("query", query)
                if self.used is not None and self.used.of(query).size:
                    yield Event("use", query)
            start = stop
            if row < len(self.vectors):
                yield Event("add", row)


@dataclass(frozen=True)
class Trace:
    """Streams with a name and the measure by which they are judged.

    Parameters
    ----------
    need : "evidence" or "coverage"
        `evidence`: the share of the needed memories among the hits. `coverage`: the share of the groups
        with at least one member among the hits.
    score_from : float in [0, 1)
        Queries asked before this share of the stream was stored are asked but not scored.
    """

    name: str
    streams: list[Stream] = field(repr=False)
    need: Need = "evidence"
    score_from: float = 0.0

    @property
    def dim(self) -> int:
        return int(self.streams[0].vectors.shape[1])

    def __len__(self) -> int:
        return sum(len(stream) for stream in self.streams)
