"""Write docs/performance.md and its picture from the last run of `memsift bench speed`.

    memsift bench speed --out docs/speed.json    measure: about ten minutes with all peers
    python tools/performance.py                  the page and its picture, from docs/speed.json

A million entries are a run of their own, whose command is on the page: docs/speed-million.json.

A test holds the page to docs/speed.json. Words are in performance_words.md; figures come from the run alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memsift.evaluation.report import speed_png
from memsift.evaluation.speed.limits import Verdict
from memsift.evaluation.speed.row import BARE, OURS, SpeedRow, Time
from memsift.evaluation.speed.words import (
    Group,
    amount,
    beside_ours,
    figure,
    found,
    groups,
    judged,
    outcome,
    rows_of,
    spread,
    times,
    wall,
)

DOCS = Path(__file__).resolve().parents[1] / "docs"
DATA, PAGE, PICTURE = DOCS / "speed.json", DOCS / "performance.md", DOCS / "performance.png"
MILLION = DOCS / "speed-million.json"
WORDS = Path(__file__).with_name("performance_words.md")


def page(data: dict[str, Any], million: dict[str, Any] | None = None) -> str:
    """The whole document, with the run of a million entries if there is one."""
    rows = rows_of(data)
    parts = [said("opening", **_counts(rows)), "## What was promised\n", *_promises(judged(rows))]
    for group in groups(rows):
        parts += [f"## {group.title}\n", *_group(group)]
    parts += _bus(rows, data["about"].get("memory", {}))
    parts += _misses(rows)
    parts += _million(million) if million else []
    parts += [said("repeat"), said("machine", **_machine(data["about"]))]
    return "\n".join(parts).rstrip("\n") + "\n"


def said(section: str, **words: str) -> str:
    """A section of the prose, with its figures; "" if there is none of that name."""
    sections = re.split(r"^=== (.+)\n", WORDS.read_text(), flags=re.MULTILINE)
    found = dict(zip(sections[1::2], sections[2::2], strict=True))
    return found.get(section, "").format(**words)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> Iterator[str]:
    """A Markdown table, its first `left` columns to the left."""
    yield f"| {' | '.join(headings)} |"
    yield "|" + ":--|" * left + "--:|" * (len(headings) - left)
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _counts(rows: list[SpeedRow]) -> dict[str, str]:
    verdicts = [v for _, v in judged(rows) if not v.goal]
    held = sum(v.holds is True for v in verdicts)
    missed = sum(v.holds is False for v in verdicts)
    rest = len(verdicts) - held - missed
    return {
        "held": str(held),
        "judged": str(held + missed),
        "missed": str(missed),
        "rest": str(rest),
    }


def _promises(found_out: list[tuple[SpeedRow, Verdict]]) -> Iterator[str]:
    lines = []
    for row, verdict in found_out:
        state = outcome(verdict)
        bold = f"**{state}**" if verdict.holds is False and not verdict.goal else state
        lines.append(
            [verdict.operation, f"{row.n:,} × {row.dim}", verdict.limit, found(verdict, row), bold]
        )
    yield from table(["operation", "entries", "limit", "measured", ""], lines, left=3)


def _group(group: Group) -> Iterator[str]:
    for title, rows, names in group.parts():
        if title != group.title:
            yield "Graphs, which are approximate:\n"
        walls = any(map(wall, rows))
        lines = []
        for row in rows:
            by_name = {t.name: t for t in row.contenders}
            cells = [_cell(by_name.get(name), row) for name in names]
            lines.append([group.label(row), *cells, *([wall(row)] if walls else [])])
        yield from table(["", *names, *(["memsift on the wall"] if walls else [])], lines)
    notes = [f"{', '.join(names)}: {reason}." for reason, names in group.absent.items()]
    notes += [f"{group.label(row)}: {row.note}." for row in group.rows if row.note]
    if notes:
        yield "  \n".join(notes) + "\n"


def _cell(time: Time | None, row: SpeedRow) -> str:
    """Median, spread, ratio to ours and recall, a line each."""
    if time is None or figure(time) is None:
        return "–"
    value = amount(figure(time), row.unit)
    lines = [f"**{value}**" if time.name == OURS else value, spread(time, row.unit)]
    lines.append(beside_ours(time, row))
    lines.append("" if time.recall is None else f"recall {time.recall:.3f}")
    return "<br>".join(filter(None, lines))


def _bus(rows: list[SpeedRow], memory: dict[str, float]) -> Iterator[str]:
    """Each search by what reading all rows once takes at least."""
    if not memory:
        return
    speeds = {name: f"{value / 1e9:.3g} GB/s" for name, value in memory.items()}
    yield said("bus", **speeds)
    lines = []
    for row in (r for r in rows if r.operation == "search"):
        size = 4 * row.n * row.dim
        least = size / memory["vecdot"] * 1e6
        cells = [
            "–" if value is None else f"{amount(value)} ({times(value / least)} ×)"
            for value in (_of(row, OURS), _of(row, BARE), _of(row, "faiss Flat"))
        ]
        lines.append([f"{row.n:,} × {row.dim}", f"{size / 1e6:,.1f} MB", amount(least), *cells])
    yield from table(["", "rows", "at vecdot's rate", OURS, BARE, "faiss Flat"], lines)


def _of(row: SpeedRow, name: str) -> float | None:
    return next((figure(t) for t in row.contenders if t.name == name), None)


def _misses(rows: list[SpeedRow]) -> Iterator[str]:
    """What is not reached, and what the profile shows where somebody has looked."""
    lost: list[tuple[SpeedRow, Verdict]] = [(r, v) for r, v in judged(rows) if v.holds is False]
    yield "## Where we do not reach our own goals\n"
    if not lost:
        yield "Nowhere in this run.\n"
    for operation in dict.fromkeys(v.operation for _, v in lost):
        yield f"### {operation}\n"
        for row, verdict in lost:
            if verdict.operation == operation:
                size = f"{row.n:,} × {row.dim}"
                yield f"- {size}: {verdict.limit}; measured {found(verdict, row)}"
        yield f"\n{said(f'why {operation}')}".rstrip("\n") + "\n"


def _million(data: dict[str, Any]) -> Iterator[str]:
    """What that run says of its largest size, beside its smallest."""
    rows = rows_of(data)
    n = max(row.n for row in rows)
    yield said("million", **_machine(data["about"]))
    yield from _promises([(r, v) for r, v in judged(rows) if r.n == n and v.holds is not None])
    for group in groups(rows):
        yield f"### {group.title}\n"
        yield from _group(group)


def _machine(about: dict[str, Any]) -> dict[str, str]:
    found = {name: str(value) for name, value in about.get("machine", {}).items()}
    names = ("cpu", "cores", "cache", "system", "python", "numpy", "blas", "load")
    words = {name: found.get(name, "unknown") for name in names}
    minutes = about.get("seconds", 0) / 60
    return words | {"minutes": f"{minutes:.0f}", "repeats": str(about.get("repeats", "?"))}


def main() -> None:
    data = json.loads(DATA.read_text())
    million = json.loads(MILLION.read_text()) if MILLION.exists() else None
    PAGE.write_text(page(data, million))
    speed_png(data, PICTURE)


if __name__ == "__main__":
    main()
