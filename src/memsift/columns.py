"""The columns of the slot axis. One in which every entry says the default takes no memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.kernels import Rows
from memsift.view import COLUMNS

Array = npt.NDArray[Any]

# What is kept of each entry beside its vector: a view's columns, and metadata, which no view shows.
KEPT: dict[str, tuple[Any, Any]] = {**COLUMNS, "metadata": (np.object_, None)}


class Columns:
    """Arrays of `capacity` values by name.

    A column is plain until somebody writes another value to it than its default: then it is one value that looks like
    many, read-only, is neither moved nor copied, and few policies need it otherwise.

    Parameters
    ----------
    capacity : int
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._arrays = {name: _plain(name, capacity) for name in KEPT}

    def __getitem__(self, name: str) -> Array:
        """All values of a column, to be read only."""
        return self._arrays[name]

    def plain(self, name: str) -> bool:
        """Whether every entry says the default."""
        return self._arrays[name].strides == (0,)

    def own(self, name: str) -> Array:
        """A column to write to."""
        if self.plain(name):
            dtype, default = KEPT[name]
            # Zeros come from the system as they are: pages that nobody writes to take no memory.
            zero = not isinstance(default, float) and not default and default is not None
            made = np.zeros if zero else np.empty
            self._arrays[name] = made(self._capacity, dtype)
            if not zero:
                self._arrays[name].fill(default)
        return self._arrays[name]

    def write(self, name: str, slots: Rows | slice, values: Any) -> None:
        """Set some values; writing defaults to a plain column changes nothing."""
        if not (self.plain(name) and _default(name, values)):
            self.own(name)[slots] = values

    def move(self, holes: Rows, movers: Rows, left: int, n: int) -> None:
        """Values of slots `movers` go to `holes`; of n slots, `left` stay in use."""
        for name, column in self._arrays.items():
            if not self.plain(name):
                column[holes] = column.take(movers)
        if not self.plain("metadata"):
            self._arrays["metadata"][left:n] = None

    def resize(self, capacity: int, n: int) -> None:
        """Change the capacity; the first `n` values stay."""
        self._capacity = capacity
        for name, old in self._arrays.items():
            plain = self.plain(name)
            self._arrays[name] = _plain(name, capacity)
            if not plain:
                self.own(name)[:n] = old[:n]

    @property
    def nbytes(self) -> int:
        """Of all columns that take memory but that of metadata."""
        held = (column for name, column in self._arrays.items() if not self.plain(name))
        return sum(column.nbytes for column in held) - self.references

    @property
    def references(self) -> int:
        """What the column of metadata takes without what it refers to."""
        return 0 if self.plain("metadata") else self._arrays["metadata"].nbytes


def _plain(name: str, capacity: int) -> Array:
    dtype, default = KEPT[name]
    return np.broadcast_to(np.array(default, dtype), capacity)


def _default(name: str, values: Any) -> bool:
    default = KEPT[name][1]
    if name == "metadata":
        return values is None
    wanted = (
        np.isnan(values) if isinstance(default, float) and default != default else values == default
    )
    return bool(np.all(wanted))
