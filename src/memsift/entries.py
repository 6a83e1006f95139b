"""Entries on their way into a table, or a copy of some on their way out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.checks import Metadata
from memsift.types import MemoryEntry
from memsift.view import COLUMNS

# What callers see of an entry; the rest is bookkeeping.
MEASURED = ["nearest", "typicality", "adjacency", "cluster", "attention", "heat"]
OWN_COLUMNS = ["nbytes", "revision", *MEASURED]
ENTRY_COLUMNS = tuple(name for name in COLUMNS if name not in OWN_COLUMNS)


def as_entry(
    values: dict[str, Any], vector: npt.NDArray[np.float32], note: Metadata | None
) -> MemoryEntry:
    """One entry for the caller to keep, of its columns' values, its own copy of its vector, and its metadata."""
    importance = values.pop("importance")
    vector.flags.writeable = False
    return MemoryEntry(
        id=values.pop("ids"),
        vector=vector,
        importance=None if importance != importance else importance,
        metadata=checks.thawed(note or {}),
        **values,
    )


class Filled:
    """In place of vectors that the table has already: as many as were written to its `room`."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count


class Entries(NamedTuple):
    """n entries on their way into a table: unit rows (n, dim), columns (n,) by name, metadata if any has some."""

    vectors: Any
    columns: dict[str, npt.NDArray[Any]]
    metadata: list[Metadata | None] | None

    def take(self, chosen: npt.NDArray[np.bool_]) -> Entries:
        """Those where `chosen` (n,) is true."""
        notes = self.metadata and [n for n, c in zip(self.metadata, chosen, strict=True) if c]
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return Entries(self.vectors[chosen], columns, notes)

    def listed(self) -> list[MemoryEntry]:
        """Each of them as callers see it."""
        notes = self.metadata or [None] * len(self.vectors)
        columns = [self.columns[name].tolist() for name in ENTRY_COLUMNS]
        return [
            as_entry(dict(zip(ENTRY_COLUMNS, values, strict=True)), vector.copy(), note)
            for vector, note, *values in zip(self.vectors, notes, *columns, strict=True)
        ]
