"""Names for entries: which ids bear which name, kept in step with a store that others change too.

A name is a space (labels) and a key. An entry says in its metadata which name it bears, and which part of it: a thing
with several vectors takes several entries. What an id says of that never changes, so only ids that came or left since
the last look have to be looked at, and the store's `edition` says whether there are any.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from memsift.checks import Metadata
from memsift.errors import InvalidType, InvalidValue
from memsift.store import MemoryStore

Space = tuple[str, ...]

# Under these an entry's metadata holds its name, as JSON in ASCII: any text makes a name, also what metadata refuses.
SPACE, KEY, PART = "memsift:space", "memsift:key", "memsift:part"
RESERVED = frozenset({SPACE, KEY, PART})
# The rest of an entry's 16 KiB is left for others.
LONGEST = 8192


class Name(NamedTuple):
    """What a thing is called."""

    space: Space
    key: str


class Label(NamedTuple):
    """What one entry says of itself: part `part` of `parts` of the thing of this name."""

    name: Name
    part: int = 0
    parts: int = 1

    def note(self) -> Metadata:
        """As metadata.

        Raises
        ------
        InvalidValue
            The name is too long.
        """
        space, key = json.dumps(self.name.space), json.dumps(self.name.key)
        if len(space) + len(key) > LONGEST:
            raise InvalidValue(
                f"a key and its namespace must be at most {LONGEST:,} bytes of JSON; got {len(space) + len(key):,}"
            )
        note = {SPACE: space, KEY: key}
        return note if self.parts == 1 else note | {PART: [self.part, self.parts]}


def label_of(note: Metadata | None) -> Label | None:
    """What an entry's metadata says of its name; None for an entry that has none."""
    try:
        space, key = json.loads(note[SPACE]), json.loads(note[KEY])  # type: ignore[index]
        part, parts = note.get(PART, (0, 1))  # type: ignore[union-attr]
    except (KeyError, TypeError, ValueError):
        return None
    plain = isinstance(space, list) and all(isinstance(one, str) for one in [*space, key])
    if not plain or not isinstance(part, int) or not isinstance(parts, int):
        return None
    return Label(Name(tuple(space), key), part, parts) if 0 <= part < parts else None


def checked_key(value: object, name: str) -> str:
    """`value` as a key: any text."""
    if not isinstance(value, str):
        raise InvalidType(f"{name} must be text; got a {type(value).__name__}")
    return str(value)


class Keys:
    """Names of a store's entries. Not for several threads at once: its owner has a lock.

    Parameters
    ----------
    store : MemoryStore
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._edition = -1
        self._ids = np.empty(0, np.int64)
        self._labels: dict[int, Label] = {}
        self._bearers: dict[Name, dict[int, Label]] = {}
        self._things: dict[Space, dict[str, tuple[int, ...]]] = {}
        self._strays: dict[Name, set[int]] = {}

    def follow(self) -> bool:
        """Catch up with the store; whether entries came or left since the last time."""
        if (edition := self._store.edition) == self._edition:
            return False
        ids = self._store.ids()
        known, count = self._ids, self._ids.size
        if count <= ids.size and np.array_equal(ids[:count], known):
            gone, fresh = ids[:0], ids[count:]
        else:
            gone = np.setdiff1d(known, ids, assume_unique=True)
            fresh = np.setdiff1d(ids, known, assume_unique=True)
        notes = self._store.metadata(fresh)
        self._settle({*self._gone(gone.tolist()), *self._came(fresh.tolist(), notes)})
        # One that left between the two questions was never here.
        left = fresh[[note is None for note in notes]]
        self._ids = np.setdiff1d(ids, left, assume_unique=True) if left.size else ids
        self._edition = edition
        return True

    def _gone(self, ids: list[int]) -> Iterator[Name]:
        for id_ in ids:
            if (label := self._labels.pop(id_, None)) is not None:
                del self._bearers[label.name][id_]
                yield label.name

    def _came(self, ids: list[int], notes: list[Metadata | None]) -> Iterator[Name]:
        for id_, note in zip(ids, notes, strict=True):
            if (label := label_of(note)) is not None:
                self._labels[id_] = label
                self._bearers.setdefault(label.name, {})[id_] = label
                yield label.name

    def _settle(self, names: set[Name]) -> None:
        """Say anew which things are whole, of those whose entries came or left."""
        for name in names:
            bearers = self._bearers[name]
            ids = _whole(bearers) if bearers else None
            things = self._things.setdefault(name.space, {})
            things.pop(name.key, None)
            if ids is not None:
                things[name.key] = ids
            if not things:
                del self._things[name.space]
            if strays := bearers.keys() - set(ids or ()):
                self._strays[name] = strays
            else:
                self._strays.pop(name, None)
            if not bearers:
                del self._bearers[name]

    def find(self, name: Name) -> tuple[int, ...] | None:
        """Ids of the thing of this name, by part; None if there is none, or not all of it."""
        return self._things.get(name.space, {}).get(name.key)

    def name_of(self, id_: int) -> Name | None:
        """The name that an entry bears."""
        label = self._labels.get(id_)
        return None if label is None else label.name

    def under(self, prefix: Space) -> list[Space]:
        """Spaces that begin with these labels and hold a whole thing."""
        return [space for space in self._things if space[: len(prefix)] == prefix]

    def within(self, space: Space) -> list[tuple[Name, tuple[int, ...]]]:
        """Every whole thing of one space, with its ids by part."""
        return [(Name(space, key), ids) for key, ids in self._things.get(space, {}).items()]

    def strays(self) -> list[int]:
        """Entries that bear a name and are no part of a whole thing: the budget took another part of theirs."""
        return sorted(id_ for ids in self._strays.values() for id_ in ids)


def whole_things(labels: dict[int, Label]) -> dict[Name, tuple[int, ...]]:
    """The newest whole thing of each name among these entries, with its ids by part."""
    bearers: dict[Name, dict[int, Label]] = {}
    for id_, label in labels.items():
        bearers.setdefault(label.name, {})[id_] = label
    found = {name: _whole(held) for name, held in bearers.items()}
    return {name: ids for name, ids in found.items() if ids is not None}


def _whole(bearers: dict[int, Label]) -> tuple[int, ...] | None:
    """The newest thing among entries of one name, if all its parts are there."""
    if len(bearers) == 1:
        id_, label = next(iter(bearers.items()))
        return (id_,) if label.parts == 1 else None
    newest = bearers[max(bearers)]
    parts: dict[int, int] = {}
    for id_, label in bearers.items():
        if label.parts == newest.parts:
            parts[label.part] = max(id_, parts.get(label.part, -1))
    return tuple(parts[i] for i in range(len(parts))) if len(parts) == newest.parts else None


def noted(note: Any) -> Metadata:
    """Metadata without what belongs to the name."""
    return {key: value for key, value in note.items() if key not in RESERVED}
