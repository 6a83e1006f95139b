"""docs/forgetting.md says what docs/forgetting.json holds, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from memsift.evaluation import report
from memsift.evaluation.suite import suite

ROOT = Path(__file__).parents[2]
DATA, PAGE = ROOT / "docs" / "forgetting.json", ROOT / "docs" / "forgetting.md"
measured = pytest.mark.skipif(
    not DATA.exists(), reason="docs/forgetting.json is not there: make forgetting"
)


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import forgetting

    return forgetting


@measured
def test_the_page_is_what_the_cells_make(tool):
    assert tool.page(tool.facts_of(json.loads(DATA.read_text()))) == PAGE.read_text()


@measured
def test_every_picture_is_there_and_light(tool):
    for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", PAGE.read_text()):
        picture = ROOT / "docs" / name
        assert picture.read_bytes()[:4] == b"\x89PNG", name
        assert picture.stat().st_size < 150_000, name


@measured
def test_the_cells_are_whole(tool):
    cells = report.from_json(json.loads(DATA.read_text()))
    assert {"random", "oldest", "fifo", "longest", "shortest", "lru", "lfu", "coherence"} <= {
        c.policy for c in cells
    }
    for cell in cells:
        assert cell.watermark == tool.WATERMARK
        assert cell.parts.stream, cell


def test_the_prose_has_no_figure_of_its_own(tool):
    """Numbers come in by name; those that stand are names and definitions."""
    text = (ROOT / "tools" / "forgetting_words.md").read_text()
    for known in (
        r"```.*?```", r"\{\w+\}", r"^\d+\. ", r"### \d\. ", r"@10", r"95 % of", r"blocks of 50",
        r"exact ten|ten lines|ten hits", r"g = [01]", r"0 lies|out 0|below 0", r"20,000 entries", r"float32",
    ):  # fmt: skip
        text = re.sub(known, "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(r"\d", text), re.findall(r".{20}\d.{20}", text)


def test_a_page_and_its_pictures_from_a_few_small_streams(tool, tmp_path, monkeypatch):
    from test_suite import small, write

    small(monkeypatch)
    for name, log in (("locomo", False), ("taubench", True)):
        write(tmp_path, name, log=log)
    names = ["random", "fifo", "longest", "lru", "coherence", "adaptive", "graph"]
    chosen = suite("full", tmp_path, policies=[*names, *tool.ON_LOGS])
    cells = list(chosen.run(tool.WATERMARK))
    empty: dict = {"cells": []}
    questions = {
        "weights": empty,
        "floors": empty,
        "online": [],
        "gate": {"measured": [], "ends": empty},
    }
    about = {"watermark": 0.97, "budgets": [0.5, 0.25, 0.1], "missing": ["beam"], "seconds": 60.0}
    data = {"about": about, **report.to_json(cells), "questions": questions}
    data = json.loads(json.dumps(data))
    for name, path in (("DOCS", tmp_path), ("PAGE", tmp_path / "forgetting.md")):
        monkeypatch.setattr(tool, name, path)
    tool.write(data)
    text = (tmp_path / "forgetting.md").read_text()
    assert "{" not in text
    assert "nan" not in text
    assert "Missing here: beam." in text
    for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
        assert (tmp_path / name).stat().st_size < 150_000
    # A figure of the table, found again in the cells.
    lru = [c for c in cells if (c.workload, c.variant, c.policy) == ("locomo", "end", "lru")]
    row = next(line for line in text.splitlines() if line.startswith("| lru |"))
    for cell in lru:
        assert f"{100 * cell.recall:.1f} (" in row
