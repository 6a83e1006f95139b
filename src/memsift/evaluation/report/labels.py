"""Labels at line ends: as near to their lines as they may be without touching each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class _Block:
    """Labels that touch: `total` sums where the first would have to be for each of them."""

    total: float
    count: int

    @property
    def start(self) -> float:
        return self.total / self.count


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions at least `gap` apart and within [low, high], least squares away from `wanted`.

    Order is kept; equal wishes keep the order in which they came. Where `low` to `high` is too
    short for all, the labels are spaced evenly and closer than `gap`.
    """
    count = len(wanted)
    if count > 1:
        gap = min(gap, (high - low) / (count - 1))
    order = sorted(range(count), key=lambda i: (wanted[i], i))
    blocks: list[_Block] = []
    for i in order:
        blocks.append(_Block(wanted[i], 1))
        # Pool adjacent violators: labels that would touch become one block and move as one.
        while len(blocks) > 1 and blocks[-1].start < blocks[-2].start + gap * blocks[-2].count:
            upper, lower = blocks.pop(), blocks[-1]
            lower.total += upper.total - gap * lower.count * upper.count
            lower.count += upper.count
    placed: list[float] = []
    for block in blocks:
        placed += [block.start + gap * k for k in range(block.count)]
    # Clamping from both ends keeps the gaps, because `gap * (count - 1)` fits.
    placed = [max(value, low + gap * k) for k, value in enumerate(placed)]
    placed = [min(value, high - gap * (count - 1 - k)) for k, value in enumerate(placed)]
    result = [0.0] * count
    for i, value in zip(order, placed, strict=True):
        result[i] = value
    return result
