"""Tables of the parity and the speed figures, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memsift.evaluation.parity import ParityRow

if TYPE_CHECKING:
    from rich.table import Table


def parity_table(rows: Sequence[ParityRow]) -> Table:
    """Ours beside the reference's."""
    table = _table("Parity: the reference's own benchmark, 2,000 entries to 1,000")
    table.add_column("policy")
    for heading in ("recall@10, %", "reference, %", "survivors in common"):
        table.add_column(heading, justify="right")
    table.add_column("the same")
    for row in rows:
        table.add_row(
            row.policy,
            f"{row.recall_at_10:.1f}",
            f"{row.reference_recall_at_10:.1f}",
            f"{row.common_survivors:,}",
            "yes" if row.same_survivors else "no (ties)",
        )
    return table


def speed_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Ours beside bare numpy."""
    table = _table("Speed: medians, microseconds of CPU time, one BLAS thread")
    for heading in ("operation", "entries"):
        table.add_column(heading)
    for heading in ("memsift", "numpy", "ratio", "beyond"):
        table.add_column(heading, justify="right")
    table.add_column("promised")
    for row in rows:
        table.add_row(
            row["operation"],
            f"{row['n']:,} × {row['dim']}",
            f"{row['ours_us']:,.0f}",
            f"{row['primitives_us']:,.0f}",
            f"{row['ratio']:.2f}",
            f"{row['beyond_us']:+,.0f}",
            f"{row['limit']}: {'holds' if row['holds'] else 'MISSED'}",
        )
    return table


def _table(title: str) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE, pad_edge=False)
