"""The graph of nearest neighbours: who is close to whom, and what of it holds together.

O(n^2 * dim) time: a policy that asks for it is for thousands of entries, not for hundreds of thousands.
"""

from __future__ import annotations

from functools import cached_property
from types import ModuleType

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.errors import MissingExtra
from memsift.kernels import ABSENT, NOISE, Float32, Float64, Rows
from memsift.view import MemoryView

# Rows of products at a time.
ROWS = 256
# The chance that PageRank's walker follows a link, and by how much of the mean all ranks together may be off.
DAMPING = 0.85
TOLERANCE = 1e-9

# The last graph of a live store, with what it was made of: scores, exact scores and components ask for the same one.
_last: tuple[tuple[object, object, int, float], NeighbourGraph] | None = None


class NeighbourGraph:
    """Each entry with a link to its `k` nearest of a cosine of at least `alike`; of equally near ones to those that
    were accessed later, then to the higher ids.

    Attributes
    ----------
    n : int
    sources, targets : (m,) intp
        Rows of the view: the links, in the order of the sources' ids.
    """

    def __init__(self, view: MemoryView, k: int, alike: float) -> None:
        self.n = len(view)
        # In the order of ids: which slot an entry lies in must not show, not even in the last digit of a sum.
        self._order = np.argsort(view.ids)
        by_rule = np.lexsort((-view.ids, -view.accessed_tick))
        preference = np.empty(self.n, np.intp)
        preference[by_rule] = np.arange(self.n)
        rows = view.take(self._order).vectors
        self._links = _nearest(rows, preference[self._order], min(k, self.n - 1), alike)
        self.sources, self.targets = (self._order[ends] for ends in self._links)

    @classmethod
    def of(cls, view: MemoryView, k: int, alike: float) -> NeighbourGraph:
        """The graph of a view, made once for all who ask a live store's view in turn."""
        global _last
        last = _last
        # A place is another one whenever vectors move; the ticks are copied anew whenever one changes or comes.
        if (
            last is not None
            and last[0][0] is view.place is not None
            and last[0][1] is view.accessed_tick
            and last[0][2:] == (k, alike)
        ):
            return last[1]
        made = cls(view, k, alike)
        if view.place is not None:
            _last = (view.place, view.accessed_tick, k, alike), made
        return made

    @cached_property
    def in_degree(self) -> Float64:
        """How many entries link to each, over the largest such number; 0 without links: (n,) float64 in [0, 1]."""
        links = np.bincount(self.targets, minlength=self.n).astype(np.float64)
        links /= max(1.0, float(links.max(initial=0.0)))
        return links

    @cached_property
    def pagerank(self) -> Float64:
        """PageRank over the largest: (n,) float64 in (0, 1]."""
        out = np.ones(self.n)
        if self.n and self.targets.size:
            graph = _rustworkx().PyDiGraph()
            graph.add_nodes_from(range(self.n))
            graph.add_edges_from_no_data(list(zip(*(e.tolist() for e in self._links), strict=True)))
            tolerance = TOLERANCE / self.n**2  # of each of n ranks, whose mean is 1 / n
            ranks = _rustworkx().pagerank(graph, alpha=DAMPING, tol=tolerance, max_iter=1000)
            out[self._order] = [ranks[node] for node in range(self.n)]
            out /= out.max()
        return out

    @cached_property
    def components(self) -> npt.NDArray[np.int64]:
        """The number of the component that each belongs to, links taken both ways, from 1: (n,) int64."""
        graph = _rustworkx().PyGraph(multigraph=False)
        graph.add_nodes_from(range(self.n))
        graph.add_edges_from_no_data(list(zip(*(e.tolist() for e in self._links), strict=True)))
        out = np.empty(self.n, np.int64)
        # By their lowest ids, so that they are numbered alike wherever entries lie.
        for number, nodes in enumerate(sorted(_rustworkx().connected_components(graph), key=min)):
            out[self._order[list(nodes)]] = 1 + number
        return out


def _nearest(
    vectors: Float32, preference: Rows, k: int, alike: float
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Links (source, target) to the k nearest of at least `alike`, decided exactly: (m,) each, sources ascending."""
    n = len(vectors)
    sources, targets = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    for start in range(0, n if k > 0 else 0, ROWS):
        products = np.dot(vectors[start : start + ROWS], vectors.T)
        here = np.arange(len(products))
        products[here, start + here] = ABSENT
        bound = np.maximum(np.partition(products, n - k, axis=1)[:, n - k], np.float32(alike))
        found = products >= (bound - 2 * NOISE)[:, None]
        # More than k, or one so near the line of likeness that noise could carry it over.
        doubtful = found.sum(1) > k
        doubtful |= (found & (np.abs(products - np.float32(alike)) <= 2 * NOISE)).any(1)
        for row in np.flatnonzero(doubtful):
            near = np.flatnonzero(found[row])
            cosines = kernels.exact_cosines(vectors, near, vectors[start + row])
            best = np.lexsort((preference[near], -cosines))[:k]
            found[row] = False
            found[row, near[best[cosines[best] >= alike]]] = True
        ends = found.nonzero()
        sources.append(start + ends[0])
        targets.append(ends[1])
    return np.concatenate(sources), np.concatenate(targets)


def _rustworkx() -> ModuleType:
    try:
        import rustworkx
    except ImportError as error:
        raise MissingExtra(
            "centrality and components need rustworkx, which is not installed: "
            "pip install 'memsift[graph]'"
        ) from error
    return rustworkx
