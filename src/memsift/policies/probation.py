"""Probation: the newest entries are not judged yet, since nobody can have asked for them."""

from __future__ import annotations

import numpy as np

from memsift.policies.base import Mask
from memsift.selection import Limit
from memsift.view import MemoryView


def newest(view: MemoryView, limits: list[Limit], locked: Mask, share: float) -> Mask:
    """The newest entries that take a share of what the limits leave beside the locked ones: (n,) bool.

    As the small queue of S3-FIFO (Yang et al. 2023) keeps newcomers from being judged by old measures.
    """
    out = np.zeros(len(view), np.bool_)
    rest = [limit.beside(locked).scaled(share) for limit in limits]
    rows = np.flatnonzero(~locked)
    for limit in rest:
        if limit.weights is None and limit.room < rows.size:
            left = rows.size - max(0, limit.room)
            ticks = view.created_tick[rows]
            # One more than is to stay, so that there is always one to part at.
            rows = rows[np.argpartition(ticks, max(0, left - 1))[max(0, left - 1) :]]
    rows = rows[np.lexsort((-view.ids[rows], -view.created_tick[rows]))]
    for limit in rest:
        rows = rows[np.cumsum(limit.of(rows)) <= limit.room]
    out[rows] = True
    return out
