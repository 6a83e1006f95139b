"""Measure every figure that the README prints, and print it there.

    python tools/figures.py WORKLOADS        replay, write docs/replay.json and the README's tables
    python tools/figures.py                  only the tables, from docs/replay.json

WORKLOADS is the folder with the .npz workloads, which are data of others and not part of this project.
A test holds the README to docs/replay.json.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from memsift.evaluation import report
from memsift.evaluation.cell import Cell
from memsift.evaluation.readers import read_manual, read_npz, variants_of
from memsift.evaluation.replay import grid
from memsift.evaluation.speed import words
from memsift.evaluation.speed.row import SpeedRow
from memsift.policies import parse_list

ROOT = Path(__file__).resolve().parents[1]
CELLS = ROOT / "docs" / "replay.json"
SPEED = ROOT / "docs" / "speed.json"
README = ROOT / "README.md"
POLICIES = parse_list("random,fifo,lru,lfu,coherence,adaptive")
BUDGETS = (0.5, 0.25, 0.1)
SEEDS = (0, 1, 2, 3, 4)


def measure(folder: Path) -> list[Cell]:
    cells: list[Cell] = []

    def run(trace, variant: str, watermark: float) -> None:  # type: ignore[no-untyped-def]
        print(f"{trace.name} {variant} {watermark}", file=sys.stderr, flush=True)
        cells.extend(
            grid(trace, POLICIES, BUDGETS, variant=variant, watermark=watermark, seeds=SEEDS)
        )

    run(read_npz(folder / "locomo.npz", "end-traffic"), "end-traffic", 0.8)
    for name in ("locomo", "beam", "taubench", "intercode"):
        for variant in variants_of(folder / f"{name}.npz"):
            run(read_npz(folder / f"{name}.npz", variant), variant, 0.97)
    run(read_manual(), "log", 0.97)
    return cells


def tables(cells: list[Cell]) -> dict[str, str]:
    """Each table of the README by the name of its place."""
    at = [c for c in cells if c.watermark == 0.8]
    places = {"locomo-0.8": [c for c in at if (c.workload, c.variant) == ("locomo", "end-traffic")]}
    for name in ("locomo", "beam", "taubench", "intercode", "manual"):
        places[name] = [c for c in cells if c.workload == name and c.watermark == 0.97]
    return {"speed": speed_table(), "torture": torture_table()} | {
        p: report.markdown_table(chosen) for p, chosen in places.items()
    }


def speed_table() -> str:
    """The last run of `memsift bench speed --out docs/speed.json`: what was promised about, and what else compares."""
    lines = [
        "| operation | entries | memsift | bare | ratio | promised |",
        "|:--|:--|--:|--:|--:|:--|",
    ]
    rows = words.rows_of(json.loads(SPEED.read_text()))
    for row in (r for group in words.groups(rows) for r in group.rows):
        if row.verdicts or row.ratio is not None:
            ratio = "" if row.ratio is None else words.times(row.ratio)
            ours, bare = (words.amount(v, row.unit) for v in (row.ours_us, row.primitives_us))
            what = row.operation if row.unit == "µs" else f"{row.operation}, {row.unit}"
            lines.append(
                f"| {what} | {row.n:,} × {row.dim} | {ours} | {bare} | {ratio} | {promised(row)} |"
            )
    return "\n".join(["", *lines, ""])


def promised(row: SpeedRow) -> str:
    """How many of a row's limits hold, and which do not."""
    known = [v for v in row.verdicts if v.holds is not None and not v.goal]
    missed = [v.limit for v in known if not v.holds]
    if not known:
        return "not measured" if row.verdicts else ""
    if not missed:
        return "holds" if len(known) == 1 else f"all {len(known)} hold"
    held = f"{len(known) - len(missed)} of {len(known)} hold; " if len(known) > 1 else ""
    return f"{held}**missed**: {'; '.join(missed)}"


def torture_table() -> str:
    """The last long campaigns."""
    runs = json.loads((ROOT / "docs" / "torture.json").read_text())
    kill, crowd, power, errors, mutants = (
        runs[name] for name in ("kill", "processes", "power", "errors", "bytes")
    )
    rows = [
        (
            "SIGKILL of a writer",
            f"{kill['kills']:,} kills, {kill['kills at named points']:,} at {kill['named points']} named points, "
            f"{kill['kills during recovery']:,} during recovery; {kill['calls acknowledged']:,} acknowledged calls",
            f"{kill['failures']} lost or half done",
        ),
        (
            "processes on one file",
            f"{crowd['processes']} processes, {crowd['kills']} kills in 60 s, {crowd['adds acknowledged']:,} additions",
            f"{crowd['failures']} lost, doubled or over the budget",
        ),
        (
            "power loss, `full`",
            f"{power['different disks']:,} legal disks, "
            f"{power['of a second crash while opening']:,} of a second crash",
            f"{power['acknowledged lost']} commits lost, {power['not opening']} disks that do not open",
        ),
        (
            "full disk, failing disk",
            f"{errors['trials']:,} trials: every operation of 19 scripts fails, once and for ever",
            f"{errors['wrong']} untyped, half done or stuck",
        ),
        (
            "damaged files",
            f"{mutants['mutants']:,} mutants; slowest {mutants['slowest, seconds']:.2f} s, "
            f"{mutants['largest RSS, MB']} MB",
            f"{mutants['failures']} crashes, hangs or changes unnoticed",
        ),
    ]
    lines = ["| what | how much | found |", "|:--|:--|:--|"]
    return "\n".join(["", *lines, *(f"| {' | '.join(row)} |" for row in rows), ""])


def printed(text: str, cells: list[Cell]) -> str:
    """`text` with every table between `<!-- table NAME -->` and `<!-- end -->` made anew."""
    for place, table in tables(cells).items():
        pattern = rf"(<!-- table {re.escape(place)} -->\n).*?(<!-- end -->)"
        text = re.sub(pattern, lambda m, t=table: f"{m[1]}\n{t}\n{m[2]}", text, flags=re.DOTALL)
    return text


def load() -> list[Cell]:
    return report.from_json(json.loads(CELLS.read_text()))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        report.write_json(measure(Path(sys.argv[1])), CELLS)
    for page in (README,):
        if page.exists():
            page.write_text(printed(page.read_text(), load()))
