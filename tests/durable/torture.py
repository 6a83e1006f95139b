"""The long campaigns: `python tests/durable/torture.py kill 1000`, or `all` of them.

`processes 60` takes seconds, `bytes 20000` mutants, `power 5000` disks, `errors 3` lets every third operation fail.

Prints progress, then a line of figures, and keeps the last ones with their date in docs/torture.json.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import io_errors
import power
from crash import crowd, kill, mutants

FIGURES = Path(__file__).parents[2] / "docs" / "torture.json"
CAMPAIGNS: dict[str, tuple[Any, float]] = {
    "kill": (kill.campaign, 1000),
    "processes": (crowd.campaign, 60),
    "bytes": (mutants.campaign, 20_000),
    "power": (power.torture, 5000),
    "errors": (io_errors.torture, 3),
}


def run(name: str, size: float, seed: int) -> tuple[dict[str, Any], list[str]]:
    campaign, _ = CAMPAIGNS[name]
    began = time.monotonic()

    def progress(figures: Any) -> None:
        print(f"  {name} {time.monotonic() - began:.0f} s: {figures.summary()}", flush=True)

    figures = campaign(size if name == "processes" else int(size), seed=seed, progress=progress)
    took = {"seed": seed, "took, seconds": round(time.monotonic() - began, 1)}
    return figures.summary() | took, figures.failures


def keep(name: str, figures: dict[str, Any]) -> None:
    known = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    known[name] = figures | {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    FIGURES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("campaign", choices=[*CAMPAIGNS, "all"])
    sizes = "kills, seconds, mutants, disks, or every how manieth operation fails"
    parser.add_argument("size", type=float, nargs="?", help=sizes)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dry", action="store_true", help="leave docs/torture.json as it is")
    asked = parser.parse_args()
    bad = 0
    for name in CAMPAIGNS if asked.campaign == "all" else [asked.campaign]:
        figures, failures = run(name, asked.size or CAMPAIGNS[name][1], asked.seed)
        for failure in failures:
            print(f"FAILED {failure}")
        bad += len(failures)
        if not asked.dry:
            keep(name, figures)
        print(f"{name}: {json.dumps(figures)}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
