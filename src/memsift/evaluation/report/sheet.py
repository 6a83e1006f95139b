"""Panels laid out on a figure, in points and by hand, so that labels have the room they need."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memsift.evaluation.report.chart import LABEL_STEP, Frame, draw, label_of, top_of
from memsift.evaluation.report.look import INK, QUIET, looks
from memsift.evaluation.report.panels import Panel
from memsift.evaluation.report.words import BOUNDS, QUESTION, circumstances, heading, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ACROSS = 3
_MARGIN = 14.0
_LEFT = 30.0
"""Room for the y axis' figures."""

_X_AXIS = 36.0
"""Room for the budgets and for what they are."""

_ABOUT = "budget, as a share of all memories"


def full_sheet(panels: Sequence[Panel]) -> Figure:
    """All panels under one title, at most three abreast, with the notes a reader needs."""
    down = -(-len(panels) // _ACROSS)
    across = -(-len(panels) // down)
    size = _Size(panels, plot_width=260.0 if across == 1 else 170.0)
    gap, above, head = 18.0, 48.0, 58.0
    cell_height = above + size.plot_height + _X_AXIS
    width = 2 * _MARGIN + across * size.width + (across - 1) * gap
    notes = BOUNDS
    if any(panel.seeded for panel in panels):
        notes += " Upright bars run from the least to the greatest over the seeds."
    lines = textwrap.wrap(notes, int((width - 2 * _MARGIN) / 4.4))
    foot = 18.0 + 11.0 * len(lines)
    height = head + down * cell_height + foot
    sheet = _Sheet(width, height)
    sheet.write(_MARGIN, height - 27, QUESTION, size=15, weight="bold")
    measures = " or ".join(dict.fromkeys(map(measure, panels)))
    lead = f"{measures} in per cent, as the budget grows. Higher is better."
    sheet.write(_MARGIN, height - 45, lead, size=9.5, color=QUIET)
    for i, panel in enumerate(panels):
        x = _MARGIN + (i % across) * (size.width + gap)
        y = height - head - (i // across + 1) * cell_height
        sheet.panel(panel, panels, x, y + _X_AXIS, size)
        top = y + _X_AXIS + size.plot_height
        name = textwrap.shorten(heading(panel, panels), int(size.width / 6.4), placeholder=" …")
        sheet.write(x, top + 29, name, size=10.5, weight="bold")
        sheet.write(x, top + 16, circumstances(panel), size=7.5, color=QUIET)
    for i, line in enumerate(lines):
        sheet.write(_MARGIN, foot - 14 - 11 * i, line, size=7.5, color=QUIET)
    return sheet.figure


def bare_sheet(panel: Panel, among: Sequence[Panel]) -> Figure:
    """`panel` without words around it, on the scale of the panels that it stands among."""
    size = _Size(among, plot_width=165.0)
    sheet = _Sheet(size.width + 8, size.plot_height + _X_AXIS + 12)
    sheet.panel(panel, among, 2.0, _X_AXIS, size)
    return sheet.figure


class _Size:
    """How large panels become, from their longest name and greatest number of policies."""

    def __init__(self, panels: Sequence[Panel], plot_width: float) -> None:
        longest = max(len(label_of(panel, row)) for panel in panels for row in panel.rows)
        most = max(len(panel.rows) for panel in panels)
        self.plot_width = plot_width
        self.plot_height = max(185.0, LABEL_STEP * most)
        self.width = _LEFT + plot_width + 24.0 + 5.6 * max(longest, 20)


class _Sheet:
    """A figure whose units are points, counted from its lower left corner."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.figure = Figure(figsize=(width / 72, height / 72), facecolor="white")
        # The canvas is named, so that neither pyplot nor the caller's backend is ever asked.
        FigureCanvasAgg(self.figure)

    def write(self, x: float, y: float, text: str, color: str = INK, **style: Any) -> None:
        x, y = x / self.width, y / self.height
        self.figure.text(x, y, text, color=color, parse_math=False, **style)

    def panel(self, panel: Panel, among: Sequence[Panel], x: float, y: float, size: _Size) -> None:
        """Draw `panel` with the corner of its x axis `y` points above the sheet's lower edge."""
        left, bottom = (x + _LEFT) / self.width, y / self.height
        box = (left, bottom, size.plot_width / self.width, size.plot_height / self.height)
        frame = Frame(size.plot_width, size.plot_height, top_of(among))
        draw(self.figure.add_axes(box), panel, looks(among), frame)
        middle = x + _LEFT + size.plot_width / 2
        self.write(middle, y - 26, _ABOUT, color=QUIET, size=8, ha="center")
