"""read_manual: the workload that needs no file, checked for shape, honesty and information."""

from __future__ import annotations

import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from memsift.errors import MissingExtra
from memsift.evaluation.readers.manual import read_manual
from memsift.evaluation.trace import Stream, Trace


@pytest.fixture(scope="module")
def trace() -> Trace:
    return read_manual()


@pytest.fixture(scope="module")
def stream(trace: Trace) -> Stream:
    (only,) = trace.streams
    return only


def coverage_at_ten(stream: Stream, kept: npt.NDArray[np.bool_]) -> float:
    """Share of scored questions with an answer among the ten nearest of the kept passages read."""
    cosine = stream.queries @ stream.vectors.T
    found = []
    for query, seen in enumerate(stream.asked):
        answers = stream.need.of(query)
        if len(answers) and seen >= 0.3 * len(stream):
            candidates = np.flatnonzero(kept[:seen])
            nearest = candidates[np.argsort(-cosine[query, candidates], kind="stable")[:10]]
            found.append(bool(np.isin(answers, nearest).any()))
    return float(np.mean(found))


def test_sizes_are_as_documented(trace: Trace, stream: Stream) -> None:
    assert (trace.name, trace.need, trace.score_from) == ("manual", "coverage", 0.3)
    assert 1500 <= len(stream) <= 2500
    assert 1500 <= len(stream.queries) <= 5000
    assert stream.titles is not None
    assert stream.cost is not None
    assert len(stream.titles) == len(stream.cost) == len(stream)


def test_reading_and_working_alternate_until_all_is_read(stream: Stream) -> None:
    assert 0 < stream.asked[0] < len(stream) / 50
    assert stream.asked[-1] == len(stream)
    assert len(np.unique(stream.asked)) > 100


def test_nothing_unread_is_needed(stream: Stream) -> None:
    seen = np.repeat(stream.asked, np.diff(stream.need.indptr))
    assert np.all(stream.need.indices < seen)
    labelled = np.count_nonzero(np.diff(stream.need.indptr))
    assert 0.3 < labelled / len(stream.queries) < 0.7


def test_one_answer_is_enough(stream: Stream) -> None:
    assert stream.need.group is not None
    assert not stream.need.group.any()


def test_copies_are_joined_to_the_first(stream: Stream) -> None:
    assert stream.meaning is not None
    rows = np.arange(len(stream))
    assert np.all(stream.meaning <= rows)
    assert np.any(stream.meaning < rows)
    np.testing.assert_array_equal(stream.vectors[stream.meaning], stream.vectors)


def test_the_workload_is_informative(stream: Stream) -> None:
    """Everything kept does well but not perfectly, and a random half much worse."""
    everything = coverage_at_ten(stream, np.ones(len(stream), bool))
    half = coverage_at_ten(stream, np.random.default_rng(0).random(len(stream)) < 0.5)
    assert 0.75 < everything < 0.95
    assert half < everything - 0.25


def test_reading_twice_gives_the_same_in_a_few_seconds(stream: Stream) -> None:
    start = time.process_time()
    (again,) = read_manual().streams
    assert time.process_time() - start < 8  # about 2 s; the rest is for slow machines
    np.testing.assert_array_equal(again.vectors, stream.vectors)
    np.testing.assert_array_equal(again.queries, stream.queries)
    np.testing.assert_array_equal(again.need.indices, stream.need.indices)


def test_a_module_asks_for_its_keywords_and_for_names_with_an_entry(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "good.py").write_text("class A:\n    def __len__(self): return own_name\n")
    (tmp_path / "broken.py").write_text("def (:\n  '''\n")
    (tmp_path / "_sysconfigdata_here.py").write_text("while True: pass\n")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    asked = _Recorder()
    read_manual(asked)
    _, questions = asked.calls
    assert questions[0] == "class class"
    assert "__len__" in questions  # it has an entry: object.__len__(self)
    assert "return return" in questions
    assert "specialmethods specialnames" in questions  # "see also" of `class`
    assert not any("own_name" in question or "while" in question for question in questions)


def test_without_sources_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(MissingExtra, match="needs the source of the standard library"):
        read_manual()


def test_without_the_manual_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(MissingExtra, match=r"pydoc_data\.topics"):
        read_manual()


class _Recorder:
    """An embedder that remembers what it was given."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.calls.append(list(texts))
        return np.ones((len(texts), 2), np.float32)
