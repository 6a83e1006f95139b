"""The speed figures in the terminal: a table per group, and one of everything that was promised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from memsift.evaluation.speed.row import OURS, SpeedRow, Time
from memsift.evaluation.speed.words import (
    Group,
    amount,
    beside_ours,
    figure,
    found,
    groups,
    judged,
    outcome,
    rows_of,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {True: "green", False: "bold red", None: "dim"}


def speed_tables(data: dict[str, Any]) -> Iterator[RenderableType]:
    """Tables of one run, contenders side by side with their ratio to ours; then the verdicts."""
    from rich.text import Text

    rows = rows_of(data)
    for group in groups(rows):
        exact = [name for name in group.contenders if name not in group.approximate]
        yield _table(group, group.title, exact)
        # Apart from the exact ones: their times are worth what their recall is.
        if others := [name for name in group.contenders if name in group.approximate]:
            ours = [name for name in exact if name == OURS]
            yield _table(group, f"{group.title}, approximately", [*ours, *others])
        for note in _notes(group):
            yield Text(note, style="dim")
        yield Text("")
    if any(row.verdicts for row in rows):
        yield _verdicts(rows)


def _table(group: Group, title: str, names: list[str]) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    table.add_column("", min_width=14)
    for name in names:
        # A name of two words takes two lines. Text, never str: brackets would be read as markup.
        table.add_column(Text(name.replace(" ", "\n", 1), justify="right"), justify="right")
    for row in group.rows:
        by_name = {t.name: t for t in row.contenders}
        cells = [_cell(by_name.get(name), row) for name in names]
        table.add_row(Text(group.label(row)), *cells)
    return table


def _cell(time: Time | None, row: SpeedRow) -> RenderableType:
    from rich.text import Text

    if time is None or figure(time) is None:
        return Text("–", style="dim")
    text = Text(amount(figure(time), row.unit), style="bold" if time.name == OURS else "")
    if ratio := beside_ours(time, row):
        text.append(f"\n{ratio}", style="not bold dim")
    if time.recall is not None:
        text.append(f"\nrecall {time.recall:.3f}", style="not bold dim")
    return text


def _notes(group: Group) -> Iterator[str]:
    for reason, names in group.absent.items():
        yield f"{', '.join(names)}: {reason}"
    for row in group.rows:
        if row.note:
            yield f"{group.label(row)}: {row.note}"


def _verdicts(rows: list[SpeedRow]) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title="What was promised",
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
    for heading in ("operation", "entries", "limit", "measured", ""):
        table.add_column(heading, justify="right" if heading == "measured" else "left")
    for row, verdict in judged(rows):
        table.add_row(
            verdict.operation,
            f"{row.n:,} × {row.dim}",
            Text(verdict.limit),
            found(verdict, row),
            Text(outcome(verdict), style=_STYLES[verdict.holds]),
        )
    return table
