"""Where to fit and where to check: two folds of a trace.

In time: half of the queries to fit and the next quarter to check, then three quarters and the last. Many streams are
not cut: half of them fit and the other half check, and the other way round. A stream that is cut is lived from its
beginning all the same, under the caps of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from memsift.errors import InvalidValue
from memsift.evaluation.tally import Marks
from memsift.evaluation.trace import Labels, Stream, Trace

MANY = 4
"""From this many streams on, folds are made of whole streams."""


@dataclass(frozen=True)
class Span:
    """Queries `start` to the end of a stream that was cut behind them, and the caps to live it under."""

    stream: Stream
    start: int
    caps: tuple[int, ...]
    marks: Marks = field(repr=False)


@dataclass(frozen=True)
class Fold:
    """Where to fit, and where to check."""

    train: list[Span]
    held: list[Span]


def folds_of(trace: Trace, shares: list[float]) -> list[Fold]:
    """Two folds of a trace, to be lived with `shares` of each stream's memories.

    Raises
    ------
    InvalidValue
        Too few queries need something.
    """
    scored = [_scored(stream, trace.score_from) for stream in trace.streams]
    coverage = trace.need == "coverage"

    def span(number: int, start: float, stop: float) -> Span:
        """From one share of a stream's scored queries to another."""
        stream, queries = trace.streams[number], scored[number]
        first = int(queries[int(start * queries.size)])
        last = int(queries[min(queries.size, int(stop * queries.size)) - 1])
        caps = tuple(max(1, int(share * len(stream) + 1e-9)) for share in shares)
        cut = _cut(stream, last + 1)
        return Span(cut, first, caps, Marks(cut, coverage))

    lively = [number for number, queries in enumerate(scored) if queries.size]
    if len(lively) >= MANY:
        halves = [[span(number, 0, 1) for number in lively[i::2]] for i in (0, 1)]
        return [Fold(halves[0], halves[1]), Fold(halves[1], halves[0])]
    lively = [number for number in lively if scored[number].size >= 4]
    if not lively:
        most = max((queries.size for queries in scored), default=0)
        raise InvalidValue(
            f"a trace to tune on must have at least 4 queries that need something; got {most}"
        )
    return [
        Fold([span(n, 0, at) for n in lively], [span(n, at, at + 0.25) for n in lively])
        for at in (0.5, 0.75)
    ]


def _scored(stream: Stream, score_from: float) -> npt.NDArray[np.int64]:
    needy = np.diff(stream.need.indptr) > 0
    return np.flatnonzero(needy & (stream.asked >= score_from * len(stream)))


def _cut(stream: Stream, queries: int) -> Stream:
    """A stream up to its first so many queries, without what only figures of fidelity need."""
    need = _first(stream.need, queries)
    used = None if stream.used is None else _first(stream.used, queries)
    named = [labels.indices.max(initial=-1) + 1 for labels in (need, used) if labels is not None]
    memories = int(max(stream.asked[queries - 1], *named))
    return Stream(
        vectors=stream.vectors[:memories],
        queries=stream.queries[:queries],
        asked=stream.asked[:queries],
        need=need,
        used=used,
        cost=None if stream.cost is None else stream.cost[:memories],
        created_at=None if stream.created_at is None else stream.created_at[:memories],
    )


def _first(labels: Labels, queries: int) -> Labels:
    end = labels.indptr[queries]
    group = None if labels.group is None else labels.group[:end]
    return Labels(labels.indptr[: queries + 1], labels.indices[:end], group)
