"""What a policy is, and what one that ranks entries by a score gets for free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.errors import PolicyError
from memsift.kernels import DECIMALS, Float32, Rows
from memsift.selection import Doubt, Limit, keep_best, keep_best_of_doubtful
from memsift.signals.base import Signal
from memsift.view import MemoryView

Mask = npt.NDArray[np.bool_]


@runtime_checkable
class CompactionPolicy(Protocol):
    """Which entries stay under a budget. A stranger's policy is this one method and a name."""

    @property
    def name(self) -> str: ...

    def select_survivors(
        self, view: MemoryView, target_size: int, context_window: npt.ArrayLike | None = None
    ) -> Rows:
        """Rows of `view` that stay: (min(target_size, n),) intp, ascending, without repeats.

        `context_window` (w, dim) replaces the view's own queries. The answer depends on the arguments alone.
        """
        ...


class Term(NamedTuple):
    """One summand of a score: its name, its weight, and a value per entry.

    Values may be off by `off` each, (n,) float32, where the store can say better only of some rows at a time: then
    `near` does, right to float32.
    """

    name: str
    weight: float
    values: Float32
    off: Float32 | None = None
    near: Callable[[Rows], Float32] | None = None

    @classmethod
    def of(cls, signal: Signal, weight: float, view: MemoryView) -> Term:
        """What a signal contributes."""
        return cls(signal.name, weight, *signal.rough(view), lambda rows: signal.near(view, rows))


class Decision(NamedTuple):
    """What a policy chose: who stays (n,) bool, the terms of each score, the scores (n,), and who was safe from them.

    `protected` names the rules by which some entries stay whatever their score, with the entries: (n,) bool.
    """

    keep: Mask
    terms: list[Term]
    scores: Float32
    protected: dict[str, Mask]


@dataclass(frozen=True)
class ScoredPolicy:
    """A policy that gives every entry a score and keeps the highest.

    A subclass is a frozen dataclass with a `name` and `terms`; the score is the weighted sum of the terms.
    Equal scores: the later accessed stays, then the higher id.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()

    @property
    def queries(self) -> int:
        """How many of the last queries the policy looks at."""
        return 0

    @property
    def crowds(self) -> frozenset[int]:
        """To how many nearest others the policy wants to know the closeness of each entry; empty if it does not."""
        return frozenset()

    @property
    def scale(self) -> float:
        """The sum of the weights' sizes: score differences are noise in proportion to it."""
        return 1.0

    def terms(self, view: MemoryView) -> list[Term]:
        """What the score is the sum of."""
        raise NotImplementedError(f"{type(self).__name__} must define terms(view)")

    def exact(self, view: MemoryView, rows: Rows) -> npt.NDArray[Any]:
        """The scores of some rows as float64, or as integers that order them the same way: (rows,)."""
        total = np.zeros(rows.size)
        for term in self.terms(view):
            total += term.weight * term.values[rows].astype(np.float64)
        return total

    def bound(self, view: MemoryView, limits: list[Limit]) -> ScoredPolicy:
        """The policy that decides about this view: one that adapts becomes one that is fixed."""
        return self

    def protected(
        self, view: MemoryView, limits: list[Limit], locked: Mask, scores: Float32
    ) -> dict[str, Mask]:
        """Entries that stay whatever their score, by the rule that says so. They must fit beside the `locked` ones."""
        return {}

    def decide(self, view: MemoryView, limits: list[Limit], locked: Mask) -> Decision:
        """Which entries stay within the `limits`, `locked` ones in any case."""
        terms = self.terms(view)
        scores = total(terms, len(view))
        self._check(view, scores)
        doubt = doubt_of(terms)
        if doubt is not None and type(self).protected is not ScoredPolicy.protected:
            # What protects some by their scores needs all of them.
            scores, doubt = doubt.near(np.arange(len(view))), None
        protected = self.protected(view, limits, locked, scores)
        safe = np.logical_or.reduce([locked, *protected.values()])
        best = self.best(view, limits, safe, scores, doubt)
        return Decision(best, terms, scores, protected)

    def best(
        self,
        view: MemoryView,
        limits: list[Limit],
        locked: Mask,
        scores: Float32,
        doubt: Doubt | None = None,
    ) -> Mask:
        """The highest of these scores that fit beside the `locked` entries, with those: (n,) bool.

        Where there is `doubt`, scores near the cut are made right on the way, in place.
        """

        def order(rows: Rows) -> Rows:
            return self.ranked(view, rows)

        if doubt is None:
            return keep_best(scores, limits, locked, order, self.scale)
        return keep_best_of_doubtful(scores, doubt, limits, locked, order, self.scale)

    def _check(self, view: MemoryView, scores: Float32) -> None:
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores))[0])
            raise PolicyError(
                f"{self!r} must give finite scores; got {scores[row]} for id {view.ids[row]}"
            )

    def ranked(self, view: MemoryView, rows: Rows) -> Rows:
        """`rows` by exact score, best first; equal ones by rule."""
        keys = self.keys(view, rows)
        return rows[by_rule(keys, view.accessed_tick[rows], view.ids[rows])]

    def keys(self, view: MemoryView, rows: Rows) -> npt.NDArray[Any]:
        """What decides between some rows: exact scores without what the order of a sum may change, (rows,)."""
        keys = self.exact(view, rows)
        return (keys / self.scale).round(DECIMALS) if keys.dtype.kind == "f" else keys

    def select_survivors(
        self, view: MemoryView, target_size: int, context_window: npt.ArrayLike | None = None
    ) -> Rows:
        """Rows that stay: (min(target_size, n),) intp, ascending. See `CompactionPolicy`."""
        size = checks.integer(target_size, "target_size", 0)
        if context_window is not None:
            view = view.with_context(context_window)
        nothing = np.zeros(len(view), dtype=np.bool_)
        limits = [Limit(None, size)]
        return np.flatnonzero(self.bound(view, limits).decide(view, limits, nothing).keep)

    def with_floor(self, share: float = 0.2) -> ScoredPolicy:
        """This policy with a share of the budget spread over all clusters, so that no topic dies."""
        from memsift.policies.floor import FlooredPolicy

        return FlooredPolicy(self, share)

    def to_dict(self) -> dict[str, Any]:
        """The policy as JSON-ready `{"name", "configuration"}`; `from_dict` reads it back."""
        return {"name": self.name, "configuration": self.configuration()}

    def configuration(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_configuration(cls, configuration: dict[str, Any]) -> ScoredPolicy:
        return cls(**configuration)


def by_rule(
    keys: npt.NDArray[Any], ticks: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]
) -> Rows:
    """The order of entries, best first: by key, then the later accessed, then the higher id; (n,) each."""
    return np.lexsort((-ids, -ticks, -keys))


def total(terms: list[Term], n: int) -> Float32:
    """The weighted sum of terms: (n,) float32."""
    out = np.zeros(n, dtype=np.float32)
    # What overflows here is infinite, and refused by name where scores must be finite.
    with np.errstate(over="ignore", invalid="ignore"):
        for term in terms:
            if np.shape(term.values) != (n,):
                raise PolicyError(
                    f"{term.name} must have one value per entry, shape ({n},); "
                    f"got shape {np.shape(term.values)}"
                )
            # A weight as a float32 scalar: a float64 one would turn the whole sum into float64.
            out += np.float32(term.weight) * term.values
    return out


def doubt_of(terms: list[Term]) -> Doubt | None:
    """How far the sum of terms may be off, and what computes some of it anew; None if no term is off."""
    parts = [np.float32(abs(t.weight)) * t.off for t in terms if t.off is not None]
    if not parts:
        return None
    off: Float32 = parts[0] if len(parts) == 1 else np.sum(parts, axis=0)

    def near(rows: Rows) -> Float32:
        some = [
            Term(
                t.name,
                t.weight,
                t.values[rows] if t.off is None or t.near is None else t.near(rows),
            )
            for t in terms
        ]
        return total(some, rows.size)

    return Doubt(off, near)


def policy_name(policy: CompactionPolicy) -> str:
    """The label of a policy in tables, plans and the audit."""
    return repr(policy) if isinstance(policy, ScoredPolicy) else policy.name
