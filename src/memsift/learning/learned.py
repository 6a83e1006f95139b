"""What a store has learned, as a value: a policy is given it, a file keeps it, an audit record shows it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from memsift.errors import InvalidType, InvalidValue
from memsift.learning.lengths import Lengths
from memsift.learning.traffic import Traffic

MANY = 2**62


class Learned(NamedTuple):
    """What a store knows of its queries, its entries, its caller and its embedder.

    Parameters
    ----------
    traffic : Traffic
        How queries recur.
    lengths : Lengths
        Whether long entries say something new.
    helped : int, at least 0
        Queries of which the caller said that a hit helped.
    unrelated : float in [0, 0.95]
        The mean cosine of unrelated texts: 0 for most embedders, high for those with a direction common to all.
    """

    traffic: Traffic = Traffic()
    lengths: Lengths = Lengths()
    helped: int = 0
    unrelated: float = 0.0

    @property
    def answered(self) -> float:
        """The share of all queries of which the caller said that a hit helped, in [0, 1]."""
        return min(1.0, self.helped / max(1, self.traffic.genuine + self.traffic.echoes))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; `from_dict` reads them back."""
        return {
            **self.traffic._asdict(),
            "lengths": list(self.lengths),
            "helped": self.helped,
            "unrelated": self.unrelated,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Learned:
        """What `to_dict` wrote. What is missing is as if nothing had been learned.

        Raises
        ------
        InvalidType, InvalidValue
        """
        if not isinstance(data, dict):
            raise InvalidType(f"learned must be an object; got {data!r:.60}")
        nothing = cls().to_dict()
        known = {name: data.get(name, value) for name, value in nothing.items()}
        for name in ("again", "recurs"):
            if not isinstance(known[name], bool):
                raise InvalidType(f"learned {name} must be true or false; got {known[name]!r:.60}")
        for name in ("recurring", "repeated", "queries"):
            _within(name, known[name], 0, 1e6)
        if known["waiting"] is not None:
            _within("waiting", known["waiting"], 0, 1)
        _within("unrelated", known["unrelated"], 0, 0.95)
        for name in ("genuine", "echoes", "helped"):
            _within(name, known[name], 0, MANY, whole=True)
        sums = known.pop("lengths")
        if not isinstance(sums, list) or len(sums) != len(Lengths._fields):
            raise InvalidType(f"learned lengths must be six numbers; got {sums!r:.60}")
        for name, value in zip(Lengths._fields, sums, strict=True):
            _within(f"lengths {name}", value, -MANY, MANY, whole=True)
        traffic = Traffic(**{name: known[name] for name in Traffic._fields})
        return cls(traffic, Lengths(*sums), known["helped"], known["unrelated"])


def _within(name: str, value: Any, low: float, high: float, *, whole: bool = False) -> None:
    kinds = int if whole else (int, float)
    number = isinstance(value, kinds) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        raise InvalidValue(f"learned {name} must be {kind} from {low} to {high}; got {value!r:.60}")
