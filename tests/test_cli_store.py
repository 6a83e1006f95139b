"""The commands that work on a store's file, each compared with what the library says of the same file."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from memsift import MemoryStore
from memsift.cli.app import cli


def run(*arguments: str, code: int = 0, input: str | None = None) -> str:
    result = CliRunner().invoke(cli, list(arguments), input=input)
    assert result.exit_code == code, result.output
    return result.output


def answer(*arguments: str, code: int = 0, input: str | None = None) -> dict:
    return json.loads(run(*arguments, "--json", code=code, input=input))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chance = np.random.default_rng(0)
    np.save(tmp_path / "vectors.npy", chance.standard_normal((60, 8)))
    np.savez(
        tmp_path / "batch.npz",
        vectors=chance.standard_normal((5, 8)),
        cost=np.arange(5),
        pinned=np.array([True, False, False, False, False]),
    )
    np.save(tmp_path / "query.npy", np.ones(8))
    return tmp_path


@pytest.fixture
def store(folder: Path) -> Path:
    path = folder / "a.memsift"
    run("init", str(path), "--dim", "8", "--budget", "100")
    run("add", str(path), str(folder / "vectors.npy"))
    return path


def test_init_makes_a_private_file_within_a_budget(folder):
    path = folder / "new.memsift"
    made = answer(
        "init", str(path), "--dim", "8", "--budget", "50", "--budget-cost", "900", "--policy", "lru"
    )
    assert made["budget"] == {"entries": 50, "cost": 900}
    assert made["policy"] == "LruPolicy()"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_add_reads_npy_npz_and_lines(store, folder):
    assert answer("add", str(store), str(folder / "batch.npz")) == {
        "added": 5,
        "evicted": 0,
        "entries": 65,
    }
    lines = folder / "more.jsonl"
    lines.write_text('{"vector": [1,1,1,1,1,1,1,1], "metadata": {"kind": "fact"}, "cost": 7}\n\n')
    assert answer("add", str(store), str(lines))["entries"] == 66
    line = '{"vector": [2,1,1,1,1,1,1,1], "pinned": true}\n'
    assert answer("add", str(store), "-", input=line)["entries"] == 67
    with MemoryStore.open(store) as opened:
        first, second = opened.get([65, 66])
        assert (first.metadata, first.cost) == ({"kind": "fact"}, 7)
        assert second.pinned
        assert opened.get([60])[0].pinned
        assert opened.stats().size.cost == 60 + 0 + 1 + 2 + 3 + 4 + 7 + 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nonsense", "line 2: must be JSON"),
        ('{"vector": [1, 2]}', "line 2: vector must have 8 numbers, as those before; got 2"),
        ('{"vector": [NaN, 1, 1, 1, 1, 1, 1, 1]}', "line 2: must be JSON; NaN is not JSON"),
        ('{"text": "no vector"}', 'line 2: must be an object with a "vector"'),
        ('{"vector": [1,1,1,1,1,1,1,1], "colour": 3}', "got colour"),
        ('{"vector": [1,1,1,1,1,1,1,1], "cost": -1}', "cost[1] must be an integer"),
    ],
)
def test_a_bad_line_is_named_and_its_batch_not_stored(store, line, words):
    good = '{"vector": [1,1,1,1,1,1,1,1]}'
    text = " ".join(run("add", str(store), "-", code=2, input=f"{good}\n{line}\n").split())
    assert words in text
    assert answer("stats", str(store))["entries"] == 60


def test_the_index_is_chosen_once_and_stats_say_what_it_does(folder):
    path = folder / "new.memsift"
    made = answer("init", str(path), "--dim", "8", "--index", "auto")
    assert (made["index"]["asked"], made["index"]["kind"]) == ("auto", "exact")
    run("add", str(path), str(folder / "vectors.npy"))
    assert "index auto: exact\n" in run("stats", str(path))
    assert answer("stats", str(path))["index"]["recall"] is None
    assert "index auto: exact, recall@10 1.000\n" in run("stats", str(path), "--probe")
    run("init", str(path), "--dim", "8", "--index", "exact")
    assert "index exact\n" in run("stats", str(path))
    run("init", str(path), "--dim", "8")
    assert answer("stats", str(path), "--probe")["index"]["recall"] == 1.0
    assert "'exact', 'hnsw', 'auto'" in run(
        "init", str(path), "--dim", "8", "--index", "ivf", code=2
    )


def test_a_probe_builds_the_graph_that_later_calls_use(tmp_path):
    pytest.importorskip("usearch", reason="needs memsift[ann]")
    path = tmp_path / "large.memsift"
    chance = np.random.default_rng(0)
    np.save(tmp_path / "vectors.npy", chance.standard_normal((1500, 8)))
    run("init", str(path), "--dim", "8", "--index", "hnsw")
    run("add", str(path), str(tmp_path / "vectors.npy"))
    assert answer("stats", str(path))["index"]["kind"] == "exact"
    probed = answer("stats", str(path), "--probe")["index"]
    assert (probed["kind"], probed["graph"], probed["error"]) == ("hnsw", 1500, None)
    assert probed["recall"] >= 0.95
    assert (tmp_path / "large.memsift.default.hnsw").exists()
    assert "index hnsw, 1,500 nodes, 0 dead, 0 entries beside it, recall@10" in run(
        "stats", str(path), "--probe"
    )


def test_search_finds_what_the_library_finds(store, folder):
    found = answer(
        "search", str(store), "--from", str(folder / "query.npy"), "-k", "3", "--no-touch"
    )
    with MemoryStore.open(store) as opened:
        hits = opened.search(np.ones(8), 3, touch=False)
        assert opened.stats().searches == 0
    assert [(h["id"], h["score"]) for h in found["hits"]] == [(h.id, h.score) for h in hits]
    listed = json.dumps([1.0] * 8)
    assert (
        answer("search", str(store), "--vector", listed, "-k", "3")["hits"][0]["id"] == hits[0].id
    )
    assert answer("stats", str(store))["searches"] == 1
    assert (
        run("search", str(store), "--vector", listed, "--where", '{"kind": "no such"}').strip()
        == "nothing found"
    )


def test_plan_compact_restore_and_erase_go_round(store):
    planned = answer("plan", str(store), "--target", "50%", "--explain", "3")
    assert len(planned["victims"]) == 30
    assert planned["explained"][0]["id"] == 3
    dry = answer("compact", str(store), "--target", "0.5", "--dry-run")
    assert dry["victims"] == planned["victims"]
    done = answer("compact", str(store), "--target", "0.5")
    assert (done["evicted"], done["survivors"], done["dropped"]) == (30, 30, planned["victims"])
    assert answer("restore", str(store), "--list")["archived"] == planned["victims"]
    back = [str(i) for i in planned["victims"][:3]]
    assert answer("restore", str(store), *back)["entries"] == 33
    gone = answer("erase", str(store), *back, "--yes")
    assert gone["complete"]
    assert answer("stats", str(store))["entries"] == 30


def test_more_than_half_needs_force(store):
    assert "at most half of the store without --force" in run(
        "compact", str(store), "--target", "10", code=2
    )
    assert answer("compact", str(store), "--target", "10", "--force")["survivors"] == 10
    assert "unless force=True" in run("compact", str(store), "--target", "0", code=2)


def test_erase_asks_before_it_removes(store):
    assert "Erase 1 entries" in run("erase", str(store), "5", code=1, input="n\n")
    assert answer("stats", str(store))["entries"] == 60
    run("erase", str(store), "5", input="y\n")
    assert answer("stats", str(store))["entries"] == 59


def test_the_chain_is_proved_by_a_head_and_only_by_a_head(store, folder):
    run("compact", str(store), "--target", "0.5")
    unproven = answer("audit", "verify", str(store), code=3)
    assert unproven["status"] == "unproven"
    head = folder / "head.txt"
    head.write_text(run("audit", "head", str(store)))
    assert answer("audit", "verify", str(store), "--head", str(head))["status"] == "ok"
    run("compact", str(store), "--target", "0.9")
    assert answer("audit", "export", str(store), str(folder / "chain.jsonl"))["records"] == 2
    assert "must be a new file" in run(
        "audit", "export", str(store), str(folder / "chain.jsonl"), code=2
    )
    head.write_text(run("audit", "head", str(store)).replace("\n2\n", "\n3\n"))
    assert answer("audit", "verify", str(store), "--head", str(head), code=2)["status"] == "broken"


def test_old_records_can_be_dropped_and_the_log_says_so(store, folder):
    for target in ("50", "40", "30", "20"):
        run("compact", str(store), "--target", target)
    assert answer("audit", "prune", str(store), "--keep", "2")["records"] == 3
    head = folder / "head.txt"
    head.write_text(run("audit", "head", str(store)))
    assert answer("audit", "verify", str(store), "--head", str(head))["status"] == "ok"
    assert answer("audit", "prune", str(store), "--keep", "9")["audit_head"] is None


def test_a_recorded_decision_can_be_run_again(store):
    with MemoryStore.open(store) as opened:
        plan, other = opened.plan(0.5), opened.plan(0.6)
        opened.apply(plan)
        assert opened.audit.replay(1, plan) == []
        assert "evicted_commitment" in opened.audit.replay(1, other)


def test_a_sound_store_is_found_sound(store):
    assert answer("verify", str(store))["ok"]
    assert "ok" in run("verify", str(store)).lower()


def test_export_and_import_carry_everything(store, folder):
    run("search", str(store), "--from", str(folder / "query.npy"))
    out, copy = folder / "a.rvf", folder / "b.memsift"
    assert answer("export", str(store), str(out))["entries"] == 60
    assert answer("import", str(out), str(copy))["entries"] == 60
    with MemoryStore.open(store) as one, MemoryStore.open(copy) as two:
        assert one.view().digest() == two.view().digest()
        assert np.array_equal(one.view().context, two.view().context)
        assert (
            one.plan(20, force=True).victims.tolist() == two.plan(20, force=True).victims.tolist()
        )
    assert "must be empty" in run("import", str(out), str(copy), code=2)


def test_namespaces_are_listed(store):
    run("init", str(store), "--dim", "4", "--namespace", "other")
    assert answer("namespaces", str(store))["namespaces"] == [
        {"name": "default", "dim": 8, "entries": 60},
        {"name": "other", "dim": 4, "entries": 0},
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["search", "none.memsift", "--vector", "[1]"], "path must be an existing store"),
        (["search", "{store}"], "by --vector or by --from"),
        (["search", "{store}", "--vector", "[1"], "--vector must be JSON"),
        (["add", "{store}", "no-such-file.npy"], "no-such-file.npy"),
        (["plan", "{store}", "--target", "many"], "--target must be a number of entries"),
        (["plan", "{store}", "--policy", "magic"], "policy must be one of"),
        (["restore", "{store}"], "ids must name at least one entry"),
        (["restore", "{store}", "99"], "ids must be in the archive; got 99"),
        (["stats", "{store}", "-n", "Bad Name"], "namespace must be"),
        (["stats", "{store}", "-n", "absent"], "dim must be given to make the namespace"),
    ],
)
def test_a_wrong_call_says_what_is_allowed(store, arguments, words):
    arguments = [str(store) if a == "{store}" else a for a in arguments]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code in (1, 2)
    assert words in " ".join(result.output.split())
    assert "Traceback" not in result.output
