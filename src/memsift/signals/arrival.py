"""Signals from what an entry was like among the others on the day that it came.

Where that is unknown, it counts as the mean of what is known, or 0 if nothing is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from memsift.kernels import Float64, Rows
from memsift.signals.base import ColumnSignal, filled
from memsift.view import MemoryView


@dataclass(frozen=True)
class Novelty(ColumnSignal):
    """1 - the largest cosine to an entry that was there already; in [0, 2], 0 = seen before.

    Distance to the nearest neighbour, the oldest of novelty detectors (Markou and Singh 2003, section 2.2).
    """

    name: ClassVar[str] = "novelty"
    needs: ClassVar[frozenset[str]] = frozenset({"nearest"})

    def of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        return 1.0 - filled(view.nearest, rows)


@dataclass(frozen=True)
class Distance(ColumnSignal):
    """1 - the product with the mean of all that were there already; in [0, 2], far from the centroid = high.

    The mean of unit vectors is shorter than 1, so the product is the mean cosine to all of them: the typicality
    of Rosch and Mervis (1975), turned round.
    """

    name: ClassVar[str] = "distance"
    needs: ClassVar[frozenset[str]] = frozenset({"typicality"})

    def of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        return 1.0 - filled(view.typicality, rows)


@dataclass(frozen=True)
class Adjacency(ColumnSignal):
    """The mean cosine to the three entries added just before it; in [-1, 1], within an episode = high.

    The lexical cohesion of neighbours, from which TextTiling tells where a topic ends (Hearst 1997).
    """

    name: ClassVar[str] = "adjacency"
    needs: ClassVar[frozenset[str]] = frozenset({"adjacency"})

    def of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        return filled(view.adjacency, rows)
