"""Things with names on a store: put, found, touched and removed whole, whatever other processes do meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np

from memsift.adapters.keys import SPACE, Keys, Label, Name, Space, label_of, whole_things
from memsift.checks import Metadata
from memsift.durable import DurableStore
from memsift.errors import UnknownEntry
from memsift.kernels import Float32
from memsift.types import Hit, Ids, MemoryEntry, Receipt

# Hits that are asked for at first, for each thing that is wanted: some are parts of one thing, some are filtered out.
ROUNDS = 4
GROWTH = 8


@dataclass(frozen=True)
class Thing:
    """What is to be put.

    Parameters
    ----------
    name : Name
    rows : (parts, dim) float32
        One entry for each; at least one.
    created_at : float
        Unix seconds. What is in the store already keeps its own.
    note : dict
        Metadata of every entry, beside the name.
    text : str or None
        What it says, kept with the first entry.
    cost : int
        Tokens, shared by its entries.
    """

    name: Name
    rows: Float32
    created_at: float
    note: Metadata = field(default_factory=dict)
    text: str | None = None
    cost: int = 1

    def notes(self) -> list[Metadata]:
        """Metadata of each part."""
        parts = len(self.rows)
        return [self.note | Label(self.name, part, parts).note() for part in range(parts)]

    @property
    def share(self) -> int:
        """What each part costs."""
        return -(-self.cost // len(self.rows))


class Shelf:
    """Named things in a store: looked at within `looking`, changed within `writing`."""

    def __init__(self, store: DurableStore) -> None:
        self.store, self.keys = store, Keys(store)
        self._known: dict[int, Label | None] = {}

    @contextmanager
    def looking(self) -> Iterator[Keys]:
        """The names as they are now."""
        with self.store.holding():
            self.keys.follow()
            yield self.keys

    @contextmanager
    def writing(self) -> Iterator[Keys]:
        """The names as they are, and nobody else changes anything: one transaction, all or nothing."""
        with self.store.transaction():
            self.keys.follow()
            self._mend()
            yield self.keys

    def _mend(self) -> None:
        """What the budget took a part of leaves as a whole: the rest goes to rest beside it."""
        if strays := self.keys.strays():
            self.store.retire(strays)
            self.keys.follow()

    # ---- in --------------------------------------------------------------------------------------

    def put(self, things: Sequence[Thing]) -> None:
        """Put things of distinct names, each in place of the one of its name. Within `writing`.

        What has as many entries as before keeps them, with their history.
        """
        fresh: list[Thing] = []
        for thing in things:
            ids = self.keys.find(thing.name)
            if ids is not None and len(ids) == len(thing.rows) and thing.text:
                # In the order given, or the last of them might leave to make room for the first.
                self._add(fresh)
                self._replace(ids, thing)
                fresh = []
                continue
            if ids is not None:
                thing = self._taken_out(ids, thing)
            fresh.append(thing)
        self._add(fresh)
        self.keys.follow()
        self._mend()

    def _taken_out(self, ids: Sequence[int], thing: Thing) -> Thing:
        """The thing as it is to be added in place of these entries, as old as they were."""
        since = [entry.created_at for entry in self.store.get(ids) if entry is not None]
        self.store.delete(np.array(ids)[self.store.holds(ids)])
        return replace(thing, created_at=min(since, default=thing.created_at))

    def _replace(self, ids: tuple[int, ...], thing: Thing) -> None:
        for id_, row, note in zip(ids, thing.rows, thing.notes(), strict=True):
            if id_ not in self.store:  # it has just left to make room, for another part perhaps
                self._add([self._taken_out(ids, thing)])
                return
            self.store.update(id_, vector=row, metadata=note, cost=thing.share)
        self.store.touch(np.array(ids)[self.store.holds(ids)])
        self._say([ids[0]], [thing])

    def _add(self, things: list[Thing]) -> None:
        for single, group in groupby(things, lambda thing: len(thing.rows) == 1):
            if single:
                self._append(list(group), pinned=False)
                continue
            for thing in group:
                # Or its first part might leave to make room for its second.
                self.store.unpin(self._append([thing], pinned=True))

    def _append(self, things: list[Thing], *, pinned: bool) -> Ids:
        rows = np.concatenate([thing.rows for thing in things])
        notes = [note for thing in things for note in thing.notes()]
        costs = [thing.share for thing in things for _ in thing.rows]
        since = [thing.created_at for thing in things for _ in thing.rows]
        ids = self.store.add_many(rows, notes, cost=costs, created_at=since, pinned=pinned)
        firsts = np.cumsum([0, *(len(thing.rows) for thing in things)])[:-1]
        self._say(ids[firsts].tolist(), things)
        return ids

    def _say(self, ids: list[int], things: list[Thing]) -> None:
        """Keep the texts, also of what has just left for the archive to make room for the rest."""
        said = [(id_, thing.text) for id_, thing in zip(ids, things, strict=True) if thing.text]
        here = self.store.holds([id_ for id_, _ in said])
        resting = set() if here.all() else set(self.store.archived().tolist())
        kept = [
            one for one, is_here in zip(said, here, strict=True) if is_here or one[0] in resting
        ]
        self.store.texts.put([id_ for id_, _ in kept], [text for _, text in kept])

    def remove(self, names: Sequence[Name]) -> int:
        """Delete the things of these names, and say how many there were. Within `writing`."""
        found = [ids for name in names if (ids := self.keys.find(name)) is not None]
        if found:
            self.store.delete(np.concatenate(found))
            self.keys.follow()
        return len(found)

    # ---- out -------------------------------------------------------------------------------------

    def entries(self, ids: Sequence[int]) -> list[tuple[MemoryEntry, str | None] | None]:
        """Entries with their texts, in the order asked; None for one that has left."""
        entries, texts = self.store.get(ids), self.store.texts.get(ids)
        return [
            None if entry is None else (entry, text)
            for entry, text in zip(entries, texts, strict=True)
        ]

    def nearest(
        self,
        query: Any,
        count: int,
        spaces: Sequence[Space] | None,
        passes: Callable[[list[tuple[Name, Hit]]], list[bool]],
        where: dict[str, Any] | None = None,
    ) -> list[tuple[Name, Hit]]:
        """The `count` things nearest to a query that pass a test, each with its best entry; leaves no trace.

        Parameters
        ----------
        query : (dim,) float32
        spaces : list of spaces, or None for all
        passes : callable
            Whether these things, each with its best hit and the best first, are wanted.
        where : dict, optional
            On metadata, as for the store.
        """
        if not count:
            return []
        narrowed = where
        if spaces is not None:
            inside = {SPACE: {"$in": [Label(Name(space, "")).note()[SPACE] for space in spaces]}}
            narrowed = inside if where is None else {"$and": [inside, where]}
        k = ROUNDS * count
        while True:
            hits = self.store.search(query, k, where=narrowed, touch=False)
            best = list(self._best(hits).items())
            wanted = passes(best)
            found = [pair for pair, passed in zip(best, wanted, strict=True) if passed]
            if len(found) >= count or len(hits) < k:
                return found[:count]
            k *= GROWTH

    def _best(self, hits: list[Hit]) -> dict[Name, Hit]:
        """The first hit of each whole thing."""
        best: dict[Name, Hit] = {}
        for hit in hits:
            name = self.keys.name_of(hit.id)
            if name is not None and name not in best and hit.id in (self.keys.find(name) or ()):
                best[name] = hit
        return best

    def came_upon(self, ids: Sequence[int], query: Any = None, k: int | None = None) -> None:
        """Count an access of entries that were given out; `k` if they are the nearest of all entries."""
        with suppress(UnknownEntry):  # another process may have taken one since
            if len(ids) or query is not None:
                self.store.touch(ids, query, k=k, later=True)

    # ---- what left -------------------------------------------------------------------------------

    def resting(self) -> dict[Name, tuple[int, ...]]:
        """Whole things that rest in the archive, the newest of each name, with their ids by part."""
        return whole_things(self._labels(self.store.archived().tolist()))

    def restore(self, name: Name) -> bool:
        """Bring the thing of this name back from the archive; False if none rests there, or one is in the store."""
        with self.writing():
            ids = self.resting().get(name)
            if ids is None or self.keys.find(name) is not None:
                return False
            self.store.restore(ids)
            self.keys.follow()
            self._mend()
            return True

    def erase(self, name: Name) -> Receipt:
        """Remove what bears this name from every place within reach, archived as well; see `DurableStore.erase`."""
        with self.store.holding():
            labels = self._labels([*self.store.ids().tolist(), *self.store.archived().tolist()])
        return self.store.erase([id_ for id_, label in labels.items() if label.name == name])

    def _labels(self, ids: list[int]) -> dict[int, Label]:
        """What entries say of themselves, live or archived."""
        # What an id says never changes: only those that were not asked for the last time are read.
        fresh = [id_ for id_ in ids if id_ not in self._known]
        entries = self.store.get(fresh, include_archived=True)
        said = {entry.id: label_of(entry.metadata) for entry in entries if entry is not None}
        self._known = {id_: self._known.get(id_, said.get(id_)) for id_ in ids}
        return {id_: label for id_, label in self._known.items() if label is not None}
