"""A plan: what would be forgotten, as a value. Nothing has happened yet."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.budget import Budget, Size
from memsift.errors import BudgetExceeded, PolicyError, StaleView, UnknownEntry
from memsift.kernels import NOISE, Float32, Rows
from memsift.policies.base import CompactionPolicy, ScoredPolicy, Term, policy_name
from memsift.regret import Expected, Regret, expected
from memsift.selection import Limit
from memsift.view import MemoryView

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Plan:
    """Which entries a policy would let go under a target.

    Parameters
    ----------
    policy : CompactionPolicy
    target : Budget
        What the survivors fit into.
    view : MemoryView
        The memory as it was.
    keep : (n,) bool
        Which entries of the view stay.
    locked : (n,) bool
        Entries that were no candidates: pinned ones, and a newcomer in an automatic pass.
    terms : list of Term
        What each score is the sum of; empty if the policy gives no scores.
    scores : (n,) float32 or None
    revision : int
        The store's revision; an entry that changed after it will be spared.
    origin : object
        Whose plan it is: another store, which gives out the same ids, does not apply it.
    protected : dict of (n,) bool
        Entries that stay whatever their score, by the policy's rule that says so (`probation`, `floor`).
    regret : Regret or None
        What came of forgetting before.
    """

    policy: CompactionPolicy
    target: Budget
    view: MemoryView
    keep: Mask
    locked: Mask
    terms: list[Term] = field(repr=False)
    scores: Float32 | None = field(repr=False)
    revision: int
    origin: object = field(repr=False, default=None)
    protected: dict[str, Mask] = field(repr=False, default_factory=dict)
    regret: Regret | None = field(repr=False, default=None)

    @cached_property
    def victims(self) -> npt.NDArray[np.int64]:
        """Ids that would leave, ascending: (m,) int64."""
        return np.sort(self.view.ids[~self.keep])

    @cached_property
    def before(self) -> Size:
        return _size(self.view, np.ones(len(self.view), np.bool_))

    @cached_property
    def after(self) -> Size:
        return _size(self.view, self.keep)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the memory's columns when the plan was made."""
        return self.view.digest()

    @cached_property
    def expected(self) -> Expected:
        """The regret to be expected if it is applied, by the window's queries and by earlier victims.

        Raises
        ------
        StaleView
            The store has moved its vectors since.
        """
        return expected(self, self.regret)

    @property
    def forced(self) -> bool:
        """Whether more than half of the entries would leave."""
        return 2 * int(np.count_nonzero(self.keep)) < len(self.view)

    @cached_property
    def cut(self) -> float | None:
        """The score of the last entry that stays by its score; None without scores or without such an entry."""
        if self.scores is None:
            return None
        safe = np.logical_or.reduce([self.locked, *self.protected.values()])
        stays = self.scores[self.keep & ~safe]
        return float(stays.min()) if stays.size else None

    @cached_property
    def named_terms(self) -> dict[str, Term]:
        """The terms by their names; a second of the same name is called `coherence#2`."""
        seen: Counter[str] = Counter()
        out = {}
        for term in self.terms:
            seen[term.name] += 1
            out[f"{term.name}#{seen[term.name]}" if seen[term.name] > 1 else term.name] = term
        return out

    def explain(self, id_: int) -> dict[str, Any]:
        """Why an entry stays or leaves.

        Returns
        -------
        dict
            Each signal's share of the score by its name; `signals` with value, weight, contribution and share
            of each; `score`; `rank` (1 = safest) of `of` candidates; `margin`, the distance to the cut (negative
            for a victim); `verdict` (`keep`, `evict`, `pinned`, `newcomer`, or the rule that protects it:
            `probation`, `floor`).

        Raises
        ------
        UnknownEntry
            The plan's memory did not hold this id.
        """
        found = np.flatnonzero(self.view.ids == id_)
        if not found.size:
            raise UnknownEntry(f"id {id_} was not in the memory when this plan was made")
        row = int(found[0])
        verdict = "keep" if self.keep[row] else "evict"
        if self.locked[row]:
            verdict = "pinned" if self.view.pinned[row] else "newcomer"
        elif rules := [rule for rule, rows in self.protected.items() if rows[row]]:
            verdict = rules[0]
        out: dict[str, Any] = {
            "id": int(id_),
            "verdict": verdict,
            "policy": policy_name(self.policy),
        }
        if self.scores is None:
            return out
        terms = self.named_terms
        parts = {name: t.weight * float(t.values[row]) for name, t in terms.items()}
        whole = sum(abs(p) for p in parts.values())
        out |= {name: round(part, 6) for name, part in parts.items()}
        out["signals"] = {
            name: {
                "value": round(float(t.values[row]), 6),
                "weight": t.weight,
                "contribution": round(parts[name], 6),
                "share": round(abs(parts[name]) / whole, 4) if whole else 0.0,
            }
            for name, t in terms.items()
        }
        score = float(self.scores[row])
        out["score"] = round(score, 6)
        free = ~self.locked
        out["rank"] = 1 + int(np.count_nonzero(self._ahead_of(row) & free)) if free[row] else None
        out["of"] = int(np.count_nonzero(free))
        out["margin"] = None if self.cut is None else round(score - self.cut, 6)
        if verdict == "evict" and self.cut is not None:
            # Near the cut exact scores decided; float32 noise must not show a victim above it.
            out["margin"] = min(out["margin"], 0.0)
        return out

    def to_dict(self, limit: int | None = None) -> dict[str, Any]:
        """The plan as JSON-ready values, with the reasons of all victims or of the `limit` worst."""
        worst = self.worst()[:limit]
        try:
            regret = self.expected.to_dict()
        except StaleView:
            regret = None
        return {
            "expected_regret": regret,
            "policy": policy_name(self.policy),
            "target": self.target.limits,
            "before": self.before._asdict(),
            "after": self.after._asdict(),
            "forced": self.forced,
            "digest": self.digest,
            "victims": self.victims.tolist(),
            "reasons": [self.explain(int(self.view.ids[row])) for row in worst],
        }

    def __len__(self) -> int:
        return len(self.victims)

    def __str__(self) -> str:
        from memsift.planprint import describe

        return describe(self)

    def _ahead_of(self, row: int) -> Mask:
        """Entries that the selection ranks before `row`: by score, then by the rule for ties."""
        assert self.scores is not None
        key = self.scores.astype(np.float64)
        scale = self.policy.scale if isinstance(self.policy, ScoredPolicy) else 1.0
        margin = 2 * NOISE * max(scale, abs(float(key[row])))
        near = np.flatnonzero(np.abs(key - key[row]) <= margin)
        ahead: Mask = key > key[row]
        if isinstance(self.policy, ScoredPolicy) and near.size > 1:
            try:
                order = self.policy.ranked(self.view, near)
            except StaleView:
                # Once applied, the vectors are gone, and the scores must do.
                ids, ticks = self.view.ids[near], self.view.accessed_tick[near]
                order = near[np.lexsort((-ids, -ticks, -key[near]))]
            place = int(np.flatnonzero(order == row)[0])
            ahead[order[:place]] = True
            ahead[order[place:]] = False
        return ahead

    def worst(self) -> Rows:
        """Rows of the victims, lowest score first."""
        rows = np.flatnonzero(~self.keep)
        if self.scores is None:
            return rows
        return rows[
            np.lexsort((self.view.ids[rows], self.view.accessed_tick[rows], self.scores[rows]))
        ]


def make_plan(
    view: MemoryView,
    policy: CompactionPolicy,
    target: Budget,
    locked: Mask,
    revision: int = 0,
    origin: object = None,
) -> Plan:
    """The plan by which `policy` brings a memory within `target`.

    Raises
    ------
    BudgetExceeded
        The locked entries alone do not fit.
    PolicyError
        The policy gave scores that are no numbers, or rows that are not a choice.
    """
    over = target.excess(_size(view, locked)) if locked.any() else {}
    for unit, excess in over.items():
        raise BudgetExceeded(
            f"pinned entries must fit into the target of {target.limits[unit]:,} {unit}; "
            f"they take {excess + target.limits[unit]:,}"
        )
    weights = {"entries": None, "bytes": view.nbytes, "cost": view.cost}
    limits = [Limit(weights[unit], room, unit) for unit, room in target.limits.items()]
    if isinstance(policy, ScoredPolicy):
        policy = policy.bound(view, limits)
        keep, terms, scores, protected = policy.decide(view, limits, locked)
        about = policy, target, view, keep, locked, terms, scores, revision, origin
        return Plan(*about, protected)
    keep = _ask(view, policy, limits, locked)
    return Plan(policy, target, view, keep, locked, [], None, revision, origin)


def _ask(view: MemoryView, policy: CompactionPolicy, limits: list[Limit], locked: Mask) -> Mask:
    """What a policy keeps that only knows numbers of entries: as many of its favourites as fit."""
    free = np.flatnonzero(~locked)
    candidates = view.take(free) if free.size < len(view) else view
    held = np.flatnonzero(locked)

    def choice(size: int) -> Mask:
        if size == 0:
            return locked.copy()
        rows = np.asarray(policy.select_survivors(candidates, size))
        right = rows.shape == (size,) and rows.dtype.kind in "iu" and np.unique(rows).size == size
        if not right or not 0 <= rows.min() <= rows.max() < free.size:
            raise PolicyError(
                f"{policy.name} must return {size} different rows below {free.size}; "
                f"got shape {rows.shape}, dtype {rows.dtype}"
            )
        keep = locked.copy()
        keep[free[rows]] = True
        return keep

    def fits(keep: Mask) -> bool:
        rows = np.flatnonzero(keep)
        return all(int(limit.of(rows).sum()) <= limit.room for limit in limits)

    low, high = 0, free.size
    for limit in limits:
        if limit.weights is None:
            high = min(high, limit.room - held.size)
    best = choice(high)
    if fits(best):
        return best
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(choice(middle)) else (low, middle)
    return choice(low)


def _size(view: MemoryView, rows: Mask) -> Size:
    return Size(
        int(np.count_nonzero(rows)), int(view.nbytes[rows].sum()), int(view.cost[rows].sum())
    )
