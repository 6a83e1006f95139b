"""Entries on their way into a table, or a copy of some on their way out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memsift.checks import Metadata


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
