"""The diversity floor: a share of the budget is spread over all clusters, so that none of them dies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.errors import InvalidType
from memsift.kernels import NOISE, Float32, Rows
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
    def crowds(self) -> frozenset[int]:
        return self.policy.crowds

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

    The share is dealt out like water: each cluster gets the same number of entries, what a small one does not need
    goes to the others. Where there is less than one for each, the clusters with the best entries get one.
    """
    out = np.zeros(len(view), np.bool_)
    free = np.flatnonzero(~locked)
    rest = [limit.beside(locked) for limit in limits]
    if not free.size or not rest:
        return out
    room = int(share * free.size * min(1.0, *(_left(limit, free) for limit in rest)) + 1e-9)
    if room <= 0:
        return out
    clusters = _compact(view.cluster[free])
    cup = _cup(np.bincount(clusters), room)
    rows = free[_tops(policy, view, free, clusters, scores, max(1, cup))]
    if cup == 0:
        rows = rows[_best(policy, view, rows, scores, room)]
    # Heavy ones may be too much for a budget of bytes or cost: the worst of them lose their protection.
    scaled = [limit.scaled(share) for limit in rest if limit.weights is not None]
    if any(int(limit.of(rows).sum()) > limit.room for limit in scaled):
        rows = policy.ranked(view, rows)
        for limit in scaled:
            rows = rows[np.cumsum(limit.of(rows)) <= limit.room]
    out[rows] = True
    return out


def _left(limit: Limit, free: Rows) -> float:
    """The share of the free entries that a limit lets stay, about."""
    return max(0, limit.room) / max(1, int(limit.of(free).sum()))


def _compact(clusters: npt.NDArray[np.int64]) -> Rows:
    """The same clusters, numbered from 0 without gaps."""
    seen = np.zeros(int(clusters.max()) + 1, np.bool_)
    seen[clusters] = True
    places = np.cumsum(seen) - 1
    return places[clusters]


def _cup(sizes: Rows, water: int) -> int:
    """How many each cluster may have at most, so that all together they have no more than `water`."""
    left = water
    for place, size in enumerate(np.sort(sizes).tolist()):
        even = left // (len(sizes) - place)
        if size > even:
            return int(even)
        left -= size
    return int(water)


def _tops(
    policy: ScoredPolicy, view: MemoryView, free: Rows, clusters: Rows, scores: Float32, count: int
) -> Rows:
    """Places among `free` of the `count` best of each cluster, near ties settled as everywhere."""
    values = scores[free].astype(np.float64)
    sizes = np.bincount(clusters)
    small = clusters.astype(np.uint16 if sizes.size <= 65_536 else np.int64)
    inside = values[np.argsort(small, kind="stable")]  # cluster after cluster
    # The last that a cluster may keep; where all fit, nothing is below.
    cuts = np.full(sizes.size, -np.inf)
    ends = np.cumsum(sizes)
    for cluster in np.flatnonzero(sizes > count).tolist():
        part = inside[ends[cluster] - sizes[cluster] : ends[cluster]]
        part.partition(part.size - count)
        cuts[cluster] = part[part.size - count]
    with np.errstate(invalid="ignore"):
        margins = NOISE * np.maximum(policy.scale, np.where(np.isfinite(cuts), np.abs(cuts), 0.0))
    above = values - cuts[clusters]
    sure = above > margins[clusters]
    near = np.flatnonzero(~sure & (above >= -margins[clusters]))
    wanted = count - np.bincount(clusters[sure], minlength=sizes.size)
    crowd = np.bincount(clusters[near], minlength=sizes.size) > wanted
    sure[near[~crowd[clusters[near]]]] = True
    near = near[crowd[clusters[near]]]
    if near.size:
        near = np.searchsorted(free, policy.ranked(view, free[near]))
        for cluster in np.unique(clusters[near]):
            sure[near[clusters[near] == cluster][: wanted[cluster]]] = True
    return np.flatnonzero(sure)


def _best(policy: ScoredPolicy, view: MemoryView, rows: Rows, scores: Float32, room: int) -> Mask:
    """Which of these rows, ascending, are the `room` best: (rows,) bool."""

    def order(near: Rows) -> Rows:
        ranked = policy.ranked(view, rows[near])
        return np.searchsorted(rows, ranked)

    nobody = np.zeros(rows.size, np.bool_)
    return keep_best(scores[rows], [Limit(None, room)], nobody, order, policy.scale)
