"""One panel on one matplotlib axes: recall against budget, between floor and ceilings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from memsift.evaluation.report.labels import spread
from memsift.evaluation.report.look import INK, QUIET, RULE, SHADE, Look
from memsift.evaluation.report.panels import KEEP_EVERYTHING, Panel, Row
from memsift.evaluation.report.words import budget_label, percent, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEXT_SIZE = 8.5
LABEL_STEP = 12.0
"""Points from one label at the line ends to the next."""

_LONGEST = 24
"""Characters of a policy's name that are shown beside its line."""

_LEFT, _RIGHT = 0.25, 0.08
"""Room beside the first and the last budget, as a share of the way from one budget to the next."""

_LEADER = 20.0
"""Points from the axes to a label: room for the line that joins it to its curve."""


@dataclass(frozen=True)
class Frame:
    """The axes on paper: width and height in points, the y axis' upper end in per cent."""

    width: float
    height: float
    top: float


def top_of(panels: Iterable[Panel]) -> float:
    """A round upper end of the y axis, in per cent, for all panels alike."""
    spots = [spot for panel in panels for row in panel.rows for spot in row.spots.values()]
    highest = max((spot.high for spot in spots if spot.high == spot.high), default=1.0)
    return min(100.0, max(10.0, 10.0 * math.ceil(10.0 * highest + 0.2)))


def label_of(panel: Panel, row: Row) -> str:
    """What stands beside a policy's line: its name, and its last figure if it has any."""
    name = printable(row.policy)
    name = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    known = [budget for budget in panel.budgets if row.recall(budget) == row.recall(budget)]
    if not known:
        return name
    where = "" if known[-1] == panel.budgets[-1] else f" at {budget_label(known[-1])}"
    return f"{name} {percent(row.recall(known[-1]))}{where}"


def draw(ax: Axes, panel: Panel, look: Mapping[str, Look], frame: Frame) -> None:
    """Draw `panel` on `ax`; the labels go to the right of the axes."""
    _axes(ax, panel, frame)
    lead = next((row for row in panel.contenders if row.mean == row.mean), None)
    ends: list[tuple[Row, float, float]] = []
    for row in panel.rows:
        found = [(i, 100 * row.recall(budget)) for i, budget in enumerate(panel.budgets)]
        points = [(x, y) for x, y in found if y == y]
        if points:
            _curve(ax, panel, row, points, look[row.policy], lead=row is lead)
            ends.append((row, *points[-1]))
    if not ends:
        _aside(ax, 0.5, 0.5, "no query carries a label", "center")
    _labels(ax, panel, ends, look, lead, frame)


def _axes(ax: Axes, panel: Panel, frame: Frame) -> None:
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(INK)
    ax.set_xlim(-_LEFT, len(panel.budgets) - 1 + _RIGHT)
    ax.set_ylim(0, frame.top)
    ax.set_xticks(range(len(panel.budgets)), [budget_label(b) for b in panel.budgets])
    step = 20 if frame.top > 50 else 10 if frame.top > 20 else 5
    ticks = range(0, int(frame.top) + 1, step)
    ax.set_yticks(ticks, [f"{tick} %" if tick == ticks[-1] else f"{tick}" for tick in ticks])
    ax.tick_params(length=0, labelsize=TEXT_SIZE, labelcolor=QUIET, pad=4)
    ax.grid(axis="y", color=RULE, linewidth=0.8)
    ax.set_axisbelow(True)


def _curve(
    ax: Axes, panel: Panel, row: Row, points: list[tuple[int, float]], look: Look, *, lead: bool
) -> None:
    xs: list[float] = [x for x, _ in points]
    ys = [y for _, y in points]
    if row.role == "floor" or row.policy == KEEP_EVERYTHING:
        xs_wide = [-_LEFT, *xs, len(panel.budgets) - 1 + _RIGHT]
        ys_wide = [ys[0], *ys, ys[-1]]
        if row.policy == KEEP_EVERYTHING:
            xs, ys = xs_wide, ys_wide
        else:
            ax.fill_between(xs_wide, ys_wide, color=SHADE, linewidth=0, zorder=0.4)
            if ys[-1] > 0.15 * ax.get_ylim()[1]:
                _aside(ax, 0.98, 0.025, "worse than random", "right")
    order = 4.0 if lead else 3.0 if row.role == "policy" else 2.5
    for x, _ in points:
        spot = row.spots[panel.budgets[x]]
        if spot.high > spot.low:
            ax.vlines(x, 100 * spot.low, 100 * spot.high, look.colour, linewidth=1.2, zorder=order)
    ax.plot(
        xs,
        ys,
        color=look.colour,
        linestyle=look.dashes,
        linewidth=2.6 if lead else 1.3,
        clip_on=False,
        zorder=order,
        **look.marking(7.0 if lead else 5.5),
    )


def _aside(ax: Axes, x: float, y: float, text: str, align: Literal["center", "right"]) -> None:
    ax.text(x, y, text, ha=align, color=QUIET, size=7.5, style="italic", transform=ax.transAxes)


def _labels(
    ax: Axes,
    panel: Panel,
    ends: list[tuple[Row, float, float]],
    look: Mapping[str, Look],
    lead: Row | None,
    frame: Frame,
) -> None:
    span = _LEFT + len(panel.budgets) - 1 + _RIGHT
    per_point = frame.top / frame.height
    # Equal ends are labelled in the order of the rows, best on top.
    ends = ends[::-1]
    placed = spread([y for *_, y in ends], LABEL_STEP * per_point, 0.0, frame.top)
    across = ax.get_yaxis_transform()  # x in widths of the axes, y in per cent
    for (row, x, y), at in zip(ends, placed, strict=True):
        style = look[row.policy]
        # The one curve that runs to the axes' edge; the others stop at their last marker.
        start = 1.0 if row.policy == KEEP_EVERYTHING else (x + _LEFT) / span + 4 / frame.width
        line: dict[str, Any] = {"transform": across, "clip_on": False, "color": style.colour}
        bend = [start, 1 + 4 / frame.width, 1 + (_LEADER - 10) / frame.width]
        # A curve that ends early must not look as if it went on level.
        dots = "-" if x == len(panel.budgets) - 1 else (0, (1.0, 2.5))
        ax.plot(bend, [y, y, at], linewidth=0.6, linestyle=dots, zorder=2, **line)
        key = 1 + (_LEADER - 5) / frame.width
        if style.marker == "None":
            ends_of_dash = [key - 5 / frame.width, key + 4 / frame.width]
            ax.plot(ends_of_dash, [at, at], linewidth=1.3, linestyle=(0, (2.2, 1.2)), **line)
        else:
            ax.plot([key], [at], **style.marking(5.5), **line)
        ax.text(
            1 + (_LEADER + 2) / frame.width,
            at,
            label_of(panel, row),
            transform=across,
            va="center_baseline",
            size=TEXT_SIZE,
            color=INK,
            weight="bold" if row is lead else "normal",
            parse_math=False,
        )
