"""The speed figures in the terminal: a table per group, and one of everything that was promised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    spread,
    wall,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {True: "green", False: "bold red", None: "dim"}


def speed_tables(data: dict[str, Any]) -> Iterator[RenderableType]:
    """Tables of one run, contenders side by side with their ratio to ours; then the verdicts."""
    from rich.text import Text

    rows = rows_of(data)
    for group in groups(rows):
        for title, part, names in group.parts():
            yield _table(group, title, part, names)
        for note in _notes(group):
            yield Text(note, style="dim")
        yield Text("")
    if any(row.verdicts for row in rows):
        yield _verdicts(rows)


def _table(group: Group, title: str, rows: Sequence[SpeedRow], names: list[str]) -> RenderableType:
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
        padding=(0, 1, 0, 0),
    )
    table.add_column("", min_width=14, max_width=24)
    for name in names:
        # A name of two words takes two lines. Text, never str: brackets would be read as markup.
        table.add_column(Text(name.replace(" ", "\n", 1), justify="right"), justify="right")
    walls = any(map(wall, rows))
    if walls:
        table.add_column(Text("memsift\non the wall", justify="right"), justify="right")
    for row in rows:
        by_name = {t.name: t for t in row.contenders}
        cells = [_cell(by_name.get(name), row) for name in names]
        cells += [Text(wall(row), style="dim")] if walls else []
        table.add_row(Text(group.label(row)), *cells)
    return table


def _cell(time: Time | None, row: SpeedRow) -> RenderableType:
    from rich.text import Text

    if time is None or figure(time) is None:
        return Text("–", style="dim")
    text = Text(amount(figure(time), row.unit), style="bold" if time.name == OURS else "")
    if between := spread(time, row.unit):
        # Of the unit of the median, if of one.
        one = between.rpartition(" ")[0] if between.count(" ") == 1 else between
        text.append(f"\n{one}", style="not bold dim")
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
