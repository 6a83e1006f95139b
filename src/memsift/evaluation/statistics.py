"""How sure a figure is: bootstrap intervals whose unit is the stream, not the query.

Queries of one stream share its memories and its topics, so they are drawn together (a cluster bootstrap; Davison and
Hinkley 1997, section 3.8). Where a trace has fewer than five streams, blocks of 50 consecutive queries are drawn
within each stream instead (a block bootstrap), which says nothing of streams that are not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from memsift.evaluation.cell import Parts

RESAMPLES = 2_000
LEVEL = 0.95
DECIMALS = 9
"""Of an interval's ends: what is beyond depends on the machine, and must not decide which side of 0 they are on."""

Measure = Literal["recall", "fidelity"]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A difference of two policies, and the interval that holds 95 % of its bootstrap draws. Shares in [-1, 1]."""

    value: float
    low: float
    high: float

    @property
    def below(self) -> bool:
        """Whether all of it lies below 0."""
        return self.high < 0

    @property
    def above(self) -> bool:
        """Whether all of it lies above 0."""
        return self.low > 0


def unit_of(parts: Parts) -> str:
    """What is drawn: `stream` or `block`."""
    return "stream" if whole_streams(parts) else "block"


def whole_streams(parts: Parts) -> bool:
    """Whether each part is a stream of its own."""
    return len(set(parts.stream)) == len(parts.stream) > 1


def averaged_parts(parts: Sequence[Parts]) -> Parts:
    """The parts of several seeds as one: means of their means."""
    first = parts[0]
    for other in parts[1:]:
        assert other[:2] == first[:2], "seeds of one policy must see the same queries"
    recall = np.mean([p.recall for p in parts], axis=0).tolist() if first.stream else []
    fidelity = np.mean([p.fidelity for p in parts], axis=0).tolist() if first.stream else []
    return first._replace(recall=tuple(recall), fidelity=tuple(fidelity))


def figure(parts: Parts, measure: Measure) -> float:
    """The mean of stream means that a cell shows; NaN without labels."""
    ones = np.ones((1, len(parts.stream)))
    return float(_values(parts, measure, ones)[0])


def paired(
    ours: Parts,
    theirs: Parts,
    measure: Measure = "recall",
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """By how much the one finds more than the other on the same queries; every draw takes the same parts for both.

    Parameters
    ----------
    ours, theirs : Parts
        Of one trace, so that the same parts stand in the same places.
    """
    assert ours.stream == theirs.stream, "only policies on the same queries can be paired"
    value = figure(ours, measure) - figure(theirs, measure)
    drawn = draws(ours.stream, resamples, seed)
    found = _values(ours, measure, drawn) - _values(theirs, measure, drawn)
    found = found[~np.isnan(found)]
    if not found.size:
        return Interval(value, float("nan"), float("nan"))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(found, (tail, 1 - tail))
    return Interval(*(round(float(x), DECIMALS) for x in (value, low, high)))


@lru_cache(maxsize=64)
def draws(streams: tuple[int, ...], resamples: int, seed: int) -> Floats:
    """How often each part is taken in each draw: (resamples, parts) float64.

    Whole streams are drawn from all streams; blocks within their own.
    """
    chance = np.random.default_rng(seed)
    whole = len(set(streams)) == len(streams) > 1
    homes = np.zeros(len(streams), np.int64) if whole else np.array(streams, np.int64)
    taken = np.zeros((resamples, len(streams)))
    for home in np.unique(homes):
        places = np.flatnonzero(homes == home)
        even = np.full(places.size, 1.0 / places.size)
        taken[:, places] = chance.multinomial(places.size, even, size=resamples)
    taken.flags.writeable = False
    return taken


def _values(parts: Parts, measure: Measure, taken: Floats) -> Floats:
    """The cell's figure for each row of `taken` (draws, parts): (draws,)."""
    counts = np.array(parts.scored if measure == "recall" else parts.compared, np.float64)
    means = np.array(getattr(parts, measure), np.float64)
    if whole_streams(parts):
        # A stream counts once however many queries it has, as in the figure itself.
        counts = (counts > 0).astype(np.float64)
    homes = np.zeros(len(means), np.int64) if whole_streams(parts) else np.array(parts.stream)
    total, streams = np.zeros(len(taken)), np.zeros(len(taken))
    for home in np.unique(homes):
        mine = homes == home
        weight = taken[:, mine] @ counts[mine]
        found = taken[:, mine] @ (counts * means)[mine]
        known = weight > 0
        total[known] += found[known] / weight[known]
        streams += known
    total[streams == 0] = np.nan
    mean: Floats = total / np.maximum(streams, 1.0)
    return mean
