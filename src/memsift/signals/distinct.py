"""The signal from how crowded it is around an entry."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from memsift import checks
from memsift.errors import InvalidType
from memsift.kernels import Float32, Float64, Rows
from memsift.signals.base import Signal
from memsift.view import MemoryView


@dataclass(frozen=True)
class Distinctiveness(Signal):
    """1 - the mean cosine to the nearest others; in [0, 2], 0 = one of many copies, 1 for an entry alone.

    The distance to the k nearest neighbours, by which outliers are told (Ramaswamy, Rastogi and Shim 2000; as a mean
    Angiulli and Pizzuti 2002). O(n^2 * dim) up to 10,000 entries; beyond, an estimate from 2,048 of them. A live store
    of more than 4,096 whose policy has this signal measures in the background, see `memsift.crowding`.

    Parameters
    ----------
    neighbours : int, 1 to 1,000
        How many nearest others count; all if there are fewer.
    """

    name: ClassVar[str] = "distinctiveness"
    needs: ClassVar[frozenset[str]] = frozenset({"vectors", "ids"})

    neighbours: int = 20
    measured: str | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        number = checks.integer(self.neighbours, "Distinctiveness.neighbours", 1, 1000)
        object.__setattr__(self, "neighbours", number)
        if not isinstance(self.measured, (str, type(None))):
            raise InvalidType(
                f"Distinctiveness.measured must be text or None; got {checks.shown(self.measured)}"
            )

    @property
    def crowd(self) -> int:
        return self.neighbours

    def values(self, view: MemoryView) -> Float32:
        return (1.0 - view.closeness(self.neighbours).values).astype(np.float32)

    def exact(self, view: MemoryView, rows: Rows) -> Float64:
        return 1.0 - view.exact_closeness(self.neighbours, rows)

    def bound(self, view: MemoryView) -> Distinctiveness:
        """With the digest of what it judges by, where that is not what anybody would measure on this view."""
        found = None if view.remembered is None else view.closeness(self.neighbours)
        if found is None or found.current:
            return self if self.measured is None else replace(self, measured=None)
        order = np.argsort(view.ids)
        digest = hashlib.sha256(view.ids[order].astype("<i8").data)
        digest.update(found.values[order].astype("<f8").data)
        return replace(self, measured=digest.hexdigest())

    def configuration(self) -> dict[str, Any]:
        told = super().configuration()
        return told if self.measured is not None else {"neighbours": self.neighbours}
