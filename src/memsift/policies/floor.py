"""The diversity floor: a share of the budget is spread over all clusters, so that none of them dies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from memsift import checks
from memsift.errors import InvalidType
from memsift.kernels import Float32, Rows
from memsift.policies.base import Mask, ScoredPolicy, Term
from memsift.selection import Limit, keep_best
from memsift.view import MemoryView


@dataclass(frozen=True)
class FlooredPolicy(ScoredPolicy):
    """Another policy with a floor under every cluster.

    Parameters
    ----------
    policy : ScoredPolicy
        What judges the entries.
    share : float in [0, 1]
        How much of the budget is spread over the clusters; the rest goes to the highest scores wherever they are.
    """

    name: ClassVar[str] = "floor"

    policy: ScoredPolicy
    share: float = 0.2

    def __post_init__(self) -> None:
        if not isinstance(self.policy, ScoredPolicy):
            raise InvalidType(
                f"FlooredPolicy.policy must be one with scores; got {checks.shown(self.policy)}"
            )
        object.__setattr__(self, "share", checks.fraction(self.share, "FlooredPolicy.share"))

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return self.policy.needs | {"cluster"}

    @property
    def queries(self) -> int:
        return self.policy.queries

    @property
    def scale(self) -> float:
        return self.policy.scale

    def terms(self, view: MemoryView) -> list[Term]:
        return self.policy.terms(view)

    def exact(self, view: MemoryView, rows: Rows) -> Any:
        return self.policy.exact(view, rows)

    def bound(self, view: MemoryView, limits: list[Limit]) -> FlooredPolicy:
        return FlooredPolicy(self.policy.bound(view, limits), self.share)

    def protected(
        self, view: MemoryView, limits: list[Limit], locked: Mask, scores: Float32
    ) -> dict[str, Mask]:
        rules = self.policy.protected(view, limits, locked, scores)
        safe = np.logical_or.reduce([locked, *rules.values()])
        return rules | {"floor": floor(self.policy, view, limits, safe, scores, self.share)}

    def with_floor(self, share: float = 0.2) -> FlooredPolicy:
        return FlooredPolicy(self.policy, share)

    def configuration(self) -> dict[str, Any]:
        return {"policy": self.policy.to_dict(), "share": self.share}

    def __repr__(self) -> str:
        return f"{self.policy!r}.with_floor({self.share:g})"


def floor(
    policy: ScoredPolicy,
    view: MemoryView,
    limits: list[Limit],
    locked: Mask,
    scores: Float32,
    share: float,
) -> Mask:
    """The best of each cluster, within a share of what the limits leave beside the locked entries: (n,) bool.

    The share is dealt out like water: each cluster gets the same, what a small one does not need goes to the others.
    Where there is less than one entry for each, the clusters with the best entries get one.
    """
    out = np.zeros(len(view), np.bool_)
    rest = [limit.beside(locked).scaled(share) for limit in limits]
    free = np.flatnonzero(~locked)
    if not free.size or not rest or min(limit.room for limit in rest) <= 0:
        return out
    groups = _groups(view.cluster[free])
    cups = [_cup(np.array([limit.of(free[g]).sum() for g in groups]), limit.room) for limit in rest]
    def best(rows: Rows, room: list[Limit]) -> Rows:
        own = [x if x.weights is None else x._replace(weights=x.weights[rows]) for x in room]
        nobody = np.zeros(rows.size, np.bool_)

        def order(near: Rows) -> Rows:
            return np.searchsorted(rows, policy.ranked(view, rows[near]))

        return rows[keep_best(scores[rows], own, nobody, order, policy.scale)]

    firsts = []
    for group in groups:
        rows = free[group]
        chosen = best(rows, [x._replace(room=cup) for x, cup in zip(rest, cups, strict=True)])
        out[chosen] = True
        if not chosen.size:
            firsts.append(best(rows, [x._replace(room=1) if x.weights is None else x for x in rest]))
    if firsts:
        # Too little for every cluster: the best of their best, as far as the share goes.
        out[best(np.sort(np.concatenate(firsts)), [x.beside(out) for x in rest])] = True
    return out


def _groups(clusters: Any) -> list[Rows]:
    """Places of each cluster's members, ascending, clusters too."""
    order = np.argsort(clusters, kind="stable")
    starts = np.flatnonzero(np.diff(clusters[order], prepend=-1))
    return np.split(order, starts[1:])


def _cup(sizes: Any, water: int) -> int:
    """How much each cluster may have at most, so that all together they have no more than `water`."""
    left = water
    for place, size in enumerate(np.sort(sizes).tolist()):
        even = left // (len(sizes) - place)
        if size > even:
            return int(even)
        left -= size
    return int(water)
