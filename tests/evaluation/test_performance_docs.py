"""docs/performance.md says what docs/speed.json holds; tables, page and picture of a run that was written by hand."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from memsift.evaluation.report import speed_png, speed_svg, speed_tables

ROOT = Path(__file__).parents[2]
DATA, PAGE = ROOT / "docs" / "speed.json", ROOT / "docs" / "performance.md"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import performance

    return performance


def time(name: str, median: float | None, **more: Any) -> dict[str, Any]:
    figures = {} if median is None else {"low": median / 2, "high": 2 * median, "repeats": 5}
    return {"name": name, "median": median, **figures, **more}


def verdict(limit: str, against: str | None, figure: float | None, most: float, **more: Any):
    holds = None if figure is None else figure <= most
    about = {"ours": "memsift", "against": against, "figure": figure, "most": most}
    return {"operation": "search", "limit": limit, **about, "holds": holds, **more}


def row(operation: str, n: int, ours: float | None, bare: float | None, **more: Any):
    given = ours is not None and bare is not None
    return {
        "operation": operation,
        "n": n,
        "dim": 384,
        "ours_us": ours,
        "primitives_us": bare,
        "ratio": ours / bare if given else None,
        "beyond_us": ours - bare if given else None,
        "low_us": ours,
        "high_us": ours,
        "repeats": 5,
        "limit": "",
        "holds": None,
        **more,
    }


@pytest.fixture
def run() -> dict[str, Any]:
    contenders = [
        time("memsift", 2000.0, wall=2345.0, wall_low=2000.0, wall_high=3000.0),
        time("numpy", 5000.0),
        time("faiss Flat", 1000.0),
        time("usearch HNSW", 500.0, recall=0.987),
        time("chroma", None, note="not installed: pip install chromadb"),
    ]
    verdicts = [
        verdict("at least 2 × as fast as numpy", "numpy", 0.4, 0.5),
        verdict("at least 1.5 × as fast as faiss Flat", "faiss Flat", 2.0, 1 / 1.5),
        verdict("memsift[fast]: at least 4 × as fast as numpy", "numpy", None, 0.25),
        verdict("goal: at most 1 × numpy", "numpy", 1.4, 1.0, goal=True),
    ]
    rows = [
        row("search", 20_000, 2000.0, 5000.0, contenders=contenders, verdicts=verdicts),
        row(
            "memory", 20_000, 1650.0, 1536.0, unit="bytes per entry",
            contenders=[time("memsift", 1650.0), time("numpy", 1536.0)],
        ),
        # What a module of its own may say: two times and one limit, or one figure and none.
        row("hnsw: rebuild", 100_000, 3e6, None, limit="no search waits", holds=False),
        row("hnsw: search", 100_000, 150.0, 300.0, limit="at most 200 µs", holds=True),
    ]  # fmt: skip
    about = {
        "machine": {"cpu": "A CPU", "cores": 2, "load": 0.1},
        "repeats": 5,
        "memory": {"sum": 20e9, "vecdot": 30.72e9},
        "seconds": 123.0,
    }
    return {"about": about, "rows": rows, "unit": "microseconds"}


def shown(data: dict[str, Any]) -> str:
    console = Console(width=100, highlight=False, force_terminal=False)
    with console.capture() as capture:
        for table in speed_tables(data):
            console.print(table)
    return capture.get()


# ---- the page of the last run --------------------------------------------------------------------


def test_the_page_is_what_the_run_makes(tool):
    both = (json.loads(path.read_text()) for path in (DATA, tool.MILLION))
    assert tool.page(*both) == PAGE.read_text()


def test_the_picture_is_there_and_light():
    (name,) = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", PAGE.read_text())
    picture = ROOT / "docs" / name
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert picture.stat().st_size < 300_000


def test_nobody_learns_whose_machine_it_was():
    text = DATA.read_text()
    assert str(Path.home()) not in text.replace('"/"', "")
    assert f'"{platform.node()}"' not in text


# ---- of a run by hand ----------------------------------------------------------------------------


def test_the_page_says_what_holds_what_is_missed_and_what_is_open(tool, run):
    text = tool.page(run)
    assert "**2 of 4 limits hold, 2 are missed**; 1 more" in text
    lines = text.splitlines()

    def line(words: str) -> str:
        return next(ln for ln in lines if words in ln)

    assert "| 2.50 × as fast | holds |" in line("at least 2 × as fast as numpy")
    assert "| 0.50 × as fast | **MISSED** |" in line("at least 1.5 × as fast as faiss Flat")
    assert "| – | not measured |" in line("memsift[fast]: at least 4")
    assert "| 1.40 × | MISSED (a goal) |" in line("goal: at most 1 ×")
    assert "| 3.00 s | **MISSED** |" in line("no search waits")
    assert "chroma: not installed: pip install chromadb." in text
    missed = text[text.index("## Where we do not reach") : text.index("## How to repeat")]
    assert "- 20,000 × 384: at least 1.5 × as fast as faiss Flat; measured 0.50 × as fast" in missed
    assert "- 100,000 × 384: no search waits; measured 3.00 s" in missed
    assert "at least 2 × as fast as numpy" not in missed
    assert "{" not in text
    assert "None" not in text
    assert "A CPU, 2 cores" in text


def test_a_cell_has_median_spread_ratio_and_recall(tool, run):
    text = tool.page(run)
    assert (
        "| 20,000 × 384 | **2.00 ms**<br>1.00–4.00 ms | 5.00 ms<br>2.50–10.0 ms<br>× 2.50 "
        "| 1.00 ms<br>500 µs–2.00 ms<br>× 0.50 | 2.35 ms |"
    ) in text
    # Graphs stand apart, beside ours once more.
    assert "| 500 µs<br>250 µs–1.00 ms<br>× 0.25<br>recall 0.987 | 2.35 ms |" in text
    assert "| 20,000 × 384 | **1,650**<br>825–3,300 | 1,536<br>768–3,072<br>× 0.93 |" in text


def test_the_bus_is_what_all_rows_take_at_vecdot_s_rate(tool, run):
    text = tool.page(run)
    assert "at 20 GB/s by a plain sum and at 30.7 GB/s by one dot product" in text
    # 20,000 × 384 × 4 bytes at 30.72 GB/s are 1 ms.
    assert (
        "| 20,000 × 384 | 30.7 MB | 1.00 ms | 2.00 ms (2.00 ×) | 5.00 ms (5.00 ×) | 1.00 ms (1.00 ×) |"
    ) in text


def test_the_terminal_shows_the_same_within_a_hundred_columns(run):
    text = shown(run)
    assert max(map(len, text.splitlines())) <= 100
    assert "…" not in text
    words = " ".join(text.split())
    for piece in (
        "2.00 ms", "1.00–4.00", "× 2.50", "recall 0.987", "memsift[fast]: at least 4 ×",
        "MISSED", "not measured", "chroma: not installed: pip install chromadb", "no search waits",
        "bytes per entry", "2.35 ms",
    ):  # fmt: skip
        assert piece in words, piece


def test_all_who_search_fit_into_a_hundred_columns(run):
    from memsift.evaluation.speed.engines import OURS, PEERS, Bare

    contenders = [
        time(cls.name, 123.0, **({} if cls.exact else {"recall": 0.999}))
        for cls in (*OURS, Bare, *PEERS)
    ]
    run["rows"] = [row("search", 1_000_000, 123.0, 123.0, contenders=contenders)]
    text = shown(run)
    assert max(map(len, text.splitlines())) <= 100
    assert "…" not in text


def test_a_picture_is_drawn_of_whatever_there_is(run, tmp_path):
    speed_png(run, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    svg = speed_svg(run)
    assert svg.startswith("<svg ")
    assert svg == speed_svg(run)
    for words in ("Search: one query", "usearch HNSW", "20,000", "not measured"):
        assert words in svg
    assert "chroma" not in svg
    speed_png({"rows": [], "about": {}}, tmp_path / "b.png")
    assert (tmp_path / "b.png").stat().st_size > 1000
