"""Results as a table: in the terminal with rich, in documents as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memsift.errors import MissingExtra
from memsift.evaluation.cell import Cell
from memsift.evaluation.report.panels import Panel, Row, panels_of
from memsift.evaluation.report.words import (
    BOUNDS,
    MISSING,
    budget_label,
    circumstances,
    heading,
    measure,
    percent,
    printable,
)

if TYPE_CHECKING:
    from rich.table import Table

_ABREAST = 3
"""Budgets side by side: as many as 80 columns hold."""

_MARKS = {"ceiling": "▲ ", "floor": "▼ ", "policy": "  "}


def results_table(cells: Iterable[Cell]) -> Table:
    """Recall, its share of keep everything, and kept: a table per (workload, variant), stacked."""
    try:
        from rich.table import Table
        from rich.text import Text
    except ImportError as error:
        raise MissingExtra(
            "results_table needs rich, which is not installed: pip install 'memsift[cli]'"
        ) from error
    panels = panels_of(cells)
    stack = Table.grid()
    stack.add_column()
    for number, panel in enumerate(panels):
        if number:
            stack.add_row("")
        # Text, never str: brackets in a name would be read as markup. Rows of the stack, not the
        # table's own title and caption: those wrap at the width of the table.
        stack.add_row(Text(f"{heading(panel, panels)}: {measure(panel)} in %", style="bold"))
        for part, budgets in enumerate(_abreast(panel.budgets)):
            if part:
                stack.add_row("")
            stack.add_row(_terminal(panel, budgets))
        stack.add_row(Text(_caption(panel), style="dim"))
    return stack


def _terminal(panel: Panel, budgets: Sequence[float]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 0),
    )
    table.add_column(Text("policy"), overflow="fold", min_width=8)
    for budget in budgets:
        table.add_column(
            Text(f"  {budget_label(budget)}\nrecall", justify="right"),
            justify="right",
            no_wrap=True,
            min_width=8,
        )
        table.add_column(Text("\nof all"), justify="right", no_wrap=True, style="dim")
        table.add_column(Text("\nkept"), justify="right", no_wrap=True, style="dim")
    for row in panel.rows:
        values: list[Text] = []
        for budget in budgets:
            recall, share, kept = _figures(row, budget)
            best = row in panel.best(budget)
            values.append(Text(f"*{recall}" if best else recall, style="bold" if best else ""))
            values += [Text(share), Text(kept)]
        ceiling = row.role == "ceiling"
        table.add_row(
            Text(_MARKS[row.role] + printable(row.policy)),
            *values,
            end_section=ceiling and row is [r for r in panel.rows if r.role == "ceiling"][-1],
        )
    return table


def _figures(row: Row, budget: float) -> tuple[str, str, str]:
    spot = row.spots.get(budget)
    if spot is None:
        return MISSING, MISSING, MISSING
    recall = percent(spot.recall)
    if spot.std == spot.std:
        recall += f"\n±{percent(spot.std)}"
    return recall, percent(spot.share, 0), percent(spot.kept, 0)


def _caption(panel: Panel) -> str:
    lines = [
        circumstances(panel),
        "▲ ceiling  ▼ floor  * best policy at this budget",
        "of all: % of what keep everything finds; kept: % of the needed still stored",
    ]
    if panel.seeded:
        lines.append("±: standard deviation over the seeds")
    return "\n".join(lines)


def _abreast(budgets: Sequence[float]) -> Iterable[Sequence[float]]:
    """Budgets in rows of at most three, as even as they come: four are two and two."""
    rows = -(-len(budgets) // _ABREAST)
    for i in range(rows):
        yield budgets[i * len(budgets) // rows : (i + 1) * len(budgets) // rows]


def markdown_table(cells: Iterable[Cell]) -> str:
    """The same figures for documents: a heading and a table per (workload, variant).

    Each budget has one column, `recall (share of keep everything; kept)`, all in per cent.
    """
    panels = panels_of(cells)
    return "\n".join(_markdown(panel, heading(panel, panels)) for panel in panels)


def _markdown(panel: Panel, name: str) -> str:
    roles = {"ceiling": " (ceiling)", "floor": " (floor)", "policy": ""}
    lines = [
        f"### {_escape(name)}",
        "",
        "| policy | " + " | ".join(map(budget_label, panel.budgets)) + " |",
        "|:--|" + "--:|" * len(panel.budgets),
    ]
    for row in panel.rows:
        values = []
        for budget in panel.budgets:
            recall, share, kept = _figures(row, budget)
            recall = recall.replace("\n", " ")
            recall = f"**{recall}**" if row in panel.best(budget) else recall
            values.append(recall if recall == MISSING else f"{recall} ({share}; {kept})")
        lines.append(f"| {_escape(printable(row.policy))}{roles[row.role]} | ")
        lines[-1] += " | ".join(values) + " |"
    seeds = " ± is the standard deviation over the seeds." if panel.seeded else ""
    lines += [
        "",
        f"{measure(panel)} in % (as % of what keep everything finds; % of the needed that was "
        f"still stored); bold: best policy at that budget.{seeds} {circumstances(panel)}. {BOUNDS}",
        "",
    ]
    return "\n".join(lines)


def _escape(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{c}" if c in "\\`*_[]|#" else c for c in text)
