"""All that is known of ghosts at one moment, as a value."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memsift.regret.figures import EDGES
from memsift.regret.sketch import Int8

Ids = npt.NDArray[np.int64]

GHOST = np.dtype(
    [
        ("id", "<i8"),
        ("policy", "<i8"),  # which of the labels chose it
        ("tick", "<i8"),  # when it left, and in unix seconds
        ("at", "<f8"),
        ("queries", "<i8"),  # how many had been asked by then
        ("waited", "<i8"),  # queries until it was first wanted; -1 if it never was
        ("wanted", "<i8"),  # queries that would have returned it, and the last of them
        ("wanted_tick", "<i8"),
        ("wanted_at", "<f8"),
        ("score", "<f4"),  # at eviction; NaN if the policy gives none
        ("scale", "<f4"),  # of its sketch, and how long the vector is that the sketch lacks
        ("error", "<f4"),
    ]
)
AGES = len(EDGES) + 1


class Watch(NamedTuple):
    """All that is known of ghosts at one moment. Its arrays are never written to.

    Parameters
    ----------
    held : (n,) GHOST
        Ascending by id.
    sketches : (n, dim) int8
    labels : tuple of text
        Policies that evicted.
    counts : (labels, 2) int64
        Of each, how many it ever evicted, and how many of those were wanted.
    past : (2, ages) int64
        Ghosts that are watched no longer, by the age at which they were first wanted, and at which they left unwanted.
    queries, times : int
        Queries ever asked, and those that would have returned at least one ghost.
    """

    held: npt.NDArray[Any]
    sketches: Int8
    labels: tuple[str, ...]
    counts: Ids
    past: Ids
    queries: int
    times: int


def nothing(dim: int) -> Watch:
    """Nobody has left yet."""
    empty = np.empty(0, GHOST), np.empty((0, dim), np.int8)
    return Watch(*empty, (), np.zeros((0, 2), np.int64), np.zeros((2, AGES), np.int64), 0, 0)


def ages(ghosts: npt.NDArray[Any], queries: int) -> Ids:
    """Numbers of ghosts by the age, in queries, at which each was first wanted, or has been watched unwanted.

    (2, ages) int64. Those of whom nothing was asked yet are not in it.
    """
    wanted = ghosts["waited"] >= 0
    waited = np.where(wanted, ghosts["waited"], queries - ghosts["queries"])
    age = np.searchsorted(EDGES, waited)
    tables = [np.bincount(age[rows], minlength=AGES) for rows in (wanted, ~wanted & (waited > 0))]
    found: Ids = np.array(tables, np.int64)
    return found
