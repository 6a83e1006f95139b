"""The policy of the neighbour graph: the central stay, and no component of it dies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from memsift import checks
from memsift.kernels import Float32, Float64, Rows
from memsift.policies.base import Mask, ScoredPolicy, Term
from memsift.policies.floor import floor
from memsift.selection import Limit
from memsift.signals import Centrality
from memsift.signals.graph import NeighbourGraph
from memsift.view import COLUMNS, MemoryView


@dataclass(frozen=True)
class GraphPolicy(ScoredPolicy):
    """The least central leaves, and each connected component of the graph keeps its most central entries.

    Entries are linked to their k nearest, see `Centrality`. A share of the budget is dealt out over the components,
    the same number to each, what a small one does not need to the others; the rest goes to the most central.

    A baseline, not a recommendation: what many entries resemble is what the memory holds many times over. Measured on
    LoCoMo, questions last: recall@10 of 6.8, 12.1 and 18.9 % at budgets of 10, 25 and 50 %, where chance has 7.9,
    14.4 and 25.5. O(n^2 * dim) for each compaction, seconds at 10,000 entries; needs the extra `graph`.

    Parameters
    ----------
    measure : "pagerank" or "degree"
    k : int, 1 to 1,000
        How many neighbours each entry links to.
    alike : float in [-1, 1]
        No link below this cosine: the higher, the more components.
    share : float in [0, 1]
        How much of the budget is dealt out over the components.
    """

    name: ClassVar[str] = "graph"
    needs: ClassVar[frozenset[str]] = Centrality.needs

    measure: str = "pagerank"
    k: int = 10
    alike: float = 0.5
    share: float = 0.5

    def __post_init__(self) -> None:
        signal = self._signal
        for name in ("measure", "k", "alike"):
            object.__setattr__(self, name, getattr(signal, name))
        object.__setattr__(self, "share", checks.fraction(self.share, "GraphPolicy.share"))

    def terms(self, view: MemoryView) -> list[Term]:
        return [Term("centrality", 1.0, self._signal.values(view))]

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        return self._signal.exact(view, rows)

    def protected(
        self, view: MemoryView, limits: list[Limit], locked: Mask, scores: Float32
    ) -> dict[str, Mask]:
        if not self.share or not len(view):
            return {}
        columns = {name: getattr(view, name) for name in COLUMNS}
        columns["cluster"] = NeighbourGraph.of(view, self.k, self.alike).components
        grouped = MemoryView(
            columns, lambda: view.vectors, view.context, view.tick, view.now, place=view.place
        )
        return {"component": floor(self, grouped, limits, locked, scores, self.share)}

    @property
    def _signal(self) -> Centrality:
        return Centrality(self.measure, self.k, self.alike)
