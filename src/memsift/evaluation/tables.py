"""The table of the parity figures, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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


def _table(title: str) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE, pad_edge=False)
