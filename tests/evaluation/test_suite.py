"""The suite covers everything that is there, and says what is not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from memsift.cli import bench as command
from memsift.errors import InvalidValue
from memsift.evaluation import report
from memsift.evaluation.readers import variants_of
from memsift.evaluation.suite import BASELINES, EXPECTED, ON_LOGS, SIZES, shipped, suite

SHARED = Path(__file__).parents[2].parent / "shared" / "workloads"


def write(folder: Path, name: str, *, log: bool = False, n: int = 60, q: int = 30) -> Path:
    """A small workload: two streams, each query near the memory that it needs."""
    chance = np.random.default_rng(len(name))
    vectors = chance.standard_normal((n, 8))
    conv, time = np.arange(n) % 2, np.arange(n)
    asking = np.arange(q) % 2
    needed = chance.integers(0, n // 4, q) * 2 + asking
    arrays = {
        "mem_vec": vectors.astype(np.float16),
        "mem_time": time.astype(np.int32),
        "mem_ts": np.full(n, np.nan),
        "mem_cost": chance.integers(1, 60, n).astype(np.int32),
        "mem_rep": np.arange(n, dtype=np.int32),
        "conv": conv.astype(np.int32),
        "query_vec": (vectors[needed] + 0.1).astype(np.float16),
        "query_conv": asking.astype(np.int32),
        "query_time": np.full(q, n, np.int32),
        "query_time_alt": (needed + 4).astype(np.int32),
        "rel_indptr": np.arange(q + 1),
        "rel_indices": needed.astype(np.int32),
    }
    if log:
        arrays |= {
            "prov_indptr": np.arange(q + 1),
            "prov_indices": needed.astype(np.int32),
            "prov_group": np.zeros(q, np.int16),
        }
    np.savez(folder / f"{name}.npz", **arrays)
    return folder / f"{name}.npz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "chat")
    write(tmp_path, "runs", log=True)
    return tmp_path


def test_the_full_suite_has_every_file_in_every_variant_with_and_without_costs(folder):
    chosen = suite("full", folder)
    found = {(item.name, variant) for item in chosen.items for variant in item.variants}
    for path in folder.glob("*.npz"):
        for variant in variants_of(path):
            assert (path.stem, variant) in found
            # Without costs where a policy could profit from them: question sets.
            assert ((path.stem, f"{variant}-costless") in found) == (path.stem == "chat")
    assert {("manual", "log"), ("manual", "used")} <= found
    assert len(found) == sum(len(item.variants) for item in chosen.items), "a variant twice"


def test_all_synthetic_streams_are_there_one_stream_a_seed():
    from memsift.evaluation.synthetic import SYNTHETIC

    chosen = suite("quick")
    names = [item.name for item in chosen.items]
    assert set(SYNTHETIC) <= set(names)
    trace = next(item for item in chosen.items if item.name == "topics").load()
    assert len(trace.streams) == len(SIZES["quick"].synthetic_seeds)
    assert not np.array_equal(trace.streams[0].vectors, trace.streams[1].vectors)


def test_a_variant_is_read_with_the_times_of_its_queries(folder):
    for item in suite("full", folder).items:
        if item.name == "chat":
            late = "end" in item.variants
            asked = item.load().streams[0].asked
            assert (asked.min() == 30) == late, item.variants


def test_what_is_missing_is_said(folder):
    words = " ".join(suite("full", folder, policies=["lru", "clairvoyance"]).missing)
    for name in {*EXPECTED} - {path.stem for path in shipped()}:
        assert name in words
    assert str(folder) in words
    assert "clairvoyance" in words
    assert "no folder was given" in " ".join(suite("full").missing)


def test_the_floor_and_the_rivals_are_always_shown():
    labels = [getattr(p, "name", "") for p in suite("full").policies]
    assert set(BASELINES) <= set(labels)
    assert "adaptive" in labels


def test_a_suite_that_is_not_one_is_refused(tmp_path):
    with pytest.raises(InvalidValue, match="suite must be one of quick, full"):
        suite("half")
    with pytest.raises(InvalidValue, match="must be a folder"):
        suite("full", tmp_path / "nowhere")


@pytest.mark.shared
@pytest.mark.skipif(
    not SHARED.is_dir(), reason="the workloads lie beside the repository, and here they do not"
)
def test_the_full_suite_of_the_project_s_own_workloads():
    chosen = suite("full", SHARED)
    found = [(item.name, variant) for item in chosen.items for variant in item.variants]
    questions = ["end", "end-traffic", "interleaved", "used"]
    for name in ("locomo", "beam"):
        assert sorted(v for n, v in found if n == name) == sorted(
            [*questions, *(f"{v}-costless" for v in questions)]
        )
    for name in ("taubench", "intercode"):
        assert [v for n, v in found if n == name] == ["log", "used"]
    assert chosen.missing == ()


def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the manual and the synthetic streams, which take a minute."""
    from memsift.evaluation import suite as module

    monkeypatch.setattr(module, "_synthetic", lambda size: ([], []))
    monkeypatch.setattr(module, "read_manual", lambda: pytest.fail("not asked for"))
    kept = module.Suite.run

    def run(self, *arguments):
        items = tuple(item for item in self.items if item.name != "manual")
        object.__setattr__(self, "items", items)
        return kept(self, *arguments)

    monkeypatch.setattr(module.Suite, "run", run)


def test_a_suite_runs_through_the_command(folder, monkeypatch):
    small(monkeypatch)
    out = folder / "suite.json"
    arguments = [
        "replay",
        "--suite",
        "full",
        "--workloads",
        str(folder),
        "--json",
        "--out",
        str(out),
    ]
    arguments += [
        "--policies",
        "random,lru,adaptive,adaptive:goal=replay",
        "--budgets",
        "0.5,0.2",
    ]
    result = CliRunner().invoke(command.bench, arguments)
    assert result.exit_code == 0, result.output
    assert "missing: workloads" in result.stderr
    data = json.loads(result.stdout)
    assert data == json.loads(out.read_text())
    cells = report.from_json(data)
    assert {(c.workload, c.variant) for c in cells} == {
        *(("chat", v) for v in ("end", "end-traffic", "interleaved", "used")),
        *(("chat", f"{v}-costless") for v in ("end", "end-traffic", "interleaved", "used")),
        ("runs", "log"),
        ("runs", "used"),
    }
    assert {c.seed for c in cells if c.policy == "random"} == {0, 1, 2, 3, 4}
    # The ends of the gate are for logs, where both kinds of labels are.
    assert {c.workload for c in cells if c.policy in ON_LOGS} == {"runs"}
    assert all(len(c.parts.stream) >= 2 for c in cells)


def test_cells_come_back_from_json_as_they_were(folder, monkeypatch):
    small(monkeypatch)
    cells = list(suite("quick", folder, policies=["random", "lru"]).run())
    again = report.from_json(json.loads(json.dumps(report.to_json(cells))))
    assert [repr(c.to_dict()) for c in again] == [repr(c.to_dict()) for c in cells]
    assert [c.parts for c in again] == [c.parts for c in cells]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workloads", "."], "--workloads goes with --suite"),
        (["--suite", "full", "--manual"], "--suite has workloads and variants of its own"),
        (["--suite", "half"], "half"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments, words):
    result = CliRunner().invoke(command.bench, ["replay", *arguments])
    assert result.exit_code == 2
    assert words in result.output


def test_a_costless_variant_of_a_single_workload(folder):
    path = folder / "chat.npz"
    arguments = ["replay", "--workload", str(path), "--variant", "end-costless", "--json"]
    arguments += ["--policies", "longest,lru", "--budgets", "0.3"]
    result = CliRunner().invoke(command.bench, arguments)
    assert result.exit_code == 0, result.output
    cells = report.from_json(json.loads(result.stdout))
    found = {c.policy: c.recall for c in cells}
    assert {c.variant for c in cells} == {"end-costless"}
    assert found["longest"] == found["lru"]
