"""Every policy in every place on one picture: how far it is behind the best fixed one there."""

from __future__ import annotations

import os
from collections.abc import Sequence
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


def regret_png(
    places: Sequence[Place], ranked: Sequence[Regret], path: str | os.PathLike[str], bold: str
) -> None:
    """Write the map: a row per policy of `ranked`, a column per place, a colour for the regret."""
    write_png(lambda: regret_map(places, ranked, bold), path)


def regret_map(places: Sequence[Place], ranked: Sequence[Regret], bold: str) -> Figure:
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    names = [r.policy for r in ranked]
    values = np.array([[100 * p.regret(name) for p in places] for name in names])
    height = 1.75 + 0.24 * len(names)
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    ax = figure.add_axes((0.18, 1.15 / height, 0.755, 1 - 1.7 / height))
    colours = LinearSegmentedColormap.from_list(
        "regret",
        [(0, "#0b6e4f"), (0.36, "#9fd3b9"), (0.5, "#fbfbf8"), (0.64, "#f6b48a"), (1, "#8c2d04")],
    )
    image = ax.imshow(
        values, aspect="auto", cmap=colours, vmin=-SPAN, vmax=SPAN, interpolation="nearest"
    )
    ax.set_yticks(range(len(names)), [_row(r) for r in ranked])
    for label, name in zip(ax.get_yticklabels(), names, strict=True):
        label.set_fontweight("bold" if name == bold else "normal")
    ax.tick_params(length=0, labelsize=8, labelcolor=INK, pad=3)
    ax.spines[:].set_visible(False)
    start, at, words = 0, [], []
    for (_, variant), group in groupby(places, key=lambda p: (p.workload, p.variant)):
        count = len(list(group))
        at.append(start + (count - 1) / 2)
        words.append(printable(variant))
        start += count
        ax.axvline(start - 0.5, color="white", linewidth=1.0)
    ax.set_xticks(at, words, rotation=90, size=7, color=QUIET)
    start = 0
    for workload, group in groupby(places, key=lambda p: p.workload):
        count = len(list(group))
        middle = start + (count - 1) / 2
        narrow = count / len(places) < 0.08
        ax.text(
            middle, -0.75, printable(workload), size=8, color=INK, weight="bold",
            ha="left" if narrow else "center", va="bottom", rotation=30 if narrow else 0,
        )  # fmt: skip
        start += count
        ax.axvline(start - 0.5, color=INK, linewidth=1.0)
    ax.set_xlim(-0.5, len(places) - 0.5)
    budgets = " / ".join(budget_label(b) for b in dict.fromkeys(p.budget for p in places))
    figure.text(
        0.18, 0.08 / height, f"columns of a variant: budgets {budgets}", size=8, color=QUIET
    )
    bar = figure.colorbar(
        image, cax=figure.add_axes((0.95, 1.15 / height, 0.012, 1 - 1.7 / height))
    )
    bar.set_ticks([-SPAN, 0, SPAN], labels=[f"{SPAN:.0f}\nbetter", "0", f"{SPAN:.0f}\nworse"])
    bar.ax.tick_params(length=0, labelsize=7, labelcolor=QUIET, pad=2)
    bar.outline.set_visible(False)
    return figure


def _row(regret: Regret) -> str:
    return f"{printable(regret.policy)}  {100 * regret.mean:.1f}"
