"""The table: every entry's columns and its vector, on one axis of slots.

A slot is a position and may change hands; an id is an identity and never does. The slots in use are always
0 to n - 1: a removal moves entries from the end into the holes, so that a scan meets no dead rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift import checks, kernels
from memsift.budget import Size
from memsift.checks import Metadata
from memsift.columns import Columns
from memsift.context import ContextWindow
from memsift.entries import ENTRY_COLUMNS, Filled, as_entry
from memsift.entries import Entries as Entries
from memsift.errors import StaleView
from memsift.index.follow import Following
from memsift.index.where import Filter
from memsift.order import IdOrder
from memsift.planes import make_plane
from memsift.similarity import LiveSimilarity, RoundedRing, SimilarityRing
from memsift.types import Hit, MemoryEntry
from memsift.view import COLUMNS, MemoryView, Remembered

Rows = npt.NDArray[np.intp]

# What one entry takes in all columns together, without its vector and its metadata.
COLUMN_BYTES = sum(np.dtype(dtype).itemsize for dtype, _ in COLUMNS.values())
LARGEST_COUNT = np.int64(2**63 - 1)
TOUCHED = ("accessed_tick", "accessed_at", "revision", "access_count")


class EntryTable:
    """Columns, vectors, metadata and window similarities of n entries.

    Parameters
    ----------
    dim : int
    window : int
        Queries whose similarities are kept for every entry; 0 keeps none.
    limit : int or None
        The budget in entries. One more will ever be there: the one that tips it over. Growth stops there.
    held : str
        How vectors are held: the name of a plane.
    folder : Path, optional
        Where a cold plane lies.
    """

    def __init__(
        self,
        dim: int,
        window: int,
        limit: int | None = None,
        held: str = "float32",
        folder: Path | None = None,
    ) -> None:
        self._ceiling = None if limit is None else limit + 1
        capacity = kernels.padded(min(self._ceiling or 256, 256))
        self.dim = dim
        self._n = 0
        self.plane = make_plane(held, dim, capacity, folder)
        self._columns = Columns(capacity)
        self._snapshots: dict[str, npt.NDArray[Any]] = {}
        self._place = object()  # another one whenever entries change slots or vectors
        self._order = IdOrder()
        self.filled = Filled(0)
        self.ring = (RoundedRing if held == "tiered" else SimilarityRing)(window, capacity)
        self.size = Size(0, 0, 0)
        self.following = Following()

    def __len__(self) -> int:
        return self._n

    @property
    def capacity(self) -> int:
        """Slots that there is room for."""
        return len(self.plane)

    @property
    def vectors(self) -> Any:
        """(n, dim) float32: the live rows themselves, or what makes float32 rows of them when it is asked for some."""
        return self.plane.live(self._n)

    def column(self, name: str) -> npt.NDArray[Any]:
        """(n,) of one column: the live values themselves, to be read only."""
        return self._columns[name][: self._n]

    def entry_bytes(self, metadata_bytes: int = 0) -> int:
        """What one entry counts in a budget of bytes: the same however its vector is held."""
        return (4 * (self.dim + len(self.ring.rows))) + COLUMN_BYTES + metadata_bytes

    @property
    def allocated(self) -> dict[str, int]:
        """Bytes of RAM held, by part; metadata without what it refers to."""
        return {
            "vectors": self.plane.nbytes,
            "columns": self._columns.nbytes,
            "metadata": self._columns.references,
            "ids": self._order.nbytes,
            "window": self.ring.nbytes,
            "snapshots": sum(s.nbytes for s in self._snapshots.values() if s.strides != (0,)),
        }

    # ---- reading ---------------------------------------------------------------------------------

    def slots_of(self, ids: npt.NDArray[np.int64]) -> Rows:
        """The slot of each id, -1 where there is none; (m,) intp. Logarithmic in n."""
        return self._order.slots_of(self.column("ids"), ids)

    def hits(self, slots: Rows, scores: kernels.Float64) -> list[Hit]:
        """What was found, for the caller to keep: metadata is copied."""
        ids = self.column("ids")[slots].tolist()
        notes = self._columns["metadata"][slots].tolist()
        copies = [{} if note is None else checks.thawed(note) for note in notes]
        return list(map(Hit._make, zip(ids, scores.tolist(), copies, strict=True)))

    def entry(self, slot: int) -> MemoryEntry:
        """One entry as it stands, for the caller to keep."""
        values = {name: self._columns[name][slot].item() for name in ENTRY_COLUMNS}
        vector = self.plane.take(np.array([slot]))[0]
        return as_entry(values, vector, self._columns["metadata"][slot])

    def entries(self, ids: npt.NDArray[np.int64]) -> Entries:
        """A copy of the entries of these ids, which must be here, fit to be appended again."""
        slots = self.slots_of(ids)
        columns = {name: self._columns[name][slots] for name in COLUMNS}
        return Entries(self.plane.take(slots), columns, self._columns["metadata"][slots].tolist())

    def sums(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """Sums of the vectors of these ids as they came: (m,) uint32."""
        return self.plane.sums(self.slots_of(ids))

    def differs(
        self, ids: npt.NDArray[np.int64], vectors: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.bool_]:
        """Whether the entries of these ids, which are here, are held as other vectors than these: (m,) bool."""
        return self.plane.differs(self.slots_of(ids), vectors)

    def notes(self, start: int, stop: int) -> list[Metadata | None]:
        """Metadata of some slots, as it is kept."""
        found: list[Metadata | None] = self._columns["metadata"][start:stop].tolist()
        return found

    def matching(self, test: Filter) -> npt.NDArray[np.bool_]:
        """Which entries' metadata pass a test: (n,) bool."""
        nothing: Metadata = {}
        notes = self.column("metadata")
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
        *,
        live: bool = False,
    ) -> MemoryView:
        """A frozen view. Columns are copied only if they changed since the last view; vectors never are.

        `lock` keeps others from moving entries while a view's cosines are filled in. A `live` view copies nothing,
        and holds until the next change.
        """
        columns = {}
        for name in COLUMNS:
            found = self._snapshots.get(name)
            if found is None:
                found = self.column(name)
                if not live and not self._columns.plain(name):
                    found = found.copy()
                found = found.view()
                found.flags.writeable = False
                if not live:
                    self._snapshots[name] = found
            columns[name] = found
        place, n = self._place, self._n

        def vectors() -> Any:
            if self._place is not place:
                raise StaleView(
                    "the store has moved its vectors since this view was taken; take a new one"
                )
            return self.plane.live(n)

        recent = context.recent()
        recent.flags.writeable = False
        similarity = LiveSimilarity(self.ring, context, vectors, lock)
        return MemoryView(columns, vectors, recent, tick, now, similarity, place, remembered)

    # ---- writing ---------------------------------------------------------------------------------

    def room(self, count: int) -> Iterator[npt.NDArray[np.float32]]:
        """Arrays to fill with the next vectors, `count` in all; each must be full before the next is asked for.

        `append` is then given `filled` in place of the vectors.
        """
        if self._n + count > len(self.plane):
            self._resize(self._n + count)
        self.filled = Filled(count)
        return self.plane.room(self._n, count)

    def append(self, entries: Entries) -> None:
        """Add entries at the end; columns that are not given take their defaults."""
        start, stop = self._n, self._n + len(entries.vectors)
        if stop > len(self.plane):
            roomy = max(stop, int(len(self.plane) * 1.5))
            self._resize(min(roomy, max(stop, self._ceiling)) if self._ceiling else roomy)
        if not isinstance(entries.vectors, Filled):
            self.plane.append(start, entries.vectors)
        for name, (_, default) in COLUMNS.items():
            self._columns.write(name, slice(start, stop), entries.columns.get(name, default))
        self._columns.write("metadata", slice(start, stop), entries.metadata)
        self._n = stop
        self._snapshots.clear()
        self._order.appended(self._columns["ids"][max(0, start - 1) : stop])
        added = self._columns["nbytes"][start:stop], self._columns["cost"][start:stop]
        self.size += (stop - start, int(added[0].sum()), int(added[1].sum()))
        self.following.appended()

    def write(self, name: str, slots: Rows, values: npt.ArrayLike) -> None:
        """Set one column at some slots."""
        if name in ("nbytes", "cost"):
            before = int(self._columns[name][slots].sum())
            self._columns.write(name, slots, values)
            change = int(self._columns[name][slots].sum()) - before
            self.size += (0, change, 0) if name == "nbytes" else (0, 0, change)
        else:
            self._columns.write(name, slots, values)
        self._snapshots.pop(name, None)

    def touch(self, slots: Rows, tick: int, at: float, revision: int) -> None:
        """These distinct slots were returned by a search; a full counter stays full."""
        own = self._columns.own
        own("accessed_tick")[slots] = tick
        own("accessed_at")[slots] = at
        own("revision")[slots] = revision
        counts = own("access_count")[slots]
        own("access_count")[slots] = counts + (counts < LARGEST_COUNT)
        for name in TOUCHED:
            self._snapshots.pop(name, None)

    def count(self, name: str, slots: Rows) -> None:
        """Add one to a counter at some distinct slots; a full counter stays full."""
        column = self._columns.own(name)
        counts = column[slots]
        column[slots] = counts + (counts < LARGEST_COUNT)
        self._snapshots.pop(name, None)

    def write_vector(self, slot: int, vector: npt.NDArray[np.float32]) -> None:
        self._place = object()  # first, so that a view that is read meanwhile learns of it
        self.plane.replace(slot, vector)
        self.ring.forget(np.array([slot]))
        self.following.forget(np.array([slot]))

    def write_metadata(self, slot: int, metadata: Metadata | None) -> None:
        if metadata is not None or not self._columns.plain("metadata"):
            self._columns.own("metadata")[slot] = metadata

    def overwrite(self, entries: Entries, revision: int) -> npt.NDArray[np.int64]:
        """Make the entries of these ids, which are here, what `entries` says; returns those whose vectors changed."""
        slots = self.slots_of(entries.columns["ids"])
        moved = self.plane.differs(slots, entries.vectors)
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
        self.plane.scrub(self._n)

    def remove(self, keep: npt.NDArray[np.bool_]) -> None:
        """Keep the slots where `keep` (n,) is true; the rest leave and their memory is given back."""
        n, left = self._n, int(np.count_nonzero(keep))
        gone = np.flatnonzero(~keep)
        nbytes, cost = self._columns["nbytes"][gone].sum(), self._columns["cost"][gone].sum()
        # Only holes among the first `left` slots need filling, from the kept ones behind them.
        holes = gone[: np.searchsorted(gone, left)]
        movers = left + np.flatnonzero(keep[left:])
        self._place = object()  # first, so that a view that is read meanwhile learns of it
        self.plane.move(holes, movers, gone)
        self._columns.move(holes, movers, left)
        self.ring.move(holes, movers, left)
        self._n = left
        self.following.moved(holes, movers, left, n)
        self._order.stale = True
        self._snapshots.clear()
        self.size -= (n - left, int(nbytes), int(cost))
        if len(self.plane) > 2 * left + 256:
            self._resize(left)

    def _resize(self, slots: int) -> None:
        capacity, n = kernels.padded(slots), self._n
        self.plane.resize(capacity, n)
        self._columns.resize(capacity, n)
        self.ring.resize(capacity, n)
        self.following.resize(capacity, n)
