"""Policies as expressions: `0.25 * Recency() + 0.35 * Frequency() + 0.40 * Coherence()`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from memsift import checks
from memsift.errors import InvalidType, InvalidValue
from memsift.kernels import Float64, Rows
from memsift.policies.base import ScoredPolicy, Term
from memsift.selection import Limit
from memsift.signals import Signal
from memsift.signals.registry import signal_from_dict
from memsift.view import MemoryView


@dataclass(frozen=True, repr=False)
class WeightedPolicy(ScoredPolicy):
    """The weighted sum of signals.

    Parameters
    ----------
    parts : tuple of (weight, Signal), at least one
        Any finite weights; a negative one turns a signal round.
    """

    name: ClassVar[str] = "weighted"

    parts: tuple[tuple[float, Signal], ...]

    def __post_init__(self) -> None:
        parts = self.parts if isinstance(self.parts, (tuple, list)) else (self.parts,)
        if not parts:
            raise InvalidValue("WeightedPolicy.parts must hold at least one signal; got none")
        for part in parts:
            is_pair = isinstance(part, (tuple, list)) and len(part) == 2
            if not is_pair or not isinstance(part[1], Signal):
                raise InvalidType(
                    f"WeightedPolicy.parts must be pairs of weight and Signal; got {part!r:.60}"
                )
        checked = tuple((checks.real(weight, "a signal's weight"), s) for weight, s in parts)
        object.__setattr__(self, "parts", checked)

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset().union(*(signal.needs for _, signal in self.parts))

    @property
    def queries(self) -> int:
        return max(signal.queries for _, signal in self.parts)

    @property
    def crowds(self) -> frozenset[int]:
        return frozenset(signal.crowd for _, signal in self.parts if signal.crowd)

    @property
    def scale(self) -> float:
        return sum(abs(weight) * signal.noise for weight, signal in self.parts) or 1.0

    def terms(self, view: MemoryView) -> list[Term]:
        return [Term.of(signal, weight, view) for weight, signal in self.parts]

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        total = np.zeros(rows.size)
        for weight, signal in self.parts:
            total += weight * signal.exact(view, rows)
        return total

    def bound(self, view: MemoryView, limits: list[Limit]) -> WeightedPolicy:
        parts = tuple((weight, signal.bound(view)) for weight, signal in self.parts)
        same = all(new is old for (_, new), (_, old) in zip(parts, self.parts, strict=True))
        return self if same else replace(self, parts=parts)

    def configuration(self) -> dict[str, Any]:
        return {
            "parts": [
                {"weight": weight, "signal": {"name": s.name, "configuration": s.configuration()}}
                for weight, s in self.parts
            ]
        }

    @classmethod
    def from_configuration(cls, configuration: dict[str, Any]) -> WeightedPolicy:
        parts = configuration.get("parts") if isinstance(configuration, dict) else None
        if not isinstance(parts, list) or not all(
            isinstance(part, dict) and part.keys() == {"weight", "signal"} for part in parts
        ):
            raise InvalidType(
                "the configuration of weighted must be "
                f'{{"parts": [{{"weight": number, "signal": {{...}}}}, ...]}}; got {configuration!r:.60}'
            )
        return cls(tuple((p["weight"], signal_from_dict(p["signal"])) for p in parts))

    def __add__(self, other: WeightedPolicy | Signal) -> WeightedPolicy:
        if isinstance(other, Signal):
            other = 1.0 * other
        if not isinstance(other, WeightedPolicy):
            return NotImplemented
        return WeightedPolicy(self.parts + other.parts)

    def __repr__(self) -> str:
        return " + ".join(f"{plain(weight)} * {signal!r}" for weight, signal in self.parts)


def plain(number: float) -> str:
    """The shortest text that is exactly this number, without a plus sign, which separates signals."""
    short = f"{number:g}"
    return (short if float(short) == number else repr(number)).replace("e+", "e")
