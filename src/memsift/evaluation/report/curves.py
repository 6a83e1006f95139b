"""One workload on one picture: what is found and what is kept by budget, in the band between random and oracle."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memsift.evaluation.cell import Cell
from memsift.evaluation.hindsight import Entry, Place, is_fixed, places_of
from memsift.evaluation.report.look import INK, QUIET, RULE
from memsift.evaluation.report.plot import write_png
from memsift.evaluation.report.words import budget_label, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAND, BAND_EDGE = "#e9edf1", "#aab4be"
OURS, COHERENCE, BEST, OTHER = "#d55e00", "#0072b2", "#009e73", "#c3cad1"
ROWS = ("found", "kept")
_ROW_WORDS = {"found": "found, % of keep everything", "kept": "still stored, %"}
WIDTH = 8.0
"""Inches: 800 pixels on the page at which the labels are as large as its text."""


def curves_png(
    cells: Iterable[Cell],
    path: str | os.PathLike[str],
    *,
    ours: str,
    across: int = 4,
    rows: Sequence[str] = ROWS,
) -> None:
    """Write a picture of a workload's variants, or of several workloads, side by side.

    Parameters
    ----------
    ours : str
        Label of the policy that is drawn boldest.
    rows : of "found" and "kept"
    """
    write_png(lambda: curves(list(cells), ours, across, rows), path)


def curves(cells: Sequence[Cell], ours: str, across: int, rows: Sequence[str]) -> Figure:
    from matplotlib.figure import Figure

    panels: dict[tuple[str, str], list[Place]] = {}
    for place in places_of(cells):
        panels.setdefault((place.workload, place.variant), []).append(place)
    across = min(across, len(panels))
    down = -(-len(panels) // across)
    height = 0.75 + down * (len(rows) * 1.55 + 0.5)
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    several = len({workload for workload, _ in panels}) > 1
    top, bottom = 1 - 0.62 / height, 0.5 / height
    grid = figure.add_gridspec(
        down * len(rows), across, left=0.075, right=0.985, top=top, bottom=bottom,
        hspace=0.5 if len(rows) == 1 else 0.14, wspace=0.16,
    )  # fmt: skip
    tops = {row: max(_top(p, row, ours) for p in panels.values()) for row in rows}
    for number, ((workload, variant), places) in enumerate(panels.items()):
        for r, row in enumerate(rows):
            ax = figure.add_subplot(grid[(number // across) * len(rows) + r, number % across])
            title = (workload if several else variant) if r == 0 else ""
            _panel(ax, places, row, ours, title)
            _scale(ax, tops[row], _ROW_WORDS[row] if number % across == 0 else "")
            if r + 1 < len(rows):
                ax.set_xticklabels([])
    _key(figure, ours, height)
    figure.text(
        0.53, 0.12 / height, "budget, as a share of all memories", size=8, color=QUIET, ha="center"
    )
    return figure


def _panel(ax: Axes, places: Sequence[Place], row: str, ours: str, title: str) -> None:
    places = sorted(places, key=lambda p: p.budget)
    xs = list(range(len(places)))
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(RULE)
    ax.tick_params(length=0, labelsize=8, labelcolor=QUIET, pad=3)
    ax.grid(axis="y", color=RULE, linewidth=0.7)
    ax.set_axisbelow(True)
    ax.set_xticks(xs, [budget_label(p.budget) for p in places])
    ax.set_xlim(-0.15, len(xs) - 0.85)
    if title:
        ax.set_title(printable(title), size=9, color=INK, loc="left", pad=5, weight="bold")

    def line(policy: str) -> list[float]:
        return [_value(p, p.entries.get(policy), row) for p in places]

    low, high = line("random"), line("oracle")
    ax.fill_between(xs, low, high, color=BAND, linewidth=0)
    ax.plot(xs, high, color=BAND_EDGE, linewidth=1.0, linestyle=(0, (3, 2)))
    ax.plot(xs, low, color=BAND_EDGE, linewidth=1.0)
    for policy in sorted(set.union(*(set(p.entries) for p in places))):
        if is_fixed(policy) and policy not in ("random", "coherence"):
            ax.plot(xs, line(policy), color=OTHER, linewidth=0.8, zorder=1.5)
    ax.plot(xs, line("coherence"), color=COHERENCE, linewidth=1.6, marker="s", markersize=4)
    best = [_value(p, p.best(), row) for p in places]
    ax.plot(xs, best, color=BEST, linewidth=0, marker="_", markersize=14, markeredgewidth=2.2)
    ax.plot(xs, line(ours), color=OURS, linewidth=2.4, marker="o", markersize=5, zorder=4)


def _scale(ax: Axes, top: float, words: str) -> None:
    """The y axis, alike in all panels of a row and named in the first."""
    ax.set_ylim(0, top)
    step = 25 if top < 160 else 50 if top < 400 else 200
    ticks = range(0, int(top) + 1, step)
    ax.set_yticks(ticks, [str(t) if words else "" for t in ticks])
    if words:
        ax.set_ylabel(words, size=8, color=QUIET)


def _top(places: Sequence[Place], row: str, ours: str) -> float:
    """An upper end above all policies; the oracle's line may leave where it is far above."""
    if row == "kept":
        return 104.0
    highest = _most(_value(p, e, row) for p in places for e in (*p.fixed, p.entries.get(ours)))
    ceiling = _most(_value(p, p.entries.get("oracle"), row) for p in places)
    return max(104.0, min(1.04 * ceiling, 1.3 * highest))


def _most(values: Iterable[float]) -> float:
    return max((v for v in values if v == v), default=100.0)


def _value(place: Place, entry: Entry | None, row: str) -> float:
    if entry is None:
        return float("nan")
    if row == "kept":
        return 100 * entry.kept
    whole = place.everything.recall if place.everything else float("nan")
    return 100 * entry.recall / whole if whole else float("nan")


def _key(figure: Figure, ours: str, height: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], color=OURS, linewidth=2.4, marker="o", markersize=5, label=printable(ours)),
        Line2D([], [], color=COHERENCE, linewidth=1.6, marker="s", markersize=4, label="coherence"),
        Line2D([], [], color=BEST, linewidth=0, marker="_", markersize=12, markeredgewidth=2.2,
               label="best fixed policy there"),
        Line2D([], [], color=OTHER, linewidth=1.2, label="other fixed ones"),
        Patch(facecolor=BAND, edgecolor=BAND_EDGE, label="from random to oracle"),
    ]  # fmt: skip
    figure.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.53, 1 - 0.03 / height), ncols=5,
        frameon=False, fontsize=8, handlelength=1.8, columnspacing=1.4, labelcolor=INK,
    )  # fmt: skip
