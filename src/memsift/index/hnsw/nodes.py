"""Which entry a node stands for, while entries move, change and leave.

A node is born with an entry's vector and dies when the entry leaves or gets another vector. It is never reused, so
nothing that was deleted or replaced comes back, and an entry that was restored is a new node.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from memsift.index.hnsw.graph import Graph
from memsift.kernels import Rows

NOBODY = -1
Numbers = npt.NDArray[np.int64]


class Nodes:
    """The slot of each node and the node of each slot.

    Attributes
    ----------
    given : int
        Nodes 0 to given - 1 were born.
    live : int
        So many of them still stand for an entry.
    changes : int
        One more whenever something changed.
    """

    def __init__(self, capacity: int) -> None:
        self._node = np.full(capacity, NOBODY, np.int32)
        # One cell more than there are nodes: where NOBODY, the last cell, points to.
        self._slot = np.full(1024, NOBODY, np.int32)
        self.given = self.live = self.changes = 0

    @property
    def nbytes(self) -> int:
        return self._node.nbytes + self._slot.nbytes

    def slots(self, nodes: Numbers) -> Rows:
        """Of each node; `NOBODY` for a dead one."""
        return self._slot[nodes].astype(np.intp)

    def outside(self, n: int, done: int) -> Rows:
        """Of the first `n` slots those whose entries have no node below `done`, ascending."""
        # As unsigned numbers, NOBODY is the largest.
        return (self._node[:n].view(np.uint32) >= done).nonzero()[0]

    def claim(self, slots: Rows) -> int:
        """Nodes for the entries of these slots, which have none: numbers from the one that is returned upwards."""
        first = self.given
        self.adopt(np.arange(first, first + slots.size), slots)
        return first

    def adopt(self, nodes: Numbers, slots: Rows) -> None:
        """These nodes, each new, stand for the entries of these slots, which have none."""
        if nodes.size:
            self.given = max(self.given, int(nodes.max()) + 1)
        if self.given >= self._slot.size:
            roomy = np.full(max(self.given + 1, self._slot.size * 3 // 2), NOBODY, np.int32)
            roomy[: self._slot.size] = self._slot
            self._slot = roomy
        self._node[slots] = nodes
        self._slot[nodes] = slots
        self.live += slots.size
        self.changes += 1

    # ---- following the table -----------------------------------------------------------------------------

    def forget(self, slots: Rows) -> None:
        """The entries of these slots left, or have other vectors: their nodes die."""
        nodes = self._node[slots]
        self.live -= int(np.count_nonzero(nodes != NOBODY))
        self._slot[nodes] = NOBODY
        self._node[slots] = NOBODY
        self.changes += 1

    def move(self, holes: Rows, movers: Rows, left: int, n: int) -> None:
        """Of n slots, `movers` went to `holes`, and only `left` are left."""
        moving = self._node[movers]
        self.forget(np.concatenate([holes, np.arange(left, n)]))
        self._node[holes] = moving
        self._slot[moving] = holes
        self._slot[NOBODY] = NOBODY
        self.live += int(np.count_nonzero(moving != NOBODY))

    def resize(self, capacity: int, n: int) -> None:
        """The table's capacity changed; the first `n` slots stay."""
        node = np.full(capacity, NOBODY, np.int32)
        node[:n] = self._node[:n]
        self._node = node
        self.changes += 1


class Generation:
    """One graph with its nodes, from its first node until another takes its place.

    Attributes
    ----------
    done : int
        Nodes from here on are not in the graph yet.
    epoch : int
        How many erasures the memory had seen when the first node was born.
    saved : int or None
        How many nodes there were when it was last written to a file, None if never.
    near, far : float
        A query whose best hit is not as good as `near` is stranger than the entries are to each other; the graph, which
        links entries, must look further. Below `far` it is a stranger to all of them, and no way leads to its best.
    """

    def __init__(self, graph: Graph, nodes: Nodes, epoch: int) -> None:
        self.graph, self.nodes, self.epoch = graph, nodes, epoch
        self.done = 0
        self.saved: int | None = None
        self.near = self.far = -1.0
        self._tail: Rows = np.empty(0, np.intp)
        self._known = (-1, 0, 0)

    @property
    def dead(self) -> int:
        """Nodes in the graph that stand for nobody, give or take those on their way in."""
        return max(0, len(self.graph) - self.nodes.live)

    @property
    def nbytes(self) -> int:
        return self.graph.nbytes + self.nodes.nbytes

    def tail(self, n: int) -> tuple[Rows, int]:
        """Slots whose entries are to be scanned one by one, and the node from which on the graph does not count."""
        changes, known, done = self._known
        # Nodes that have come in since are scanned a little longer: to find the tail anew is a pass over all slots.
        if (changes, known) != (self.nodes.changes, n) or self.done - done >= 32:
            done = self.done
            self._tail = self.nodes.outside(n, done)
            self._known = (self.nodes.changes, n, done)
        return self._tail, done
