"""Making a graph in small steps: from a table's entries, or from what was saved and the table's entries.

A step holds the lock of the table only while it copies a few rows. What moves meanwhile is followed by the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.index.follow import Following
from memsift.index.hnsw.graph import Graph, quantised
from memsift.index.hnsw.nodes import NOBODY, Generation, Nodes, Numbers
from memsift.index.hnsw.saved import Saved, Sums, sums
from memsift.kernels import Float32, Rows

Held = Callable[[], AbstractContextManager[object]]

# Entries that are left to the scan: so many cost a search about 10 µs.
TAIL = 128
# Rows that one step copies: 50 µs under the lock, then 10 ms of additions to the graph.
BLOCK = 64
# Rows that are compared at once, with the pivots or with what was saved; fewer if they are long.
WIDE, ELEMENTS = 4096, 400_000
# Entries that say how near the next one is.
SURVEYED = 128
# Nodes that lie near each other in space shall lie near each other in memory: a search then meets the same pages and
# cache lines again, and takes 0.6 of the time. So entries are added by their nearest of a few pivots, behind the
# first twentieth in any order, which spans the space: with it, recall is that of an order by chance.
PIVOTS, FIRST, ROUNDS = 512, 20, 8


class TableRows(Protocol):
    """What is needed of a table."""

    dim: int
    following: Following

    @property
    def vectors(self) -> Float32: ...

    @property
    def capacity(self) -> int: ...

    def __len__(self) -> int: ...

    def slots_of(self, ids: Numbers) -> Rows: ...

    def column(self, name: str) -> Any: ...


class Build:
    """A graph of all entries of a table, from scratch. Made under the lock of the table.

    It goes round by round: all that are there, then all that came meanwhile, until they are few, or come faster than
    they go in.
    """

    def __init__(self, table: TableRows, epoch: int) -> None:
        n = len(table)
        self.generation = Generation(Graph(table.dim), Nodes(table.capacity), epoch)
        self._table = table
        chosen = np.unique(np.linspace(0, n - 1, max(1, min(PIVOTS, n // 32))).astype(np.intp))
        self._pivots = table.vectors[chosen]
        self._rounds = 0
        self._begin()

    def step(self, held: Held) -> bool:
        """A little more; whether the graph is whole."""
        if self._order is None:
            self._compare(held)
        elif self._at < self._order.size:
            self._add(self._order[self._at : self._at + BLOCK], held)
        elif self._rounds < ROUNDS and len(self._table) - self.generation.nodes.live >= TAIL:
            self._begin()
        else:
            self.generation.done = self.generation.nodes.given
            survey(self.generation, self._table, held)
            return True
        return False

    def _begin(self) -> None:
        """A round for all that have no node yet."""
        self._rounds += 1
        self._first = self.generation.nodes.given
        self._nearest: list[npt.NDArray[np.intp]] = []
        self._order: Numbers | None = None
        self._at = 0

    def _compare(self, held: Held) -> None:
        """Claim nodes for some and find their nearest pivots; once there is nobody left, put them in order."""
        nodes, wide = self.generation.nodes, _wide(self._table)
        with held():
            fresh = nodes.outside(len(self._table), nodes.given)[:wide]
            nodes.claim(fresh)
            rows = self._table.vectors[fresh]
        self._nearest.append(np.dot(rows, self._pivots.T).argmax(1))
        if fresh.size < wide:
            nearest = np.concatenate(self._nearest).astype(np.int16)
            if self._first == 0:
                nearest[
                    kernels.spread(np.arange(nearest.size), seed=0) % np.uint64(FIRST) == 0
                ] = -1
            self._order = self._first + np.argsort(nearest, kind="stable")

    def _add(self, nodes: Numbers, held: Held) -> None:
        self._at += nodes.size
        living, rows = self._rows(nodes, held)
        for node, row in zip(living.tolist(), quantised(rows), strict=True):
            self.generation.graph.add(node, row)

    def _rows(self, nodes: Numbers, held: Held) -> tuple[Numbers, Float32]:
        """Those of the nodes that live, and a copy of their rows."""
        with held():
            slots = self.generation.nodes.slots(nodes)
            living = slots != NOBODY
            return nodes[living], self._table.vectors[slots[living]]


class Adoption:
    """A graph that was saved, for the entries that still are as they were. Made under the lock of the table."""

    def __init__(self, table: TableRows, saved: Saved, graph: Graph, epoch: int) -> None:
        self.generation = Generation(graph, Nodes(table.capacity), epoch)
        self.generation.done = self.generation.nodes.given = len(saved.ids)
        self.generation.saved = len(saved.ids)
        self._table, self._saved = table, saved
        self._at = 0

    def step(self, held: Held) -> bool:
        """A little more; whether the graph is whole."""
        ids = self._saved.ids[self._at : self._at + _wide(self._table)]
        nodes = self._at + np.flatnonzero(ids >= 0)
        if nodes.size:
            with held():
                slots = self._table.slots_of(self._saved.ids[nodes])
                nodes, slots = nodes[slots >= 0], slots[slots >= 0]
                same = sums(self._table.vectors[slots]) == self._saved.sums[nodes]
                self.generation.nodes.adopt(nodes[same], slots[same])
        self._at += ids.size
        if self._at < len(self._saved.ids):
            return False
        survey(self.generation, self._table, held)
        return True


def feed(generation: Generation, table: TableRows, held: Held) -> bool:
    """Put a few entries of the tail into the graph; whether many are left.

    Should it fail, the generation is no good: some nodes were claimed that the graph will never have.
    """
    nodes = generation.nodes
    with held():
        fresh = nodes.outside(len(table), generation.done)[:BLOCK]
        first = nodes.claim(fresh)
        rows = table.vectors[fresh]
    for node, row in enumerate(quantised(rows), first):
        generation.graph.add(node, row)
        generation.done = node + 1
    return len(table) - nodes.live >= TAIL


def survey(generation: Generation, table: TableRows, held: Held) -> None:
    """Find out how near entries are to their next one, and how near to any other: `near` and `far` of a generation."""
    graph, nodes = generation.graph, generation.nodes
    with held():
        n = len(table)
        slots = np.unique(np.linspace(0, n - 1, min(SURVEYED, n)).astype(np.intp))
        rows = table.vectors[slots]
    if slots.size < 2:
        return
    among = np.dot(rows, rows.T)[~np.eye(slots.size, dtype=bool)]
    best = []
    for slot, row in zip(slots, rows, strict=True):
        found = nodes.slots(graph.nearest(quantised(row), 3))
        with held():
            # One that moved meanwhile makes no difference among so many.
            others = found[(found != NOBODY) & (found != slot) & (found < len(table))]
            best.append(float(np.dot(table.vectors[others], row).max(initial=-1.0)))
    generation.near = float(np.quantile(best, 0.05))
    generation.far = (generation.near + float(np.median(among))) / 2


def described(generation: Generation, table: TableRows, held: Held) -> tuple[Numbers, Sums]:
    """The id of each node's entry, -1 if dead, and the sum of its vector: what a saved graph is known by."""
    done, wide = generation.done, _wide(table)
    ids, found = np.full(done, NOBODY, np.int64), np.zeros(done, np.uint32)
    for start in range(0, done, wide):
        nodes = np.arange(start, min(start + wide, done))
        with held():
            slots = generation.nodes.slots(nodes)
            nodes, slots = nodes[slots != NOBODY], slots[slots != NOBODY]
            ids[nodes] = table.column("ids")[slots]
            found[nodes] = sums(table.vectors[slots])
    return ids, found


def _wide(table: TableRows) -> int:
    return max(1, min(WIDE, ELEMENTS // table.dim))
