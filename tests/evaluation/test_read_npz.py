"""read_npz: workload files become streams, and a bad file is named with its fault."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsift.errors import InvalidValue
from memsift.evaluation.readers.npz import read_npz, variants_of

Arrays = dict[str, Any]

WORKLOADS = Path(__file__).parents[2].parent / "shared" / "workloads"


def chats() -> Arrays:
    """Two chats, told in turns: Ann's memories are rows 0, 2, 4 and come out of order; Bob's 1, 3.

    Ann is asked twice, Bob once. The second question of the file is Ann's first.
    """
    return {
        "mem_vec": np.eye(5, 4, dtype=np.float16) + np.float16(0.5),
        "mem_time": np.array([20, 0, 0, 10, 10], np.int32),
        "mem_ts": np.array([np.nan, 1.0, 2.0, 3.0, 4.0]),
        "mem_cost": np.array([7, 8, 9, 10, 11], np.int32),
        "mem_rep": np.array([0, 1, 2, 1, 4], np.int32),
        "conv": np.array([5, 9, 5, 9, 5], np.int32),
        "query_vec": np.eye(3, 4, dtype=np.float16),
        "query_conv": np.array([5, 5, 9], np.int32),
        "query_time": np.array([21, 20, 11], np.int32),
        "query_time_alt": np.array([11, 1, 1], np.int32),
        "rel_indptr": np.array([0, 2, 3, 4]),
        "rel_indices": np.array([0, 4, 2, 1], np.int32),
    }


def log() -> Arrays:
    """The same streams as an agent log: the first question needs one of rows 2 and 4, and row 0."""
    return chats() | {
        "prov_indptr": np.array([0, 3, 3, 4]),
        "prov_indices": np.array([2, 4, 0, 1], np.int32),
        "prov_group": np.array([0, 0, 1, 0], np.int16),
    }


def saved(folder: Path, arrays: Arrays) -> Path:
    path = folder / "story.npz"
    np.savez(path, **arrays)
    return path


def test_each_conversation_is_a_stream_in_order_of_time(tmp_path: Path) -> None:
    trace = read_npz(saved(tmp_path, chats()))
    ann, bob = trace.streams
    assert (trace.name, trace.need, trace.score_from) == ("story", "evidence", 0.0)
    assert ann.cost is not None
    assert ann.cost.tolist() == [9, 11, 7]
    assert bob.created_at is not None
    assert bob.created_at.tolist() == [1.0, 3.0]
    assert ann.vectors.dtype == np.float32
    np.testing.assert_array_equal(bob.vectors[1], np.array([0.5, 0.5, 0.5, 1.5], np.float32))


def test_a_question_sees_what_was_stored_before_it(tmp_path: Path) -> None:
    ann, bob = read_npz(saved(tmp_path, chats())).streams
    assert ann.asked.tolist() == [2, 3]  # at time 20 the memory of time 20 is not there yet
    assert bob.asked.tolist() == [2]
    np.testing.assert_array_equal(ann.queries, np.eye(3, 4, dtype=np.float32)[[1, 0]])


def test_labels_follow_their_question_and_point_into_the_stream(tmp_path: Path) -> None:
    ann, bob = read_npz(saved(tmp_path, chats())).streams
    assert [ann.need.of(i).tolist() for i in range(2)] == [[0], [2, 1]]
    assert bob.need.of(0).tolist() == [0]
    assert ann.need.group is None
    assert ann.exact is None
    assert ann.meaning is None


@pytest.mark.parametrize("variant", ["interleaved", "used"])
def test_interleaved_variants_ask_at_the_other_times(tmp_path: Path, variant: str) -> None:
    ann, bob = read_npz(saved(tmp_path, chats()), variant).streams
    assert ann.asked.tolist() == [1, 2]
    assert bob.asked.tolist() == [1]


@pytest.mark.parametrize("variant", [None, "log", "used"])
def test_an_agent_log_is_judged_by_groups(tmp_path: Path, variant: str | None) -> None:
    trace = read_npz(saved(tmp_path, log()), variant)
    ann, bob = trace.streams
    assert (trace.need, trace.score_from) == ("coverage", 0.3)
    assert [ann.need.of(i).tolist() for i in range(2)] == [[], [0, 1, 2]]
    assert ann.need.groups_of(1).tolist() == [0, 0, 1]
    assert ann.exact is not None
    assert ann.exact.of(1).tolist() == [2, 1]
    assert bob.meaning is not None
    assert bob.meaning.tolist() == [0, 0]


def test_a_log_needs_no_other_times(tmp_path: Path) -> None:
    arrays = log()
    del arrays["query_time_alt"]
    assert len(read_npz(saved(tmp_path, arrays), "used")) == 5


def test_queries_of_one_moment_keep_their_order(tmp_path: Path) -> None:
    arrays = chats() | {"query_time": np.array([11, 11, 11], np.int32)}
    ann, _ = read_npz(saved(tmp_path, arrays)).streams
    np.testing.assert_array_equal(ann.queries, np.eye(3, 4, dtype=np.float32)[[0, 1]])


@given(st.permutations(range(5)))
def test_the_order_of_rows_in_the_file_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    arrays, place = chats(), np.argsort(order)
    for name in ("mem_vec", "mem_time", "mem_ts", "mem_cost", "conv"):
        arrays[name] = arrays[name][order]
    arrays["rel_indices"] = place[arrays["rel_indices"]]
    ann, bob = read_npz(saved(tmp_path_factory.mktemp("permuted"), arrays)).streams
    assert ann.cost is not None
    assert ann.cost.tolist() == [9, 11, 7]
    assert [ann.need.of(i).tolist() for i in range(2)] == [[0], [2, 1]]
    assert bob.need.of(0).tolist() == [0]


def test_variants_tell_the_default_first(tmp_path: Path) -> None:
    assert variants_of(saved(tmp_path, chats())) == ("end-traffic", "end", "interleaved", "used")
    assert variants_of(saved(tmp_path, log())) == ("log", "used")


def test_an_unknown_variant_is_told_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"story\.npz must be one of log, used; got 'end'"):
        read_npz(saved(tmp_path, log()), "end")


def _with(name: str, row: Any, value: float) -> Any:
    array = chats()[name].copy()
    array[row] = value
    return array


BAD_ARRAYS: list[tuple[str, Any, str]] = [
    ("mem_vec", None, "mem_vec must be an array of the file; got nothing"),
    ("query_time", None, "query_time must be an array of the file"),
    ("mem_vec", np.ones(4, np.float16), r"mem_vec must be of shape \(any, any\); got shape \(4,\)"),
    ("mem_vec", np.ones((5, 4), int), "mem_vec must be floats; got dtype int64"),
    ("mem_vec", np.ones((0, 4)), "mem_vec must be at least one memory"),
    ("mem_vec", np.ones((5, 0)), "mem_vec must be at least one memory and one dimension"),
    ("mem_vec", _with("mem_vec", (3, 1), np.nan), "mem_vec must be finite in float32; row 3"),
    ("mem_vec", np.full((5, 4), 1e300), "mem_vec must be finite in float32; row 0"),
    ("mem_vec", _with("mem_vec", 2, 0.0), "mem_vec must hold no zero vector; row 2"),
    ("query_vec", np.ones((3, 7)), r"query_vec must be of shape \(any, 4\); got shape \(3, 7\)"),
    ("query_vec", _with("query_vec", 1, np.inf), "query_vec must be finite"),
    ("mem_time", np.arange(4), r"mem_time must be of shape \(5,\); got shape \(4,\)"),
    ("mem_time", np.arange(5.0), "mem_time must be integers; got dtype float64"),
    ("conv", np.array(list("abcde")), "conv must be integers; got dtype <U1"),
    ("conv", np.array([5, 9, 5, 9, None]), "conv must be readable; ValueError"),
    ("query_conv", np.array([5, 5, 8]), "query_conv must be values that occur in conv; got 8"),
    ("mem_cost", np.array([7, 8, -9, 10, 11]), "mem_cost must be 0 or more words; got -9"),
    ("mem_ts", np.array(["x"] * 5), "mem_ts must be numbers"),
    ("rel_indptr", np.array([0, 2, 1, 4]), "rel_indptr must be ascending from 0 to 4"),
    ("rel_indptr", np.array([0, 2, 3, 5]), "rel_indptr must be ascending from 0 to 4"),
    ("rel_indptr", np.array([1, 2, 3, 4]), "rel_indptr must be ascending from 0 to 4"),
    ("rel_indptr", np.array([0, 4]), r"rel_indptr must be of shape \(4,\); got shape \(2,\)"),
    ("rel_indices", np.array([0, 4, 2, 5]), r"rel_indices must be rows in 0\.\.4; got 5"),
    ("rel_indices", np.array([0, -1, 2, 1]), r"rel_indices must be rows in 0\.\.4; got -1"),
    ("rel_indices", np.array([0, 3, 2, 1]), "rel_indices must be memories of the query's own"),
    ("prov_indices", np.array([2, 4, 0, 9]), r"prov_indices must be rows in 0\.\.4; got 9"),
    ("prov_group", np.array([0, 0, 1]), r"prov_group must be of shape \(4,\); got shape \(3,\)"),
    ("mem_rep", np.array([0, 1, 2, 7, 4]), r"mem_rep must be rows in 0\.\.4; got 7"),
    ("mem_rep", np.array([0, 1, 2, 0, 4]), "mem_rep must be memories of the same stream"),
]


@pytest.mark.parametrize(("array", "value", "fault"), BAD_ARRAYS)
def test_a_bad_array_is_named_with_its_fault(
    tmp_path: Path, array: str, value: Any, fault: str
) -> None:
    arrays = log() | {array: value}
    if value is None:
        del arrays[array]
    with pytest.raises(InvalidValue, match=rf"story\.npz: {fault}"):
        read_npz(saved(tmp_path, arrays))


@pytest.mark.parametrize(
    ("content", "fault"),
    [(b"", "BadZipFile"), (b"not a zip", "BadZipFile"), (None, "FileNotFoundError")],
)
def test_a_file_that_is_no_archive_is_refused(
    tmp_path: Path, content: bytes | None, fault: str
) -> None:
    path = tmp_path / "story.npz"
    if content is not None:
        path.write_bytes(content)
    for read in (read_npz, variants_of):
        with pytest.raises(InvalidValue, match=rf"story\.npz must be a readable \.npz.*{fault}"):
            read(path)


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        (b"{'descr': '<f4', 'fortran_order': False, 'shape': (5, 4)", "mem_vec must be readable"),
        (b"{'descr': '<f4' 'fortran_order': 1 2}", "mem_vec must be readable"),
        (b"{'descr': '|O', 'fortran_order': False, 'shape': (5,)}", "Object arrays cannot be"),
        (b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999, 4)}", "mem_vec must be read"),
        (None, "mem_vec must be an array; got other bytes"),
    ],
)
def test_a_lying_header_is_refused(tmp_path: Path, header: bytes | None, fault: str) -> None:
    """The archive is sound and its checksums hold; only numpy's header is not what it should be."""
    arrays = log()
    del arrays["mem_vec"]
    path = saved(tmp_path, arrays)
    magic = b"" if header is None else b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("mem_vec.npy", magic + (header or b"text") + bytes(80))
    with pytest.raises(InvalidValue, match=fault):
        read_npz(path)


@given(st.data())
def test_a_damaged_file_is_read_or_refused_but_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = saved(tmp_path_factory.mktemp("damaged"), log())
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    with suppress(InvalidValue):
        read_npz(path)


# name: streams, memories, queries, labelled queries, labels, groups of labels
PINNED = {
    "locomo": (10, 5882, 1982, 1982, 2820, 2820),
    "beam": (20, 5732, 355, 355, 1094, 1094),
    "taubench": (1, 3944, 2454, 810, 19660, 1459),
    "intercode": (3, 7677, 5241, 2732, 46169, 4011),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", PINNED)
def test_the_real_workloads_have_the_published_sizes(name: str) -> None:
    path = WORKLOADS / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"the data folder beside the repository is absent: no {name}.npz")
    for variant in variants_of(path):
        streams = read_npz(path, variant).streams
        needs = [stream.need for stream in streams]
        assert PINNED[name] == (
            len(streams),
            sum(len(stream) for stream in streams),
            sum(len(stream.queries) for stream in streams),
            sum(np.count_nonzero(np.diff(need.indptr)) for need in needs),
            sum(len(need.indices) for need in needs),
            sum(
                len(set(stream.need.groups_of(query).tolist()))
                for stream in streams
                for query in range(len(stream.queries))
            ),
        )
        for stream in streams:  # nobody needs what has not been stored yet
            seen = np.repeat(stream.asked, np.diff(stream.need.indptr))
            assert np.all(stream.need.indices < seen)
