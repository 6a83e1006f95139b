"""What one run measures: at which sizes, how often, and against whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from memsift.evaluation.speed.engines import PEERS, Engine
from memsift.evaluation.speed.row import SpeedRow

Size = tuple[int, int]
SIZES: tuple[Size, ...] = ((2_000, 64), (2_000, 384), (20_000, 384), (100_000, 384))
MILLION: Size = (1_000_000, 384)


@dataclass(frozen=True)
class Run:
    """The settings of a run, and what it has found so far.

    Parameters
    ----------
    sizes : of (entries, dim)
        For searches and compactions.
    repeats : int, at least 1
    peers : engine classes
    middle, large, small : (entries, dim)
        Where operations are measured at one size only: additions and the window; the background; deleting and
        refilling beside graphs, which take long for it.
    tell : function
        Hears what is measured next.
    seen : list of SpeedRow
        All rows so far, for those that compare them.
    """

    sizes: tuple[Size, ...] = SIZES
    repeats: int = 5
    peers: tuple[type[Engine], ...] = PEERS
    middle: Size = (20_000, 384)
    large: Size = (100_000, 384)
    small: Size = (2_000, 384)
    tell: Callable[[str], None] = lambda step: None
    seen: list[SpeedRow] = field(default_factory=list)

    @property
    def beyond(self) -> tuple[Size, ...]:
        """Sizes that were asked for and are larger than `large`."""
        return tuple(s for s in self.sizes if s[0] > self.large[0])


def named(n: int, dim: int) -> str:
    return f"{n:,} × {dim}"
