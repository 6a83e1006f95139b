"""What a reader of a report sees, in each of its forms."""

from __future__ import annotations

import builtins
import csv
import dataclasses
import itertools
import json
import math
import os
import struct
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsift.errors import InvalidValue, MissingExtra
from memsift.evaluation.cell import Cell
from memsift.evaluation.report import (
    markdown_table,
    plot_png,
    plot_svg,
    results_table,
    to_csv,
    to_json,
    write_html,
    write_json,
)
from memsift.evaluation.report.labels import spread
from memsift.evaluation.report.panels import panels_of
from memsift.evaluation.report.words import finding, heading

NAN = float("nan")
HOSTILE = "<script>alert(1)</script>"


def cell(policy: str, budget: float, recall: float, **changes: Any) -> Cell:
    plain = Cell(
        workload="diary",
        variant="end",
        policy=policy,
        budget=budget,
        watermark=0.9,
        seed=0,
        need="evidence",
        recall=recall,
        kept=0.5,
        fidelity=NAN,
        occupancy=0.93,
        queries=412,
        evicted=100,
        seconds=0.25,
    )
    return dataclasses.replace(plain, **changes)


def story(**changes: Any) -> list[Cell]:
    """Two budgets between floor and ceilings; at a quarter, `lru` falls behind chance."""
    return [
        cell("lru", 0.1, 0.2, **changes),
        cell("random", 0.1, 0.07, **changes),
        cell("random", 0.1, 0.11, **(changes | {"seed": 1})),
        cell("self-tuning", 0.1, 0.4, **changes),
        cell("oracle", 0.1, 0.6, kept=1.0, **changes),
        cell("lru", 0.25, 0.25, **changes),
        cell("random", 0.25, 0.32, **changes),
        cell("self-tuning", 0.25, 0.6, **changes),
        cell("oracle", 0.25, 0.72, kept=1.0, **changes),
        # One replay without a cap stands beside every budget.
        cell("keep everything", 1.0, 0.8, **(changes | {"watermark": 1.0, "kept": 1.0})),
    ]


def on_terminal(cells: list[Cell], width: int = 80) -> list[str]:
    from rich.console import Console

    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(results_table(cells))
    return [line.rstrip() for line in capture.get().splitlines()]


class Page(HTMLParser):
    """Checks that tags balance, and gathers attributes and text."""

    VOID = frozenset({"meta", "br", "link", "img", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(cells: list[Cell], folder: Path, **options: Any) -> tuple[str, Page]:
    path = folder / "report.html"
    write_html(cells, path, **options)
    text = path.read_text(encoding="utf-8")
    return text, Page(text)


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


class TestArrangement:
    def test_ceilings_come_first_and_chance_keeps_its_rank(self) -> None:
        (panel,) = panels_of(story())
        names = [row.policy for row in panel.rows]
        assert names == ["keep everything", "oracle", "self-tuning", "lru", "random"]
        below = panels_of([*story(), cell("fifo", 0.1, 0.05), cell("fifo", 0.25, 0.06)])[0]
        assert [row.policy for row in below.rows][-2:] == ["random", "fifo"]

    def test_seeds_are_averaged(self) -> None:
        (panel,) = panels_of(story())
        row = panel.row("random")
        assert row is not None
        spot = row.spots[0.1]
        assert spot.recall == pytest.approx(0.09)
        assert (spot.low, spot.high) == (0.07, 0.11)
        assert spot.std == pytest.approx(0.02 * math.sqrt(2))
        assert spot.share == pytest.approx(0.1125)
        assert math.isnan(row.spots[0.25].std)

    def test_watermarks_are_never_averaged_with_each_other(self) -> None:
        panels = panels_of([*story(), cell("lru", 0.1, 0.9, watermark=0.5)])
        assert [heading(panel, panels) for panel in panels] == [
            "diary · end · watermark 90 %",
            "diary · end · watermark 50 %",
        ]
        assert panels[1].row("keep everything") is not None

    def test_no_cells_is_an_error(self) -> None:
        with pytest.raises(InvalidValue, match="at least one cell"):
            panels_of([])

    def test_equal_to_the_printed_decimal_is_equally_good(self) -> None:
        (panel,) = panels_of([cell("lru", 0.1, 0.30001), cell("fifo", 0.1, 0.30004)])
        assert {row.policy for row in panel.best(0.1)} == {"lru", "fifo"}


class TestFinding:
    @pytest.mark.parametrize(
        ("cells", "words"),
        [
            (
                story(),
                "At a budget of 10 %, self-tuning finds 40.0 % of what is needed, more than any "
                "other policy; random finds 9.0 %, the oracle 60.0 % and keeping everything "
                "80.0 %.",
            ),
            ([cell("lru", 0.1, 0.2)], "At a budget of 10 %, lru finds 20.0 % of what is needed."),
            (
                [cell("lru", 0.1, 0.2), cell("random", 0.1, 0.3)],
                "At a budget of 10 %, no policy does better than random, which finds 30.0 % of "
                "what is needed.",
            ),
            (
                [cell("lru", 0.1, 0.2), cell("fifo", 0.1, 0.2), cell("oracle", 0.1, 0.5)],
                "At a budget of 10 %, fifo and lru find 20.0 % of what is needed; "
                "the oracle finds 50.0 %.",
            ),
            (
                [cell("keep everything", 1.0, 0.8)],
                "At a budget of 100 %, keeping everything finds 80.0 % of what is needed; "
                "no policy was measured.",
            ),
            ([cell("lru", 0.1, NAN)], "No query carries a label, so nothing was measured."),
        ],
    )
    def test_words(self, cells: list[Cell], words: str) -> None:
        assert finding(panels_of(cells)[0]) == words


class TestTerminal:
    def test_as_a_reader_sees_it(self) -> None:
        assert on_terminal(story()) == [
            "diary · end: recall@10 in %",
            "                      10 %                 25 %",
            "policy              recall of all kept   recall of all kept",
            "───────────────────────────────────────────────────────────",
            "▲ keep everything     80.0    100  100     80.0    100  100",
            "▲ oracle              60.0     75  100     72.0     90  100",
            "",
            "  self-tuning        *40.0     50   50    *60.0     75   50",
            "  lru                 20.0     25   50     25.0     31   50",
            "▼ random               9.0     11   50     32.0     40   50",
            "                      ±2.8",
            "412 queries · watermark 90 % · mean occupancy 93 % of the cap",
            "▲ ceiling  ▼ floor  * best policy at this budget",
            "of all: % of what keep everything finds; kept: % of the needed still stored",
            "±: standard deviation over the seeds",
        ]

    def test_three_budgets_fit_eighty_columns_and_more_are_stacked(self) -> None:
        cells = [
            cell(policy, budget, 1.0, seed=seed)
            for policy in ("keep everything", "oracle", "distinctness-novelty", "random")
            for budget in (0.05, 0.1, 0.25, 0.5, 0.75)
            for seed in (0, 1)
        ]
        lines = on_terminal(cells)
        assert max(map(len, lines)) <= 80
        assert not any("…" in line for line in lines)
        heads = [line.split() for line in lines if line.startswith("   ") and " %" in line]
        assert heads == [["5", "%", "10", "%"], ["25", "%", "50", "%", "75", "%"]]
        assert sum("412 queries" in line for line in lines) == 1

    def test_a_missing_figure_is_a_dash(self) -> None:
        lines = on_terminal([cell("lru", 0.1, NAN), cell("fifo", 0.25, 0.5)])
        assert "  fifo          –      –    –    *50.0      –   50" in lines
        assert "  lru           –      –   50        –      –    –" in lines

    def test_names_are_not_markup_nor_control_codes(self) -> None:
        text = "\n".join(on_terminal(story(workload="[red]x[/red]\x1b[2J")))
        assert "[red]x[/red]\N{REPLACEMENT CHARACTER}[2J · end: recall@10 in %" in text

    def test_coverage_is_called_so(self) -> None:
        assert on_terminal(story(need="coverage"))[0] == "diary · end: coverage@10 in %"

    def test_without_rich(self, monkeypatch: pytest.MonkeyPatch) -> None:
        hide(monkeypatch, "rich")
        with pytest.raises(MissingExtra, match=r"pip install 'memsift\[cli\]'"):
            results_table(story())


class TestMarkdown:
    def test_as_it_stands_in_a_document(self) -> None:
        lines = markdown_table(story(workload="a|b_c")).splitlines()
        assert lines[:9] == [
            "### a\\|b\\_c · end",
            "",
            "| policy | 10 % | 25 % |",
            "|:--|--:|--:|",
            "| keep everything (ceiling) | 80.0 (100; 100) | 80.0 (100; 100) |",
            "| oracle (ceiling) | 60.0 (75; 100) | 72.0 (90; 100) |",
            "| self-tuning | **40.0** (50; 50) | **60.0** (75; 50) |",
            "| lru | 20.0 (25; 50) | 25.0 (31; 50) |",
            "| random (floor) | 9.0 ±2.8 (11; 50) | 32.0 (40; 50) |",
        ]
        assert "Random is the floor" in lines[10]

    def test_needs_no_rich(self, monkeypatch: pytest.MonkeyPatch) -> None:
        hide(monkeypatch, "rich")
        assert markdown_table(story()).startswith("### diary")

    def test_tags_are_escaped(self) -> None:
        assert "<script" not in markdown_table(story(workload=HOSTILE))


class TestExport:
    def test_csv_there_and_back(self, tmp_path: Path) -> None:
        cells = [cell('quo"ted, lru', 0.1, 0.1 + 0.2), cell("lru", 0.25, NAN, workload="a\nb")]
        to_csv(cells, tmp_path / "cells.csv")
        with (tmp_path / "cells.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        names = [field.name for field in dataclasses.fields(Cell) if field.name != "parts"]
        assert list(rows[0]) == names
        assert float(rows[0]["recall"]) == 0.1 + 0.2
        assert rows[0]["policy"] == 'quo"ted, lru'
        assert (rows[1]["recall"], rows[1]["workload"]) == ("", "a\nb")

    def test_json_is_strict(self, tmp_path: Path) -> None:
        cells = [cell("lru", 0.1, NAN), cell("é", 0.1, math.inf)]
        write_json(cells, tmp_path / "cells.json")
        text = (tmp_path / "cells.json").read_text(encoding="utf-8")
        data = json.loads(text, parse_constant=refuse)
        assert data == to_json(cells)
        assert data["schema_version"] == 1
        assert [entry["recall"] for entry in data["cells"]] == [None, None]
        assert data["cells"][1]["policy"] == "é"

    def test_numpy_scalars_are_numbers(self) -> None:
        import numpy as np

        one = cell("lru", 0.1, np.float32(0.5), queries=np.int64(3))  # type: ignore[arg-type]
        assert json.loads(json.dumps(to_json([one])))["cells"][0]["queries"] == 3

    def test_no_cells_are_a_file_without_rows(self, tmp_path: Path) -> None:
        to_csv([], tmp_path / "cells.csv")
        assert (tmp_path / "cells.csv").read_text().startswith("workload,variant,policy,")
        assert to_json([])["cells"] == []


@pytest.mark.parametrize("write", [to_csv, write_json, plot_png, write_html])
class TestFiles:
    def test_the_folder_must_exist(self, write: Any, tmp_path: Path) -> None:
        path = tmp_path / "absent" / "report"
        with pytest.raises(InvalidValue, match=r"absent.*is not a folder"):
            write(story(), path)

    def test_a_folder_is_no_file(self, write: Any, tmp_path: Path) -> None:
        with pytest.raises(InvalidValue, match="must name a file"):
            write(story(), tmp_path)

    def test_replaces_and_leaves_nothing_behind(self, write: Any, tmp_path: Path) -> None:
        path = tmp_path / "report"
        path.write_text("old")
        write(story(), os.fspath(path))
        assert path.stat().st_size > 100
        assert list(tmp_path.iterdir()) == [path]


VARIETY: dict[str, list[Cell]] = {
    "story": story(),
    "one policy": [cell("lru", 0.1, 0.2), cell("lru", 0.5, 0.3)],
    "one budget": [c for c in story() if c.budget != 0.25],
    "one cell": [cell("lru", 0.1, 0.2)],
    "ceiling only": [cell("keep everything", 1.0, 0.8)],
    "no labels": [cell("lru", 0.1, NAN), cell("random", 0.1, NAN)],
    "some labels": [*story(), cell("fifo", 0.1, 0.3), cell("fifo", 0.25, NAN)],
    "seven panels": [c for k in range(7) for c in story(variant=f"v{k}")],
    "thirty policies": [cell(f"policy {k}", b, k / 40) for k in range(30) for b in (0.1, 0.5)],
    "strange names": story(workload="$x^$ 日本 \x00\n&", variant="<b>"),
}


@pytest.mark.parametrize("cells", VARIETY.values(), ids=VARIETY.keys())
class TestEveryVariety:
    def test_png(self, cells: list[Cell], tmp_path: Path) -> None:
        plot_png(cells, tmp_path / "plot.png")
        data = (tmp_path / "plot.png").read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", data[16:24])
        assert 700 < width < 4000
        assert 600 < height < 4000

    def test_page(self, cells: list[Cell], tmp_path: Path) -> None:
        _, page = page_of(cells, tmp_path)
        panels = len(panels_of(cells))
        assert page.tags.count("svg") == page.tags.count("table") == panels

    def test_tables(self, cells: list[Cell]) -> None:
        assert max(map(len, on_terminal(cells))) <= 80
        assert markdown_table(cells).count("###") == len(panels_of(cells))


class TestPlot:
    def test_svg_repeats_itself(self) -> None:
        svg = plot_svg(story())
        assert svg == plot_svg(story())
        assert svg.startswith('<svg role="img" aria-label="How much of what is needed')
        assert "self-tuning finds 40.0 %" in svg
        Page(svg)

    def test_svg_is_the_same_in_another_process(self) -> None:
        code = (
            "import hashlib, sys; sys.path.insert(0, sys.argv[1])\n"
            "import test_report as t\n"
            "print(hashlib.sha256(t.plot_svg(t.story()).encode()).hexdigest())\n"
            "assert 'matplotlib.pyplot' not in sys.modules"
        )
        hashes = {
            subprocess.run(
                [sys.executable, "-c", code, os.path.dirname(__file__)],
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for seed in ("1", "2")
        }
        assert len(hashes) == 1

    def test_says_what_is_measured_and_names_every_line(self) -> None:
        text = Page(plot_svg(story())).text
        for words in (
            "How much of what is needed is still found",
            "recall@10 in per cent",
            "diary · end",
            "412 queries · watermark 90 %",
            "self-tuning 60.0",
            "keep everything 80.0",
            "oracle 72.0",
            "random 32.0",
            "worse than random",
            "Random is the floor",
        ):
            assert words in text

    def test_a_line_that_ends_early_says_where(self) -> None:
        text = Page(plot_svg(VARIETY["some labels"])).text
        assert "fifo 30.0 at 10 %" in text

    def test_leaves_matplotlib_as_it_was(self) -> None:
        import matplotlib

        with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 31}):
            before = dict(matplotlib.rcParams)
            themed = plot_svg(story())
            assert dict(matplotlib.rcParams) == before
        assert themed == plot_svg(story())

    def test_without_matplotlib(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        hide(monkeypatch, "matplotlib")
        for draw in (plot_svg, lambda cells: plot_png(cells, tmp_path / "plot.png")):
            with pytest.raises(MissingExtra, match=r"pip install 'memsift\[plot\]'"):
                draw(story())
        assert not list(tmp_path.iterdir())


class TestPage:
    def test_asks_for_nothing_from_outside(self, tmp_path: Path) -> None:
        _, page = page_of(story(), tmp_path)
        assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
        for tag, name, value in page.attributes:
            if "http://" in value or "https://" in value:
                assert (tag, name.partition(":")[0]) == ("svg", "xmlns")
        policies = [value for _, name, value in page.attributes if name == "content"]
        assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in policies

    def test_nothing_from_data_becomes_markup(self, tmp_path: Path) -> None:
        cells = [
            dataclasses.replace(c, policy=HOSTILE if c.policy == "lru" else c.policy)
            for c in story(workload=HOSTILE, variant='"><script>')
        ]
        plans = [(HOSTILE, f"evict 1\n{HOSTILE}</pre>")]
        text, page = page_of(cells, tmp_path, title=HOSTILE, plans=plans)
        assert "script" not in page.tags
        assert "<script" not in text.lower()
        assert "<script" not in plot_svg(cells).lower()
        assert page.text.count(HOSTILE) >= 6

    def test_a_table_that_can_be_followed(self, tmp_path: Path) -> None:
        text, page = page_of(story(), tmp_path)
        scopes = [value for _, name, value in page.attributes if name == "scope"]
        assert [scopes.count(s) for s in ("colgroup", "col", "row")] == [2, 1 + 6, 5]
        assert "<strong>*40.0</strong>" in text
        assert 'random<span class="role">floor</span>' in text
        assert '9.0 <span class="spread">±2.8</span>' in text

    def test_states_the_finding_and_how_to_read_it(self, tmp_path: Path) -> None:
        _, page = page_of(story(), tmp_path, title="Nightly")
        words = page.text.replace("\N{NO-BREAK SPACE}", " ")
        assert words.count("self-tuning finds 40.0 % of what is needed") == 1
        labels = [value for tag, name, value in page.attributes if name == "aria-label"]
        assert any("self-tuning finds 40.0 % of what is needed" in label for label in labels)
        assert "Random is the floor: it forgets blindly." in words
        assert "How to read this" in words
        assert page.tags.count("h1") == 1
        assert "Nightly" in words

    def test_plans_are_shown_as_they_stand(self, tmp_path: Path) -> None:
        text, page = page_of(story(), tmp_path, plans=[("Plan A", "\n  evict  7\n  keep   8")])
        assert "\n\n  evict  7\n  keep   8</pre>" in text
        assert "Plan A" in page.text

    def test_ids_are_unique(self, tmp_path: Path) -> None:
        _, page = page_of([*story(), *story(variant="used")], tmp_path)
        ids = [value for _, name, value in page.attributes if name == "id"]
        assert len(ids) == len(set(ids))


class TestSpread:
    def test_apart_already(self) -> None:
        assert spread([10.0, 50.0, 30.0], 5, 0, 100) == [10, 50, 30]

    def test_a_crowd_parts_evenly_around_its_mean(self) -> None:
        assert spread([50.0, 50.0, 50.0], 10, 0, 100) == [40, 50, 60]

    def test_stays_within_its_room(self) -> None:
        assert spread([99.0, 99.0], 10, 0, 100) == [90, 100]
        assert spread([1.0, 0.0, 2.0], 60, 0, 100) == [50, 0, 100]

    @given(st.lists(st.floats(0, 100), max_size=20), st.floats(0.1, 30))
    def test_order_gap_and_room(self, wanted: list[float], gap: float) -> None:
        placed = spread(wanted, gap, 0.0, 100.0)
        assert all(-1e-9 <= value <= 100 + 1e-9 for value in placed)
        order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
        room = min(gap, 100 / (len(wanted) - 1)) if len(wanted) > 1 else gap
        for lower, upper in itertools.pairwise(order):
            assert placed[upper] - placed[lower] >= room - 1e-6


def hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Make `package` look as if it were not installed."""
    real = builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest, **more)

    for name in list(sys.modules):
        if name.partition(".")[0] == package:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", absent)
