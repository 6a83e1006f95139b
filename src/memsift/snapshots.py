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
        self._made: dict[
            str, tuple[Array, Array]
        ] = {}  # copies with some room, and what is known of them

    @property
    def nbytes(self) -> int:
        return sum(made.nbytes for made, _ in self._made.values())

    def of(self, name: str, live: Array) -> Array:
        """A column as it stands, (n,): a copy, the same one until something changes.

        Of one value that looks like many there is no copy.
        """
        if live.strides == (0,):
            return live
        n = len(live)
        made, known = self._made.get(name, (live[:0], live[:0]))
        if len(known) == n and n:
            return known
        if not len(known) or n > len(made):
            # Room for some newcomers, so that a large store's next view copies them alone.
            made, known = np.empty(n + (n >> 12) * 64, live.dtype), live[:0]
        made[len(known) : n] = live[len(known) :]
        self._made[name] = made, made[:n]
        return self._made[name][1]

    def written(self, name: str, slots: Rows) -> None:
        """Some values changed."""
        if name in self._made and slots.size and slots.min() < len(self._made[name][1]):
            del self._made[name]

    def drop(self, name: str) -> None:
        """Any values changed."""
        self._made.pop(name, None)

    def clear(self) -> None:
        """All columns changed."""
        self._made.clear()
