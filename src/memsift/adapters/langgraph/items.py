"""Items as they come out: found by name, by age or by meaning, whole, and not expired."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import numpy as np
from langgraph.store.base import Item, SearchItem

from memsift.adapters.keys import Name, Space
from memsift.adapters.langgraph import filters, values
from memsift.adapters.shelf import Shelf
from memsift.checks import Metadata
from memsift.kernels import Float32
from memsift.types import Hit

# How often a name is looked up that another process is putting anew at that very moment.
TRIES = 3
# Values that are read at a time while a filter looks for enough of them.
BLOCK = 256
Filter = dict[str, Any] | None
# The latest first, of two of the same moment the younger one.
Age = tuple[float, int]
Aged = tuple[Age, Name, tuple[int, ...]]


@dataclass(frozen=True)
class Found:
    """An item that was found, with the ids of its entries."""

    name: Name
    ids: tuple[int, ...]
    text: str
    created_at: float
    updated_at: float
    ttl: float | None
    score: float | None = None

    def item(self) -> Item:
        """As LangGraph knows it."""
        return Item(**self._fields())

    def search_item(self) -> SearchItem:
        """The same with its score, None if it was not found by meaning."""
        return SearchItem(**self._fields(), score=self.score)

    def _fields(self) -> dict[str, Any]:
        times = {"created_at": _time(self.created_at), "updated_at": _time(self.updated_at)}
        names = {"namespace": self.name.space, "key": self.name.key}
        return {**names, "value": values.from_text(self.text), **times}


class Items:
    """Looks for items. Its caller is within the shelf's `looking`."""

    def __init__(
        self, shelf: Shelf, clock: Callable[[], float], *, omit_expired: bool = False
    ) -> None:
        self._shelf, self._clock, self._omit_expired = shelf, clock, omit_expired

    # ---- notes -----------------------------------------------------------------------------------

    def note(self, *, plain: bool, ttl: float | None) -> Metadata:
        """What the metadata of an item says of it now. `plain`: it has no vector."""
        note: Metadata = {"updated": self._clock()}
        note |= {"plain": True} if plain else {}
        return note if ttl is None else self.renewed(note | {"ttl": ttl})

    def renewed(self, note: Metadata) -> Metadata:
        """The note of an item whose time to live begins now."""
        return note | {"until": self._clock() + 60.0 * float(note.get("ttl", 0.0))}

    def _expired(self, note: Metadata) -> bool:
        return bool("until" in note and note["until"] < self._clock())

    def _hidden(self, note: Metadata) -> bool:
        return self._omit_expired and self._expired(note)

    def expired(self) -> list[Name]:
        """Names of what has outlived its time."""
        return [name for name, _, note in self._noted(()) if self._expired(note)]

    def spaces(self, known: list[Space]) -> list[Space]:
        """Those namespaces that show an item."""
        if not self._omit_expired:
            return known
        return list({name.space for name, _, note in self._noted(()) if not self._hidden(note)})

    # ---- finding ---------------------------------------------------------------------------------

    def find(self, names: Iterable[Name]) -> list[Found]:
        """The items of these names, in their order, without those that are not there."""
        found: dict[Name, Found] = {}
        wanted = missing = list(dict.fromkeys(names))
        for _ in range(TRIES):
            held = [(name, ids) for name in missing if (ids := self._shelf.keys.find(name))]
            entries = self._shelf.entries([ids[0] for _, ids in held])
            for (name, ids), one in zip(held, entries, strict=True):
                if one is not None and one[1] is not None:
                    entry, note = one[0], one[0].metadata
                    times = entry.created_at, float(note.get("updated", entry.created_at))
                    if not self._hidden(note):
                        found[name] = Found(name, ids, one[1], *times, note.get("ttl"))
                    missing = [other for other in missing if other != name]
            if not missing or not self._shelf.keys.follow():
                break
        return [found[name] for name in wanted if name in found]

    def latest(self, prefix: Space, filter_: Filter, count: int) -> list[Found]:
        """The `count` items that were put last, of those that pass."""
        return self._newest(
            [
                (_age(note, ids[0]), name, ids)
                for name, ids, note in self._noted(prefix)
                if not self._hidden(note)
            ],
            filter_,
            count,
        )

    def _newest(self, aged: list[Aged], filter_: Filter, count: int) -> list[Found]:
        aged.sort(key=lambda one: one[0])
        names = [(name, ids) for _, name, ids in aged]
        passed = (name for block in _blocks(names) for name in self._passing(block, filter_))
        return self.find(islice(passed, count))

    def nearest(self, row: Float32, prefix: Space, filter_: Filter, count: int) -> list[Found]:
        """The `count` items nearest to a query, each by its best vector, of those that pass.

        If there are fewer, those without a vector come after them, the latest first.
        """
        keys = self._shelf.keys
        verdicts: dict[Name, bool] = {}
        plain: dict[Name, Aged] = {}

        def passes(hits: list[tuple[Name, Hit]]) -> list[bool]:
            for name, hit in hits:
                if self._hidden(hit.metadata):
                    verdicts[name] = False
                elif hit.metadata.get("plain"):
                    verdicts[name] = False
                    plain[name] = (_age(hit.metadata, hit.id), name, (hit.id,))
            unknown = [(name, keys.find(name) or ()) for name, _ in hits if name not in verdicts]
            wanted = count - sum(verdicts.get(name, False) for name, _ in hits)
            for block in _blocks([one for one in unknown if one[1]]):
                if wanted <= 0:
                    break
                passed = set(self._passing(block, filter_))
                verdicts.update((name, name in passed) for name, _ in block)
                wanted -= len(passed)
            return [verdicts.get(name, False) for name, _ in hits]

        spaces = keys.under(prefix) if prefix else None
        best = dict(self._shelf.nearest(row, count, spaces, passes)) if spaces != [] else {}
        scored = [
            replace(one, ids=_first(best[one.name].id, one.ids), score=best[one.name].score)
            for one in self.find(best)
        ]
        # All entries were looked at, or there would be enough.
        return scored + self._newest(list(plain.values()), filter_, count - len(best))

    def _passing(self, block: list[tuple[Name, tuple[int, ...]]], filter_: Filter) -> list[Name]:
        """Those of a few items whose values a filter lets through."""
        if not filter_:
            return [name for name, _ in block]
        texts = self._shelf.store.texts.get([ids[0] for _, ids in block])
        return [
            name
            for (name, _), text in zip(block, texts, strict=True)
            if text is not None and filters.matches(values.from_text(text), filter_)
        ]

    def _noted(self, prefix: Space) -> list[tuple[Name, tuple[int, ...], Metadata]]:
        """Every item under a prefix with what its metadata says."""
        keys = self._shelf.keys
        held = [pair for space in keys.under(prefix) for pair in keys.within(space)]
        notes = self._shelf.store.metadata(np.array([ids[0] for _, ids in held], np.int64))
        pairs = zip(held, notes, strict=True)
        return [(name, ids, note) for (name, ids), note in pairs if note is not None]


def _age(note: Metadata, id_: int) -> Age:
    return -float(note.get("updated", 0.0)), -id_


def _first(best: int, ids: tuple[int, ...]) -> tuple[int, ...]:
    return (best, *(id_ for id_ in ids if id_ != best))


def _blocks(rows: list[Any]) -> Iterable[list[Any]]:
    return (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
