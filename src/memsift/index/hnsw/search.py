"""Search by a graph: candidates from it, whoever is not in it by a scan, and the order of both by exact cosines."""

from __future__ import annotations

import math
import threading
import time
from contextlib import nullcontext

import numpy as np

from memsift import kernels
from memsift.errors import MemsiftError
from memsift.index.exact import ExactIndex, Found, Mask
from memsift.index.hnsw.build import TAIL, Adoption, Build, TableRows, described, feed
from memsift.index.hnsw.graph import EXPANSION, Graph, quantised
from memsift.index.hnsw.nodes import NOBODY, Generation
from memsift.index.hnsw.saved import Companion, Saved
from memsift.index.hnsw.upkeep import Upkeep
from memsift.kernels import Float32, Rows
from memsift.types import IndexState

# Fewer entries than this are scanned as fast as a graph is asked.
SMALLEST = 1024
# Candidates that are ranked again, at least: what int8 has put into another order is among them.
CANDIDATES = 32
# A search that needs more of them than this, or more than an eighth of all, had better scan.
MOST, SHARE = 2000, 8
# Of a mask that allows less than this, the graph would meet too few; the scan meets all of them.
SELECTIVE = 0.2
# A query that is a stranger gets a wider search; one that is a stranger to all, or up to so many floats, gets the scan,
# which is as fast then. At 100,000 × 384 around 100 centres, a graph found .42 of the best ten for random queries, .74
# with four times the expansion; for queries half of the entries' kind (best cosine .43, not .59), .98 and 1.00.
WIDER, SCANNED_FLOATS = 4, 8_000_000
# What int8 may put into another order, times the root of the dimension: two standard deviations of its error.
BLUR = 0.02
# A graph is made anew once this share of it is dead, or the tail is longer than it.
WORN = 0.3
# Nothing is begun for a process that asks once and ends.
SEARCHES = 2
# Saving a graph keeps the interpreter busy for 30 ms per 100,000 nodes, letting go of one for 5: both wait until nobody
# has searched for so long, the latter no longer than that.
LULL_SECONDS, PATIENCE_SECONDS = 0.5, 30.0


class HnswIndex:
    """Finds nearly all of the best; what it finds is true, in order, and as much as there is.

    A graph is made in the background once a memory of at least `least` entries is searched, and given up when there are
    less than half of that. Until it is there, and whenever it cannot answer, the search is exact.

    Parameters
    ----------
    table : TableRows
        Whose entries are searched. It tells of every change.
    lock : RLock
        Held by everybody who changes the table or searches.
    least : int
    home : Companion, optional
        Where the graph is saved.
    before : HnswIndex, optional
        The index of the table before this one: what it knows of unchanged entries is used again.
    """

    def __init__(
        self,
        table: TableRows,
        lock: threading.RLock,
        kind: str = "hnsw",
        least: int = SMALLEST,
        home: Companion | None = None,
        before: HnswIndex | None = None,
    ) -> None:
        self.table, self.lock, self.kind, self.least = table, lock, kind, least
        self.exact = ExactIndex(table)
        self.epoch = 0
        self._home, self._unread = home, home is not None
        self._asked, self._searches, self._scans = -math.inf, 0, 0
        self._serving: Generation | None = None
        self._work: Build | Adoption | None = None
        self._retired: Generation | None = None
        self._patience = 0.0
        self._offered: tuple[Saved, Graph] | None = None
        self.upkeep = Upkeep(self)
        if before is not None:
            self.epoch = before.epoch
            self._unread &= before._unread or before._home is not home
            self._asked, self._searches = before._asked, before._searches
            self._offered = before._given_away()
        table.following.begin(self)

    @property
    def sees_all(self) -> bool:
        """Whether the next search will look at every entry."""
        return self._serving is None

    @property
    def nbytes(self) -> int:
        """Memory that the graphs hold."""
        retired = self._retired
        return sum(held.nbytes for held in (*self._generations(), retired) if held is not None)

    def state(self) -> IndexState:
        """What it is doing at this moment."""
        serving, n = self._serving, len(self.table)
        return IndexState(
            self.kind,
            "exact" if serving is None else "hnsw",
            0 if serving is None else len(serving.graph),
            0 if serving is None else serving.dead,
            n if serving is None else serving.nodes.outside(n, serving.done).size,
            self._scans,
            self._work is not None,
            self.upkeep.error,
        )

    # ---- searching ---------------------------------------------------------------------------------------

    def search(
        self, query: Float32, k: int, mask: Mask | None = None, out: Float32 | None = None
    ) -> Found:
        """As `ExactIndex.search`, which it calls if all similarities are wanted in `out`."""
        self._asked = time.monotonic()
        self._searches += 1
        self.upkeep.wake()
        found = None
        if self._serving is not None and out is None:
            found = self._by_graph(self._serving, query, k, mask)
            self._scans += found is None
        return self.exact.search(query, k, mask, out) if found is None else found

    def search_many(
        self, queries: Float32, k: int, mask: Mask | None = None, last: int = 0
    ) -> tuple[list[Found], Float32]:
        """As `ExactIndex.search_many`; by the graph, no query's similarities to all entries are known."""
        if self._serving is None:
            self._asked = time.monotonic()
            self._searches += len(queries)
            self.upkeep.wake()
            return self.exact.search_many(queries, k, mask, last)
        found = [self.search(query, k, mask) for query in queries]
        return found, np.empty((0, len(self.table)), np.float32)

    def _by_graph(
        self, serving: Generation, query: Float32, k: int, mask: Mask | None
    ) -> Found | None:
        """The best k by the graph and the scan of its tail; None if they cannot be sure to have them."""
        n = len(self.table)
        tail, done = serving.tail(n)
        size, share = len(serving.graph), 1.0
        if mask is not None:
            allowed = int(np.count_nonzero(mask))
            k, share = min(k, allowed), allowed / max(1, n)
            tail = tail[mask[tail]]
        if share < SELECTIVE or 2 * tail.size > n or not size or not k:
            return None
        share *= max(0.1, min(1.0, serving.nodes.live / size))
        wanted = max(CANDIDATES, k + k // 2)
        near, coarse = self._nearest_of(tail, query, wanted), quantised(query)
        for wider in (1, WIDER):
            count, expansion = (math.ceil(wider * x / share) for x in (wanted, EXPANSION))
            if count > MOST or SHARE * count > n:
                return None
            if wider > 1 and self.table.vectors.size < SCANNED_FLOATS:
                return None
            nodes = serving.graph.nearest(coarse, count, expansion)
            slots = serving.nodes.slots(nodes[nodes < done])
            slots = slots[slots != NOBODY]
            if mask is not None:
                slots = slots[mask[slots]]
            if slots.size + near.size < k:
                continue
            rows = np.concatenate([slots, near])
            scores = kernels.exact_cosines(self.table.vectors, rows, query)
            order = np.lexsort((self.table.column("ids")[rows], -scores))[:k]
            best = scores[order[0]]
            if best < serving.far:
                return None
            # Should the last candidates be as good as the last hits, better ones may lie behind them.
            lead = scores[order[-1]] - scores[: slots.size].min(initial=1.0)
            if lead > BLUR / math.sqrt(self.table.dim) and (best >= serving.near or wider > 1):
                return rows[order], scores[order]
        return None

    def _nearest_of(self, tail: Rows, query: Float32, wanted: int) -> Rows:
        """Those of the tail that may be among the best."""
        if tail.size <= wanted:
            return tail
        vectors = self.table.vectors
        run = int(tail[-1] - tail[0]) + 1 == tail.size
        rows = vectors[tail[0] : tail[-1] + 1] if run else vectors[tail]
        scores = np.empty(tail.size, np.float32)
        kernels.scan(rows, query, scores)
        bound = np.partition(scores, tail.size - wanted)[tail.size - wanted]
        best: Rows = tail[scores >= bound - 2 * kernels.NOISE]
        return best

    # ---- following the table -----------------------------------------------------------------------------

    def appended(self) -> None:
        """There are more entries."""
        for generation in self._generations():
            generation.nodes.changes += 1
        if self._serving is not None:
            self.upkeep.wake()

    def moved(self, holes: Rows, movers: Rows, left: int, n: int) -> None:
        """Of n slots, `movers` went to `holes`, and only `left` are left."""
        for generation in self._generations():
            generation.nodes.move(holes, movers, left, n)
        self.upkeep.wake()

    def forget(self, slots: Rows) -> None:
        """The entries of these slots have other vectors."""
        for generation in self._generations():
            generation.nodes.forget(slots)

    def resize(self, capacity: int, n: int) -> None:
        """The table's capacity changed; the first n slots stay."""
        for generation in self._generations():
            generation.nodes.resize(capacity, n)

    def erased(self, epoch: int) -> None:
        """The memory has seen so many erasures: what was made before them may not stay."""
        if epoch != self.epoch:
            self.epoch = epoch
            self._serving = self._work = self._offered = self._retired = None

    def _generations(self) -> list[Generation]:
        work = self._work
        both = (self._serving, None if work is None else work.generation)
        return [generation for generation in both if generation is not None]

    # ---- upkeep ------------------------------------------------------------------------------------------

    def settle(self, seconds: float = 60.0) -> bool:
        """Wait until the graph is as it should be; whether it came to that in time. Not with the lock held."""
        self._searches = max(self._searches, SEARCHES)
        return self.upkeep.settle(seconds)

    def due(self) -> bool:
        """Whether the graph is not as it should be."""
        serving, n = self._serving, len(self.table)
        if self._work is not None:
            return True
        if serving is None:
            return self._searches >= SEARCHES and n >= self.least
        return (
            2 * n < self.least
            or n - serving.nodes.live >= TAIL
            or self._is_worn(serving)
            or self._retired is not None
            or self._is_unsaved(serving)
        )

    def step(self) -> None:
        """Do a little of what is due: a few milliseconds, of which the lock is held for tenths."""
        work, serving, held = self._work, self._serving, self.upkeep.held
        if work is not None:
            if work.step(held):
                with held():
                    if self._work is work:  # no erasure came in between
                        self._retired, self._patience = serving, time.monotonic() + PATIENCE_SECONDS
                        self._serving, self._work = work.generation, None
        elif serving is None:
            self._begin()
        elif 2 * len(self.table) < self.least:
            with held():
                self._serving = self._retired = None
        elif self._is_worn(serving):
            with held():
                self._work = Build(self.table, self.epoch)
        elif len(self.table) - serving.nodes.live >= TAIL:
            feed(serving, self.table, held)
        elif self._calm() or (self._retired is not None and time.monotonic() > self._patience):
            self._retired = None
            if self._calm() and self._is_unsaved(serving):
                self._save(serving)
        else:
            self.upkeep.rest(LULL_SECONDS / 10)

    def failed(self) -> None:
        """What a step worked on is not to be trusted."""
        if self._work is not None:
            self._work = None  # the graph that serves was not touched
        else:
            self._serving = self._retired = None

    def stop(self) -> None:
        """End the upkeep; searches go on."""
        self.upkeep.close()

    def close(self) -> None:
        """End the upkeep, and save the graph if much has happened since it was saved."""
        self.stop()
        serving = self._serving
        if serving is not None and self._home is not None and not self.upkeep.running:
            since = serving.done if serving.saved is None else serving.done - serving.saved
            if 100 * since > serving.done:
                with self.lock:
                    self._save(serving, closing=True)

    def _calm(self) -> bool:
        return time.monotonic() - self._asked >= LULL_SECONDS

    def _is_unsaved(self, serving: Generation) -> bool:
        return self._home is not None and serving.saved is None

    def _is_worn(self, serving: Generation) -> bool:
        size = len(serving.graph)
        return serving.dead > WORN * size or len(self.table) - serving.nodes.live > size

    def _begin(self) -> None:
        """Start from what was there before, from what was saved, or from nothing."""
        offered, self._offered = self._offered, None
        epoch = self.epoch
        if offered is None and self._unread and self._home is not None:
            self._unread = False
            saved = self._home.read(self.table.dim, epoch, len(self.table))
            if saved is not None:
                offered = saved, Graph.of(saved.graph, self.table.dim)
        with self.upkeep.held():
            if offered is not None and epoch == self.epoch:
                self._work = Adoption(self.table, *offered, epoch)
            else:
                self._work = Build(self.table, self.epoch)

    def _save(self, serving: Generation, *, closing: bool = False) -> None:
        assert self._home is not None
        held = nullcontext if closing else self.upkeep.held
        serving.saved = serving.done
        try:
            ids, sums = described(serving, self.table, held)
            saved = Saved(ids, sums, serving.graph.dump())
            self._home.write(saved, self.table.dim, serving.epoch)
        except (MemsiftError, OSError) as error:
            # A graph that is not saved is made anew: that is all.
            self.upkeep.error = f"{type(error).__name__}: {error}"[:200]

    def _given_away(self) -> tuple[Saved, Graph] | None:
        """What the next index may begin with. This one is stopped."""
        self.stop()
        serving, self._serving, self._work = self._serving, None, None
        if serving is None:
            return self._offered
        ids, sums = described(serving, self.table, nullcontext)
        return Saved(ids, sums, b""), serving.graph
