"""`memsift simulate` and `memsift tune`: a recorded log tells what the stream itself tells, and what it cannot tell."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from memsift.accesslog import NEED, AccessLog
from memsift.cli.app import cli
from memsift.errors import InvalidValue
from memsift.evaluation.advice import advise
from memsift.evaluation.folds import folds_of
from memsift.evaluation.numbers import chosen, numbers_of, with_number
from memsift.evaluation.readers import read_log, read_manual, record
from memsift.evaluation.replay import grid
from memsift.evaluation.trace import Labels, Stream, Trace
from memsift.evaluation.tuning import tune
from memsift.policies import CoherencePolicy, LruPolicy, RandomPolicy, parse, parse_list, to_text
from memsift.store import MemoryStore

POLICIES = "random,fifo,lru,lfu,coherence"
FIGURES = (
    "policy",
    "budget",
    "need",
    "recall",
    "kept",
    "fidelity",
    "occupancy",
    "queries",
    "evicted",
)


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def figures(cells) -> list[dict]:
    dicts = [cell if isinstance(cell, dict) else cell.to_dict() for cell in cells]
    return [{name: cell[name] for name in FIGURES} for cell in dicts]


def unit(rows: np.ndarray) -> np.ndarray:
    rows = rows.astype(np.float32)
    wide = rows.astype(np.float64)
    return (wide / np.linalg.norm(wide, axis=1, keepdims=True)).astype(np.float32)


def beginning(stream: Stream, queries: int) -> Stream:
    """A stream up to one of its queries."""
    n = int(stream.asked[queries - 1])
    end = stream.need.indptr[queries]
    group = None if stream.need.group is None else stream.need.group[:end]
    need = Labels(stream.need.indptr[: queries + 1], stream.need.indices[:end], group)
    return Stream(
        stream.vectors[:n],
        stream.queries[:queries],
        stream.asked[:queries],
        need,
        cost=stream.cost[:n],
    )


def chance_life(seed: int, *, groups: bool, used: bool) -> Trace:
    """Memories, queries and labels by chance; some memories are copies."""
    chance = np.random.default_rng(seed)
    n, q = 120, 260
    vectors = unit(chance.standard_normal((n, 8)))
    vectors[7:30:5] = vectors[6]
    asked = np.sort(chance.integers(0, n + 1, q))
    rows = [sorted(set(chance.integers(0, at, 3).tolist())) if at else [] for at in asked]
    marks = [chance.integers(0, 2, len(r)).tolist() for r in rows] if groups else None
    stream = Stream(
        vectors,
        unit(chance.standard_normal((q, 8))),
        asked,
        Labels.from_lists(rows, marks),
        used=Labels.from_lists([r[:1] for r in rows]) if used else None,
        cost=chance.integers(1, 9, n),
        created_at=np.where(chance.random(n) < 0.3, np.nan, 1e9 + np.arange(n) * 60.0),
    )
    return Trace("chance", [stream], "coverage" if groups else "evidence", 0.2)


# ---- the same numbers ------------------------------------------------------------------------


def both(trace: Trace, path: Path) -> tuple[list[dict], list[dict]]:
    """The figures of a trace, and those of the log that a store recorded while it lived through it."""
    record(trace.streams[0], score_from=trace.score_from).save(path)
    cells = grid(trace, parse_list(POLICIES), [0.5, 0.2], variant="log")
    told = run(
        "simulate", "--log", str(path), "--policies", POLICIES, "--budgets", "0.5,0.2", "--json"
    )
    return figures(cells), figures(json.loads(told)["cells"])


def test_a_log_of_the_manual_tells_what_the_manual_tells(tmp_path):
    whole = read_manual()
    cut = replace(whole, streams=[beginning(whole.streams[0], 900)])
    there, here = both(cut, tmp_path / "log.npz")
    assert here == there
    assert len(here) == 13
    assert here[0]["need"] == "coverage"
    assert len({(c["recall"], c["kept"]) for c in here}) > 8


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("groups", [False, True])
def test_a_log_of_any_stream_tells_what_the_stream_tells(tmp_path, groups, used):
    there, here = both(chance_life(1, groups=groups, used=used), tmp_path / "log.npz")
    assert here == there


def test_the_demo_s_log_gives_the_figures_of_its_replay(tmp_path):
    """The whole promise, in three commands."""
    log = tmp_path / "demo.log.npz"
    demo = json.loads(run("demo", "--out", str(tmp_path / "r.html"), "--log", str(log), "--json"))
    assert demo["log"] == str(log)
    ask = ["--policies", "lru", "--budgets", "0.1", "--json"]
    bench = json.loads(run("bench", "replay", "--manual", *ask))
    told = json.loads(run("simulate", "--log", str(log), *ask))
    assert figures(told["cells"]) == figures(bench["cells"])
    shown = {(c["policy"], c["budget"]): c for c in figures(demo["replay"]["cells"])}
    assert all(shown[c["policy"], c["budget"]] == c for c in figures(told["cells"]))


# ---- advice ----------------------------------------------------------------------------------


def hot_and_cold(queries: int = 1500) -> Trace:
    """Thirty memories are asked for again and again, and all the while newcomers are looked at once."""
    chance = np.random.default_rng(5)
    n = 600
    vectors = unit(chance.standard_normal((n, 32)))
    asked = np.sort(chance.integers(40, n + 1, queries))
    rows, aimed = [], []
    for at in asked.tolist():
        hot = chance.random() < 0.5
        row = int(chance.integers(0, 30)) if hot else int(chance.integers(max(30, at - 20), at))
        rows.append([row] if hot else [])
        aimed.append(row)
    return Trace(
        "hot", [Stream(vectors, vectors[aimed], asked, Labels.from_lists(rows))], score_from=0.3
    )


def noise(queries: int = 1500) -> Trace:
    """What is needed is drawn by chance from all that was stored."""
    chance = np.random.default_rng(6)
    n = 400
    vectors = unit(chance.standard_normal((n, 16)))
    asked = np.sort(chance.integers(1, n + 1, queries))
    rows = [[int(chance.integers(0, at))] for at in asked]
    return Trace(
        "noise",
        [Stream(vectors, vectors[np.ravel(rows)], asked, Labels.from_lists(rows))],
        score_from=0.3,
    )


def test_advice_names_the_best_and_how_sure_it_is():
    cells = list(grid(hot_and_cold(), parse_list("lfu,fifo,lru"), [0.1], variant="log"))
    (advice,) = advise(cells, "fifo")
    recalls = {c.policy: c.recall for c in cells if c.policy not in ("oracle", "keep everything")}
    assert advice.policy == max(recalls, key=recalls.get)
    assert advice.next_best.policy == sorted(recalls, key=recalls.get)[-2]
    assert advice.current.policy == "fifo"
    assert advice.current.real
    assert advice.change
    assert "Over fifo, in use" in str(advice)
    assert f"So change to {advice.policy}." in str(advice)
    kept = next(c.kept for c in cells if c.policy == advice.policy)
    assert advice.gone == pytest.approx(advice.queries * (1 - kept))


def test_advice_says_when_a_log_cannot_tell():
    cells = list(
        grid(noise(), [RandomPolicy(0), RandomPolicy(1), LruPolicy()], [0.5], variant="log")
    )
    (advice,) = advise(cells, "random")
    assert "no difference that this log can show" in str(advice)
    assert not advice.change
    short = list(grid(noise(40), parse_list("lru,fifo"), [0.5], variant="log"))
    assert "too short to say" in str(advise(short, "fifo")[0])


# ---- fitting ---------------------------------------------------------------------------------


def test_a_planted_signal_is_found():
    found = tune(hot_and_cold(1100), parse("1*recency+0.01*frequency"), [0.1], trials=10)
    assert found.real
    assert found.after > found.before
    assert numbers_of(found.fitted)["frequency"] > 0.1 * numbers_of(found.fitted)["recency"]
    assert "The gain is real on this log" in str(found)
    assert to_text(found.fitted) in str(found)
    assert parse(to_text(found.fitted)) == found.fitted


def test_noise_is_called_noise():
    told: list[str] = []
    start = CoherencePolicy()
    found = tune(noise(900), start, [0.3], trials=6, progress=told.append)
    assert not found.real
    assert "Keep coherence" in str(found) or "keep coherence" in str(found)
    assert found.train.value >= 0
    assert len(told) == found.trials <= 12
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_too_few_queries_are_said_to_be_too_few():
    found = tune(hot_and_cold(150), parse("1*recency+0.01*frequency"), [0.1], trials=8)
    assert not found.measured
    assert not found.real
    with pytest.raises(InvalidValue, match=r"at least 4 queries that need something; got [0-2]"):
        tune(hot_and_cold(2), CoherencePolicy(), [0.1])


def test_what_is_held_out_was_never_fitted():
    life = hot_and_cold()
    first, second = folds_of(life, [0.1])
    for fold in (first, second):
        (train,), (held,) = fold.train, fold.held
        assert train.start < len(train.stream.queries) <= held.start < len(held.stream.queries)
        assert held.caps == train.caps == (60,)
    assert len(second.train[0].stream.queries) == len(first.held[0].stream.queries)
    assert len(second.held[0].stream.queries) <= len(life.streams[0].queries)
    many = Trace("many", [life.streams[0]] * 5)
    one, other = folds_of(many, [0.1])
    assert (len(one.train), len(one.held), len(other.train)) == (3, 2, 2)


def test_numbers_of_policies_have_names():
    floored = CoherencePolicy().with_floor(0.2)
    assert numbers_of(floored)["share"] == 0.2
    assert with_number(floored, "gamma", 0.123456) == CoherencePolicy(gamma=0.1235).with_floor(0.2)
    assert with_number(CoherencePolicy(), "window", 9.7) == CoherencePolicy(window=10)
    twice = parse("1*coherence:window=5 + 2*coherence + 0.5*recency")
    assert list(numbers_of(twice)) == [
        "coherence", "coherence.window", "coherence#2", "coherence#2.window", "recency",
    ]  # fmt: skip
    assert with_number(twice, "coherence#2.window", 7) == parse(
        "1*coherence:window=5 + 2*coherence:window=7 + 0.5*recency"
    )
    assert chosen(twice, None) == ["coherence", "coherence#2", "recency"]
    with pytest.raises(InvalidValue, match="among alpha, beta, gamma, window; got delta"):
        chosen(CoherencePolicy(), ["delta"])
    for without in (LruPolicy(), RandomPolicy()):
        with pytest.raises(InvalidValue, match="must have numbers to fit"):
            chosen(without, None)


# ---- the commands ----------------------------------------------------------------------------


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.log.npz"
    trace = chance_life(2, groups=False, used=False)
    record(trace.streams[0], score_from=0.0).save(path)
    return path


def test_simulate_prints_a_table_advice_and_files(log_file, tmp_path):
    ask = ["simulate", "--log", str(log_file), "--policies", "lru,fifo", "--budgets", "50%"]
    text = run(*ask, "--current", "lfu", "--out", str(tmp_path / "r.csv"))
    for piece in ("tiny.log", "oracle", "lfu", "At 50 %:", "120 memories, 260 queries", "wrote"):
        assert piece in text
    assert (tmp_path / "r.csv").stat().st_size > 100
    told = json.loads(run(*ask, "--current", "fifo", "--json"))
    assert told["current"] == "fifo"
    (advice,) = told["advice"]
    assert advice["budget"] == 0.5
    assert advice["policy"] in ("lru", "fifo")
    assert advice["next_best"]["interval"] is None or advice["next_best"]["interval"]["low"] <= 1


def test_tune_prints_gains_and_a_policy_to_paste(log_file):
    ask = [
        "tune",
        "--log",
        str(log_file),
        "--budgets",
        "0.3",
        "--trials",
        "4",
        "--parameters",
        "alpha, gamma",
    ]
    text = run(*ask)
    for piece in (
        "from           coherence",
        "fit, fold 2",
        "where fitted",
        "held out",
        "coherence",
    ):
        assert piece in text
    told = json.loads(run(*ask, "--json"))
    assert told["start"] == "coherence"
    assert parse(told["fitted"])
    assert told["held_out_queries"] > 50


@pytest.fixture
def store_file(tmp_path: Path) -> Path:
    """A store that forgot, with the log of its life in its file."""
    path = tmp_path / "agent.memsift"
    chance = np.random.default_rng(3)
    vectors = unit(chance.standard_normal((80, 8)))
    with MemoryStore.open(path, 8, budget=40, policy=parse("coherence:gamma=0.5")) as store:
        store.record()
        for i, vector in enumerate(vectors):
            store.add(vector)
            store.search(vectors[i // 2], 5)
    return path


def test_a_store_s_own_log_brings_its_policy_and_budget(store_file):
    told = json.loads(run("simulate", str(store_file), "--policies", "lru", "--json"))
    assert told["current"] == "coherence:gamma=0.5"
    assert {c["policy"] for c in told["cells"]} >= {"lru", "coherence:gamma=0.5"}
    assert [a["budget"] for a in told["advice"]] == [0.5, 0.25, 0.1]  # 40 of 80 is one of them
    assert told["cells"][0]["recall"] == 1.0  # keeping everything finds the exact nearest
    tuned = json.loads(run("tune", str(store_file), "--trials", "2", "--json"))
    assert (tuned["start"], tuned["budgets"]) == ("coherence:gamma=0.5", [0.5])


@pytest.mark.parametrize("command", ["simulate", "tune"])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "FILE or --log must be given, one of them; got neither"),
        (["a.memsift", "--log", "b.npz"], "one of them; got both"),
        (["--log", "no-such.npz"], "log must be a file that can be read"),
        (
            ["--log", "no-such.npz", "--budgets", "7"],
            "budgets must be a number above 0, up to 1; got 7",
        ),
        (["no-such.memsift"], "no-such.memsift"),
    ],
)
def test_a_wrong_call_says_what_is_allowed(command, arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = " ".join(run(command, *arguments, code=2).split())
    assert words in text
    assert "Traceback" not in text


def test_a_store_that_recorded_nothing_says_so(tmp_path):
    path = tmp_path / "quiet.memsift"
    MemoryStore.open(path, 4).close()
    text = " ".join(run("simulate", str(path), code=2).split())
    assert "it has recorded no query (in Python, `store.record()` begins" in text


def test_a_damaged_log_is_an_error_in_one_line(log_file):
    raw = bytearray(log_file.read_bytes())
    raw[len(raw) // 2] ^= 1
    log_file.write_bytes(raw)
    text = run("simulate", "--log", str(log_file), code=1)
    assert text.startswith("Error: log: ")
    assert len(text.splitlines()) == 1


def test_a_recorded_log_keeps_labels_apart_from_feedback():
    trace = chance_life(4, groups=True, used=False)
    log = record(trace.streams[0], score_from=0.2)
    assert log.count(NEED) > 100
    assert read_log(log).streams[0].used is None
    assert isinstance(log, AccessLog)
