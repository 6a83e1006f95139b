"""Measure what memsift forgets on every workload, and write docs/forgetting.md with its plots.

    python tools/forgetting.py WORKLOADS     the suite and the five questions, about a quarter of an hour
    python tools/forgetting.py --questions WORKLOADS    the questions alone, beside the cells that are there
    python tools/forgetting.py               only the page and its plots, from docs/forgetting.json

WORKLOADS is the folder with the .npz workloads, which are data of others and not part of this project. A test holds the
page to docs/forgetting.json.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from forgetting_facts import Facts
from forgetting_page import page, pictures
from forgetting_questions import all_questions
from forgetting_tables import OURS

from memsift.evaluation import report
from memsift.evaluation.cell import Cell
from memsift.evaluation.report.export import compact
from memsift.evaluation.report.files import write_whole
from memsift.evaluation.suite import ON_LOGS, suite
from memsift.learning import traffic

DOCS = Path(__file__).resolve().parents[1] / "docs"
DATA, PAGE, SPEED = DOCS / "forgetting.json", DOCS / "forgetting.md", DOCS / "speed.json"
WATERMARK = 0.97

__all__ = ["ON_LOGS", "facts_of", "measure", "page", "write"]


def measure(folder: Path, size: str = "full") -> dict[str, Any]:
    """The suite's cells and how they came about."""
    chosen = suite(size, folder)
    for words in chosen.missing:
        print(f"missing: {words}", file=sys.stderr)
    started = time.process_time()
    cells = [rounded(cell) for cell in chosen.run(WATERMARK, Told())]
    about = {
        "suite": size,
        "watermark": WATERMARK,
        "budgets": list(chosen.size.budgets),
        "missing": list(chosen.missing),
        "seconds": round(time.process_time() - started, 1),
    }
    return {"about": about, **report.to_json(cells)}


def rounded(cell: Cell) -> Cell:
    """As it is printed, and a little more: sixteen digits of each would be most of the file."""
    names = ("recall", "kept", "fidelity", "occupancy", "seconds")
    return replace(cell, **{name: round(getattr(cell, name), 6) for name in names})


class Told:
    """Says which workload and variant begin, with the CPU time so far."""

    def __init__(self) -> None:
        self.last = ""

    def __call__(self, step: str) -> None:
        where = step.partition(":")[0]
        if where != self.last:
            self.last = where
            print(f"{time.process_time():7.1f} s  {where}", file=sys.stderr, flush=True)


def speeds() -> list[dict[str, Any]]:
    """How long a compaction of 20,000 entries takes, as last measured."""
    rows = json.loads(SPEED.read_text())["rows"] if SPEED.exists() else []
    return [
        {"operation": r["operation"], "ms": round(r["ours_us"] / 1000, 1)}
        for r in rows
        if r["n"] == 20_000 and r["operation"].startswith("compact")
    ]


def facts_of(data: dict[str, Any]) -> Facts:
    return Facts(data, report.from_json(data))


def write(data: dict[str, Any]) -> None:
    """The page and its pictures."""
    facts = facts_of(data)
    PAGE.write_text(page(facts))
    for name, cells in pictures(facts).items():
        made = name == "forgetting-synthetic.png"
        report.curves_png(
            cells, DOCS / name, ours=OURS, rows=("found",) if made else ("found", "kept")
        )
    headings = {p.workload: "synthetic" for p in facts.made}
    places, ranked = [*facts.real, *facts.made], facts.ranked(facts.real)
    at = DOCS / "forgetting-regret.png"
    report.regret_png(places, ranked, at, bold=OURS, headings=headings)


def main(arguments: list[str]) -> None:
    folder = Path(arguments[-1]) if arguments else None
    data = json.loads(DATA.read_text()) if DATA.exists() else {}
    if folder is not None:
        if "--questions" not in arguments:
            data = measure(folder)
        started = time.process_time()
        data["questions"] = all_questions(folder, Told())
        data["about"]["questions_seconds"] = round(time.process_time() - started, 1)
        data["about"] |= {"speed": speeds(), "gate": [traffic.OPENS, traffic.CLOSES]}
        write_whole(DATA, f"{compact(data)}\n".encode())
    write(data)


if __name__ == "__main__":
    main(sys.argv[1:])
