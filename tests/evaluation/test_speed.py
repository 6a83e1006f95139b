"""The speed table: what it compares is right before it is timed, and its verdicts are those of the limits."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsift.errors import MemsiftError
from memsift.evaluation.speed import SpeedRow, clustered, measured, memory, searches, timed
from memsift.evaluation.speed.child import measure, peers_of
from memsift.evaluation.speed.clock import Contender, Sample, in_turn
from memsift.evaluation.speed.data import nearest, recall
from memsift.evaluation.speed.engines import ALWAYS, PEERS, Absent, Bare, Engine
from memsift.evaluation.speed.limits import FAST, LIMITS, verdicts_for
from memsift.evaluation.speed.row import Time, from_dict, held, row_of, time_of
from memsift.evaluation.speed.run import Run
from memsift.evaluation.speed.sections import SECTIONS, rows, steps

Ids = np.ndarray


def unit(n: int, dim: int, seed: int = 0) -> np.ndarray:
    made = np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def dumb(vectors: np.ndarray, query: np.ndarray, k: int) -> list[int]:
    """The best k rows, by sorting all of them."""
    scores = [math.fsum(a * b for a, b in zip(row, query, strict=True)) for row in vectors.tolist()]
    return sorted(range(len(scores)), key=lambda i: -scores[i])[:k]


def small(tell: Any = None, peers: Sequence[type[Engine]] = ()) -> Run:
    sizes = {"middle": (600, 8), "large": (1200, 8), "small": (200, 8)}
    told = tell or (lambda step: None)
    return Run(((200, 8), (600, 8), (1200, 8)), repeats=2, peers=tuple(peers), tell=told, **sizes)


# ---- the data and its right answers --------------------------------------------------------------


def test_data_is_unit_and_queries_ask_about_the_same_topics():
    vectors, queries = clustered(9000, 128), clustered(50, 128, seed=1)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6
    assert (vectors == clustered(9000, 128)).all()
    assert not (queries == vectors[:50]).all(1).any()
    # A stranger's best neighbour is far worse than one around the same centres.
    strangers = unit(50, 128, seed=9)
    assert (queries @ vectors.T).max(1).mean() > (strangers @ vectors.T).max(1).mean() + 0.1


def test_the_right_answers_are_those_of_sorting_everything():
    vectors, queries = unit(60, 5), unit(4, 5, seed=1)
    found = nearest(vectors, queries, 7)
    assert found.tolist() == [dumb(vectors, query, 7) for query in queries]
    assert nearest(vectors[:7], queries, 7).shape == (4, 7)


def test_recall_counts_what_is_as_near_as_the_kth_once():
    vectors = np.eye(4, dtype=np.float32)[[0, 1, 1, 2, 3]]
    query = (vectors[0] * 0.9 + vectors[1] * 0.4)[None, :]
    truth = nearest(vectors, query, 2)
    assert truth[0, 0] == 0
    assert recall([np.array([0, 1])], truth, vectors, query) == 1.0
    assert recall([np.array([0, 2])], truth, vectors, query) == 1.0, "a twin is as good"
    assert recall([np.array([0, 0])], truth, vectors, query) == 0.5, "one hit twice is one hit"
    assert recall([np.array([0, 3])], truth, vectors, query) == 0.5
    assert recall([np.array([-1, 99])], truth, vectors, query) == 0.0


# ---- taking turns --------------------------------------------------------------------------------


def test_everybody_has_one_turn_per_repeat_and_the_first_round_does_not_count():
    log: list[tuple[str, str, int]] = []

    def contender(name: str) -> Contender:
        def turn(repeat: int):
            log.append(("prepared", name, repeat))
            return lambda: log.append(("timed", name, repeat))

        return Contender(name, turn, per=4)

    samples = in_turn([contender(name) for name in "abc"], 3)
    assert {name: len(found) for name, found in samples.items()} == {"a": 3, "b": 3, "c": 3}
    timed_ = [(name, repeat) for what, name, repeat in log if what == "timed"]
    assert timed_ == [(n, r) for r, names in enumerate(("abc", "bca", "cab", "abc")) for n in names]
    prepared = [entry for entry in log if entry[0] == "prepared"]
    assert [("timed", *entry[1:]) for entry in prepared] == log[1::2], "prepared right before"


def test_a_sample_is_what_the_clocks_say_and_is_divided(monkeypatch):
    from memsift.evaluation.speed import clock

    now = [0.0, 0.0]
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(clock.time, "process_time", lambda: now[1])
    monkeypatch.setattr(clock, "quiet", lambda: None)

    def work() -> None:
        now[0] += 0.008
        now[1] += 0.002

    (sample,) = in_turn([Contender("a", lambda repeat: work, per=2)], 1)["a"]
    assert sample == pytest.approx((1000, 4000))
    assert timed(work) == pytest.approx(2000)


def test_the_machine_is_waited_for_while_others_work(monkeypatch):
    from memsift.evaluation.speed import clock

    cpu = iter([0.0, 0.9, 1.0, 1.7, 2.0, 2.0])  # two busy looks, then a quiet one
    naps: list[float] = []
    monkeypatch.setattr(clock.time, "process_time", lambda: next(cpu))
    monkeypatch.setattr(clock.time, "sleep", naps.append)
    clock.quiet()
    assert len(naps) == 3


def test_figures_are_the_median_and_the_ends():
    samples = [Sample(c, w) for c, w in ((5, 50), (1, 20), (3, 90), (4, 30), (2, 40))]
    t = time_of("a", samples, per=2)
    assert (t.median, t.low, t.high) == (1.5, 0.5, 2.5)
    assert (t.wall, t.wall_low, t.wall_high, t.repeats) == (20, 10, 45, 5)


# ---- limits and verdicts -------------------------------------------------------------------------

JUDGED = [
    # operation, n, dim, figures, what holds by limit
    ("search", 2_000, 64, {"memsift": 25.0, "numpy": 10.0}, [True, False]),
    ("search", 2_000, 64, {"memsift": 25.1, "numpy": 10.0}, [False, False]),
    ("search", 2_000, 64, {"memsift": 10.0, "numpy": 10.0}, [True, True]),
    ("compact", 2_000, 64, {"memsift": 0.7, "numpy": 1.0}, [True]),
    ("compact", 100_000, 384, {"memsift": 1.0, "numpy": 3.9}, [False, None]),
    ("compact", 100_000, 384, {"memsift": 1.0, "numpy": 4.0, FAST: 0.7}, [True, True]),
    ("compact", 2_000, 384, {"memsift": 1.0, "numpy": 0.1}, []),
    ("search, batch of 100", 20_000, 384, {"memsift": 1.0, "faiss Flat": 2.0}, [True, None]),
    ("search that feeds the window", 20_000, 384,
     {"memsift": 1.04, "search that feeds nothing": 1.0}, [False]),
    ("window read, per 1,000 entries", 20_000, 384, {"memsift": 2.0}, [True]),
    ("add, batches of 1,000", 20_000, 384,
     {"memsift": 4.1, "memsift coherence": 4.0, "memsift lru": None}, [False, True, None]),
    ("add beside a compaction, p99", 100_000, 384, {"memsift": 50.0, "idle": 10.0}, [True]),
    ("memory", 1_000_000, 384, {"memsift": 2000.0, FAST: 550.0}, [True]),
    ("memory", 20_000, 384, {"memsift": 2000.0}, []),
    ("growth: search, per 1,000 entries", 1_000_000, 384,
     {"memsift": 2.1, "at 20,000": 1.0}, [False]),
    ("growth: search, per 1,000 entries", 100_000, 384, {"memsift": 9, "at 20,000": 1.0}, []),
    ("file: add", 100_000, 384, {"memsift": 3.0, "SQLite": 1.0}, [True]),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "n", "dim", "figures", "holds"), JUDGED)
def test_a_limit_is_kept_up_to_its_number_and_open_where_somebody_is_absent(
    operation, n, dim, figures, holds
):
    assert [v.holds for v in verdicts_for(operation, n, dim, figures)] == holds


def test_the_search_beside_peers_has_each_peer_s_own_limit():
    figures = {"memsift": 1.0, "numpy": 2.0, "usearch exact": 4.0, "faiss Flat": 1.4}
    found = {v.limit: v.holds for v in verdicts_for("search", 20_000, 384, figures)}
    assert found == {
        "at least 2 × as fast as numpy": True,
        "memsift[fast]: at least 4 × as fast as numpy": None,
        "at least 4 × as fast as usearch exact": True,
        "at least 1.5 × as fast as faiss Flat": False,
        "at least 12 × as fast as sqlite-vec": None,
        "at least 3 × as fast as chroma": None,
    }
    faster = verdicts_for("search", 20_000, 384, figures | {FAST: 0.5})
    assert {v.against for v in faster if v.ours == FAST and v.holds} == {
        "numpy", "usearch exact", "faiss Flat",
    }  # fmt: skip


def test_a_row_holds_if_all_that_is_known_holds():
    figures = {"memsift": 1.0, "numpy": 2.0}
    verdicts = verdicts_for("search", 20_000, 384, figures)
    assert held(verdicts) is True
    assert held(verdicts_for("search", 20_000, 384, figures | {"faiss Flat": 1.0})) is False
    assert held(verdicts_for("search", 20_000, 384, {"memsift": 1.0})) is None
    assert held([]) is None
    goal_missed = verdicts_for("search", 2_000, 64, {"memsift": 2.0, "numpy": 1.0})
    assert held(goal_missed) is True


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_a_row_s_ratio_and_rest_are_those_of_its_medians(ours, bare):
    contenders = [Time("memsift", ours, ours, ours), Time("numpy", bare, bare, bare)]
    row = row_of("search", 20_000, 384, contenders)
    assert row.ratio == pytest.approx(ours / bare, rel=1e-3)
    assert row.beyond_us == pytest.approx(ours - bare, rel=1e-3, abs=1e-6)
    assert row.verdicts[0].holds == (float(f"{ours / bare:.4g}") <= 0.5)


def test_a_row_with_a_limit_of_its_own():
    """As a module of its own makes them: nothing but two times and a limit."""
    ours, base = np.array([3.0, 1.0, 2.0]), np.array([4.0, 4.0, 4.0])
    row = measured("x", 10, 2, ours, base, "at most half", None, 0.5)
    assert (row.ours_us, row.primitives_us, row.ratio) == (2.0, 4.0, 0.5)
    assert (row.low_us, row.high_us, row.repeats) == (1.0, 3.0, 3)
    assert row.holds
    assert not measured("x", 10, 2, ours, base, "at most half", None, 0.49).holds
    assert not measured("x", 10, 2, base, ours, "at most 1 µs beyond", 1.0, 9).holds
    assert measured("x", 10, 2, base, ours, "at most 2 µs beyond", 2.0, 0.1).holds


# ---- engines -------------------------------------------------------------------------------------


def made(cls: type[Engine], dim: int, capacity: int) -> Engine:
    try:
        return cls(dim, capacity)
    except Absent as error:
        pytest.skip(str(error))


every_engine = pytest.mark.parametrize("cls", [*ALWAYS, *PEERS], ids=lambda cls: cls.name)


@every_engine
def test_an_engine_finds_what_brute_force_finds(cls):
    vectors, queries = unit(300, 16), unit(20, 16, seed=1)
    engine = made(cls, 16, 300)
    engine.build(vectors)
    hits = 0
    for query in queries:
        found = engine.ids(engine.search(query, 10))
        right = dumb(vectors, query, 10)
        hits += len(set(found.tolist()) & set(right))
        if cls.exact:
            assert set(found.tolist()) == set(right)
    assert hits >= 190
    if cls.batches:
        engine.search_many(queries, 10)
    engine.close()


@every_engine
def test_what_is_deleted_is_gone_and_what_comes_is_found(cls):
    if not cls.churns:
        pytest.skip("it cannot delete")
    vectors, newcomers = unit(200, 16), unit(100, 16, seed=1)
    engine = made(cls, 16, 300)
    engine.add(vectors[:50])
    engine.add(vectors[50:])
    engine.delete(np.arange(0, 200, 2))
    engine.add(newcomers)
    for i in range(0, 100, 7):
        first = engine.ids(engine.search(newcomers[i], 1)).tolist()
        assert first == [200 + i]
        assert engine.ids(engine.search(vectors[2 * i + 1], 1)).tolist() == [2 * i + 1]
        assert 2 * i not in engine.ids(engine.search(vectors[2 * i], 10)).tolist()
    engine.close()


class Elsewhere(Bare):
    name: ClassVar[str] = "elsewhere"

    def __init__(self, dim: int, capacity: int) -> None:
        raise Absent("not installed: pip install elsewhere")


class Broken(Bare):
    name: ClassVar[str] = "broken"

    def search(self, query, k):
        raise RuntimeError("it does not work here")


class Liar(Bare):
    name: ClassVar[str] = "liar"

    def search(self, query, k):
        return np.arange(k)


class Sloppy(Liar):
    name: ClassVar[str] = "sloppy"
    exact: ClassVar[bool] = False


class Tiny(Bare):
    name: ClassVar[str] = "tiny"
    largest: ClassVar[int] = 300


def test_who_cannot_be_compared_says_why_and_the_others_go_on(monkeypatch):
    monkeypatch.setattr(searches, "TURN", 1000)
    run = small(peers=(Elsewhere, Broken, Liar, Sloppy, Tiny))
    found = [row for row in rows(run, ["search"]) if row.n == 600]
    assert [row.operation for row in found] == ["search", "search, batch of 100"]
    for row in found:
        times = {t.name: t for t in row.contenders}
        assert times["elsewhere"].note == "not installed: pip install elsewhere"
        assert times["broken"].note == "failed: RuntimeError: it does not work here"
        assert times["liar"].note.startswith("wrong answers, so not timed")
        assert times["tiny"].note == "left out beyond 300 entries"
        for name in ("elsewhere", "broken", "liar", "tiny"):
            assert times[name].median is None
        assert times["sloppy"].recall < 0.5
        for name in ("memsift", "memsift coherence", "numpy", "sloppy"):
            assert times[name].median > 0
            assert times[name].low <= times[name].median <= times[name].high


def test_nobody_is_asked_the_same_twice(monkeypatch):
    monkeypatch.setattr(searches, "TURN", 1000)
    asked: list[bytes] = []

    class Listening(Bare):
        name: ClassVar[str] = "listening"

        def search(self, query, k):
            asked.append(query.tobytes())
            return super().search(query, k)

    run = Run(((150, 8),), repeats=2, peers=(Listening,))
    list(rows(run, ["search"]))
    assert len(asked) > 50
    assert len(set(asked)) == len(asked)


def test_peers_are_named_by_their_beginnings():
    assert peers_of("all") == list(PEERS)
    assert peers_of("none") == []
    assert [p.name for p in peers_of("faiss, chroma,faiss flat")] == [
        "faiss Flat",
        "faiss HNSW",
        "chroma",
    ]


# ---- the whole table in small --------------------------------------------------------------------


USUAL = [name for name, section in SECTIONS.items() if section.usual]


@pytest.fixture(scope="module")
def tiny() -> tuple[list[SpeedRow], dict[str, int], Run]:
    """The usual rows, and how often each section told what comes; the graph's take minutes and have their own test."""
    told: list[str] = []
    heard: dict[str, int] = {}
    run = small(told.append)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searches, "TURN", 1000)
        patch.setattr(memory, "_apart", lambda cls, size: Time(cls.name, 1.0, repeats=1))
        for name in USUAL:
            before = len(told)
            list(rows(run, [name]))
            heard[name] = len(told) - before
    return run.seen, heard, run


def test_every_section_gives_rows_and_tells_as_often_as_it_said(tiny):
    found, heard, run = tiny
    assert heard == {name: steps(run, [name]) for name in USUAL}
    assert sum(heard.values()) == steps(run)
    assert len({(row.operation, row.n, row.dim) for row in found}) == len(found)


def test_every_limit_is_about_something_that_is_measured(tiny):
    """A limit whose operation or contender nobody spells like that would never be missed."""
    found, _, _ = tiny
    assert {limit.operation for limit in LIMITS} <= {row.operation for row in found}
    names = {t.name for row in found for t in row.contenders} | {p.name for p in PEERS}
    named = {limit.against for limit in LIMITS} - {None, "at 20,000"}
    assert named <= names
    assert {limit.ours for limit in LIMITS} <= names | {FAST}


def test_figures_are_positive_and_in_order(tiny):
    for row in tiny[0]:
        assert row.contenders[0].name == "memsift"
        for t in row.contenders:
            for three in ((t.low, t.median, t.high), (t.wall_low, t.wall, t.wall_high)):
                if None not in three:
                    assert 0 < three[0] <= three[1] <= three[2], (row.operation, t)
            assert t.median is not None or t.wall is not None or t.note


def test_growth_is_the_time_per_entry_beside_that_of_the_middle(tiny):
    found, _, _ = tiny
    search = {row.n: row.ours_us for row in found if row.operation == "search"}
    grown = next(row for row in found if row.operation == "growth: search, per 1,000 entries")
    assert (grown.n, grown.primitives_us) == (1200, pytest.approx(search[600] / 0.6, rel=1e-3))
    assert grown.ratio == pytest.approx((search[1200] / 1.2) / (search[600] / 0.6), rel=1e-3)


def test_rows_survive_json(tiny):
    for row in tiny[0]:
        text = json.dumps(row.to_dict(), allow_nan=False)
        assert from_dict(json.loads(text)) == row


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
def test_memory_is_what_the_system_counts():
    """Rows of 4 KiB must be there, and little else."""
    bare, ours = (memory._apart(cls, (4096, 1024)) for cls in (Bare, ALWAYS[1]))
    assert 4000 < bare.median < 5000
    assert bare.median < ours.median < 8000
    assert re.search(r"by its own count 4,\d\d\d", ours.note)


def test_a_process_that_fails_is_told():
    with pytest.raises(MemsiftError, match="failed with exit code 1"):
        measure([(200, 0)], 1, [], ["compact"])
