"""The signal from an entry's place among its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from memsift import checks
from memsift.errors import InvalidValue
from memsift.kernels import Float32, Float64, Rows
from memsift.signals.base import Signal
from memsift.signals.clock import one_of
from memsift.signals.graph import NeighbourGraph
from memsift.view import MemoryView

MEASURES = ("pagerank", "degree")


@dataclass(frozen=True)
class Centrality(Signal):
    """PageRank, or in-degree, in the graph of the k nearest neighbours, over the largest; in [0, 1].

    How many others have an entry among their nearest, and how central these are themselves (Page et al. 1999; over
    cosines it is LexRank, Erkan and Radev 2004). O(n^2 * dim) each time that a memory is compacted, where every other
    signal is O(n): for memories of thousands. PageRank needs the extra `graph`.

    Parameters
    ----------
    measure : "pagerank" or "degree"
    k : int, 1 to 1,000
        How many neighbours each entry links to.
    alike : float in [-1, 1]
        No link below this cosine.
    """

    name: ClassVar[str] = "centrality"
    needs: ClassVar[frozenset[str]] = frozenset({"vectors", "accessed_tick"})

    measure: str = "pagerank"
    k: int = 10
    alike: float = 0.5

    def __post_init__(self) -> None:
        owner = type(self).__name__
        object.__setattr__(self, "measure", one_of(self.measure, f"{owner}.measure", MEASURES))
        object.__setattr__(self, "k", checks.integer(self.k, f"{owner}.k", 1, 1000))
        object.__setattr__(self, "alike", cosine(self.alike, f"{owner}.alike"))

    def values(self, view: MemoryView) -> Float32:
        return self._of(view).astype(np.float32)

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        return self._of(view)[rows]

    def _of(self, view: MemoryView) -> Float64:
        graph = NeighbourGraph.of(view, self.k, self.alike)
        return graph.pagerank if self.measure == "pagerank" else graph.in_degree


def cosine(value: object, name: str) -> float:
    """`value` as a float within [-1, 1]."""
    number = checks.real(value, name, "from -1 to 1")
    if not -1.0 <= number <= 1.0:
        raise InvalidValue(f"{name} must be a number from -1 to 1; got {number!r}")
    return number
