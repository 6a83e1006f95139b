"""One panel's figures as an HTML table that a screen reader can follow."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from memsift.evaluation.report.panels import Panel, Row
from memsift.evaluation.report.words import (
    MISSING,
    budget_label,
    circumstances,
    measure,
    percent,
    printable,
)


def html_table(panel: Panel, name: str) -> str:
    """Rows are policies, with a group of columns per budget; scrolls in a box of its own."""
    label = escape(f"Table: {name}")
    lines = [
        '<div class="results">',
        f"<h3>{escape(name)}</h3>",
        # Not in the caption, which would scroll sideways with the table on a narrow screen.
        f'<p class="quiet">{escape(_note(panel)).replace(" %", "&nbsp;%")}</p>',
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">',
        "<table>",
        f'<caption class="unseen">{escape(name)}</caption>',
        *_head(panel),
        "<tbody>",
        *(_row(panel, row) for row in panel.rows),
        "</tbody>",
        "</table>",
        "</div>",
        "</div>",
    ]
    return "\n".join(lines)


def _note(panel: Panel) -> str:
    text = f"{circumstances(panel)}. All in %; bold and *: best policy at that budget"
    return text + ("; ±: standard deviation over the seeds." if panel.seeded else ".")


def _head(panel: Panel) -> Iterator[str]:
    yield "<thead>"
    yield '<tr><th scope="col" class="name" rowspan="2">policy</th>'
    for budget in panel.budgets:
        yield f'<th scope="colgroup" colspan="3">{budget_label(budget)}</th>'
    yield "</tr><tr>"
    first = measure(panel).partition("@")[0]
    for _ in panel.budgets:
        yield f'<th scope="col" class="first">{first}</th>'
        yield '<th scope="col">of all</th><th scope="col">kept</th>'
    yield "</tr></thead>"


def _row(panel: Panel, row: Row) -> str:
    role = "" if row.role == "policy" else f'<span class="role">{row.role}</span>'
    ceilings = [other for other in panel.rows if other.role == "ceiling"]
    kind = "last-ceiling" if ceilings and row is ceilings[-1] else row.role
    cells = [f'<tr class="{kind}"><th scope="row">{escape(printable(row.policy))}{role}</th>']
    for budget in panel.budgets:
        spot = row.spots.get(budget)
        if spot is None:
            cells.append(f'<td class="first">{MISSING}</td>')
            cells.append(f'<td class="side">{MISSING}</td>' * 2)
            continue
        recall = percent(spot.recall)
        if row in panel.best(budget):
            recall = f"<strong>*{recall}</strong>"
        if spot.std == spot.std:
            recall += f' <span class="spread">±{percent(spot.std)}</span>'
        cells.append(f'<td class="first">{recall}</td>')
        cells.append(f'<td class="side">{percent(spot.share, 0)}</td>')
        cells.append(f'<td class="side">{percent(spot.kept, 0)}</td>')
    return "".join([*cells, "</tr>"])
