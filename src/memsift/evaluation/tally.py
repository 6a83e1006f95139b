"""What one replay found, query by query, and the same in parts that may be drawn again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from memsift.evaluation.cell import Parts
from memsift.evaluation.trace import Stream
from memsift.store import MemoryStore

BLOCK = 50
"""Queries in a part, where there are too few streams to draw whole ones."""

STREAMS = 5
"""From this many streams on a part is a whole stream."""

NOTHING = float("nan")


@dataclass
class Tally:
    """Sums over the scored queries of one stream, and what each of them gave.

    Attributes
    ----------
    each : list of (recall, fidelity)
        One pair per scored query, in order; NaN where it carries no such label.
    """

    recall: float = 0.0
    kept: float = 0.0
    scored: int = 0
    fidelity: float = 0.0
    compared: int = 0
    stored: int = 0
    looked: int = 0
    evicted: int = 0
    each: list[tuple[float, float]] = field(default_factory=list, repr=False)


class Marks:
    """The labels of one stream, laid out so that ten hits are judged in a few microseconds.

    Parameters
    ----------
    coverage : bool
        Count groups of needed memories instead of single ones.
    """

    def __init__(self, stream: Stream, coverage: bool) -> None:
        self._groups: list[dict[int, list[int]]] = []
        self._parts: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
        self._wholes: list[int] = []
        self._needed = [stream.need.of(query) for query in range(len(stream.queries))]
        for query, needed in enumerate(self._needed):
            groups = stream.need.groups_of(query) if coverage else np.arange(needed.size)
            _, part = np.unique(groups, return_inverse=True)
            self._parts.append(part)
            self._wholes.append(int(part.max(initial=-1)) + 1)
            group: dict[int, list[int]] = {}
            for row, number in zip(needed.tolist(), part.tolist(), strict=True):
                group.setdefault(row, []).append(number)
            self._groups.append(group)
        said = None if stream.meaning is None else stream.meaning.tolist()
        self._meaning = said
        self._near: list[list[int]] = [[] for _ in self._needed]
        if stream.exact is not None:
            rows = (stream.exact.of(query).tolist() for query in range(len(stream.queries)))
            self._near = [near if said is None else [said[row] for row in near] for near in rows]

    def count(self, query: int, found: list[int], store: MemoryStore, tally: Tally) -> None:
        """Add what `found`, the ids of the hits of `query`, is worth."""
        recall = fidelity = NOTHING
        if whole := self._wholes[query]:
            group = self._groups[query]
            recall = len({part for row in found for part in group.get(row, ())}) / whole
            held = store.holds(self._needed[query])
            tally.recall += recall
            tally.kept += np.count_nonzero(np.bincount(self._parts[query][held])) / whole
            tally.scored += 1
        if near := self._near[query]:
            said = self._meaning
            heard = set(found) if said is None else {said[row] for row in found}
            fidelity = sum(row in heard for row in near) / len(near)
            tally.fidelity += fidelity
            tally.compared += 1
        tally.each.append((recall, fidelity))


def parts_of(tallies: list[Tally]) -> Parts:
    """The parts of a cell: one per stream, or blocks of consecutive queries where streams are few."""
    whole = len(tallies) >= STREAMS
    streams: list[int] = []
    columns: list[tuple[int, float, int, float]] = []
    for number, tally in enumerate(tallies):
        each = np.array(tally.each, np.float64).reshape(-1, 2)
        size = max(1, len(each)) if whole else BLOCK
        for start in range(0, len(each), size):
            recall, fidelity = each[start : start + size].T
            streams.append(number)
            columns.append((*_count_and_mean(recall), *_count_and_mean(fidelity)))
    scored, recalls, compared, fidelities = zip(*columns, strict=True) if columns else ((),) * 4
    return Parts(tuple(streams), scored, recalls, compared, fidelities)


def _count_and_mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[int, float]:
    known = values[values == values]
    # Rounded here, so that a cell read from a file is the cell that was written.
    return known.size, round(float(known.mean()), 5) if known.size else 0.0
