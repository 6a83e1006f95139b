"""Who follows a table: told where its entries are after each change, by whoever makes it and under their lock."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Protocol

from memsift.kernels import Rows


class Follower(Protocol):
    """What keeps something for each entry, beside the table."""

    def appended(self) -> None:
        """There are more entries."""
        ...

    def moved(self, holes: Rows, movers: Rows, left: int, n: int) -> None:
        """Of n slots, `movers` went to `holes`, and only `left` are left."""
        ...

    def forget(self, slots: Rows) -> None:
        """The entries of these slots have other vectors."""
        ...

    def resize(self, capacity: int, n: int) -> None:
        """The table's capacity changed; the first n slots stay."""
        ...


class Following:
    """Passes on what a table tells to its follower, if it has one."""

    def __init__(self) -> None:
        self._follower: Callable[[], Follower | None] = lambda: None

    def begin(self, follower: Follower) -> None:
        """Tell `follower` of every change from now on, for as long as somebody holds it: it holds the table."""
        self._follower = weakref.ref(follower)

    def appended(self) -> None:
        if follower := self._follower():
            follower.appended()

    def moved(self, holes: Rows, movers: Rows, left: int, n: int) -> None:
        if follower := self._follower():
            follower.moved(holes, movers, left, n)

    def forget(self, slots: Rows) -> None:
        if follower := self._follower():
            follower.forget(slots)

    def resize(self, capacity: int, n: int) -> None:
        if follower := self._follower():
            follower.resize(capacity, n)
