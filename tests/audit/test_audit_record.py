"""A record has exactly one spelling, and nothing else is read as one."""

from __future__ import annotations

import hashlib
import json
import math
import random
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from audit_logs import STORE, change, honest_log
from hypothesis import given, settings
from hypothesis import strategies as st

from memsift import MemsiftError
from memsift.audit import InvalidRecord, Record, State, link
from memsift.audit.commitment import EMPTY
from memsift.audit.shape import BODY_BYTES, FIELDS, read

GOLDEN = (
    b'{"after":{"bytes":14400,"cost":380,"digest":"2222222222222222222222222222222222222222222222222222222222222222",'
    b'"entries":9},"before":{"bytes":16000,"cost":421,"digest":"11111111111111111111111111111111111111111111111111111'
    b'11111111111","entries":10},"budget":{"cost":400,"entries":10},"context_digest":"3333333333333333333333333333333'
    b'333333333333333333333333333333333","evicted_commitment":"44444444444444444444444444444444444444444444444444444444'
    b'44444444","evicted_count":1,"forced":false,"kind":"compaction","note":{"automatic":true},"policy":{"configuration'
    b'":{"alpha":0.25,"beta":0.35,"gamma":0.4,"\xc3\xa9":null},"name":"coherence"},"prev":"9a5f5e3b2d3b1d1a6bd8bd1ba48df3'
    b'2d4e1d8c6f46f70b0b21a9a6f2c8a3b6e5","seq":7,"spared":2,"time":1764000000250000000}'
)
GOLDEN_HASH = "8bd9c21b2e07e42b11bb86ff9b68f0ee8980755693ca1c0f6e3e72ee9bb57421"


def golden() -> Record:
    return Record(
        seq=7,
        prev="9a5f5e3b2d3b1d1a6bd8bd1ba48df32d4e1d8c6f46f70b0b21a9a6f2c8a3b6e5",
        time=1_764_000_000_250_000_000,
        kind="compaction",
        policy={
            "name": "coherence",
            "configuration": {"é": None, "alpha": 0.25, "beta": 0.35, "gamma": 0.4},
        },
        budget={"entries": 10, "cost": 400},
        before=State(10, 16000, 421, "1" * 64),
        after=State(9, 14400, 380, "2" * 64),
        context_digest="3" * 64,
        evicted_count=1,
        evicted_commitment="4" * 64,
        spared=2,
        forced=False,
        note={"automatic": True},
    )


def test_the_golden_record_is_spelt_as_ever():
    assert golden().body() == GOLDEN
    assert golden().hash == GOLDEN_HASH == hashlib.sha256(b"\x00" + GOLDEN).hexdigest()
    assert Record.parse(GOLDEN) == golden()


def test_a_record_is_a_value():
    record = golden()
    with pytest.raises(FrozenInstanceError):
        record.seq = 8
    policy = {"name": "lru", "configuration": {"window": 3}}
    record = replace(record, policy=policy)
    policy["configuration"]["window"] = 4
    assert record.policy["configuration"]["window"] == 3, "a caller's dict changed a record"
    record.policy["configuration"]["window"] = 5
    assert b'"window":3' in record.body(), "what was written stays written"
    assert len({golden(), golden(), record}) == 2


def test_link_writes_seconds_as_nanoseconds():
    state = State(0, 0, 0, None)
    record = link(None, STORE, kind="erase", time=1_764_000_000.5, before=state, after=state)
    assert (record.seq, record.time) == (1, 1_764_000_000_500_000_000)
    for time in (-1.0, math.nan, math.inf, 10**10, True, "now"):
        with pytest.raises(InvalidRecord, match="time must be unix seconds"):
            link(None, STORE, kind="erase", time=time, before=state, after=state)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seq", 0),
        ("seq", True),
        ("seq", 1.0),
        ("seq", -1),
        ("seq", 10**19),
        pytest.param("seq", 10**6000, id="seq-huge"),
        ("seq", np.int64(3)),
        ("prev", "9" * 63),
        ("prev", "A" * 64),
        ("prev", None),
        ("prev", b"9" * 64),
        ("time", 1.5),
        ("kind", "forget"),
        ("kind", None),
        ("kind", ["erase"]),
        ("policy", {"name": "lru"}),
        ("policy", {"name": "", "configuration": {}}),
        ("policy", {"name": "n" * 129, "configuration": {}}),
        ("policy", {"name": 3, "configuration": {}}),
        ("policy", {"name": "lru", "configuration": [1]}),
        ("policy", {"name": "lru", "configuration": {}, "more": 1}),
        ("policy", {"name": "lru", "configuration": {"a": math.nan}}),
        ("policy", {"name": "lru", "configuration": {"a": -math.inf}}),
        ("policy", {"name": "lru", "configuration": {"a": {1, 2}}}),
        ("policy", {"name": "lru", "configuration": {"a": "\ud800"}}),
        ("policy", {"name": "lru", "configuration": {"a": 1, 1: 2}}),
        ("policy", {"name": "lru", "configuration": {"1": 1, 1: 2}}),
        ("policy", {"name": "lru", "configuration": {"a": "x" * BODY_BYTES}}),
        ("policy", "lru"),
        ("budget", {"tokens": 3}),
        ("budget", {"entries": 1.5}),
        ("budget", {"entries": None}),
        ("budget", {"entries": True}),
        ("budget", None),
        ("before", (1, 2, 3, None)),
        ("before", State(1, 2, -3, None)),
        ("before", State(1, 2, 3.5, None)),
        ("after", State(1, 2, 3, "short")),
        ("context_digest", "text"),
        ("context_digest", ""),
        ("evicted_count", -1),
        ("evicted_count", None),
        ("evicted_count", 0),
        ("evicted_commitment", EMPTY),
        ("evicted_commitment", None),
        ("spared", [1]),
        ("forced", 1),
        ("forced", None),
        ("note", {"memory": "Ann lives in Graz"}),
        ("note", {"share": 0.5}),
        ("note", {"Ann": 1}),
        ("note", {"ids": [1, 2]}),
        ("note", {"deep": {"a": 1}}),
        ("note", {"hash": "A" * 64}),
        ("note", {"hash": "a" * 129}),
        ("note", None),
    ],
)
def test_a_wrong_field_is_refused_by_name(name, value):
    with pytest.raises(InvalidRecord, match=rf"\b{name}\b|16,384 bytes") as caught:
        replace(golden(), **{name: value})
    assert isinstance(caught.value, MemsiftError)
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) < 300
    assert "Graz" not in str(caught.value)


def test_too_deep_a_policy_is_refused_and_not_a_crash():
    def nested(depth):
        value: dict = {}
        for _ in range(depth):
            value = {"a": value}
        return {"name": "deep", "configuration": value}

    assert replace(golden(), policy=nested(14)).policy == nested(14)
    for depth in (15, 100, 1500):
        with pytest.raises(InvalidRecord, match="policy"):
            replace(golden(), policy=nested(depth))
    for bomb in (b'{"a":' * 3000, b"[" * 8000):
        body = GOLDEN.replace(b'"name":"coherence"', b'"name":' + bomb)
        with pytest.raises(InvalidRecord):
            Record.parse(body)


@pytest.mark.parametrize(
    ("kind", "note"),
    [
        ("prune", {}),
        ("prune", {"upto_seq": 3}),
        ("prune", {"upto_seq": "3", "upto_hash": "a" * 64}),
        ("prune", {"upto_seq": 3, "upto_hash": "a" * 63}),
        ("prune", {"upto_seq": 7, "upto_hash": "a" * 64}),
        ("key", {}),
        ("key", {"key_id": "a" * 15}),
        ("key", {"key_id": 5}),
    ],
)
def test_a_note_tells_what_its_kind_needs(kind, note):
    with pytest.raises(InvalidRecord, match="note"):
        replace(golden(), kind=kind, note=note)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"after"', b'{ "after"'),
        (b'"cost":380', b'"cost": 380'),
        (b'"cost":380', b'"cost":0380'),
        (b'"cost":380', b'"cost":380.0'),
        (b'"cost":380', b'"cost":3.8e2'),
        (b'"cost":380', b'"cost":-0'),
        (b'"cost":380,', b'"cost":380,"cost":380,'),
        (b'"seq":7', b'"seq":7,"seq":7'),
        (b'"seq":7', b'"seq":8,"seq":7'),
        (b'"alpha":0.25', b'"alpha":0.250'),
        (b'"alpha":0.25', b'"alpha":NaN'),
        (b'"alpha":0.25', b'"alpha":1e400'),
        (b'"alpha":0.25', b'"alpha":0.25,"alpha":0.25'),
        (b'"alpha":0.25,"beta":0.35', b'"beta":0.35,"alpha":0.25'),
        (b"\xc3\xa9", b"\\u00e9"),
        (b"\xc3\xa9", b"\xe9"),
        (b"\xc3\xa9", b"\\ud800"),
        (b'"cost":400,"entries":10', b'"entries":10,"cost":400'),
        (b'"note":{"automatic":true}', b'"note":{"automatic": true}'),
        (b'"note":{"automatic":true},', b""),
        (b'"note":{', b'"more":1,"note":{'),
        (b'"policy"', b'"polic\\u0079"'),
        (b'"forced":false', b'"forced":0'),
        (b'"forced":false', b'"forced":"\\ud800"'),
        (b'"forced":false', b'"forced":NaN'),
        (b"coherence", b"coher\nence"),
        (b"000}", b"000}\n"),
        (b"000}", b"000} "),
        (b'{"after"', b'\xef\xbb\xbf{"after"'),
    ],
)
def test_another_spelling_is_no_record(old, new):
    body = GOLDEN.replace(old, new, 1)
    assert body != GOLDEN
    for reader in (read, Record.parse):
        with pytest.raises(InvalidRecord):
            reader(body)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"null", b"7", b"\xff", b'"a"', b"{" * 99999, GOLDEN * 2]
)
def test_other_bytes_are_no_record(body):
    with pytest.raises(InvalidRecord):
        Record.parse(body)


def test_every_missing_or_unknown_field_is_named():
    for name in FIELDS:
        plain = json.loads(GOLDEN)
        del plain[name]
        body = json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()
        with pytest.raises(InvalidRecord, match=f"{name} is missing"):
            Record.parse(body)
    plain = json.loads(GOLDEN) | {"text": "no"}
    with pytest.raises(InvalidRecord, match="'text'"):
        Record.parse(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode())


numbers = st.one_of(st.integers(0, 9), st.integers(0, 10**19 - 1))
hashes = st.binary(min_size=32, max_size=32).map(bytes.hex)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
policies = st.none() | st.fixed_dictionaries(
    {
        "name": text.filter(bool),
        "configuration": st.dictionaries(text, json_values, max_size=4),
    }
)
states = st.builds(State, numbers, numbers, numbers, st.none() | hashes)
evictions = st.just((0, EMPTY)) | st.tuples(numbers.filter(bool), hashes)
notes = st.dictionaries(
    st.from_regex("[a-z][a-z0-9_]{0,9}", fullmatch=True),
    numbers | st.none() | st.booleans() | hashes,
)


@st.composite
def records(draw):
    count, commitment = draw(evictions)
    kind, note, seq = (
        draw(st.sampled_from(["compaction", "erase", "restore"])),
        draw(notes),
        draw(numbers) + 2,
    )
    if draw(st.integers(0, 4)) == 0:
        kind, note = "prune", {"upto_seq": draw(st.integers(0, seq - 1)), "upto_hash": draw(hashes)}
    return Record(
        seq=min(seq, 10**19 - 1),
        prev=draw(hashes),
        time=draw(numbers),
        kind=kind,
        policy=draw(policies),
        budget=draw(st.dictionaries(st.sampled_from(["entries", "bytes", "cost"]), numbers)),
        before=draw(states),
        after=draw(states),
        context_digest=draw(st.none() | hashes),
        evicted_count=count,
        evicted_commitment=commitment,
        spared=draw(numbers),
        forced=draw(st.booleans()),
        note=note,
    )


@settings(max_examples=300, deadline=None)
@given(records())
def test_there_and_back(record):
    body = record.body()
    again = Record.parse(body)
    assert again == record
    assert again.body() == body
    assert again.hash == record.hash
    plain = json.loads(body)
    assert (
        body
        == json.dumps(
            plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        ).encode()
    )
    assert set(plain) == set(FIELDS)


def is_a_record(body: bytes) -> bool:
    """The rule again, the slow and plain way."""

    def once(pairs):
        assert len(dict(pairs)) == len(pairs), "repeated key"
        return dict(pairs)

    try:
        plain = json.loads(body.decode(), object_pairs_hook=once, parse_constant=lambda c: 1 / 0)
        states = {n: State(**plain[n]) for n in ("before", "after")}
        made = Record(**{**plain, **states})
    except (ValueError, TypeError, KeyError, AssertionError, ZeroDivisionError, RecursionError):
        return False
    return made.body() == body


@settings(max_examples=400, deadline=None)
@given(records(), st.data())
def test_bytes_are_read_exactly_if_they_are_some_record_s_own(record, data):
    body = bytearray(record.body())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        how = data.draw(st.sampled_from(["set", "cut", "put", "copy"]))
        if how == "cut":
            del body[at : at + data.draw(st.integers(1, 4))]
        elif how == "copy":
            body[at:at] = body[data.draw(st.integers(0, len(body) - 1)) :][:20]
        else:
            byte = data.draw(st.sampled_from(list(b'0159aft{}[]",:.-e \n\\\x00\xff')))
            body[at : at + (how == "set")] = bytes([byte])
        if not body:
            break
    try:
        read(bytes(body))
        taken = True
    except InvalidRecord:
        taken = False
    assert taken == is_a_record(bytes(body))


def test_what_the_fast_reader_says_is_what_the_record_says():
    for record in honest_log(random.Random(3), 40, prunes=3).records:
        seen = read(record.body())
        assert (seen.seq, seen.prev, seen.kind) == (record.seq, record.prev, record.kind)
        assert json.loads(seen.note) == record.note


def test_records_differ_by_any_field():
    rng = random.Random(1)
    record = change(rng, None)
    assert len({record.hash, replace(record, spared=99).hash, change(rng, None).hash}) == 3
