"""The .rvf file: golden bytes, round trips, and files put together by hand."""

from __future__ import annotations

import hashlib
import json
import struct
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rvf_hand import (
    ENTRY,
    HEADER,
    VEC,
    Hand,
    content_hash,
    difference,
    full,
    official,
    private,
    segments,
    vec,
    written,
)

from memsift.errors import CorruptStore, InvalidValue, MemsiftError
from memsift.formats.rvf import (
    RvfSnapshot,
    chain,
    columns,
    documents,
    manifest,
    read_rvf,
    write_rvf,
)
from memsift.formats.rvf import vec as vec_segment
from memsift.formats.rvf.manifest import Entry
from memsift.formats.rvf.segments import encode_header
from memsift.view import COLUMNS

COLUMNS_KIND, METADATA_KIND, STATE_KIND = 0xF0, 0xF1, 0xF2


# ---- bytes that were settled with the official tools -----------------------------------------------


def test_the_content_hash_is_the_official_one():
    assert content_hash(b"123456789").hex() == "2639f4cbcb2639f4f4cb263939f4cb26"
    assert encode_header(VEC, 1, [b"1234", b"56789"])[40:56] == content_hash(b"123456789")


def test_the_smallest_file_is_the_official_one():
    [payload] = vec_segment.encode(np.array([1, 2]), np.eye(2, dtype=np.float32))
    first = encode_header(VEC, 1, payload) + b"".join(payload)
    directory = [Entry(1, 0, len(first) - HEADER, VEC)]
    last = manifest.encode(dim=2, total=2, directory=directory, file_id=bytes(range(16)))
    data = first + encode_header(5, 2, [last]) + last
    assert len(data) == 289
    golden = "e6a6317318534d894346d2b97873837b83e4837f7b5cf8a4e77d331aa8da4c4c"
    assert hashlib.sha256(data).hexdigest() == golden


def test_the_witness_chain_is_the_official_one():
    start = 1_700_000_000_000_000_000
    entries = chain.entries([(b"evict:7", start), (b"evict:9", start + 1)])
    golden = "69dddf9d37b3c80df59dca1bf8d1bf8be245f7eadfae512b089bc1a0eed82f61"
    assert len(entries) == 2 * 73
    assert hashlib.sha256(entries).hexdigest() == golden
    golden = "f1e18c13c052c92c7ad3c786450f8999da6d4916c20ec32023542601cc2cf29c"
    assert chain.head(entries).hex() == golden
    assert chain.verified(entries)
    assert chain.verified(b"")
    assert not chain.verified(entries[:-1])
    assert not any(
        chain.verified(entries[:at] + bytes([entries[at] ^ 1]) + entries[at + 1 :])
        for at in range(73)
    )


# ---- there and back --------------------------------------------------------------------------------

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(text, v, max_size=3), max_leaves=6
).filter(lambda value: json.dumps(value).count("[") + json.dumps(value).count("{") < 7)
objects = st.dictionaries(text, values, max_size=4)
finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


def column(name: str, n: int) -> st.SearchStrategy[np.ndarray[Any, Any]]:
    dtype = np.dtype(COLUMNS[name][0])
    elements = {
        "i": st.integers(0, 2**63 - 1),
        "b": st.booleans(),
        "f": st.floats(allow_nan=False, allow_infinity=False),
    }[dtype.kind]
    if name == "importance":
        elements = st.just(float("nan")) | st.floats(0, 1, width=32)
    if name in ("nearest", "typicality", "adjacency"):
        elements = st.just(float("nan")) | st.floats(-1, 1, width=32)
    if name in ("attention", "heat"):
        elements = st.floats(0, 2.0**99, width=32)
    return hnp.arrays(dtype, n, elements=elements)


@st.composite
def snapshots(draw: st.DrawFn) -> RvfSnapshot:
    n, dim = draw(st.integers(0, 8)), draw(st.integers(1, 5))
    ids = draw(st.lists(st.integers(0, 2**63 - 1), min_size=n, max_size=n, unique=True))
    rows = hnp.arrays(np.float32, (n, dim), elements=finite)
    window = st.integers(0, 3).flatmap(lambda w: hnp.arrays(np.float32, (w, dim), elements=finite))
    record = objects.map(lambda v: json.dumps(v, sort_keys=True, separators=(",", ":")).encode())
    known = st.fixed_dictionaries({name: column(name, n) for name in columns.CARRIED})
    return RvfSnapshot(
        np.array(ids, np.int64),
        draw(rows),
        draw(st.none() | known),
        draw(st.none() | st.lists(st.none() | objects, min_size=n, max_size=n)),
        draw(st.none() | objects),
        draw(st.none() | window),
        draw(st.none() | st.lists(record, max_size=4)),
    )


@given(snapshots())
def test_what_is_written_comes_back(snapshot):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.rvf"
        write_rvf(path, snapshot)
        first = path.read_bytes()
        assert difference(read_rvf(path), snapshot) is None
        write_rvf(path, read_rvf(path))
        assert path.read_bytes() == first, "the same snapshot gives the same bytes"


def test_large_parts_are_cut_and_joined_again(tmp_path, monkeypatch):
    monkeypatch.setattr(vec_segment, "CHUNK", 100)
    monkeypatch.setattr(columns, "CHUNK_ROWS", 5)
    monkeypatch.setattr(documents, "CHUNK", 150)
    monkeypatch.setattr(chain, "CHUNK", 60)
    snapshot = full(23)
    kinds = [type_ for _, type_, _ in segments(written(tmp_path, snapshot))]
    assert min(kinds.count(kind) for kind in (VEC, COLUMNS_KIND, METADATA_KIND, 0xF4)) > 1
    assert kinds.count(0xF5) == 1, "official verifiers take each segment for a chain of its own"
    assert difference(read_rvf(tmp_path / "written.rvf"), snapshot) is None


def test_arrays_of_any_layout_are_taken(tmp_path):
    snapshot = full()
    odd = replace(
        snapshot,
        ids=np.repeat(snapshot.ids, 2)[::2],
        vectors=np.asfortranarray(snapshot.vectors),
        columns={name: np.repeat(c, 2)[::2] for name, c in snapshot.columns.items()},
    )
    assert written(tmp_path, odd) == written(tmp_path, snapshot)


def test_the_chain_in_the_file_is_that_of_the_bodies(tmp_path):
    snapshot = full()
    data = written(tmp_path, snapshot)
    [(at, _, length)] = [s for s in segments(data) if s[1] == 0xF5]
    entries = data[at + HEADER + 64 : at + HEADER + length]
    assert entries == chain.of_bodies(snapshot.chain)
    assert chain.verified(entries)
    assert [struct.unpack_from("<Q", entries, 73 * i + 64)[0] for i in range(3)] == [
        json.loads(body)["time"] for body in snapshot.chain
    ]
    assert struct.unpack_from("<Q", chain.of_bodies([b'{"time":1.5}']), 64) == (0,)


BAD = {
    "ids of another dtype": {"ids": np.arange(12, dtype=np.int32)},
    "an id twice": {"ids": np.zeros(12, np.int64)},
    "a negative id": {"ids": np.arange(-1, 11)},
    "fewer vectors": {"vectors": np.ones((11, 4), np.float32)},
    "wide vectors": {"vectors": np.ones((12, 4))},
    "vectors without dimensions": {"vectors": np.ones((12, 0), np.float32)},
    "a vector that is not finite": {"vectors": np.full((12, 4), np.inf, np.float32)},
    "a context of another dimension": {"context": np.ones((2, 3), np.float32)},
    "a context that is not finite": {"context": np.full((2, 4), np.nan, np.float32)},
    "missing columns": {"columns": {}},
    "metadata for fewer": {"metadata": [None]},
    "metadata with NaN": {"metadata": [{"a": float("nan")}] * 12},
    "metadata that is too large": {"metadata": [{"a": "x" * 16384}] * 12},
    "a state with NaN": {"state": {"a": float("nan")}},
    "a state that JSON would change": {"state": {"a": (1, 2)}},
    "a state with keys that are no text": {"state": {1: 2}},
    "a state that is too deep": {"state": json.loads('{"a":' * 40 + "1" + "}" * 40)},
    "a state beyond 64 bits": {"state": {"a": 2**70}},
    "a record that is no object": {"chain": [b"7"]},
    "a record on two lines": {"chain": [b'{"a":\n1}']},
    "a record with a key twice": {"chain": [b'{"a":1,"a":1}']},
    "a record of text": {"chain": ['{"a":1}']},
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD.keys())
def test_what_could_not_come_back_is_refused(tmp_path, change):
    with pytest.raises(MemsiftError, match=next(iter(change))):
        write_rvf(tmp_path / "no.rvf", replace(full(), **change))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cost", -1),
        ("importance", 1.5),
        ("importance", -0.1),
        ("created_at", np.inf),
        ("created_at", np.nan),
    ],
)
def test_column_values_out_of_range_are_refused(tmp_path, name, value):
    snapshot = full()
    wrong = snapshot.columns[name].copy()
    wrong[3] = value
    with pytest.raises(InvalidValue, match=name):
        write_rvf(tmp_path / "no.rvf", replace(snapshot, columns=snapshot.columns | {name: wrong}))


# ---- files of the official tools, by hand ----------------------------------------------------------


def test_an_official_file_gives_its_live_rows(tmp_path):
    got = read_rvf(official().save(tmp_path))
    assert got.ids.tolist() == [1, 2]
    assert got.vectors.tolist() == [[1.0, 0.0], [np.float32(0.8), np.float32(0.6)]]
    assert got.ids.dtype == np.int64
    assert got.vectors.dtype == np.float32
    assert (got.columns, got.metadata, got.state, got.context, got.chain) == (None,) * 5


def test_the_later_directory_entry_wins_not_the_later_place(tmp_path):
    hand = Hand(1).rows((7, [1.0])).rows((7, [2.0]))
    hand.directory.reverse()
    assert read_rvf(hand.manifest().save(tmp_path)).vectors.tolist() == [[1.0]]


def test_a_row_that_repeats_within_one_segment_is_the_last(tmp_path):
    hand = Hand(1).rows((7, [1.0]), (5, [3.0]), (7, [2.0])).manifest()
    got = read_rvf(hand.save(tmp_path))
    assert (got.ids.tolist(), got.vectors.tolist()) == ([5, 7], [[3.0], [2.0]])


def test_a_deleted_id_stays_deleted_when_it_is_added_again(tmp_path):
    hand = Hand(1).rows((7, [1.0])).manifest([7]).rows((7, [2.0])).manifest([7])
    assert read_rvf(hand.save(tmp_path)).ids.tolist() == []


def test_segments_may_be_aligned_and_the_tail_may_be_zeros(tmp_path):
    hand = Hand(3, aligned=True).rows((1, [1, 2, 3])).witness("ingest").rows((2, [4, 5, 6]))
    hand.manifest()
    hand.data += bytes(5000)
    got = read_rvf(hand.save(tmp_path))
    assert (got.ids.tolist(), got.vectors.tolist()) == ([1, 2], [[1, 2, 3], [4, 5, 6]])


def test_a_torn_tail_gives_the_state_before_it(tmp_path):
    hand = Hand(1).rows((1, [1.0])).manifest()
    ends = [len(hand.data)]
    for id_ in (2, 3):
        hand.rows((id_, [1.0])).witness("ingest").manifest()
        ends.append(len(hand.data))
    whole = hand.data
    for stop in range(ends[0], len(whole) + 1):
        hand.data = whole[:stop]
        got = read_rvf(hand.save(tmp_path))
        assert len(got.ids) == sum(end <= stop for end in ends), stop


def test_a_manifest_is_found_however_far_from_the_end(tmp_path):
    rows = [(id_, [float(id_)]) for id_ in range(1, 4)]
    hand = Hand(1).rows(*rows).manifest()
    # Window edges of the search fall on every byte of the header and of the manifest's fixed part.
    start = hand.directory[-1][1]
    for extra in (*range(64 * 1024 - 300, 64 * 1024 + 10), 1024 * 1024 + 64 * 1024 - start):
        path = hand.save(tmp_path)
        with path.open("ab") as file:
            file.truncate(len(hand.data) + extra)
        assert read_rvf(path).ids.tolist() == [1, 2, 3], extra


def test_a_hash_that_is_not_set_is_not_checked(tmp_path):
    hand = Hand(1).add(VEC, vec([(1, [1.0])]), hashed=False).manifest()
    assert read_rvf(hand.save(tmp_path)).ids.tolist() == [1]


def test_a_manifest_without_deletions_or_trailer_is_read(tmp_path):
    hand = Hand(1).rows((1, [1.0])).manifest(trailer=False)
    assert read_rvf(hand.save(tmp_path)).ids.tolist() == [1]
    at = hand.directory[-1][1]
    short = hand.data[at + HEADER : -4]
    hand.data = hand.data[:at]
    assert read_rvf(hand.add(5, short).save(tmp_path)).ids.tolist() == [1]


def test_somebody_else_s_private_segments_are_left_alone(tmp_path):
    hand = Hand(1).rows((1, [1.0])).add(0xF0, b"not ours").add(0xFA, bytes(200)).manifest()
    got = read_rvf(hand.save(tmp_path))
    assert got.ids.tolist() == [1]
    assert got.columns is None


def test_ids_of_the_upper_half_are_refused_unless_deleted(tmp_path):
    hand = Hand(1).rows((2**64 - 1, [1.0]), (2**63 - 1, [1.0]))
    assert read_rvf(hand.manifest([2**64 - 1]).save(tmp_path)).ids.tolist() == [2**63 - 1]
    with pytest.raises(CorruptStore, match=r"ids below 2\^63"):
        read_rvf(hand.manifest().save(tmp_path))


def branch() -> Hand:
    return Hand(1).rows((1, [1.0])).add(0x20, bytes(100)).manifest()


def listed_twice() -> Hand:
    hand = Hand(1).rows((1, [1.0]))
    hand.directory.append(hand.directory[-1])
    return hand.manifest()


def another_dimension() -> Hand:
    return Hand(2).rows((1, [1.0])).manifest()


def not_finite() -> Hand:
    return Hand(2).rows((1, [1.0, np.inf]), (2, [1.0, 1.0])).manifest()


def both_infinities() -> Hand:
    return Hand(2).rows((1, [-np.inf, np.inf])).manifest()


def a_row_too_few() -> Hand:
    return Hand(1).add(VEC, vec([(1, [1.0]), (2, [1.0])])[:-4]).manifest()


def too_many_rows() -> Hand:
    return Hand(1).add(VEC, struct.pack("<HI", 1, 2**32 - 1) + bytes(12)).manifest()


def no_head() -> Hand:
    return Hand(1).add(VEC, b"\1\0").manifest()


def no_dimensions() -> Hand:
    return Hand(0)


def type_of_another() -> Hand:
    hand = Hand(1).witness("ingest")
    hand.directory[-1] = (*hand.directory[-1][:3], VEC)
    return hand.manifest()


def beyond_the_end() -> Hand:
    hand = Hand(1).rows((1, [1.0]))
    hand.directory[-1] = (1, 2**63, 2**63, VEC)
    return hand.manifest()


def compressed() -> Hand:
    hand = Hand(1).rows((1, [1.0]))
    at = hand.directory[-1][1]
    hand.data = hand.data[: at + 6] + b"\1" + hand.data[at + 7 :]
    return hand.manifest()


def too_many_deletions() -> Hand:
    hand = Hand(1)
    return hand.add(5, struct.pack("<IHQIBBHI", 1, 1, 0, 0, 0, 2, 0, 2**32 - 1))


def half_a_count() -> Hand:
    hand = Hand(1)
    return hand.add(5, struct.pack("<IHQIBBH", 1, 1, 0, 0, 0, 2, 0) + b"\0\0")


WRONG = {
    branch: "directory",
    listed_twice: "directory",
    beyond_the_end: "directory",
    another_dimension: "vectors",
    not_finite: "vectors",
    both_infinities: "vectors",
    a_row_too_few: "vectors",
    too_many_rows: "vectors",
    no_head: "vectors",
    type_of_another: "vectors",
    compressed: "vectors",
    no_dimensions: "manifest",
    too_many_deletions: "manifest",
    half_a_count: "manifest",
}


@pytest.mark.parametrize("make", WRONG, ids=lambda make: make.__name__)
def test_a_file_that_makes_no_sense_is_refused(tmp_path, make):
    path = make().save(tmp_path)
    with pytest.raises(CorruptStore) as caught:
        read_rvf(path)
    assert caught.value.section == WRONG[make]
    assert 0 <= caught.value.offset <= path.stat().st_size
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"SFVR", bytes(64), bytes(100_000), b"SFVR\1\5" * 20_000])
def test_a_file_without_a_manifest_is_refused(tmp_path, data):
    (tmp_path / "no.rvf").write_bytes(data)
    with pytest.raises(CorruptStore, match="manifest"):
        read_rvf(tmp_path / "no.rvf")


# ---- private segments ------------------------------------------------------------------------------


def with_private(*segments: tuple[int, bytes]) -> Hand:
    hand = Hand(1).rows((1, [1.0]), (2, [2.0]), (3, [3.0]))
    for kind, payload in segments:
        hand.add(kind, payload)
    return hand.manifest()


def column_body(
    arrays: dict[str, tuple[str, bytes]], count: int, table: bytes | None = None
) -> bytes:
    listed = [{"name": n, "dtype": d, "count": count} for n, (d, _) in arrays.items()]
    text = json.dumps(listed).encode() if table is None else table
    body = struct.pack("<I", len(text)) + text
    for _, raw in arrays.values():
        body += bytes(-len(body) % 8) + raw
    return body + bytes(-len(body) % 8)


def packed(code: str, *numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}{code}", *numbers)


def test_columns_are_joined_by_id_and_what_is_missing_takes_its_default(tmp_path):
    body = column_body(
        {
            "ids": ("<i8", packed("q", 9, 3, 1)),
            "cost": ("<i8", packed("q", 90, 30, 10)),
            "pinned": ("|b1", b"\0\1\0"),
            "of a later version": ("<f4", packed("f", 1, 2, 3)),
        },
        3,
    )
    later = column_body({"ids": ("<i8", packed("q", 4))}, 1)
    hand = with_private((0xF0, private(0xF0, body)), (0xF0, private(0xF0, later)))
    got = read_rvf(hand.save(tmp_path)).columns
    assert got.keys() == columns.CARRIED.keys()
    assert got["cost"].tolist() == [10, 1, 30]
    assert got["pinned"].tolist() == [False, False, True]
    assert np.isnan(got["importance"]).all()
    assert all(got[name].dtype == COLUMNS[name][0] for name in got)


def test_metadata_is_joined_by_id(tmp_path):
    lines = b'{"id":3,"metadata":{"a":1}}\n{"metadata":{"b":2},"id":8}\n'
    hand = with_private((0xF1, private(0xF1, lines)))
    assert read_rvf(hand.save(tmp_path)).metadata == [None, None, {"a": 1}]


def test_a_version_that_must_not_be_ignored_is_refused(tmp_path):
    for kind, version in ((0xF0, 2), (0xF7, 1)):
        path = with_private((kind, private(kind, b"?", version))).save(tmp_path)
        with pytest.raises(CorruptStore, match="version"):
            read_rvf(path)


def test_a_version_that_may_be_ignored_is(tmp_path):
    unknown = [(kind, private(kind, b"?", 2, required=False)) for kind in (0xF3, 0xF7, 0xFF)]
    got = read_rvf(with_private(*unknown).save(tmp_path))
    assert got.ids.tolist() == [1, 2, 3]
    assert got.context is None


IDS = {"ids": ("<i8", packed("q", 1, 2, 3))}
NAN = packed("f", 0, 2, 0)
BODIES: dict[str, tuple[int, bytes]] = {
    "columns: nothing": (0xF0, b""),
    "columns: a table beyond the body": (0xF0, packed("I", 2**32 - 1) + b"[]"),
    "columns: an empty table": (0xF0, column_body({}, 0)),
    "columns: a table that is no JSON": (0xF0, column_body(IDS, 3, b"[{]")),
    "columns: a table that is no list": (0xF0, column_body(IDS, 3, b'{"name":1}')),
    "columns: objects": (0xF0, column_body({"ids": ("|O", bytes(24))}, 3)),
    "columns: big-endian": (0xF0, column_body({"ids": (">i8", bytes(24))}, 3)),
    "columns: a dtype that is no text": (
        0xF0,
        column_body(IDS, 3, b'[{"name":"ids","dtype":[],"count":3}]'),
    ),
    "columns: a negative count": (0xF0, column_body(IDS, -1)),
    "columns: a huge count": (0xF0, column_body(IDS, 2**63)),
    "columns: a count beyond 64 bits": (0xF0, column_body(IDS, 2**70)),
    "columns: a count that is true": (0xF0, column_body(IDS, True)),
    "columns: no ids": (0xF0, column_body({"cost": IDS["ids"]}, 3)),
    "columns: an id twice": (0xF0, column_body({"ids": ("<i8", packed("q", 1, 2, 1))}, 3)),
    "columns: a name twice": (
        0xF0,
        column_body(IDS, 3, b'[{"name":"ids","dtype":"<i8","count":1},' * 2 + b"]"),
    ),
    "columns: bytes to spare": (0xF0, column_body(IDS, 3) + bytes(8)),
    "columns: another dtype": (0xF0, column_body(IDS | {"cost": ("<f8", bytes(24))}, 3)),
    "columns: a third truth": (0xF0, column_body(IDS | {"pinned": ("|b1", b"\0\2\1")}, 3)),
    "columns: a negative cost": (0xF0, column_body(IDS | {"cost": ("<i8", b"\xff" * 24)}, 3)),
    "columns: importance above one": (0xF0, column_body(IDS | {"importance": ("<f4", NAN)}, 3)),
    "metadata: no end of line": (0xF1, b'{"id":1,"metadata":{}}'),
    "metadata: a line too long": (0xF1, b'{"id":1,"metadata":{"a":"' + b"x" * 17000 + b'"}}\n'),
    "metadata: too large": (0xF1, b'{"id":1,"metadata":{"a":"' + b"x" * 16390 + b'"}}\n'),
    "metadata: no object": (0xF1, b"[1]\n"),
    "metadata: no metadata": (0xF1, b'{"id":1}\n'),
    "metadata: null": (0xF1, b'{"id":1,"metadata":null}\n'),
    "metadata: more than that": (0xF1, b'{"id":1,"metadata":{},"x":1}\n'),
    "metadata: an id twice": (0xF1, b'{"id":1,"metadata":{}}\n' * 2),
    "metadata: an id that is true": (0xF1, b'{"id":true,"metadata":{}}\n'),
    "metadata: NaN": (0xF1, b'{"id":1,"metadata":{"a":NaN}}\n'),
    "metadata: infinite by size": (0xF1, b'{"id":1,"metadata":{"a":1e999}}\n'),
    "metadata: beyond 64 bits": (0xF1, b'{"id":1,"metadata":{"a":9223372036854775808}}\n'),
    "metadata: very many digits": (0xF1, b'{"id":1,"metadata":{"a":' + b"9" * 9000 + b"}}\n"),
    "metadata: a key twice": (0xF1, b'{"id":1,"metadata":{"a":1,"a":2}}\n'),
    "metadata: a lone surrogate": (0xF1, b'{"id":1,"metadata":{"a":"\\ud800"}}\n'),
    "metadata: a NUL": (0xF1, b'{"id":1,"metadata":{"a":"\\u0000"}}\n'),
    "metadata: no UTF-8": (0xF1, b'{"id":1,"metadata":{"a":"\xff"}}\n'),
    "metadata: too deep": (0xF1, b'{"id":1,"metadata":{"a":' + b"[" * 8 + b"]" * 8 + b"}}\n"),
    "metadata: far too deep": (0xF1, b"[" * 16000 + b"\n"),
    "state: nothing": (0xF2, b""),
    "state: no object": (0xF2, b"[]"),
    "state: a key twice": (0xF2, b'{"a":1,"a":1}'),
    "state: too deep": (0xF2, b'{"a":' * 33 + b"1" + b"}" * 33),
    "state: too large": (0xF2, b'{"a":"' + b"x" * 2**20 + b'"}'),
    "context: nothing": (0xF3, b""),
    "context: another dimension": (0xF3, packed("I", 1, 2) + bytes(8)),
    "context: too few": (0xF3, packed("I", 3, 1) + bytes(8)),
    "context: huge": (0xF3, packed("I", 2**32 - 1, 1) + bytes(8)),
    "context: not finite": (0xF3, packed("I", 1, 1) + packed("f", float("nan"))),
    "audit: no object": (0xF4, b"7\n"),
    "audit: no JSON": (0xF4, b"{\n"),
    "audit: no end of line": (0xF4, b"{}"),
    "audit: an empty line": (0xF4, b"\n"),
    "seal: too short": (0xFF, b"?"),
    "seal: another length": (0xFF, packed("I", 1, 0, 0, 0) + bytes(range(16)) + bytes(16)),
    "manifest: another file id than the seal's": (0xFF, packed("I", 1, 0) + bytes(40)),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_private_body_that_makes_no_sense_is_refused(tmp_path, name):
    kind, body = BODIES[name]
    path = with_private((kind, private(kind, body))).save(tmp_path)
    with pytest.raises(CorruptStore) as caught:
        read_rvf(path)
    assert caught.value.section == name.split(":")[0]
    assert len(str(caught.value)) < 500


def test_a_private_segment_that_lies_about_itself_is_refused(tmp_path):
    good = private(0xF2, b"{}")
    short = struct.pack("<8sHHIQQ", b"MEMSIFT\0", 1, 0xF2, 1, 2**63, 0)
    short += hashlib.sha256(short + b"{}").digest() + b"{}"
    for kind, payload in ((0xF3, good), (0xF2, short), (0xF2, good[:-1] + b"]")):
        with pytest.raises(CorruptStore):
            read_rvf(with_private((kind, payload)).save(tmp_path))
    with pytest.raises(CorruptStore, match="one such segment"):
        read_rvf(with_private((0xF2, good), (0xF2, good)).save(tmp_path))


def test_a_chain_over_other_records_is_refused(tmp_path):
    audit = (0xF4, private(0xF4, b'{"seq":1}\n'))
    other = (0xF5, private(0xF5, chain.of_bodies([b'{"seq":2}']), required=False))
    with pytest.raises(CorruptStore, match="chain"):
        read_rvf(with_private(audit, other).save(tmp_path))
    assert read_rvf(with_private(audit).save(tmp_path)).chain == [b'{"seq":1}']


def test_a_segment_out_of_another_file_breaks_the_seal(tmp_path):
    first, second = written(tmp_path, full(seed=1)), written(tmp_path, full(seed=2))
    for at, type_, length in segments(first)[:-2]:
        stop = at + HEADER + length
        mixed = first[:at] + second[at:stop] + first[stop:]
        (tmp_path / "mixed.rvf").write_bytes(mixed)
        if mixed != first:
            with pytest.raises(CorruptStore, match="seal"):
                read_rvf(tmp_path / "mixed.rvf")
        assert mixed != first or type_ not in (VEC, COLUMNS_KIND)


def test_the_directory_lists_every_segment(tmp_path):
    data = written(tmp_path, full())
    *before, (at, type_, _) = segments(data)
    assert type_ == 5
    count = struct.unpack_from("<I", data, at + HEADER + 14)[0]
    entries = [
        struct.unpack_from("<QQQB", data, at + HEADER + 22 + ENTRY * i) for i in range(count)
    ]
    assert [(offset, kind, length) for _, offset, length, kind in entries] == before
    assert data[at + HEADER + 19] == 2, "cosine"


def test_an_error_says_section_and_offset(tmp_path):
    (tmp_path / "no.rvf").write_bytes(bytes(99))
    with pytest.raises(CorruptStore, match=r"manifest.*99") as caught:
        read_rvf(tmp_path / "no.rvf")
    assert isinstance(caught.value, ValueError)
    assert (caught.value.section, caught.value.offset) == ("manifest", 99)
