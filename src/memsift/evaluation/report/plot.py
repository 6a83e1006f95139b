"""Recall against budget as a picture: PNG for documents, SVG for pages."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING

from memsift.errors import MissingExtra
from memsift.evaluation.cell import Cell
from memsift.evaluation.report.files import write_whole
from memsift.evaluation.report.panels import Panel, panels_of
from memsift.evaluation.report.sheet import bare_sheet, full_sheet
from memsift.evaluation.report.words import QUESTION, finding, heading

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_png(cells: Iterable[Cell], path: str | os.PathLike[str]) -> None:
    """Write the picture of all cells to `path`: a panel per (workload, variant), three abreast."""
    panels = panels_of(cells)
    write_png(lambda: full_sheet(panels), path, dpi=200)


def write_png(draw: Callable[[], Figure], path: str | os.PathLike[str], dpi: float = 110) -> None:
    """Write the figure that `draw` makes, whole or not at all."""
    data = io.BytesIO()
    with _drawing():
        draw().savefig(data, format="png", dpi=dpi, pil_kwargs={"optimize": True})
    write_whole(path, data.getvalue())


def plot_svg(cells: Iterable[Cell]) -> str:
    """The same picture as one `<svg>` element: equal cells give equal text."""
    panels = panels_of(cells)
    findings = [f"{heading(panel, panels)}: {finding(panel)}" for panel in panels]
    with _drawing():
        return _svg(full_sheet(panels), " ".join([f"{QUESTION}.", *findings]))


def draw_svg(draw: Callable[[], Figure], label: str) -> str:
    """The figure that `draw` makes as one `<svg>` element, with a label for those who do not see it."""
    with _drawing():
        return _svg(draw(), label)


def panel_svgs(panels: Sequence[Panel]) -> list[str]:
    """One `<svg>` per panel, without the words around it, for a page that has its own."""
    with _drawing():
        return [
            _svg(bare_sheet(panel, panels), f"Line chart. {finding(panel)}", number)
            for number, panel in enumerate(panels)
        ]


def _svg(figure: Figure, label: str, number: int = 0) -> str:
    import matplotlib

    text = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    # Two figures on one page must not share ids, and matplotlib derives ids from the salt.
    with matplotlib.rc_context({"svg.hashsalt": f"memsift-{number}"}):
        figure.savefig(text, format="svg", metadata=nothing)
    # What stands before the element belongs to a file of its own, not to a page, and names a DTD's
    # address. Groups are numbered from one in each figure and nothing refers to them.
    svg = text.getvalue()
    svg = re.sub(r'<g id="[^"]*"', "<g", svg[svg.index("<svg ") :])
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)


@contextmanager
def _drawing() -> Iterator[None]:
    """matplotlib with its own defaults, whatever the caller's are; these are back afterwards."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtra(
            "plots need matplotlib, which is not installed: pip install 'memsift[plot]'"
        ) from error
    with matplotlib.rc_context(), warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes: no reason to chatter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        matplotlib.rcdefaults()
        # Shipped with matplotlib, so that every machine draws the same.
        matplotlib.rcParams["font.family"] = ["DejaVu Sans"]
        matplotlib.rcParams["svg.fonttype"] = "none"
        yield
