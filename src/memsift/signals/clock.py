"""Two clocks: how old an entry is in events, in seconds, or in both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.errors import InvalidType, InvalidValue
from memsift.kernels import Float64, Rows
from memsift.view import MemoryView

CLOCKS = ("ticks", "seconds", "both")
DAY = 86_400.0
SHORTEST = 1e-9


@dataclass(frozen=True)
class Clocked:
    """By which clock something fades, and what one unit of time is on it.

    What happens displaces a memory and time alone wears it; a memory that sleeps for a week knows the difference.

    Parameters
    ----------
    clock : "ticks", "seconds" or "both"
        Events (additions and searches), unix seconds, or the sum of the two ages. Ticks are the same in every replay.
    ticks, seconds : float, at least 1e-9
        How many make one unit of time.
    """

    clock: str = "ticks"
    ticks: float = 1000.0
    seconds: float = DAY

    def __post_init__(self) -> None:
        owner = type(self).__name__
        object.__setattr__(self, "clock", one_of(self.clock, f"{owner}.clock", CLOCKS))
        for name in ("ticks", "seconds"):
            unit = checks.real(getattr(self, name), f"{owner}.{name}", "of at least 1e-9")
            if unit < SHORTEST:
                raise InvalidValue(
                    f"{owner}.{name} must be a number of at least 1e-9; got {unit!r}"
                )
            object.__setattr__(self, name, unit)

    def since_access(self, view: MemoryView, rows: Rows | slice) -> Float64:
        """Units of time since entries were last added or returned, at least 0: (rows,) float64."""
        return self._age(view, view.accessed_tick[rows], view.accessed_at[rows])

    def since_creation(self, view: MemoryView, rows: Rows | slice) -> Float64:
        """Units of time since entries were added, at least 0: (rows,) float64."""
        return self._age(view, view.created_tick[rows], view.created_at[rows])

    def _age(
        self, view: MemoryView, tick: npt.NDArray[np.int64], at: npt.NDArray[np.float64]
    ) -> Float64:
        age = np.zeros(tick.size)
        # What is dated in the future is as new as what came just now.
        if self.clock != "seconds":
            age += np.maximum(0, view.tick - tick) / self.ticks
        if self.clock != "ticks":
            age += np.maximum(0.0, view.now - at) / self.seconds
        return age


def one_of(value: object, name: str, words: tuple[str, ...]) -> str:
    """`value` as one of some words."""
    allowed = ", ".join(words)
    if not isinstance(value, str):
        raise InvalidType(f"{name} must be one of {allowed}; got {checks.shown(value)}")
    if value not in words:
        raise InvalidValue(f"{name} must be one of {allowed}; got {checks.shown(value)}")
    return value
