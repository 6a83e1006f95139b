"""The command line, as a person and as a program would use it."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from memsift.cli.app import COMMANDS, cli


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def strict(text: str) -> dict:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """Forty memories of three words' worth of topics and ten questions, as an .npz."""
    chance = np.random.default_rng(0)
    memories = chance.standard_normal((40, 8)).astype(np.float16)
    needed = chance.integers(0, 40, 10)
    path = tmp_path / "tiny.npz"
    np.savez(
        path,
        mem_vec=memories,
        mem_time=np.arange(40),
        mem_ts=np.full(40, np.nan),
        mem_session=np.zeros(40, int),
        mem_kind=np.zeros(40, int),
        mem_cost=np.full(40, 9),
        mem_rep=np.arange(40),
        conv=np.zeros(40, int),
        query_vec=memories[needed],
        query_conv=np.zeros(10, int),
        query_cat=np.zeros(10, int),
        query_time=np.full(10, 40),
        query_time_alt=np.full(10, 40),
        rel_indptr=np.arange(11),
        rel_indices=needed,
    )
    return path


def every_command() -> list[list[str]]:
    from click import Group

    found = []
    for name in COMMANDS:
        command = cli.get_command(None, name)
        found.append([name])
        if isinstance(command, Group):
            found += [[name, sub] for sub in command.commands]
    return found


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_every_command_has_help_with_an_example_and_speaks_json(words):
    text = run(*words, "--help")
    if len(words) > 1 or words == ["demo"]:
        assert "Example:" in text
        assert "--json" in text


def test_the_reference_is_reproduced():
    data = strict(run("bench", "reference", "--json"))
    rows = {row["policy"]: row for row in data["rows"]}
    assert {p: r["recall_at_10"] for p, r in rows.items()} == {
        "lru": 71.0,
        "lfu": 71.0,
        "coherence": 100.0,
    }
    assert {p: r["same_survivors"] for p, r in rows.items()} == {
        "lru": True,
        "lfu": False,
        "coherence": True,
    }
    assert rows["lfu"]["reference_recall_at_10"] == 86.6
    text = run("bench", "reference")
    assert "86.6" in text
    assert "ties decide" in text


def test_a_replay_prints_a_table_or_json_and_writes_what_is_asked(workload, tmp_path):
    ask = [
        "bench",
        "replay",
        "--workload",
        str(workload),
        "--policies",
        "lru,random",
        "--budgets",
        "50%,0.2",
    ]
    text = run(*ask)
    assert "tiny" in text
    assert "oracle" in text
    cells = strict(run(*ask, "--json"))["cells"]
    assert {c["budget"] for c in cells if c["policy"] == "lru"} == {0.5, 0.2}
    for ending in ("csv", "json", "png", "html"):
        out = tmp_path / f"report.{ending}"
        assert f"report.{ending}" in run(*ask, "--out", str(out)).replace("\n", "")
        assert out.stat().st_size > 200


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["bench", "replay", "--policies", "magic"],
            "policy must be one of adaptive, lru, lfu, coherence, fifo, random",
        ),
        (
            ["bench", "replay", "--budgets", "2"],
            "budgets must be a number above 0, up to 1; got 2.0",
        ),
        (["bench", "replay", "--budgets", "x"], "budgets must be shares like 0.5 or 50%; got 'x'"),
        (["bench", "replay", "--out", "report.doc"], "--out must end in .html, .png, .csv, .json"),
        (
            ["bench", "replay", "--out", "no/such/folder/r.png"],
            "--out must lie in a folder that exists",
        ),
        (["bench", "replay", "--workload", "no-such-file.npz"], "no-such-file.npz"),
        (["bench", "replay", "--git", "no-such-folder"], "no-such-folder"),
        (["bench", "speed", "--repeats", "0"], "not in the range"),
        (["bench", "speed", "--sizes", "20000"], "sizes must be like 20000x384"),
        (["bench", "speed", "--sizes", "20x384"], "100 to 5,000,000 entries"),
        (["bench", "speed", "--sizes", ","], "sizes must name at least one"),
        (["bench", "speed", "--peers", "oracle"], "peers must be all, none, or among usearch"),
        (["bench", "speed", "--only", "luck"], "only must be among search, planes"),
        (["bench", "speed", "--out", "speed.txt"], "--out must end in .json"),
        (["bench", "speed", "--plot", "speed.gif"], "--plot must end in .png or .svg"),
        (["bench", "speed", "--plot", "no/such/speed.png"], "--plot must lie in a folder"),
        (["nonsense"], "No such command"),
    ],
)
def test_a_wrong_call_ends_with_two_and_says_what_is_allowed(arguments, words):
    text = " ".join(run(*arguments, code=2).split())
    assert words in text
    assert "Traceback" not in text


def test_the_demo_tells_the_whole_story(tmp_path):
    out = tmp_path / "report.html"
    text = run("demo", "--out", str(out))
    for piece in (
        "Parity",
        "keep everything",
        "oracle",
        "Plan: evict",
        "from the cut",
        "report.html",
    ):
        assert piece in text
    assert max(map(len, text.splitlines())) < 250
    page = out.read_text()
    assert "<svg" in page
    assert "Its farthest and its closest victim" in page


def test_speed_is_measured_in_a_process_of_its_own(tmp_path):
    out, plot = tmp_path / "speed.json", tmp_path / "speed.svg"
    ask = ["bench", "speed", "--sizes", "300x16", "--only", "search", "--peers", "none"]
    data = strict(run(*ask, "--repeats", "1", "--out", str(out), "--plot", str(plot), "--json"))
    assert data == json.loads(out.read_text())
    assert plot.read_text().startswith("<svg ")
    assert [row["operation"] for row in data["rows"]] == ["search", "search, batch of 100"]
    for row in data["rows"]:
        assert (row["n"], row["dim"]) == (300, 16)
        assert all(t["median"] > 0 and t["wall"] > 0 for t in row["contenders"])
    assert data["about"]["memory"]["sum"] > 1e8
    assert platform.node() not in json.dumps(data["about"]["machine"]).split('"')


def test_without_click_the_command_says_what_to_install():
    code = "import sys; sys.modules['click'] = None; from memsift.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'memsift[cli]'" in done.stderr


def test_the_module_runs_as_the_command_does():
    done = subprocess.run(
        [sys.executable, "-m", "memsift", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("memsift, version")
