"""The speed figures as a picture: times by size for searches and compactions, bars for additions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memsift.evaluation.report.look import INK, QUIET, RULE, SHADE
from memsift.evaluation.report.plot import draw_svg, write_png
from memsift.evaluation.speed.limits import ADD, BATCH
from memsift.evaluation.speed.row import BARE, OURS, SpeedRow
from memsift.evaluation.speed.words import amount, figure, rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Bare numpy in ink; the others' colours are told apart in the common kinds of colour blindness.
_COLOURS = {
    OURS: "#d55e00",
    "memsift coherence": "#f0a35e",
    "memsift lru": "#f7cfa8",
    BARE: INK,
    "usearch exact": "#0072b2",
    "faiss Flat": "#009e73",
    "sqlite-vec": "#cc79a7",
    "usearch HNSW": "#0072b2",
    "faiss HNSW": "#009e73",
    "hnswlib": "#882255",
    "chroma": "#e69f00",
}
_SPARE = ("#56b4e9", "#332288", "#999933", "#aa4499")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h", "<", ">", "p")
WIDTH, HEIGHT = 9.0, 7.6
# Too near to ours to be told apart, and no contender of its own.
_LEFT_OUT = ("memsift coherence",)
Shown = dict[str, list[tuple[int, float]]]


def speed_png(data: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the picture of one run, whole or not at all."""
    write_png(lambda: _figure(rows_of(data)), path, dpi=150)


def speed_svg(data: dict[str, Any]) -> str:
    """The same picture as one `<svg>` element."""
    return draw_svg(lambda: _figure(rows_of(data)), "Times by size of ours and of others.")


def _figure(rows: Sequence[SpeedRow]) -> Figure:
    from matplotlib.figure import Figure

    figure_ = Figure(figsize=(WIDTH, HEIGHT), facecolor="white")
    grid = figure_.add_gridspec(
        2, 2, left=0.075, right=0.97, top=0.85, bottom=0.065, hspace=0.34, wspace=0.2
    )
    approximate = {t.name for r in rows for t in r.contenders if t.recall is not None and t.repeats}
    panels = {
        "Search: one query": "search",
        "Search: 100 queries in one call": BATCH,
        "Coherence compaction to half": "compact",
        "Adding in batches of 1,000, per entry": ADD,
    }
    for place, (title, operation) in enumerate(panels.items()):
        ax = figure_.add_subplot(grid[place // 2, place % 2])
        _bare_axes(ax, title)
        if operation == ADD:
            box = ax.get_position()  # its labels are names, longer than those of a scale
            ax.set_position((box.x0 + 0.06, box.y0, box.width - 0.06, box.height))
            _bars(ax, _of(rows, operation))
        else:
            _lines(ax, _by_size(rows, operation), approximate)
    shown = [name for name in _names(rows) if name not in _LEFT_OUT]
    _key(figure_, shown, approximate)
    figure_.text(0.012, 0.972, "Time by size, one thread", size=12, color=INK, weight="bold")
    figure_.text(
        0.012,
        0.948,
        f"medians of CPU time, {_dim(rows)} dimensions; lower is better. Dashed: approximate",
        size=9,
        color=QUIET,
    )
    return figure_


def _of(rows: Sequence[SpeedRow], operation: str) -> list[SpeedRow]:
    return [r for r in rows if r.operation == operation]


def _names(rows: Sequence[SpeedRow]) -> list[str]:
    """Contenders with a figure in one of the panels with lines, in their order."""
    wanted = [r for o in ("search", BATCH, "compact") for r in _of(rows, o)]
    names = [t.name for r in wanted for t in r.contenders if figure(t) is not None]
    return list(dict.fromkeys(names))


def _by_size(rows: Sequence[SpeedRow], operation: str) -> Shown:
    """Times in microseconds by entries, at one dimension."""
    shown: Shown = {}
    for row in _of(rows, operation):
        if row.dim == _dim(rows):
            for t in row.contenders:
                value = figure(t)
                if value is not None and t.name not in _LEFT_OUT:
                    shown.setdefault(t.name, []).append((row.n, value))
    return shown


def _dim(rows: Sequence[SpeedRow]) -> int:
    """The dimension at which most sizes were searched, the larger of two."""
    dims = [r.dim for r in rows if r.operation in ("search", "compact")]
    return max(dims, key=lambda dim: (dims.count(dim), dim), default=0)


def _look(name: str) -> tuple[str, str]:
    """Colour and marker of a contender."""
    known = list(_COLOURS)
    if name in _COLOURS:
        return _COLOURS[name], _MARKERS[known.index(name) % len(_MARKERS)]
    place = sum(map(ord, name))
    return _SPARE[place % len(_SPARE)], _MARKERS[place % len(_MARKERS)]


def _style(name: str, approximate: set[str]) -> dict[str, Any]:
    colour, marker = _look(name)
    ours = name == OURS
    return {
        "color": colour,
        "linewidth": 2.6 if ours else 1.4,
        "linestyle": (0, (4, 2)) if name in approximate else "-",
        "marker": marker,
        "markersize": 7 if ours else 5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.7,
        "zorder": 4 if ours else 3 if name == BARE else 2,
    }


def _bare_axes(ax: Axes, title: str) -> None:
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(RULE)
    ax.tick_params(which="both", length=0, labelsize=8, labelcolor=QUIET, pad=4)
    ax.set_axisbelow(True)
    ax.set_title(title, size=9.5, color=INK, loc="left", pad=7, weight="bold")


def _lines(ax: Axes, shown: Shown, approximate: set[str]) -> None:
    if not shown:
        _nothing(ax)
        return
    ax.set_xscale("log")
    ax.set_yscale("log")
    for name, points in shown.items():
        ax.plot(*zip(*sorted(points), strict=True), **_style(name, approximate))
    sizes = sorted({n for points in shown.values() for n, _ in points})
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.set_xticks([], minor=True)
    ax.set_xlim(sizes[0] / 1.3, sizes[-1] * 1.3)
    ax.grid(axis="y", color=RULE, linewidth=0.7)
    _decades(ax, [v for points in shown.values() for _, v in points])


def _decades(ax: Axes, values: Sequence[float]) -> None:
    """A line at each power of ten within the values, named as people name times; at 2 and 5 as well if they are few."""
    few = max(values) / min(values) < 30
    powers = [step * 10.0**e for e in range(-2, 9) for step in ((1, 2, 5) if few else (1,))]
    low = max(p for p in powers if p <= min(values))
    high = min((p for p in powers if p >= max(values)), default=powers[-1])
    ticks = [p for p in powers if low <= p <= high]
    ax.set_yticks(ticks, [_power(p) for p in ticks])
    ax.set_yticks([], minor=True)
    ax.set_ylim(max(low, min(values) / 1.6), min(high, max(values) * 1.6))


def _power(value: float) -> str:
    for factor, unit in ((1e6, "s"), (1e3, "ms"), (1.0, "µs")):
        if value >= factor:
            return f"{value / factor:g} {unit}"
    return f"{value * 1e3:g} ns"


def _bars(ax: Axes, rows: Sequence[SpeedRow]) -> None:
    times = [(t.name, figure(t)) for t in rows[0].contenders] if rows else []
    known = sorted(((v, name) for name, v in times if v is not None), reverse=True)
    if not known:
        _nothing(ax)
        return
    ax.set_xscale("log")
    lowest, highest = known[-1][0], known[0][0]
    left = lowest / 3
    for place, (value, name) in enumerate(known):
        ax.barh(place, value - left, left=left, height=0.62, color=_look(name)[0])
        ax.text(
            value * 1.12, place, amount(value), size=8, color=INK, va="center", ha="left",
            weight="bold" if name == OURS else "normal",
        )  # fmt: skip
    ax.set_yticks(range(len(known)), [name for _, name in known])
    ax.tick_params(axis="y", labelsize=8, labelcolor=INK)
    ax.set_xticks([])
    ax.set_xticks([], minor=True)
    ax.set_xlim(left, highest * 4)


def _nothing(ax: Axes) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_facecolor(SHADE)
    ax.text(0.5, 0.5, "not measured", size=9, color=QUIET, ha="center", transform=ax.transAxes)


def _key(figure_: Figure, names: Sequence[str], approximate: set[str]) -> None:
    """Who is who, in rows of five above the panels."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=name, **_style(name, approximate)) for name in names]
    if handles:
        figure_.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(0.005, 0.942),
            ncols=5,
            frameon=False,
            fontsize=8.5,
            labelcolor=INK,
            handlelength=2.6,
            columnspacing=1.6,
            borderaxespad=0.0,
        )
