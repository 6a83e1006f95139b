"""Every policy in every place on one picture: how far it is behind the best fixed one there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from memsift.evaluation.hindsight import Place, Regret
from memsift.evaluation.report.look import INK, QUIET
from memsift.evaluation.report.plot import write_png
from memsift.evaluation.report.words import budget_label, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPAN = 30.0
"""Points of regret at which the colour is deepest."""

WIDTH = 8.0

COLOURS = [(0, "#0b6e4f"), (0.36, "#9fd3b9"), (0.5, "#fbfbf8"), (0.64, "#f6b48a"), (1, "#8c2d04")]
"""From ahead of the best fixed policy to behind it; told apart in the common kinds of colour blindness."""


def regret_png(
    places: Sequence[Place],
    ranked: Sequence[Regret],
    path: str | os.PathLike[str],
    *,
    bold: str,
    headings: Mapping[str, str] | None = None,
) -> None:
    """Write the map: a row per policy of `ranked`, a column per place, a colour for the regret.

    Parameters
    ----------
    bold : str
        The policy whose name stands out.
    headings : dict, optional
        What stands over the columns of a workload, in place of its name.
    """
    write_png(lambda: regret_map(places, ranked, bold, headings or {}), path)


def regret_map(
    places: Sequence[Place], ranked: Sequence[Regret], bold: str, headings: Mapping[str, str]
) -> Figure:
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    names = [r.policy for r in ranked]
    values = np.array([[100 * p.regret(name) for p in places] for name in names])
    columns = [
        (headings.get(w, w), v if headings.get(w, w) == w else w, len(list(group)))
        for (w, v), group in groupby(places, key=lambda p: (p.workload, p.variant))
    ]
    below = 0.36 + 0.05 * max(len(label) for _, label, _ in columns)
    height = below + 0.5 + 0.24 * len(names)
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    box = (below / height, 1 - (below + 0.5) / height)
    ax = figure.add_axes((0.2, box[0], 0.715, box[1]))
    image = ax.imshow(
        values, aspect="auto", vmin=-SPAN, vmax=SPAN, interpolation="nearest",
        cmap=LinearSegmentedColormap.from_list("regret", COLOURS),
    )  # fmt: skip
    ax.set_yticks(range(len(names)), [_row(r) for r in ranked])
    for label, name in zip(ax.get_yticklabels(), names, strict=True):
        label.set_fontweight("bold" if name == bold else "normal")
    ax.tick_params(length=0, labelsize=8, labelcolor=INK, pad=3)
    ax.spines[:].set_visible(False)
    ends = np.cumsum([count for *_, count in columns])
    middles = [end - (count + 1) / 2 for end, (*_, count) in zip(ends, columns, strict=True)]
    ax.set_xticks(middles, [printable(v) for _, v, _ in columns], rotation=90, size=7, color=QUIET)
    for end in ends[:-1]:
        ax.axvline(end - 0.5, color="white", linewidth=1.0)
    start = 0
    for number, (heading, group) in enumerate(groupby(columns, key=lambda c: c[0])):
        count = sum(n for *_, n in group)
        # Every other one higher: narrow neighbours would run into each other.
        at = start + (count - 1) / 2, -0.7 - 0.75 * (number % 2)
        ax.text(*at, printable(heading), size=8, color=INK, weight="bold", ha="center")
        start += count
        if start < len(places):
            ax.axvline(start - 0.5, color=INK, linewidth=1.0)
    budgets = " / ".join(budget_label(b) for b in dict.fromkeys(p.budget for p in places))
    words = f"columns of each: budgets {budgets}; beside the names: the mean of real workloads"
    figure.text(0.2, 0.09 / height, words, size=8, color=QUIET)
    bar = figure.colorbar(image, cax=figure.add_axes((0.928, box[0], 0.012, box[1])))
    bar.set_ticks([-SPAN, 0, SPAN], labels=[f"{SPAN:.0f}\nbetter", "0", f"{SPAN:.0f}\nworse"])
    low, _, high = bar.ax.get_yticklabels()
    low.set_verticalalignment("bottom")
    high.set_verticalalignment("top")
    bar.ax.tick_params(length=0, labelsize=7, labelcolor=QUIET, pad=2)
    bar.outline.set_visible(False)
    return figure


def _row(regret: Regret) -> str:
    return f"{printable(regret.policy.replace('_', ' '))}  {100 * regret.mean:.1f}"
