"""One budget over many shards: each sends a histogram of its scores, and the coordinator finds the one cut.

Round by round the coordinator asks for the histogram of the bin in which the cut lies, until so few entries are in it
that their keys can be compared; then every shard is told the cut, and lets go of what lies below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.backends.ids import Id, key_of
from memsift.errors import InvalidValue

Counts = npt.NDArray[np.int64]
BINS = 4096
FEW = 10_000
# Bins narrower than this would tell float noise apart.
FINEST = 1e-9


class Extremes(NamedTuple):
    """What scores are relative to, of one shard or of all: entries, ticks, the largest count; and how many are free."""

    entries: int
    free: int
    low: int
    high: int
    most: int

    def joined(self, other: Extremes) -> Extremes:
        """Of both together; a shard without entries has no say in ticks."""
        if not self.entries or not other.entries:
            return self if self.entries else other
        return Extremes(
            self.entries + other.entries,
            self.free + other.free,
            min(self.low, other.low),
            max(self.high, other.high),
            max(self.most, other.most),
        )


class Key(NamedTuple):
    """Where an entry stands in the ranking of all: its exact score over the policy's scale, last access and id."""

    score: float
    tick: int
    id: Id

    def order(self) -> tuple[float, int, object]:
        return self.score, self.tick, key_of(self.id)


class Shard(Protocol):
    """A part of the entries. Scores are finite, and relative to the extremes of all; pinned entries are not shown."""

    def extremes(self) -> Extremes: ...

    def histogram(self, whole: Extremes, low: float, high: float, bins: int) -> Counts:
        """How many scores lie below `low`, in each of `bins` equal bins up to `high`, and from it on: (bins + 2,)."""
        ...

    def keys(self, whole: Extremes, low: float, high: float) -> list[Key]:
        """The keys of the entries whose scores lie in [low, high)."""
        ...


@dataclass(frozen=True)
class Cut:
    """The ranking's last entry that stays. Whoever ranks behind it leaves.

    Parameters
    ----------
    key : Key or None
        None if nobody stays.
    staying, leaving : int
    whole : Extremes
        What the scores are relative to.
    rounds : int
        Histograms that each shard was asked for.
    """

    key: Key | None
    staying: int
    leaving: int
    whole: Extremes
    rounds: int

    def stays(self, key: Key) -> bool:
        """Whether an entry stays."""
        return self.key is not None and key.order() >= self.key.order()


def global_cut(
    shards: Sequence[Shard],
    keep: int,
    low: float = 0.0,
    high: float = 1.0,
    *,
    noise: float = 0.0,
    few: int = FEW,
) -> Cut | None:
    """The cut by which `keep` entries of all shards together stay; None if all may.

    Parameters
    ----------
    keep : int, at least 0
        Entries that are not pinned.
    low, high : float
        Between which scores lie mostly; beyond is allowed, and takes more rounds.
    noise : float
        How far a score in a histogram may be off; keys are exact.
    few : int
        So many keys are compared at one place.
    """
    checks.integer(keep, "keep", 0)
    if not low < high:
        raise InvalidValue(f"low must be below high; got {low} and {high}")
    whole = Extremes(0, 0, 0, 0, 0)
    for shard in shards:
        whole = whole.joined(shard.extremes())
    if keep >= whole.free:
        return None
    if keep == 0:
        return Cut(None, 0, whole.free, whole, 0)
    finest = max(FINEST, 2 * noise)
    rounds = 0
    while True:
        counts = _sum(shard.histogram(whole, low, high, BINS) for shard in shards)
        rounds += 1
        # Entries from each edge on: all, those from `low` on, ..., those from `high` on.
        upward = np.cumsum(counts[::-1])[::-1]
        edges = np.concatenate([[-np.inf], np.linspace(low, high, BINS + 1), [np.inf]])
        place = int(np.flatnonzero(upward >= keep)[-1])
        if place == 0 or place == BINS + 1:
            # The cut lies beyond what was looked at: look as far again on that side.
            width = high - low
            low, high = (low - 16 * width, low) if place == 0 else (high, high + 16 * width)
            continue
        low, high = float(edges[place]), float(edges[place + 1])
        if counts[place] <= few or high - low <= finest:
            break
    # What noise, or the rounding of an edge, may have moved over it is looked at as well.
    reach = 2 * noise + 1e-15 * max(abs(low), abs(high))
    low, high = low - reach, high + reach
    above = int(_sum(shard.histogram(whole, low, high, 1) for shard in shards)[2])
    keys = [key for shard in shards for key in shard.keys(whole, low, high)]
    keys.sort(key=Key.order, reverse=True)
    return Cut(keys[keep - above - 1], keep, whole.free - keep, whole, rounds)


def _sum(parts: Iterable[Counts]) -> Counts:
    out: Counts = np.sum(list(parts), axis=0)
    return out
