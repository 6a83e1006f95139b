"""The table: every entry's columns and its vector, on one axis of slots.

A slot is a position and may change hands; an id is an identity and never does. The slots in use are always
0 to n - 1: a removal moves entries from the end into the holes, so that a scan meets no dead rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memsift import checks, kernels
from memsift.budget import Size
from memsift.checks import Metadata
from memsift.context import ContextWindow
from memsift.errors import StaleView
from memsift.index.where import Filter
from memsift.similarity import SimilarityRing
from memsift.types import Hit, MemoryEntry
from memsift.view import COLUMNS, MemoryView, Remembered

Rows = npt.NDArray[np.intp]

# What one entry takes in all columns together, without its vector and its metadata.
COLUMN_BYTES = sum(np.dtype(dtype).itemsize for dtype, _ in COLUMNS.values())
LARGEST_COUNT = np.int64(2**63 - 1)
# What callers see of an entry; the rest is bookkeeping.
MEASURED = ["nearest", "typicality", "adjacency", "cluster", "attention", "heat"]
OWN_COLUMNS = ["nbytes", "revision", *MEASURED]
TOUCHED = ("accessed_tick", "accessed_at", "revision", "access_count")
ENTRY_COLUMNS = tuple(name for name in COLUMNS if name not in OWN_COLUMNS)


class Entries(NamedTuple):
    """n entries on their way into a table: unit rows (n, dim), columns (n,) by name, metadata if any has some."""

    vectors: npt.NDArray[np.float32]
    columns: dict[str, npt.NDArray[Any]]
    metadata: list[Metadata | None] | None

    def take(self, chosen: npt.NDArray[np.bool_]) -> Entries:
        """Those where `chosen` (n,) is true."""
        notes = self.metadata and [n for n, c in zip(self.metadata, chosen, strict=True) if c]
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return Entries(self.vectors[chosen], columns, notes)


class EntryTable:
    """Columns, vectors, metadata and window similarities of n entries.

    Parameters
    ----------
    dim : int
    window : int
        Queries whose similarities are kept for every entry; 0 keeps none.
    limit : int or None
        The budget in entries. One more will ever be there: the one that tips it over. Growth stops there.
    """

    def __init__(self, dim: int, window: int, limit: int | None = None) -> None:
        self._ceiling = None if limit is None else limit + 1
        capacity = kernels.padded(min(self._ceiling or 256, 256))
        self.dim = dim
        self._n = 0
        self._vectors = np.empty((capacity, dim), dtype=np.float32)
        self._columns = {name: np.empty(capacity, dtype) for name, (dtype, _) in COLUMNS.items()}
        self._metadata = np.full(capacity, None, dtype=object)
        self._noted = False  # some entry has or had metadata
        self._snapshots: dict[str, npt.NDArray[Any]] = {}
        self._place = object()  # another one whenever entries change slots or vectors
        self._sorted: Rows | None = None  # slots 0.._sorted.size - 1 in the order of their ids
        self._unsorted = False  # a removal has moved entries since `_sorted` was made
        self.ring = SimilarityRing(window, capacity)
        self.size = Size(0, 0, 0)

    def __len__(self) -> int:
        return self._n

    @property
    def vectors(self) -> npt.NDArray[np.float32]:
        """(n, dim) float32: the live rows themselves, not a copy."""
        return self._vectors[: self._n]

    def column(self, name: str) -> npt.NDArray[Any]:
        """(n,) of one column: the live values themselves, to be read only."""
        return self._columns[name][: self._n]

    def entry_bytes(self, metadata_bytes: int = 0) -> int:
        """What one entry counts in a budget of bytes."""
        ring = len(self.ring.rows) * self.ring.rows.itemsize
        return self.dim * self._vectors.itemsize + COLUMN_BYTES + ring + metadata_bytes

    @property
    def allocated(self) -> dict[str, int]:
        """Bytes of memory held, by part; metadata as compact JSON."""
        return {
            "vectors": self._vectors.nbytes,
            "columns": sum(c.nbytes for c in self._columns.values()) + self._metadata.nbytes,
            "window": self.ring.nbytes,
            "metadata": self.size.bytes - self._n * self.entry_bytes(),
            "snapshots": sum(s.nbytes for s in self._snapshots.values()),
        }

    # ---- reading ---------------------------------------------------------------------------------

    def slots_of(self, ids: npt.NDArray[np.int64]) -> Rows:
        """The slot of each id, -1 where there is none; (m,) intp. Logarithmic in n."""
        if self._unsorted:
            self._sort()
        # Ids ascend in the order of addition, so what was appended since the last sort is a sorted tail.
        head = 0 if self._sorted is None else self._sorted.size
        column = self.column("ids")
        slots = head + np.searchsorted(column[head:], ids)
        found = _equal_at(column, slots, ids)
        if self._sorted is not None and not found.all():
            places = np.searchsorted(column[:head], ids, sorter=self._sorted)
            older = (
                self._sorted[np.minimum(places, head - 1)] if head else np.zeros(ids.size, np.intp)
            )
            slots = np.where(found, slots, older)
            found = _equal_at(column, slots, ids)
        return np.where(found, slots, -1)

    def hits(self, slots: Rows, scores: kernels.Float64) -> list[Hit]:
        """What was found, for the caller to keep: metadata is copied."""
        ids = self.column("ids")[slots].tolist()
        notes = self._metadata[slots].tolist()
        copies = [{} if note is None else checks.thawed(note) for note in notes]
        return list(map(Hit._make, zip(ids, scores.tolist(), copies, strict=True)))

    def entry(self, slot: int) -> MemoryEntry:
        """One entry as it stands, for the caller to keep."""
        values = {name: self._columns[name][slot].item() for name in ENTRY_COLUMNS}
        importance = values.pop("importance")
        vector = self._vectors[slot].copy()
        vector.flags.writeable = False
        return MemoryEntry(
            id=values.pop("ids"),
            vector=vector,
            importance=None if importance != importance else importance,
            metadata=checks.thawed(self._metadata[slot] or {}),
            **values,
        )

    def entries(self, ids: npt.NDArray[np.int64]) -> Entries:
        """A copy of the entries of these ids, which must be here, fit to be appended again."""
        slots = self.slots_of(ids)
        columns = {name: column[slots] for name, column in self._columns.items()}
        return Entries(self._vectors[slots], columns, self._metadata[slots].tolist())

    def notes(self, start: int, stop: int) -> list[Metadata | None]:
        """Metadata of some slots, as it is kept."""
        found: list[Metadata | None] = self._metadata[start:stop].tolist()
        return found

    def matching(self, test: Filter) -> npt.NDArray[np.bool_]:
        """Which entries' metadata pass a test: (n,) bool."""
        nothing: Metadata = {}
        notes = self._metadata[: self._n]
        return np.fromiter((test(note or nothing) for note in notes), np.bool_, self._n)

    def holds_still(self, view: MemoryView) -> bool:
        """Whether every entry of a view is still in the slot in which the view saw it."""
        return view.place is self._place

    def view(
        self,
        context: ContextWindow,
        tick: int,
        now: float,
        lock: AbstractContextManager[object],
        remembered: Remembered | None = None,
    ) -> MemoryView:
        """A frozen view. Columns are copied only if they changed since the last view; vectors never are.

        `lock` keeps others from moving entries while a view's cosines are filled in.
        """
        for name in COLUMNS:
            if name not in self._snapshots:
                copy = self.column(name).copy()
                copy.flags.writeable = False
                self._snapshots[name] = copy
        place, n, seen = self._place, self._n, context.seen

        def vectors() -> npt.NDArray[np.float32]:
            if self._place is not place:
                raise StaleView(
                    "the store has moved its vectors since this view was taken; take a new one"
                )
            return self._vectors[:n]

        def similarity(
            window: int, use: Callable[[list[kernels.Float32]], kernels.Float32]
        ) -> kernels.Float32:
            with lock:
                rows = vectors()
                queries = min(window, len(context))
                if context.seen == seen and queries <= len(self.ring.rows):
                    return use(self.ring.of(rows, context, queries))
                return use(list(np.dot(recent[-window:], rows.T)))

        recent = context.recent()
        recent.flags.writeable = False
        about = dict(self._snapshots), vectors, recent, tick, now, similarity, place, remembered
        return MemoryView(*about)

    # ---- writing ---------------------------------------------------------------------------------

    def room(self, count: int) -> npt.NDArray[np.float32]:
        """Where the vectors of the next `count` entries will be: filled in place, they are not copied by `append`."""
        if self._n + count > len(self._vectors):
            self._resize(self._n + count)
        return self._vectors[self._n : self._n + count]

    def append(self, entries: Entries) -> None:
        """Add entries at the end; columns that are not given take their defaults."""
        start, stop = self._n, self._n + len(entries.vectors)
        if stop > len(self._vectors):
            roomy = max(stop, int(len(self._vectors) * 1.5))
            self._resize(min(roomy, max(stop, self._ceiling)) if self._ceiling else roomy)
        if not np.may_share_memory(self._vectors, entries.vectors):
            self._vectors[start:stop] = entries.vectors
        for name, (_, default) in COLUMNS.items():
            self._columns[name][start:stop] = entries.columns.get(name, default)
        if entries.metadata is not None:
            self._metadata[start:stop] = entries.metadata
            self._noted = True
        self._n = stop
        self._snapshots.clear()
        ids = self._columns["ids"][max(0, start - 1) : stop]
        self._unsorted |= bool((ids[1:] <= ids[:-1]).any())
        added = self._columns["nbytes"][start:stop], self._columns["cost"][start:stop]
        self.size += (stop - start, int(added[0].sum()), int(added[1].sum()))

    def write(self, name: str, slots: Rows, values: npt.ArrayLike) -> None:
        """Set one column at some slots."""
        column = self._columns[name]
        if name in ("nbytes", "cost"):
            before = int(column[slots].sum())
            column[slots] = values
            change = int(column[slots].sum()) - before
            self.size += (0, change, 0) if name == "nbytes" else (0, 0, change)
        else:
            column[slots] = values
        self._snapshots.pop(name, None)

    def touch(self, slots: Rows, tick: int, at: float, revision: int) -> None:
        """These distinct slots were returned by a search; a full counter stays full."""
        columns = self._columns
        columns["accessed_tick"][slots] = tick
        columns["accessed_at"][slots] = at
        columns["revision"][slots] = revision
        counts = columns["access_count"][slots]
        columns["access_count"][slots] = counts + (counts < LARGEST_COUNT)
        for name in TOUCHED:
            self._snapshots.pop(name, None)

    def count(self, name: str, slots: Rows) -> None:
        """Add one to a counter at some distinct slots; a full counter stays full."""
        column = self._columns[name]
        counts = column[slots]
        column[slots] = counts + (counts < LARGEST_COUNT)
        self._snapshots.pop(name, None)

    def write_vector(self, slot: int, vector: npt.NDArray[np.float32]) -> None:
        self._place = object()  # first, so that a view that is read meanwhile learns of it
        self._vectors[slot] = vector
        self.ring.forget(np.array([slot]))

    def write_metadata(self, slot: int, metadata: Metadata | None) -> None:
        self._metadata[slot] = metadata
        self._noted |= metadata is not None

    def overwrite(self, entries: Entries, revision: int) -> npt.NDArray[np.int64]:
        """Make the entries of these ids, which are here, what `entries` says; returns those whose vectors changed."""
        slots = self.slots_of(entries.columns["ids"])
        moved = (self._vectors[slots] != entries.vectors).any(1)
        for slot, vector in zip(slots[moved], entries.vectors[moved], strict=True):
            self.write_vector(slot, vector)
        for name, values in entries.columns.items():
            self.write(name, slots, values)
        self.write("revision", slots, revision)
        for slot, note in zip(slots, entries.metadata or [], strict=False):
            self.write_metadata(slot, note)
        changed: npt.NDArray[np.int64] = entries.columns["ids"][moved]
        return changed

    def scrub(self) -> None:
        """Overwrite what lies beyond the last slot: no vector that ever left is to be found there."""
        self._vectors[self._n :] = 0.0

    def remove(self, keep: npt.NDArray[np.bool_]) -> None:
        """Keep the slots where `keep` (n,) is true; the rest leave and their memory is given back."""
        n, left = self._n, int(np.count_nonzero(keep))
        gone = np.flatnonzero(~keep)
        nbytes, cost = self._columns["nbytes"][gone].sum(), self._columns["cost"][gone].sum()
        # Only holes among the first `left` slots need filling, from the kept ones behind them.
        holes = gone[: np.searchsorted(gone, left)]
        movers = left + np.flatnonzero(keep[left:])
        self._place = object()  # first, so that a view that is read meanwhile learns of it
        kernels.fill_holes(self._vectors, holes, movers)
        for column in self._columns.values():
            column[holes] = column[movers]
        if self._noted:
            self._metadata[holes] = self._metadata[movers]
            self._metadata[left:n] = None
        self.ring.move(holes, movers, left)
        self._n = left
        self._unsorted = True
        self._snapshots.clear()
        self.size -= (n - left, int(nbytes), int(cost))
        if len(self._vectors) > 2 * left + 256:
            self._resize(left)

    def _sort(self) -> None:
        ids = self.column("ids")
        self._unsorted = False
        # Nothing moved (a removal from the end): the ids still ascend and need no order beside them.
        in_order = bool((ids[1:] > ids[:-1]).all())
        self._sorted = None if in_order else np.argsort(ids, kind="stable")

    def _resize(self, slots: int) -> None:
        capacity, n = kernels.padded(slots), self._n
        vectors = np.empty((capacity, self.dim), dtype=np.float32)
        vectors[:n] = self._vectors[:n]
        self._vectors = vectors
        for name, column in self._columns.items():
            self._columns[name] = np.empty(capacity, column.dtype)
            self._columns[name][:n] = column[:n]
        metadata = np.full(capacity, None, dtype=object)
        metadata[:n] = self._metadata[:n]
        self._metadata = metadata
        self.ring.resize(capacity, n)


def _equal_at(
    column: npt.NDArray[np.int64], slots: Rows, ids: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    equal: npt.NDArray[np.bool_] = slots < column.size
    if equal.any():
        equal &= column[np.where(equal, slots, 0)] == ids
    return equal
