"""What a store has learned, as a value: a policy is given it, a file keeps it, an audit record shows it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from memsift.errors import InvalidType, InvalidValue
from memsift.kernels import Float64
from memsift.learning.traffic import Traffic

# One lesson's step, and how far all of them together may go: feedback that is all wrong must not do much harm.
STEP = 0.1
FARTHEST = 0.6
# What is left of everything learned after one lesson.
KEPT = 0.9999


class Learned(NamedTuple):
    """What a store knows of its queries, its caller and its embedder.

    Parameters
    ----------
    traffic : Traffic
        How queries recur.
    taste : float in [-0.6, 0.6]
        How much better (log-odds a standard deviation) young entries are than old ones, from confirmed use.
    unrelated : float in [0, 0.95]
        The mean cosine of unrelated texts: 0 for most embedders, high for those with a direction common to all.
    """

    traffic: Traffic = Traffic()
    taste: float = 0.0
    unrelated: float = 0.0

    def taught(self, lead: Float64, apart: Float64) -> Learned:
        """After one confirmed use: the used entry should score above each of some others.

        A step of online gradient descent (Zinkevich 2003) on the pairwise logistic loss (Burges et al. 2005), within a
        ball around the prior, which is 0.

        Parameters
        ----------
        lead : (m,) float64
            By how much the used one's score leads each of them, what was learned included.
        apart : (m,) float64
            By how much younger it is, in standard deviations.
        """
        doubt = 1.0 / (1.0 + np.exp(np.clip(lead, -30.0, 30.0)))
        step = STEP * float((doubt * apart).mean()) if lead.size else 0.0
        taste = round(KEPT * (self.taste + step), 9)
        return self._replace(taste=min(FARTHEST, max(-FARTHEST, taste)))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; `from_dict` reads them back."""
        return {**self.traffic._asdict(), "taste": self.taste, "unrelated": self.unrelated}

    @classmethod
    def from_dict(cls, data: Any) -> Learned:
        """What `to_dict` wrote.

        Raises
        ------
        InvalidType, InvalidValue
        """
        bounds: dict[str, tuple[float, float]] = {
            "recurring": (0, 1e6),
            "repeated": (0, 1e6),
            "queries": (0, 1e6),
            "waiting": (0, 1),
        }
        bounds |= {"taste": (-FARTHEST, FARTHEST), "unrelated": (0, 0.95)}
        if not isinstance(data, dict) or data.keys() != bounds.keys() | {"again"}:
            raise InvalidType(f"learned must have {', '.join(bounds)}, again; got {data!r:.60}")
        if not isinstance(data["again"], bool):
            raise InvalidType(f"learned again must be true or false; got {data['again']!r:.60}")
        for name, (low, high) in bounds.items():
            value = data[name]
            if name == "waiting" and value is None:
                continue
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or not low <= value <= high:
                raise InvalidValue(
                    f"learned {name} must be from {low} to {high}; got {value!r:.60}"
                )
        traffic = Traffic(**{name: data[name] for name in Traffic._fields})
        return cls(traffic, data["taste"], data["unrelated"])
