"""What a store has learned, as a value: a policy is given it, a file keeps it, an audit record shows it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from memsift.errors import InvalidType, InvalidValue
from memsift.learning.taste import Taste
from memsift.learning.traffic import Traffic


class Learned(NamedTuple):
    """How queries recur, and what the caller finds useful."""

    traffic: Traffic = Traffic()
    taste: Taste = Taste()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; `from_dict` reads them back."""
        return {
            "recurring": self.traffic.recurring,
            "queries": self.traffic.queries,
            "waiting": self.traffic.waiting,
            "weights": list(self.taste.weights),
            "lessons": self.taste.lessons,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Learned:
        """What `to_dict` wrote.

        Raises
        ------
        InvalidType, InvalidValue
        """
        keys = {"recurring", "queries", "waiting", "weights", "lessons"}
        if not isinstance(data, dict) or data.keys() != keys:
            raise InvalidType(f"learned must have {', '.join(sorted(keys))}; got {data!r:.60}")
        waiting, weights, lessons = data["waiting"], data["weights"], data["lessons"]
        if not isinstance(weights, (list, tuple)) or len(weights) > 32:
            raise InvalidType(f"learned weights must be a short list; got {weights!r:.60}")
        if not isinstance(lessons, int) or isinstance(lessons, bool) or lessons < 0:
            raise InvalidValue(f"learned lessons must be at least 0; got {lessons!r:.60}")
        sums = [_finite(data[name], name) for name in ("recurring", "queries")]
        if min(sums) < 0.0:
            raise InvalidValue(f"learned sums must be at least 0; got {sums}")
        known = None if waiting is None else _finite(waiting, "waiting")
        taste = Taste(tuple(_finite(w, "weights") for w in weights), lessons)
        return cls(Traffic(*sums, known), taste)


def _finite(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InvalidValue(f"learned {name} must be a finite number; got {value!r:.60}")
    return float(value)
