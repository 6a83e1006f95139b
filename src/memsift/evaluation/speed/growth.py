"""How the cost per entry grows with the store, out of the rows that were measured already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memsift.evaluation.speed.limits import SMALLER
from memsift.evaluation.speed.row import OURS, SpeedRow, Time, row_of
from memsift.evaluation.speed.run import Run

GROWS = ("search", "compact")


def growth(run: Run) -> Iterator[SpeedRow]:
    """For each operation and each size above the middle one: time per 1,000 entries beside that at the middle."""
    middle, dim = run.middle
    for operation in GROWS:
        rows = {row.n: row for row in run.seen if row.operation == operation and row.dim == dim}
        if middle not in rows:
            continue
        base = replace(_share(rows[middle]), name=SMALLER)
        for n in sorted(n for n in rows if n > middle):
            words = f"growth: {operation}, per 1,000 entries"
            yield row_of(words, n, dim, [_share(rows[n]), base], base=SMALLER)


def _share(row: SpeedRow) -> Time:
    """Ours per 1,000 entries."""
    ours = next(t for t in row.contenders if t.name == OURS)

    def share(value: float | None) -> float | None:
        return None if value is None else float(f"{1000 * value / row.n:.5g}")

    return replace(
        ours,
        median=share(ours.median),
        low=share(ours.low),
        high=share(ours.high),
        wall=share(ours.wall),
        wall_low=share(ours.wall_low),
        wall_high=share(ours.wall_high),
    )
