"""Policies from models of human memory, and from the agents that were built on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from memsift import checks
from memsift.errors import InvalidValue
from memsift.kernels import Float32, Float64, Rows
from memsift.policies.base import ScoredPolicy, Term
from memsift.signals import BaseLevel, Coherence, Importance, Retention
from memsift.signals.base import ALL
from memsift.signals.clock import Clocked
from memsift.view import MemoryView


@dataclass(frozen=True)
class EbbinghausPolicy(Clocked, ScoredPolicy):
    """What has faded most leaves: the highest retention exp(-t / S) stays, as in MemoryBank (Zhong et al. 2023).

    t = time since the last access, S = 1 + access_count. MemoryBank counts days, `clock="seconds"` here; the unit
    of one clock changes the retention that is shown, never who stays.

    Parameters
    ----------
    clock : "ticks", "seconds" or "both"
    ticks, seconds : float, at least 1e-9
        How many make the unit of time: 1000 ticks, a day.
    """

    name: ClassVar[str] = "ebbinghaus"
    needs: ClassVar[frozenset[str]] = Retention.needs

    def terms(self, view: MemoryView) -> list[Term]:
        return [Term("retention", 1.0, self._curve.values(view))]

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        # The exponent, which still tells apart what has faded to nothing.
        return -self._curve.wear(view, rows)

    @property
    def _curve(self) -> Retention:
        return Retention(self.clock, self.ticks, self.seconds)


@dataclass(frozen=True)
class ActrPolicy(Clocked, ScoredPolicy):
    """The lowest base-level activation leaves: ACT-R's odds that an entry is needed (Anderson and Schooler 1991).

    Recency and frequency in one, each return weighing less as it ages: see `BaseLevel`.

    Parameters
    ----------
    clock : "ticks", "seconds" or "both"
    ticks, seconds : float, at least 1e-9
        How many make the unit of time: one of each.
    decay : float, at least 0, below 1
        How fast a presentation loses weight; ACT-R's is 0.5.
    """

    name: ClassVar[str] = "actr"
    needs: ClassVar[frozenset[str]] = BaseLevel.needs

    ticks: float = 1.0
    seconds: float = 1.0
    decay: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "decay", self._activation.decay)

    def terms(self, view: MemoryView) -> list[Term]:
        return [Term("base_level", 1.0, self._activation.values(view))]

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        return self._activation.exact(view, rows)

    @property
    def _activation(self) -> BaseLevel:
        return BaseLevel(self.clock, self.ticks, self.seconds, self.decay)


@dataclass(frozen=True)
class GenerativeAgentsPolicy(Clocked, ScoredPolicy):
    """The lowest recency * importance * relevance leaves: the three factors of Park et al. (2023), without an LLM.

    Recency is decay^t, t = time since the last access; importance is the caller's, 0.5 where none was given; relevance
    is the largest cosine to the last queries. The score is the logarithm of the product, ln + ln + ln, so that a
    plan shows what each factor takes away. No factor counts as less than `least`: the score lies in [3 ln(least), 0],
    and one zero does not make the others worthless.

    Parameters
    ----------
    clock : "ticks", "seconds" or "both"
    ticks, seconds : float, at least 1e-9
        How many make the unit of time: one tick, an hour. The paper's agents count hours.
    decay : float, above 0, up to 1
        What is left of recency after a unit of time.
    least : float, from 1e-6 to 1
        The least that a factor counts as.
    window : int, 1 to 10,000
        How many of the last queries count.
    """

    name: ClassVar[str] = "generative_agents"
    needs: ClassVar[frozenset[str]] = (
        Importance.needs | Coherence.needs | {"accessed_tick", "accessed_at"}
    )

    ticks: float = 1.0
    seconds: float = 3600.0
    decay: float = 0.995
    least: float = 0.01
    window: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = "GenerativeAgentsPolicy"
        decay = checks.fraction(self.decay, f"{owner}.decay", zero=False)
        least = checks.fraction(self.least, f"{owner}.least", zero=False)
        if least < 1e-6:
            raise InvalidValue(f"{owner}.least must be a number from 1e-6 to 1; got {least!r}")
        window = checks.integer(self.window, f"{owner}.window", 1, 10_000)
        for name, value in (("decay", decay), ("least", least), ("window", window)):
            object.__setattr__(self, name, value)

    @property
    def queries(self) -> int:
        return self.window

    @property
    def scale(self) -> float:
        # The logarithm of the relevance is as steep as this, and its noise as large.
        return 2.0 + 1.0 / self.least

    def terms(self, view: MemoryView) -> list[Term]:
        factors = {
            "recency": self._recency(view, ALL).astype(np.float32),
            "importance": self._log(Importance().values(view)),
            "relevance": self._log(Coherence(self.window).values(view)),
        }
        return [Term(name, 1.0, values) for name, values in factors.items()]

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        return (
            self._recency(view, rows)
            + np.log(np.maximum(Importance().exact(view, rows), self.least))
            + np.log(np.maximum(Coherence(self.window).exact(view, rows), self.least))
        )

    def _recency(self, view: MemoryView, rows: Rows | slice) -> Float64:
        fading = math.log(self.decay) * self.since_access(view, rows)
        return np.maximum(fading, math.log(self.least))

    def _log(self, factor: Float32) -> Float32:
        return np.log(np.maximum(factor, np.float32(self.least)))
