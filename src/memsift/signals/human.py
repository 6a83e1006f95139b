"""Signals from models of human memory: the forgetting curve and the base-level activation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from memsift import checks
from memsift.errors import InvalidValue
from memsift.kernels import Float64, Rows
from memsift.signals.base import ColumnSignal
from memsift.signals.clock import Clocked, one_of
from memsift.view import MemoryView

FORMS = ("exponential", "power")
WHEN = frozenset({"created_tick", "created_at", "accessed_tick", "accessed_at", "access_count"})


@dataclass(frozen=True)
class Retention(Clocked, ColumnSignal):
    """exp(-t / S), the share that is still retained; t = time since the last access, S = 1 + access_count; in [0, 1].

    The curve of Ebbinghaus (1885) with the strength of MemoryBank (Zhong et al. 2023): each return makes the curve
    flatter and starts it anew. The power law, 1 / sqrt(1 + t / S), fits people better (Wixted and Ebbesen 1991); both
    rank alike, and differ in sums with other signals.

    Parameters
    ----------
    clock, ticks, seconds
        See `Clocked`. A unit of time, 1000 ticks or a day, is the strength of an entry that was never returned.
    form : "exponential" or "power"
    """

    name: ClassVar[str] = "retention"
    needs: ClassVar[frozenset[str]] = WHEN - {"created_tick", "created_at"}

    form: str = "exponential"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "form", one_of(self.form, "Retention.form", FORMS))

    def of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        wear = self.wear(view, rows)
        return np.exp(-wear) if self.form == "exponential" else 1.0 / np.sqrt(1.0 + wear)

    def wear(self, view: MemoryView, rows: Rows | slice) -> Float64:
        """t / S, at least 0: (rows,) float64."""
        return self.since_access(view, rows) / (1.0 + view.access_count[rows])


@dataclass(frozen=True)
class BaseLevel(Clocked, ColumnSignal):
    """ln of the sum over an entry's presentations of t^-d, how likely it is to be needed now; about -45 to 45.

    The base-level activation of ACT-R (Anderson and Schooler 1991): adding an entry is a presentation, and so is each
    return. Of these only the first and the last are remembered; the others count as evenly spread between (Petrov
    2006, k = 1): ln(a^-d + access_count * (b^(1-d) - a^(1-d)) / ((1-d) * (b - a))), a and b = 1 + time since the last
    access and since creation.

    Parameters
    ----------
    clock, ticks, seconds
        See `Clocked`. The unit of time moves all values alike but for the 1, which is the age of what is new.
    decay : float, at least 0, below 1
        The d of the formula. 0 is frequency alone.
    """

    name: ClassVar[str] = "base_level"
    needs: ClassVar[frozenset[str]] = WHEN

    ticks: float = 1.0
    seconds: float = 1.0
    decay: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        decay = checks.fraction(self.decay, "BaseLevel.decay")
        if decay == 1.0:
            raise InvalidValue("BaseLevel.decay must be a number of at least 0, below 1; got 1.0")
        object.__setattr__(self, "decay", decay)

    def of(self, view: MemoryView, rows: Rows | slice) -> Float64:
        last = 1.0 + self.since_access(view, rows)
        first = np.maximum(last, 1.0 + self.since_creation(view, rows))
        others = view.access_count[rows].astype(np.float64)
        return np.log(last**-self.decay + others * self._mean(last, first))

    def _mean(self, last: Float64, first: Float64) -> Float64:
        """The mean of t^-d between two ages: first^-d * (1 - r^(1-d)) / ((1-d) * (1-r)), r = last / first."""
        rest = 1.0 - self.decay
        span = (first - last) / first
        # ln r, also where r is nearly 1 or next to nothing.
        near = np.log1p(-np.minimum(span, 0.5))
        log_ratio = np.where(span < 0.5, near, np.log(last) - np.log(first))
        share = -np.expm1(rest * log_ratio)
        part = np.where(span > 0.0, share / (rest * np.where(span > 0.0, span, 1.0)), 1.0)
        return first**-self.decay * part
