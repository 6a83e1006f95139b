"""The whole report as one page that needs nothing but itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape

from memsift.evaluation.cell import Cell
from memsift.evaluation.report.files import write_whole
from memsift.evaluation.report.page_style import STYLE
from memsift.evaluation.report.panels import Panel, panels_of
from memsift.evaluation.report.plot import panel_svgs
from memsift.evaluation.report.table_html import html_table
from memsift.evaluation.report.words import (
    BOUNDS,
    QUESTION,
    circumstances,
    finding,
    heading,
    measure,
    printable,
)

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

_TERMS = (
    ("Budget", "How many memories may be kept, as a share of all that were stored."),
    (
        "Recall@10",
        "Of the memories that a query needs, the share among the ten hits that it got. "
        "Coverage@10 counts groups of interchangeable memories, of which one is enough.",
    ),
    ("Of all", "The same as a share of what keep everything finds."),
    ("Kept", "Of the needed memories, the share that was still stored when asked for."),
    (
        "Random, the floor",
        "It forgets blindly. A policy that does not beat it has learned nothing about use.",
    ),
    (
        "Keep everything and the oracle, the ceilings",
        "The one never forgets; the other forgets with the answers in hand. No policy can do "
        "either: they show how much there is to win.",
    ),
)


def write_html(
    cells: Iterable[Cell],
    path: str | os.PathLike[str],
    title: str = "What a memory with a budget still finds",
    plans: Sequence[tuple[str, str]] | None = None,
) -> None:
    """Write one page with the pictures, the tables and how to read them.

    Parameters
    ----------
    plans : sequence of (heading, text), or None
        Further sections; the text is shown as it stands, in a fixed-width font.
    """
    panels = panels_of(cells)
    body = [
        "<header>",
        f"<h1>{_prose(title)}</h1>",
        f'<p class="lead">Read every policy between two bounds. {BOUNDS}</p>',
        "</header>",
        *_pictures(panels),
        *_tables(panels),
        *_explanation(),
        *_plans(plans or ()),
    ]
    page = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{_prose(title)}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        "<main>",
        *body,
        "</main>",
        "</body>",
        "</html>",
        "",
    ]
    write_whole(path, "\n".join(page).encode())


def _pictures(panels: Sequence[Panel]) -> Iterable[str]:
    yield '<section aria-labelledby="pictures">'
    yield f'<h2 id="pictures">{QUESTION}</h2>'
    yield '<div class="charts">'
    for panel, svg in zip(panels, panel_svgs(panels), strict=True):
        yield '<article class="chart">'
        yield f"<h3>{_prose(heading(panel, panels))}</h3>"
        yield f"<p>{_prose(finding(panel))}</p>"
        yield f'<figure><div class="card">{svg}</div>'
        bars = "; upright bars: least to greatest over the seeds" if panel.seeded else ""
        yield f"<figcaption>{measure(panel)} in % by budget{bars}. "
        yield f"{_prose(circumstances(panel))}.</figcaption></figure>"
        yield "</article>"
    yield "</div>"
    yield "</section>"


def _tables(panels: Sequence[Panel]) -> Iterable[str]:
    yield '<section aria-labelledby="figures">'
    yield '<h2 id="figures">The figures</h2>'
    for panel in panels:
        yield html_table(panel, heading(panel, panels))
    yield "</section>"


def _explanation() -> Iterable[str]:
    yield '<section aria-labelledby="reading">'
    yield '<h2 id="reading">How to read this</h2>'
    yield "<dl>"
    for term, meaning in _TERMS:
        yield f"<dt>{term}</dt><dd>{meaning}</dd>"
    yield "</dl>"
    yield "</section>"


def _plans(plans: Sequence[tuple[str, str]]) -> Iterable[str]:
    for name, text in plans:
        yield f"<section><h2>{_prose(name)}</h2>"
        # A newline right after <pre> is dropped by parsers, so the text's own first one survives.
        lines = "\n".join(printable(line) for line in text.split("\n"))
        yield f'<pre tabindex="0">\n{escape(lines)}</pre></section>'


def _prose(text: str) -> str:
    """Escaped, and a figure never parts from its per-cent sign at a line's end."""
    return escape(printable(text)).replace(" %", "&nbsp;%")
