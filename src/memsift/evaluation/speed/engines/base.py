"""What an engine is: something that holds vectors and finds the nearest, ours, bare numpy's, or another's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from memsift.evaluation.speed.data import Float32, Ids

# For every graph: neighbours of a node, candidates while building, candidates while searching.
CONNECTIVITY, EXPANSION_ADD, EXPANSION_SEARCH = 16, 128, 64


class Absent(Exception):
    """An engine cannot be used here; the message says why and what would help."""


class Engine:
    """One contender of the search. A subclass fills in what its library can do.

    Ids are 0, 1, 2, ... in the order of addition. `search` and `search_many` return whatever the library returns, and
    `ids` makes ids of that outside of the time that is taken.

    Attributes
    ----------
    name : str
        Its column.
    pip : str
        What brings it, "" if it is always here.
    exact : bool
        It is checked against brute force before it is timed; of the others the recall is printed.
    largest : int
        Sizes beyond this take too long to build; the table says so.
    churns : int
        The largest size at which it takes part in deleting and refilling; 0 if it cannot delete.
    batches : bool
        It has a call for many queries at once.
    grows : bool
        It takes vectors in batches.
    """

    name: ClassVar[str]
    pip: ClassVar[str] = ""
    exact: ClassVar[bool] = True
    largest: ClassVar[int] = 1_000_000
    churns: ClassVar[int] = 0
    batches: ClassVar[bool] = True
    grows: ClassVar[bool] = True

    def __init__(self, dim: int, capacity: int) -> None:
        self.dim, self.capacity = dim, capacity

    def build(self, vectors: Float32) -> None:
        """Hold these unit rows (n, dim), in the engine's own best way to load many."""
        self.add(vectors)

    def add(self, vectors: Float32) -> None:
        """Take further unit rows (m, dim)."""
        raise NotImplementedError

    def search(self, query: Float32, k: int) -> Any:
        raise NotImplementedError

    def search_many(self, queries: Float32, k: int) -> Any:
        raise NotImplementedError

    def ids(self, found: Any) -> Ids:
        """Ids of what one `search` returned: (k or fewer,)."""
        raise NotImplementedError

    def delete(self, ids: Ids) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Give back what it holds."""


@contextmanager
def needed(pip: str) -> Iterator[None]:
    """For an import of another's library: `Absent` says what to install."""
    try:
        yield
    except ImportError as error:
        raise Absent(f"not installed: pip install {pip}") from error


def counted(start: int, vectors: Float32) -> Ids:
    """The next ids."""
    return np.arange(start, start + len(vectors), dtype=np.int64)
