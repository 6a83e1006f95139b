"""The store's default: entries are judged by what they say, or by how they recur where the store's queries recur."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from memsift import checks
from memsift.checks import shown
from memsift.errors import InvalidType, InvalidValue
from memsift.kernels import Float32, Float64, Rows
from memsift.learning import Learned
from memsift.policies.base import Mask, ScoredPolicy, Term
from memsift.policies.content import Part, said, seen
from memsift.policies.floor import floor
from memsift.policies.probation import newest
from memsift.selection import Limit
from memsift.signals import Density, Use
from memsift.signals.base import filled
from memsift.view import MemoryView

ALL = slice(None)
GOALS = ("auto", "evidence", "replay")
# Beside queries that find what they know, the gate opens where so many were asked before in the same words, however
# far from all entries they are: 0.4 at most on agent logs, 0 on chats, 0.9 where a manual is looked up.
REPEATS, REPEAT = 0.5, 0.7
# Of the newest, only those that resemble what was there are spared: the others can stand by themselves.
FAMILIAR = 0.8
DENSITY = 0.6
# Ticks of life that are taken for granted when returns are counted per life.
YOUTH = 200.0
# An entry that helped may help again, and surely where the same is asked again.
USED, USED_AGAIN = 0.35, 2.0
LATELY = Density(window=64, decay=0.98)


@dataclass(frozen=True)
class AdaptivePolicy(ScoredPolicy):
    """What an entry says, how useful it was, and, where queries recur, how it recurs. No text and no LLM.

    The score is (1 - g) * content + g * recurrence + use, in natural logarithms, as log-odds are::

        content    = 2 h ln(1 + min(cost, 64)) + 1.5 ln(1.02 - nearest) + 1.5 ln(1 - typicality)
                     - 0.08 ln(1 + questions) - 0.08 ln(1 + answered)
        recurrence = ln(1 + access_count) - ln(200 + life) - ln(1 + age) + 0.6 ln(density + 1e-6)
        use        = (0.35 + 1.65 g) ln(1 + use_count)

    nearest and typicality are what the entry was like when it came. A direction that the embedder gives to all texts
    shifts both logarithms alike, and so decides nothing. h, from 0 to 1, is how far to trust length: in full where
    long entries say something new, not at all where they repeat (`learning.Lengths`). questions and answered are how
    many came since the entry did, of all and of those to which the caller said that some hit helped: the exposure of
    a rate (Gamma-Poisson). The gate g is 0 until nearly all of the store's queries recur.

    The newest entries are not judged yet if they resemble older ones, and a share of the budget is spread over
    clusters. Budgets of tokens or bytes are filled by value for weight: the score - ln(weight). Without cost, without
    queries or without feedback the terms that need them are the same for all.

    Where the weights come from, and where this loses: docs/forgetting.md.

    Parameters
    ----------
    goal : "auto", "evidence" or "replay"
        `evidence` keeps what answers questions (g = 0), `replay` what coming queries will return if they are like the
        last ones (g = 1), `auto` decides by the store's own queries.
    learn : bool
        Whether feedback may teach more than that an entry was used; False freezes what was learned from it.
    probation : float in [0, 1]
        This share of the budget belongs to the newest entries, those of them that resemble older ones.
    floor : float in [0, 1]
        This share is spread over clusters, so that none dies; 0 for none.
    """

    name: ClassVar[str] = "adaptive"
    needs: ClassVar[frozenset[str]] = frozenset(
        {"created_tick", "accessed_tick", "access_count", "use_count", "cost", "nearest"}
        | {"typicality", "cluster", "vectors", "context"}
    )

    goal: str = "auto"
    learn: bool = True
    probation: float = 0.05
    floor: float = 0.2
    learned: Learned | None = field(default=None, repr=False, compare=False)
    gate: float | None = field(default=None, repr=False, compare=False)
    per: str | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.goal not in GOALS:
            raise InvalidValue(
                f"AdaptivePolicy.goal must be one of {', '.join(GOALS)}; got {shown(self.goal)}"
            )
        checks.flag(self.learn, "AdaptivePolicy.learn")
        for name in ("probation", "floor"):
            share = checks.fraction(getattr(self, name), f"AdaptivePolicy.{name}")
            object.__setattr__(self, name, share)
        if self.gate is not None:
            object.__setattr__(self, "gate", checks.fraction(self.gate, "AdaptivePolicy.gate"))
        if self.per not in (None, "cost", "bytes"):
            raise InvalidValue(f"AdaptivePolicy.per must be cost or bytes; got {shown(self.per)}")
        if isinstance(self.learned, dict):
            object.__setattr__(self, "learned", Learned.from_dict(self.learned))
        if not isinstance(self.learned, (Learned, type(None))):
            raise InvalidType(f"AdaptivePolicy.learned must be Learned; got {shown(self.learned)}")

    @property
    def queries(self) -> int:
        return LATELY.window

    @property
    def scale(self) -> float:
        # The size of the weighted terms; where the density counts, its logarithm multiplies the noise of the cosines.
        return 16.0 + DENSITY * (self.gate or 0.0) / LATELY.temperature

    @property
    def weights_(self) -> dict[str, float]:
        """What the terms weigh as things stand: of the store's own policy, with all that it has learned."""
        known = self.learned or Learned()
        gate = self._gate(known)
        parts = self._parts(known, gate, used=True)
        return {"gate": gate, "trust in length": known.lengths.trust} | {
            name: weight for name, weight, _ in parts
        }

    # ---- what the store binds it to --------------------------------------------------------------

    def taught(self, learned: Learned) -> AdaptivePolicy:
        """The policy with what its store has learned."""
        return replace(self, learned=learned)

    def bound(self, view: MemoryView, limits: list[Limit]) -> AdaptivePolicy:
        known = self.learned or seen(view)
        gate = self._gate(known) if self.gate is None else self.gate
        # The unit whose limit is farthest exceeded is the one that value is measured by.
        fits = {x.unit: x.room / max(1, int(x.of(np.arange(len(view))).sum())) for x in limits}
        scarce = min(fits, key=lambda unit: fits[unit], default="entries")
        per = scarce if scarce != "entries" and fits[scarce] < 1 else None
        return replace(self, learned=known, gate=gate, per=self.per or per)

    def _gate(self, known: Learned) -> float:
        if self.goal != "auto":
            return float(self.goal == "replay")
        traffic = known.traffic
        repeats = (traffic.repetition - REPEATS) / (REPEAT - REPEATS)
        return min(1.0, max(0.0, float(traffic.settled().recurs), repeats))

    # ---- scores ----------------------------------------------------------------------------------

    def terms(self, view: MemoryView) -> list[Term]:
        return [
            Term(name, weight, of(view, ALL).astype(np.float32, copy=False))
            for name, weight, of in self._bound_parts(view)
        ]

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        total = np.zeros(rows.size)
        for _, weight, of in self._bound_parts(view, exact=True):
            total += weight * of(view, rows)
        return total

    def _bound_parts(self, view: MemoryView, exact: bool = False) -> list[Part]:
        known = self.learned or Learned()
        gate = self._gate(known) if self.gate is None else self.gate
        return self._parts(known, gate, used=bool(view.use_count.any()), exact=exact)

    def _parts(self, known: Learned, gate: float, *, used: bool, exact: bool = False) -> list[Part]:
        """Names, weights and values of the terms that can tell entries apart."""
        parts: list[Part] = []
        closed = 1.0 - gate
        if closed:
            parts += [(name, closed * weight, of) for name, weight, of in said(known)]
        if gate:
            parts += [
                ("returned", gate, _returned),
                ("recency", gate, _recency),
                ("density", DENSITY * gate, _exact_density if exact else _density),
            ]
        if used:
            parts.append(("use", closed * USED + gate * USED_AGAIN, Use().of))
        if self.per is not None:
            parts.append((f"per {self.per}", -1.0, _weight(self.per)))
        return parts

    # ---- rules beside the score ------------------------------------------------------------------

    def protected(
        self, view: MemoryView, limits: list[Limit], locked: Mask, scores: Float32
    ) -> dict[str, Mask]:
        known = self.learned or Learned()
        gate = self._gate(known) if self.gate is None else self.gate
        young = newest(view, limits, locked, self.probation * (1.0 - gate))
        familiar = known.unrelated + FAMILIAR * (1.0 - known.unrelated)
        rules = {"probation": young & (filled(view.nearest, ALL) >= familiar)}
        if self.floor:
            safe = locked | rules["probation"]
            rules["floor"] = floor(self, view, limits, safe, scores, self.floor)
        return rules

    def with_floor(self, share: float = 0.2) -> AdaptivePolicy:
        return replace(self, floor=share)

    def configuration(self) -> dict[str, Any]:
        """Parameters, and for a policy that decides the state it was bound to."""
        out: dict[str, Any] = {
            name: getattr(self, name) for name in ("goal", "learn", "probation", "floor")
        }
        if self.gate is not None:
            out["gate"] = self.gate
        if self.per is not None:
            out["per"] = self.per
        if self.learned is not None:
            out["learned"] = self.learned.to_dict()
        return out

    @property
    def plain(self) -> AdaptivePolicy:
        """The policy as it was configured, bound to nothing."""
        return AdaptivePolicy(self.goal, self.learn, self.probation, self.floor)


def _returned(view: MemoryView, rows: Any) -> Float64:
    """Returns per life, with some life taken for granted."""
    life = np.maximum(0, view.tick - view.created_tick[rows]).astype(np.float64)
    found: Float64 = np.log1p(view.access_count[rows].astype(np.float64)) - np.log(YOUTH + life)
    return found


def _recency(view: MemoryView, rows: Any) -> Float64:
    found: Float64 = -np.log1p(
        np.maximum(0, view.tick - view.accessed_tick[rows]).astype(np.float64)
    )
    return found


def _density(view: MemoryView, rows: Any) -> Float64:
    found: Float64 = np.log(LATELY.values(view)[rows] + np.float32(1e-6))
    return found


def _exact_density(view: MemoryView, rows: Any) -> Float64:
    found: Float64 = np.log(LATELY.exact(view, rows) + 1e-6)
    return found


def _weight(unit: str) -> Callable[[MemoryView, Any], Float64]:
    column = "cost" if unit == "cost" else "nbytes"
    return lambda view, rows: np.log(np.maximum(1, getattr(view, column)[rows]).astype(np.float64))
