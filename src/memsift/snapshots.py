"""Copies of columns, for views that outlive the next change."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.kernels import Rows

Array = npt.NDArray[Any]


class Snapshots:
    """One copy of each column as it stands, shared by all views until a value of it changes.

    Newcomers only follow: what was copied before stays, for the views that have it and for the next.
    """

    def __init__(self) -> None:
        # Arrays with some room, and how many values of each are known.
        self._made: dict[str, tuple[Array, int]] = {}

    @property
    def nbytes(self) -> int:
        return sum(made.nbytes for made, _ in self._made.values())

    def of(self, name: str, live: Array) -> Array:
        """A column as it stands, (n,): a copy, unless it is one value that looks like many."""
        if live.strides == (0,):
            return live
        n = len(live)
        made, known = self._made.get(name, (live[:0], 0))
        if not known or n > len(made):
            # Room for some newcomers, so that a large store's next view copies them alone.
            made, known = np.empty(n + (n >> 12) * 64, live.dtype), 0
        made[known:n] = live[known:]
        self._made[name] = made, n
        return made[:n]

    def written(self, name: str, slots: Rows) -> None:
        """Some values changed."""
        if name in self._made and slots.size and slots.min() < self._made[name][1]:
            del self._made[name]

    def drop(self, name: str) -> None:
        """Any values changed."""
        self._made.pop(name, None)

    def clear(self) -> None:
        """All columns changed."""
        self._made.clear()
