"""The budget: how much a memory may hold, in entries, bytes and cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from memsift import checks
from memsift.errors import InvalidType


class Size(NamedTuple):
    """What a set of entries takes up.

    `bytes` counts what an entry holds for itself: its row, its place in every column and its metadata
    as compact JSON. Room that is allocated ahead for growth is not in it; `stats()` reports that.
    """

    entries: int
    bytes: int
    cost: int

    def __add__(self, other: tuple[int, ...]) -> Size:  # type: ignore[override]
        entries, bytes_, cost = other
        return Size(self.entries + entries, self.bytes + bytes_, self.cost + cost)

    def __sub__(self, other: tuple[int, ...]) -> Size:
        entries, bytes_, cost = other
        return Size(self.entries - entries, self.bytes - bytes_, self.cost - cost)


def share_of(count: int, share: float) -> int:
    """`share` of `count`, rounded up."""
    # Without the tiny amount 0.55 * 100 = 55.00000000000001 would become 56.
    return min(count, math.ceil(count * share - 1e-9))


@dataclass(frozen=True)
class Budget:
    """A limit in entries, bytes and/or cost (tokens). `None` means no limit in that unit.

    >>> Budget(10_000)
    Budget(entries=10000, bytes=None, cost=None)
    >>> Budget(entries=100, cost=4_000).fits(Size(entries=100, bytes=0, cost=4_001))
    False
    """

    entries: int | None = None
    bytes: int | None = None
    cost: int | None = None

    def __post_init__(self) -> None:
        for unit in Size._fields:
            limit = getattr(self, unit)
            if limit is not None:
                low = 1 if unit == "entries" else 0
                object.__setattr__(
                    self, unit, checks.integer(limit, f"Budget.{unit}", low, checks.LARGEST_INT)
                )

    @classmethod
    def of(cls, value: Budget | int | None) -> Budget:
        """A budget from what users write: a `Budget`, a number of entries, or None for no limit."""
        if isinstance(value, Budget):
            return value
        if value is None:
            return cls()
        try:
            return cls(entries=value)
        except InvalidType:
            raise InvalidType(
                f"budget must be a Budget, a number of entries or None; got {checks.shown(value)}"
            ) from None

    @property
    def limits(self) -> dict[str, int]:
        """The units that are limited, with their limits."""
        return {u: getattr(self, u) for u in Size._fields if getattr(self, u) is not None}

    def fits(self, size: Size) -> bool:
        """Whether `size` is within every limit."""
        return not self.excess(size)

    def excess(self, size: Size) -> dict[str, int]:
        """By how much `size` is over, for each unit that it is over in."""
        return {
            unit: getattr(size, unit) - limit
            for unit, limit in self.limits.items()
            if getattr(size, unit) > limit
        }

    def scaled(self, share: float) -> Budget:
        """Every limit times `share`, rounded up, so that small budgets are not cut by more than was said."""
        return Budget(**{unit: share_of(limit, share) for unit, limit in self.limits.items()})

    def __str__(self) -> str:
        parts = [f"{limit:,} {unit}" for unit, limit in self.limits.items()]
        return ", ".join(parts) or "no limit"
