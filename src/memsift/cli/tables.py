"""The one look of the commands' tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def table(*headings: str, right: int = 0) -> Table:
    """A table without frame; columns from the second on that number are flush right up to `right`."""
    from rich.box import SIMPLE
    from rich.table import Table

    made = Table(box=SIMPLE, pad_edge=False)
    for place, heading in enumerate(headings):
        made.add_column(heading, justify="right" if 0 < place <= right else "left", overflow="fold")
    return made
