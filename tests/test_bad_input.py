"""Whatever comes through a door: accepted and equal to the plain thing, or refused whole and in good words.

The rows are public bug reports of other vector stores: NaN in a vector, a string in a list, k beyond n, NUL in
metadata, naive dates, counters that overflow, clean-ups that empty a store.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from memsift import (
    AccessLog,
    Budget,
    Coherence,
    CoherencePolicy,
    FifoPolicy,
    LfuPolicy,
    LruPolicy,
    MemoryStore,
    MemoryView,
    MemsiftError,
    RandomPolicy,
    Recency,
)
from memsift.errors import BudgetExceeded, InvalidMetadata, InvalidValue
from model import Clock, dump

DIM = 8
QUERY = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
NAN, INF = math.nan, math.inf


def filled(n: int = 5, dim: int = DIM, **named: Any) -> MemoryStore:
    """A store with a past: entries with metadata, searches, a pin, a use, a hole from a deletion."""
    store = MemoryStore(dim, clock=Clock(), **named)
    rows = np.random.default_rng(7).normal(size=(n + 1, dim))
    store.add_many(rows, [{"n": i} for i in range(n + 1)], cost=list(range(n + 1)))
    store.search(rows[-1], k=2)
    store.pin(n)
    store.feedback(n)
    store.delete(0)
    return store


def check_refused(
    store: MemoryStore, call: Callable[[], Any], builtin: type[Exception], words: tuple[str, ...]
) -> None:
    """The call raises an error that is ours and Python's, in good words, and leaves no trace."""
    before = dump(store)
    query = [1.0] * store.dim
    baseline = store.search(query, 10, touch=False)
    with pytest.raises(MemsiftError) as caught:
        call()
    message = str(caught.value)
    assert isinstance(caught.value, builtin), repr(caught.value)
    assert [w for w in (*words, " must ", "got ") if w not in message] == [], message
    assert len(message) < 300, message
    assert dump(store) == before
    assert store.search(query, 10, touch=False) == baseline


def cases(table: dict[str, tuple[Any, ...]]) -> Any:
    return [pytest.param(*row, id=name) for name, row in table.items()]


# ---- vectors -------------------------------------------------------------------------------------


def spoilt(value: float, dim: int = DIM, dtype: Any = np.float64) -> np.ndarray:
    """A good vector but for its last element but one."""
    row = np.arange(1, dim + 1).astype(dtype)
    row[-2] = value
    return row


BAD_VECTORS: dict[str, tuple[Any, type[Exception], str]] = {
    "nan": (spoilt(NAN), ValueError, "6] must be finite"),
    "inf": (spoilt(INF), ValueError, "6] must be finite"),
    "minus inf": (spoilt(-INF), ValueError, "6] must be finite"),
    "float32 nan": (spoilt(NAN, dtype=np.float32), ValueError, "6] must be finite"),
    "float16 inf": (spoilt(INF, dtype=np.float16), ValueError, "6] must be finite"),
    "beyond float32": (spoilt(1e300), ValueError, "got 1e+300"),
    "zeros": (np.zeros(DIM), ValueError, "got a vector of length zero"),
    "minus zeros": (-np.zeros(DIM, np.float32), ValueError, "got a vector of length zero"),
    "subnormal": (np.full(DIM, 1e-45, np.float32), ValueError, "got a vector of length zero"),
    "vanishes in float32": (np.full(DIM, 1e-300), ValueError, "got a vector of length zero"),
    "bool": (np.ones(DIM, np.bool_), TypeError, "dtype bool"),
    "object": (np.array([1.0] * DIM, object), TypeError, "dtype object"),
    "decimals": ([Decimal(1)] * DIM, TypeError, "dtype object"),
    "none inside": ([1.0] * (DIM - 1) + [None], TypeError, "dtype object"),
    "text inside": ([1.0] * (DIM - 1) + ["1"], TypeError, "list of dtype <U"),
    "text": ("12345678", TypeError, "got str"),
    "bytes": (b"12345678", TypeError, "got bytes"),
    "complex": (np.ones(DIM, np.complex64), TypeError, "dtype complex64"),
    "datetime64": (np.ones(DIM, "datetime64[s]"), TypeError, "dtype datetime64[s]"),
    "none": (None, TypeError, "got NoneType"),
    "dict": ({0: 1.0}, TypeError, "got dict"),
    "ragged": ([[1.0, 2.0], [1.0]], ValueError, "equally long rows"),
    "wrong dim": (np.ones(DIM + 1), ValueError, f"got {DIM + 1}"),
    "no dim": (np.ones(0), ValueError, "got 0"),
    "0-d": (np.float32(1.0), ValueError, "got shape ()"),
    "3-d": (np.ones((1, 1, DIM)), ValueError, "got shape (1, 1, 8)"),
}

ONE_VECTOR: dict[str, tuple[str, Callable[[MemoryStore, Any], Any]]] = {
    "add": ("vector", lambda store, v: store.add(v)),
    "search": ("query", lambda store, v: store.search(v)),
    "search untouched": ("query", lambda store, v: store.search(v, touch=False)),
    "update": ("vector", lambda store, v: store.update(5, vector=v, cost=9)),
}
MANY_VECTORS: dict[str, tuple[str, Callable[[MemoryStore, Any], Any]]] = {
    "add_many": ("vectors", lambda store, v: store.add_many(v)),
    "search_many": ("queries", lambda store, v: store.search_many(v)),
    "plan": ("context", lambda store, v: store.plan(2, context=v)),
    "compact": ("context", lambda store, v: store.compact(2, context=v)),
}


@pytest.mark.parametrize("door", ONE_VECTOR)
@pytest.mark.parametrize(
    "bad", [*BAD_VECTORS, pytest.param((np.ones((1, DIM)), ValueError, "(1, 8)"), id="(1, d)")]
)
def test_a_bad_vector_is_refused(door: str, bad: Any) -> None:
    name, call = ONE_VECTOR[door]
    value, builtin, words = BAD_VECTORS[bad] if isinstance(bad, str) else bad
    store = filled()
    check_refused(store, lambda: call(store, value), builtin, (name, words))


@pytest.mark.parametrize("door", MANY_VECTORS)
@pytest.mark.parametrize("bad", [b for b in BAD_VECTORS if b not in ("ragged", "3-d", "no dim")])
def test_a_batch_with_a_bad_vector_is_refused_whole(door: str, bad: str) -> None:
    name, call = MANY_VECTORS[door]
    value, builtin, words = BAD_VECTORS[bad]
    if value is None and name == "context":
        return  # None stands for the store's own queries
    if isinstance(value, np.ndarray) and value.size == DIM and value.dtype.kind in "f":
        batch: Any = np.stack([np.ones(DIM), value, np.ones(DIM)])
        name = f"{name}[1"  # the row is named
    elif isinstance(value, (np.ndarray, list)):
        batch = [value, value]
    else:
        batch = value
    words = "got shape" if bad == "0-d" else words
    store = filled()
    check_refused(store, lambda: call(store, batch), builtin, (name, words))


@pytest.mark.parametrize(
    "batch",
    [
        [1.0] * DIM,
        np.ones((2, 3, DIM)),
        [[1.0] * DIM, [1.0]],
        np.ones((2, 0)),
        np.array(1.0),
        np.ones(0)[None],
    ],
)
@pytest.mark.parametrize("door", MANY_VECTORS)
def test_a_batch_of_another_shape_is_refused(door: str, batch: Any) -> None:
    name, call = MANY_VECTORS[door]
    store = filled()
    check_refused(store, lambda: call(store, batch), ValueError, (name,))


@pytest.mark.parametrize("value", [NAN, INF, -INF, 1e39])
@pytest.mark.parametrize("place", [0, 383, 767])
def test_one_bad_element_in_768_is_named(value: float, place: int) -> None:
    store = filled(dim=768)
    row = np.ones(768)
    row[place] = value
    for call in (store.add, store.search):
        check_refused(store, lambda call=call: call(row), ValueError, (f"[{place}]",))
    check_refused(
        store, lambda: store.add_many([np.ones(768), row]), ValueError, (f"vectors[1, {place}]",)
    )


WHOLE = np.array([3, 0, -4, 12, 1, 2, 5, 7])
LAYOUTS: dict[str, Any] = {
    "list of ints": WHOLE.tolist(),
    "tuple of floats": tuple(map(float, WHOLE)),
    "numpy scalars": list(WHOLE.astype(np.float32)),
    "float64": WHOLE.astype(np.float64),
    "float16": WHOLE.astype(np.float16),
    "longdouble": WHOLE.astype(np.longdouble),
    "int8": WHOLE.astype(np.int8),
    "int64": WHOLE,
    "big-endian": WHOLE.astype(">f4"),
    "big-endian ints": WHOLE.astype(">i8"),
    "stride 2": np.repeat(WHOLE, 2).astype(np.float32)[::2],
    "stride -1": WHOLE[::-1].astype(np.float32).copy()[::-1],
    "column of a matrix": np.stack([WHOLE, -WHOLE], axis=1).astype(np.float32)[:, 0],
    "ten times as long": 10.0 * WHOLE,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_real_dtype_and_layout_is_the_same_vector(layout: str) -> None:
    plain, other = filled(), filled()
    vector = np.ascontiguousarray(WHOLE, np.float32)
    given = LAYOUTS[layout]
    if layout == "ten times as long":  # another length may round the last digit otherwise
        assert other.search(given) == plain.search(vector)
        return
    assert other.add(given) == plain.add(vector)
    assert other.search(given) == plain.search(vector)
    plain.update(3, vector=vector)
    other.update(3, vector=given)
    assert dump(other) == dump(plain)


@pytest.mark.parametrize(
    "layout", ["F", "stride 2", "read-only", "transposed", "big-endian", "ints"]
)
def test_any_layout_of_a_batch_is_the_same_batch(layout: str) -> None:
    plain, other = filled(), filled()
    batch = np.stack([WHOLE, WHOLE[::-1], 2 * WHOLE]).astype(np.float32)
    given = {
        "F": np.asfortranarray(batch),
        "stride 2": np.repeat(np.repeat(batch, 2, 0), 2, 1)[::2, ::2],
        "read-only": batch.copy(),
        "transposed": batch.T.copy().T,
        "big-endian": batch.astype(">f8"),
        "ints": batch.astype(np.int16).tolist(),
    }[layout]
    if isinstance(given, np.ndarray):
        given.flags.writeable = False
    assert other.add_many(given).tolist() == plain.add_many(batch).tolist()
    assert other.search_many(given) == plain.search_many(batch)
    assert (
        other.plan(3, context=given).victims.tolist()
        == plain.plan(3, context=batch).victims.tolist()
    )
    assert dump(other) == dump(plain)


def test_the_store_keeps_nothing_of_the_callers() -> None:
    store = MemoryStore(2)
    rows = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    note = {"tags": ["a"]}
    store.add_many(rows, [note, None])
    store.search(rows[0])
    before = dump(store)
    rows[:] = 7
    note["tags"].append("b")
    store.search([1, 0], touch=False)[0].metadata["tags"].append("c")
    entry = store.get(0)[0]
    entry.metadata["tags"].append("d")
    with pytest.raises(ValueError, match="read-only"):
        entry.vector[0] = 5
    assert dump(store) == before


# ---- k and touch ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize(
    "k", [0, -1, -(10**30), 1.5, 1.0, NAN, True, np.True_, None, "3", [3], np.array([3])]
)
def test_a_bad_k_is_refused(n: int, k: Any) -> None:
    store = filled(n) if n else MemoryStore(DIM)
    builtin = ValueError if isinstance(k, int) and not isinstance(k, bool) else TypeError
    check_refused(store, lambda: store.search(QUERY, k), builtin, ("k must be an integer",))
    check_refused(store, lambda: store.search_many([QUERY], k), builtin, ("k must be an integer",))


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("extra", [-3, -1, 0, 1, 10**9, 10**30])
def test_any_k_from_1_on_gives_the_best_there_are(n: int, extra: int) -> None:
    store = filled(n) if n else MemoryStore(DIM)
    k = max(1, n + extra)
    hits = store.search(QUERY, np.int64(k) if k < 10**18 else k)
    assert len(hits) == min(k, n)
    assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
    assert store.search_many([QUERY], k)[0] == hits
    assert len(store.search(QUERY, k, where={"n": {"$gte": 0}})) == min(k, n)


@pytest.mark.parametrize("touch", [-1, 1.5, None, "all", np.True_, [1], NAN])
def test_a_bad_touch_is_refused(touch: Any) -> None:
    store = filled()
    builtin = ValueError if touch == -1 else TypeError
    for call in (
        lambda: store.search(QUERY, touch=touch),
        lambda: store.search_many([QUERY], touch=touch),
    ):
        check_refused(store, call, builtin, ("touch must be",))


def test_touch_counts_the_best_n() -> None:
    store = filled()
    hits = store.search(QUERY, 4, touch=10**30)
    store.search(QUERY, 4, touch=1)
    store.search(QUERY, 4, touch=0)
    store.search(QUERY, 4, touch=False)
    counts = [entry.access_count for entry in store.get([h.id for h in hits])]
    start = [entry.access_count for entry in filled().get([h.id for h in hits])]
    assert [now - then for now, then in zip(counts, start, strict=True)] == [2, 1, 1, 1]
    # Touching none still counts as a search; only False is silent.
    assert store.stats().searches == filled().stats().searches + 3


# ---- metadata ------------------------------------------------------------------------------------


class Shout(str):
    """A text that says something else when it is asked again."""


def nested(depth: int, kind: type = dict) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if kind is dict else [value]
    return value


def cycle() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


LONG = "key " * 1000
DEEP_AND_LONG: Any = NAN
for _ in range(7):
    DEEP_AND_LONG = {LONG: DEEP_AND_LONG}

BAD_METADATA = {
    "nan": ({"x": NAN}, ValueError, "['x'] must be finite"),
    "inf": ({"x": [1.0, INF]}, ValueError, "['x'][1] must be finite"),
    "nul in a value": ({"x": "a\x00b"}, ValueError, "NUL"),
    "nul in a key": ({"a\x00b": 1}, ValueError, "NUL"),
    "lone surrogate": ({"x": "\ud800"}, ValueError, "surrogate"),
    "lone surrogate in a key": ({"\udfff": 1}, ValueError, "surrogate"),
    "2**63": ({"x": 2**63}, ValueError, "64 bits"),
    "-2**63 - 1": ({"x": -(2**63) - 1}, ValueError, "64 bits"),
    "100 deep": (nested(100), ValueError, "8 deep"),
    "100 deep in lists": ({"x": nested(100, list)}, ValueError, "8 deep"),
    "9 deep": (nested(9), ValueError, "8 deep"),
    "cycle": (cycle(), ValueError, "8 deep"),
    "datetime": ({"x": datetime(2024, 1, 1)}, ValueError, "got datetime"),
    "set": ({"x": {1}}, ValueError, "got set"),
    "tuple": ({"x": (1,)}, ValueError, "got tuple"),
    "bytes": ({"x": b"1"}, ValueError, "got bytes"),
    "numpy number": ({"x": np.float64(1.0)}, ValueError, "got float64"),
    "array": ({"x": np.ones(2)}, ValueError, "got ndarray"),
    "1 MB": ({"x": "a" * 2**20}, ValueError, "16384 bytes"),
    "16 KiB of two-byte letters": ({"x": "é" * 9000}, ValueError, "16384 bytes"),
    "10k keys": ({f"k{i}": i for i in range(10_000)}, ValueError, "16384 bytes"),
    "10k numbers": ({"x": [123456789] * 10_000}, ValueError, "16384 bytes"),
    "number as key": ({1: "x"}, ValueError, "text keys"),
    "none as key": ({None: "x"}, ValueError, "text keys"),
    "bool as key": ({"a": {True: "x"}}, ValueError, "text keys"),
    "subclass of str": ({"x": Shout("a")}, ValueError, "got Shout"),
    "subclass of str as key": ({Shout("a"): 1}, ValueError, "text keys"),
    "long keys all the way down": (DEEP_AND_LONG, ValueError, "must be"),
    "a list": ([("a", 1)], TypeError, "a dict or None"),
    "text": ("a", TypeError, "a dict or None"),
    "a number": (3, TypeError, "a dict or None"),
    "false": (False, TypeError, "a dict or None"),
}


@pytest.mark.parametrize(("value", "builtin", "words"), cases(BAD_METADATA))
def test_bad_metadata_is_refused(value: Any, builtin: type[Exception], words: str) -> None:
    store = filled()
    fine = {"fine": True}
    for call in (
        lambda: store.add(QUERY, value),
        lambda: store.add_many([QUERY] * 3, [fine, fine, value]),
        lambda: store.update(5, metadata=value, vector=QUERY),
    ):
        check_refused(store, call, builtin, ("metadata", words))


def test_long_keys_do_not_make_long_messages() -> None:
    """Eight levels of keys of forty letters gave a message of 400."""
    value: Any = NAN
    for level in range(8):
        value = {f"{level} is a key of quite some length, is it not?": value}
    with pytest.raises(InvalidMetadata, match="must be finite") as caught:
        MemoryStore(2).add([1, 0], value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "value", [[{"a": 1}], {"a": 1}, "abc", 3, ({"a": 1} for _ in range(3)), [None] * 4, []]
)
def test_metadata_of_a_batch_comes_one_per_vector(value: Any) -> None:
    store = filled()
    builtin = ValueError if isinstance(value, list) else TypeError
    check_refused(store, lambda: store.add_many([QUERY] * 3, value), builtin, ("metadata must",))


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"": ""},
        {"x": 2**63 - 1, "y": -(2**63), "z": 0.1, "u": "é\U0001f600\n\x01"},
        {"x": [None, True, {"y": [1, [2, [3, [4, [5]]]]]}]},
        {"x": "a" * (16 * 1024 - 8)},
        nested(8),
    ],
)
def test_strict_json_comes_back_as_it_went_in(value: Any) -> None:
    store = filled()
    id_ = store.add(QUERY, value)
    assert store.get(id_)[0].metadata == (value or {})
    assert store.search(QUERY, 1)[0].metadata == (value or {})
    size = store.stats().size.bytes
    store.update(id_, metadata=None)
    store.update(id_, metadata=value)
    assert store.stats().size.bytes == size


# ---- where ---------------------------------------------------------------------------------------


BAD_FILTERS = {
    "empty": ({}, "an empty dict"),
    "list": ([("n", 1)], "must be a dict"),
    "text": ("n = 1", "must be a dict"),
    "zero": (0, "must be a dict"),
    "unknown operator": ({"n": {"$regex": ".*"}}, "'$regex'"),
    "no dollar": ({"n": {"gt": 1}}, "'gt'"),
    "operator above": ({"$not": {"n": 1}}, "$not"),
    "where in javascript": ({"$where": "sleep(1)"}, "$where"),
    "empty operators": ({"n": {}}, "empty dict"),
    "empty or": ({"$or": []}, "at least one"),
    "or of a dict": ({"$or": {"n": 1}}, "must be a list"),
    "or of numbers": ({"$or": [1]}, "must be a dict"),
    "and of empties": ({"$and": [{}]}, "an empty dict"),
    "in of text": ({"n": {"$in": "abc"}}, "must be a list"),
    "in of dicts": ({"n": {"$in": [{}]}}, "must be text, a number"),
    "list as value": ({"n": [1, 2]}, "must be text, a number"),
    "nan": ({"n": NAN}, "equals itself"),
    "greater than nan": ({"n": {"$gt": NAN}}, "equals itself"),
    "greater than a list": ({"n": {"$gt": [1]}}, "number or text"),
    "greater than none": ({"n": {"$gt": None}}, "number or text"),
    "greater than true": ({"n": {"$lt": True}}, "number or text"),
    "array as value": ({"n": np.ones(3)}, "must be text, a number"),
    "object as value": ({"n": object()}, "must be text, a number"),
    "number as key": ({1: 1}, "text keys"),
    "operator that is no text": ({"n": {3: 1}}, "knows the operators"),
    "many conditions": ({f"k{i}": 1 for i in range(5000)}, "1000 conditions"),
    "key that prints long": ({"\U000e0001" * 40: object()}, "must be text, a number"),
    "long operator": ({"n": {"$" + "x" * 5000: 1}}, "knows the operators"),
}


def deep_filter(depth: int) -> dict[str, Any]:
    where: dict[str, Any] = {"n": 1}
    for _ in range(depth):
        where = {"$or": [where]}
    return where


@pytest.mark.parametrize(("where", "words"), cases(BAD_FILTERS))
@pytest.mark.parametrize("n", [0, 5])
def test_a_bad_filter_is_refused(where: Any, words: str, n: int) -> None:
    store = filled(n) if n else MemoryStore(DIM)
    check = (
        (lambda: store.search(QUERY, where=where)),
        (lambda: store.search_many([QUERY], where=where)),
    )
    before = dump(store)
    for call in check:
        with pytest.raises(MemsiftError) as caught:
            call()
        message = str(caught.value)
        assert isinstance(caught.value, ValueError)
        assert "where" in message
        assert words in message
        assert len(message) < 300
        assert dump(store) == before


def test_a_filter_may_be_eight_deep_and_no_deeper() -> None:
    store = filled()
    assert [h.id for h in store.search(QUERY, where=deep_filter(8))] == [1]
    for depth in (9, 100, 100_000):
        with pytest.raises(MemsiftError, match="8 deep"):
            store.search(QUERY, where=deep_filter(depth))


def test_a_filter_that_contains_itself_ends() -> None:
    where: dict[str, Any] = {}
    where["$and"] = [where, where]
    with pytest.raises(MemsiftError, match=r"8 deep|1000 conditions"):
        filled().search(QUERY, where=where)


@pytest.mark.parametrize(
    "key", ["n' OR '1'='1", "n\x00", "\ud800", "a.b", "__class__", "é" * 5000, ""]
)
def test_a_hostile_key_is_a_key_like_any_other(key: str) -> None:
    store = filled()
    assert store.search(QUERY, where={key: 1}) == []
    assert len(store.search(QUERY, where={key: {"$ne": 1}})) == 5


# ---- ids -----------------------------------------------------------------------------------------


BAD_IDS = {
    "true": (True, TypeError),
    "numpy true": (np.True_, TypeError),
    "1.5": (1.5, TypeError),
    "2.0": (2.0, TypeError),
    "text": ("1", TypeError),
    "bytes": (b"1", TypeError),
    "none": (None, TypeError),
    "-1": (-1, ValueError),
    "list with true": ([1, True], TypeError),
    "list with 1.5": ([1, 1.5], TypeError),
    "list with text": ([1, "2"], TypeError),
    "list with none": ([1, None], TypeError),
    "list with -1": ([1, -1], ValueError),
    "nested": ([[1, 2]], TypeError),
    "array of bools": (np.array([True, False]), TypeError),
    "array of floats": (np.array([1.0]), TypeError),
    "array of objects": (np.array([1, 1.5], object), TypeError),
    "array of objects with text": (np.array([1, "2"], object), TypeError),
    "array of text": (np.array(["1"]), TypeError),
    "array with -1": (np.array([1, -1]), ValueError),
    "array of dates": (np.array([1], "datetime64[s]"), TypeError),
    "2-d array": (np.array([[1]]), ValueError),
    "0-d array": (np.array(1), ValueError),
    "dict of texts": ({"1": 1}, TypeError),
}
UNKNOWN_IDS = {
    "evicted": (0, "got 0"),
    "never given": (99, "got 99"),
    "2**63": (2**63, "9223372036854775807"),
    "10**30": (10**30, "9223372036854775807"),
    "one of three": ([1, 99, 2], "got 99"),
    "many": (list(range(100, 1000)), "and 895 more"),
    "uint64": (np.array([2**64 - 1], np.uint64), "9223372036854775807"),
}
BY_IDS: dict[str, Callable[[MemoryStore, Any], Any]] = {
    "feedback": lambda store, ids: store.feedback(ids),
    "feedback unused": lambda store, ids: store.feedback(ids, used=False),
    "pin": lambda store, ids: store.pin(ids),
    "unpin": lambda store, ids: store.unpin(ids),
    "delete": lambda store, ids: store.delete(ids),
}


@pytest.mark.parametrize("door", [*BY_IDS, "get", "holds"])
@pytest.mark.parametrize(("value", "builtin"), cases(BAD_IDS))
def test_bad_ids_are_refused(door: str, value: Any, builtin: type[Exception]) -> None:
    store = filled()
    call = BY_IDS.get(door) or (lambda store, ids: getattr(store, door)(ids))
    check_refused(store, lambda: call(store, value), builtin, ("ids must be",))
    assert value not in store if not isinstance(value, (dict, list, np.ndarray)) else True


@pytest.mark.parametrize("door", BY_IDS)
@pytest.mark.parametrize(("value", "words"), cases(UNKNOWN_IDS))
def test_unknown_ids_are_refused_whole(door: str, value: Any, words: str) -> None:
    store = filled()
    check_refused(store, lambda: BY_IDS[door](store, value), KeyError, ("ids must be", words))


@pytest.mark.parametrize("value", [True, 1.5, "1", None, -1, [1], np.array([1]), []])
def test_update_takes_one_id(value: Any) -> None:
    store = filled()
    builtin = ValueError if value == -1 and not isinstance(value, np.ndarray) else TypeError
    check_refused(store, lambda: store.update(value, cost=3), builtin, ("id_ must be",))


@pytest.mark.parametrize("value", [0, 99, 2**63, 10**30])
def test_update_of_an_unknown_entry_is_refused(value: int) -> None:
    store = filled()
    check_refused(store, lambda: store.update(value, cost=3), KeyError, ("ids must be",))


@pytest.mark.parametrize("nothing", [[], (), set(), np.array([], np.int64), np.array([]), iter(())])
def test_no_ids_are_no_deed(nothing: Any) -> None:
    store = filled()
    assert store.get(nothing) == []
    before = [store.get(i) for i in range(6)]
    for deed in (store.pin, store.unpin, store.feedback, store.delete):
        deed(nothing)
    assert len(store) == 5
    assert [e and e[0] and e[0].access_count for e in before] == [
        e and e[0] and e[0].access_count for e in (store.get(i) for i in range(6))
    ]


@pytest.mark.parametrize(
    "ids",
    [[3, 1], (3, 1), np.array([3, 1], np.int8), np.array([3, 1], np.uint64), iter([3, 1])],
)
def test_ids_come_in_any_box(ids: Any) -> None:
    assert [entry.id for entry in filled().get(ids)] == [3, 1]


def test_what_is_no_id_is_not_in_the_store() -> None:
    store = filled()
    assert all(i in store for i in (1, np.int8(1), np.uint64(5)))
    odd = [0, 99, -1, 2**63, 10**30, True, 1.0, "1", None, [], [1, 2], object(), NAN]
    assert not any(i in store for i in odd)


# ---- numbers that come with an entry -------------------------------------------------------------


BAD_COSTS = {
    "-1": (-1, ValueError),
    "1.5": (1.5, TypeError),
    "2.0": (2.0, TypeError),
    "2**63": (2**63, ValueError),
    "2**41": (2**41, ValueError),
    "10**30": (10**30, ValueError),
    "nan": (NAN, TypeError),
    "true": (True, TypeError),
    "text": ("3", TypeError),
    "numpy -1": (np.int64(-1), ValueError),
    "time span": (np.timedelta64(3, "s"), TypeError),
}
BAD_IMPORTANCES = {
    "-0.1": (-0.1, ValueError),
    "1.1": (1.1, ValueError),
    "inf": (INF, ValueError),
    "10**300": (10**300, ValueError),
    "10**400": (10**400, ValueError),
    "true": (True, TypeError),
    "text": ("0.5", TypeError),
    "complex": (0.5 + 0j, TypeError),
    "numpy complex": (np.complex128(0.5 + 1j), TypeError),
    "decimal": (Decimal("0.5"), TypeError),
}


@pytest.mark.parametrize(
    ("name", "value", "builtin"),
    [
        *(pytest.param("cost", *row, id=f"cost {key}") for key, row in BAD_COSTS.items()),
        *(
            pytest.param("importance", *row, id=f"importance {key}")
            for key, row in BAD_IMPORTANCES.items()
        ),
        *(pytest.param("pinned", v, TypeError, id=f"pinned {v!r}") for v in (1, 0, "no", NAN)),
    ],
)
def test_bad_numbers_are_refused(name: str, value: Any, builtin: type[Exception]) -> None:
    store = filled()
    good = {"cost": 1, "importance": 0.5, "pinned": False}[name]
    for call in (
        lambda: store.add(QUERY, **{name: value}),
        lambda: store.add_many([QUERY] * 3, **{name: value}),
        lambda: store.add_many([QUERY] * 3, **{name: [good, good, value]}),
    ):
        check_refused(store, call, builtin, (name,))
    if name != "pinned":
        change = {name: value, "vector": QUERY}
        check_refused(store, lambda: store.update(5, **change), builtin, (name,))


@pytest.mark.parametrize("name", ["cost", "importance", "pinned", "created_at"])
@pytest.mark.parametrize("count", [0, 2, 4])
def test_one_value_for_each_vector(name: str, count: int) -> None:
    store = filled()
    good = {"cost": 1, "importance": 0.5, "pinned": False, "created_at": 1.0}[name]
    for box in (list, np.array):
        given = box([good] * count)
        check_refused(
            store,
            lambda given=given: store.add_many([QUERY] * 3, **{name: given}),
            ValueError,
            (name, "(3)"),
        )


@pytest.mark.parametrize(
    ("importance", "stored"),
    [
        (None, None),
        (NAN, None),
        (np.float32(NAN), None),
        (0, 0.0),
        (1, 1.0),
        (0.25, 0.25),
        (np.float16(0.5), 0.5),
    ],
)
def test_importance_is_a_number_or_unset(importance: Any, stored: Any) -> None:
    store = filled()
    assert store.get(store.add(QUERY, importance=importance))[0].importance == stored
    ids = store.add_many([QUERY] * 2, importance=[0.75, importance])
    assert [e.importance for e in store.get(ids)] == [0.75, stored]


@pytest.mark.parametrize("name", ["pinned", "id", "created_at", "x" * 5000])
def test_update_refuses_what_it_does_not_take(name: str) -> None:
    store = filled()
    before = dump(store)
    with pytest.raises(TypeError, match="update takes vector, metadata, cost") as caught:
        store.update(5, vector=QUERY, **{name: 1})
    assert len(str(caught.value)) < 300
    assert dump(store) == before


# ---- time ----------------------------------------------------------------------------------------

BERLIN = ZoneInfo("Europe/Berlin")
TIMES = {
    "float": (1_700_000_000.25, 1_700_000_000.25),
    "int": (1_700_000_000, 1_700_000_000.0),
    "numpy": (np.float32(1_700_000_000), 1_700_000_000.0),
    "before 1970": (-1.5, -1.5),
    "aware": (datetime(2024, 3, 1, 12, tzinfo=UTC), 1_709_294_400.0),
    "naive is utc": (datetime(2024, 3, 1, 12), 1_709_294_400.0),
    "z": (datetime.fromisoformat("2024-03-01T12:00:00Z"), 1_709_294_400.0),
    "+05:30": (datetime.fromisoformat("2024-03-01T17:30:00+05:30"), 1_709_294_400.0),
    "first 02:30 of a long night": (datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN), 1_729_989_000.0),
    "second 02:30": (datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1), 1_729_992_600.0),
    "year 9999": (datetime(9999, 12, 31, tzinfo=UTC), 253_402_214_400.0),
    "year 1": (datetime(1, 1, 1), -62_135_596_800.0),
}
WEST = timezone(timedelta(hours=-8))
EAST = timezone(timedelta(hours=14))
BAD_TIMES = {
    "nan": (NAN, ValueError),
    "inf": (INF, ValueError),
    "10**400": (10**400, ValueError),
    "text": ("2024-03-01T12:00:00Z", TypeError),
    "date": (date(2024, 3, 1), TypeError),
    "true": (True, TypeError),
    "datetime64": (np.datetime64("2024-03-01", "ns"), TypeError),
    "time span": (np.timedelta64(3, "ns"), TypeError),
    "complex": (np.complex64(3), TypeError),
}


@pytest.mark.parametrize(("created_at", "seconds"), cases(TIMES))
def test_times_are_kept_as_utc_seconds(created_at: Any, seconds: float) -> None:
    store = filled()
    ids = [
        store.add(QUERY, created_at=created_at),
        *store.add_many([QUERY] * 2, created_at=created_at),
    ]
    ids += store.add_many([QUERY] * 2, created_at=[created_at, 0.0]).tolist()[:1]
    assert {e.created_at for e in store.get(ids)} == {seconds}
    assert {e.accessed_at for e in store.get(ids)} == {1_700_000_000.0}


@pytest.mark.parametrize(("created_at", "builtin"), cases(BAD_TIMES))
def test_bad_times_are_refused(created_at: Any, builtin: type[Exception]) -> None:
    store = filled()
    for call in (
        lambda: store.add(QUERY, created_at=created_at),
        lambda: store.add_many([QUERY] * 2, created_at=[0.0, created_at]),
        lambda: store.add_many([QUERY] * 2, created_at=np.array([created_at, created_at])),
    ):
        check_refused(store, call, builtin, ("created_at",))


@pytest.mark.parametrize(
    "created_at", [datetime(9999, 12, 31, 23, tzinfo=WEST), datetime(1, 1, 1, 1, tzinfo=EAST)]
)
def test_a_time_at_the_edge_of_the_calendar_is_kept(
    created_at: datetime,
) -> None:
    """Beyond the years 1 to 9999 once it is moved to UTC."""
    store = filled()
    before = store.search(QUERY, touch=False)
    id_ = store.add(QUERY, created_at=created_at)
    utc = created_at.replace(tzinfo=UTC).timestamp() - created_at.utcoffset().total_seconds()
    assert store.get(id_)[0].created_at == utc
    store.delete(id_)
    assert store.search(QUERY, touch=False) == before


def test_nanoseconds_in_an_array_are_not_taken_for_seconds() -> None:
    """`tolist` turned datetime64[ns] into integers a thousand million times too large, without a word."""
    store = filled()
    stamps = np.array(["2024-03-01", "2024-03-02"], "datetime64[ns]")
    check_refused(
        store, lambda: store.add_many([QUERY] * 2, created_at=stamps), TypeError, ("created_at[0]",)
    )
    check_refused(
        store,
        lambda: store.add_many([QUERY] * 2, cost=np.array([1, 2], "timedelta64[ns]")),
        TypeError,
        ("cost[0]",),
    )


def test_full_counters_stay_full() -> None:
    full = 2**63 - 1
    store = filled()
    everything = np.arange(len(store))
    for name in ("access_count", "use_count"):
        store._memory.table.write(name, everything, full)
    store.search(QUERY)
    store.search_many([QUERY] * 3)
    ids = store.view().ids
    store.feedback(ids)
    assert {(e.access_count, e.use_count) for e in store.get(ids)} == {(full, full)}
    for policy in (LfuPolicy(), CoherencePolicy(), LruPolicy()):
        assert len(store.plan(2, policy)) == 3


# ---- targets, policies, budgets ------------------------------------------------------------------


BAD_TARGETS = {
    "0": (0, ValueError),
    "0.0": (0.0, ValueError),
    "-0.0": (-0.0, ValueError),
    "-1": (-1, ValueError),
    "-0.5": (-0.5, ValueError),
    "1.5": (1.5, ValueError),
    "2.0": (2.0, ValueError),
    "nan": (NAN, ValueError),
    "inf": (INF, ValueError),
    "true": (True, TypeError),
    "text": ("5", TypeError),
    "tuple": ((3,), TypeError),
    "10**30": (10**30, ValueError),
    "no budget to take it from": (None, ValueError),
    "budget of no bytes": (Budget(bytes=0), ValueError),
    "budget below one entry": (Budget(bytes=5), ValueError),
}


def unpinned() -> MemoryStore:
    store = filled()
    store.unpin(5)
    return store


@pytest.mark.parametrize(("target", "builtin"), cases(BAD_TARGETS))
def test_a_bad_target_is_refused(target: Any, builtin: type[Exception]) -> None:
    store = unpinned()
    for call in (lambda: store.plan(target), lambda: store.compact(target)):
        check_refused(store, call, builtin, ("target",))


@pytest.mark.parametrize(
    ("target", "left"),
    [(1, 1), (2, 2), (5, 5), (99, 5), (1.0, 5), (0.4, 2), (0.5, 3), (1e-9, 1), (np.int8(2), 2),
     (np.float32(1.0), 5), (Budget(), 5), (Budget(3), 3), (Budget(cost=9), 2), (2**63 - 1, 5)],
)  # fmt: skip
def test_a_good_target_leaves_what_it_says(target: Any, left: int) -> None:
    store = unpinned()
    assert store.plan(target, FifoPolicy()).after.entries == left
    store.compact(target, FifoPolicy())
    assert len(store) == left


@pytest.mark.parametrize("policy", [LruPolicy, "lru", 3, object(), {"name": "lru"}, Recency()])
def test_a_bad_policy_is_refused(policy: Any) -> None:
    store = filled()
    for call in (
        lambda: store.plan(2, policy),
        lambda: store.compact(2, policy),
        lambda: MemoryStore(2, policy=policy),
    ):
        check_refused(store, call, TypeError, ("policy must be",))


@pytest.mark.parametrize("force", [1, None, "yes"])
def test_force_is_true_or_false(force: Any) -> None:
    store = filled()
    check_refused(store, lambda: store.compact(2, force=force), TypeError, ("force must be",))


@pytest.mark.parametrize("plan", [None, 3, [1, 2], "plan"])
def test_apply_takes_a_plan(plan: Any) -> None:
    store = filled()
    check_refused(store, lambda: store.apply(plan), TypeError, ("plan must be",))


@pytest.mark.parametrize(
    ("arguments", "builtin", "name"),
    [
        *(({"budget": b}, ValueError, "Budget.entries") for b in (0, -1, 2**63, 10**30)),
        *(({"budget": b}, TypeError, "budget") for b in (True, 1.5, "9", [9], {"entries": 9}, NAN)),
        *(
            ({"low_watermark": w}, ValueError, "low_watermark")
            for w in (0, 0.0, 1.01, -1, NAN, INF)
        ),
        *(({"low_watermark": w}, TypeError, "low_watermark") for w in (True, None, "0.9")),
        *(({"dim": d}, ValueError, "dim") for d in (0, -1, 65_537, 10**30)),
        *(({"dim": d}, TypeError, "dim") for d in (True, 1.5, None, "2", NAN)),
    ],
)
def test_a_store_of_bad_measures_is_refused(
    arguments: dict[str, Any], builtin: type[Exception], name: str
) -> None:
    with pytest.raises(MemsiftError, match=f"{name} must be") as caught:
        MemoryStore(**{"dim": 2, **arguments})
    assert isinstance(caught.value, builtin)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("unit", ["entries", "bytes", "cost"])
@pytest.mark.parametrize("value", [-1, 1.5, True, "9", NAN, 2**63, 10**30])
def test_a_budget_is_made_of_whole_numbers(unit: str, value: Any) -> None:
    with pytest.raises(MemsiftError, match=f"Budget.{unit} must be an integer") as caught:
        Budget(**{unit: value})
    assert isinstance(caught.value, (ValueError, TypeError))


# ---- refusals of the budget and of a policy ------------------------------------------------------


def test_what_cannot_fit_beside_the_pinned_changes_nothing() -> None:
    store = filled(budget=Budget(cost=20))
    store.update(5, cost=15)
    free = int(store.view().ids.min())
    for call in (
        lambda: store.add(QUERY, cost=6),
        lambda: store.add(QUERY, cost=6, pinned=True),
        lambda: store.add_many([QUERY] * 3, cost=[1, 6, 1]),
        lambda: store.add_many([QUERY] * 3, cost=2, pinned=True),
        lambda: store.update(free, cost=6),
        lambda: store.update(5, cost=21),
        lambda: store.compact(Budget(cost=14)),
    ):
        before = dump(store)
        with pytest.raises(BudgetExceeded, match=r"pinned entries .*must fit"):
            call()
        assert dump(store) == before


class Broken:
    """A policy that fails when it is needed."""

    name = "broken"

    def select_survivors(self, view: Any, size: int, context_window: Any = None) -> Any:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "change", [{"cost": 9}, {"cost": 9, "vector": QUERY, "metadata": {"a": 1}}]
)
def test_an_update_whose_compaction_fails_changes_nothing(change: dict[str, Any]) -> None:
    """The new cost stayed, beyond the budget, after the policy's error had passed through."""
    store = MemoryStore(DIM, Budget(cost=10), Broken(), clock=Clock())
    store.add_many(np.eye(DIM)[:3], cost=[3, 3, 3])
    before = dump(store)
    with pytest.raises(ZeroDivisionError):
        store.update(1, **change)
    assert dump(store) == before


class Tired:
    """A policy that chooses well until it has chosen often enough."""

    name = "tired"

    def __init__(self, patience: int) -> None:
        self.patience = patience

    def select_survivors(self, view: Any, size: int, context_window: Any = None) -> Any:
        self.patience -= 1
        if self.patience < 0:
            raise ZeroDivisionError
        return np.arange(len(view) - size, len(view))


@pytest.mark.parametrize("patience", range(7))
def test_a_batch_whose_compaction_fails_on_the_way_changes_nothing(patience: int) -> None:
    """Several compactions in, older entries have left already: they come back with all that they had."""
    store = MemoryStore(DIM, 4, Tired(patience), low_watermark=1.0, clock=Clock())
    store.add_many(np.eye(DIM)[:4], [{"n": i} for i in range(4)], cost=[1, 2, 3, 4])
    store.search(QUERY, k=2)
    store.feedback(2)
    query, before = [1.0] * DIM, dump(store)
    baseline = store.search(query, touch=False)
    with pytest.raises(ZeroDivisionError):
        store.add_many([QUERY] * 8)
    assert dump(store) == before
    assert store.search(query, touch=False) == baseline
    assert [entry.cost for entry in store.get(range(4))] == [1, 2, 3, 4]


# ---- deletions, ties, and targets that empty a store ---------------------------------------------

POLICIES = [
    LruPolicy(),
    LfuPolicy(),
    FifoPolicy(),
    CoherencePolicy(),
    RandomPolicy(),
    0.5 * Recency() + 0.5 * Coherence(),
]
EVERY_POLICY = pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("where", [None, {"n": {"$gte": 0}}])
def test_search_after_deletions_finds_what_is_left(share: float, where: Any) -> None:
    n = 300
    store = MemoryStore(DIM)
    rows = np.random.default_rng(1).normal(size=(n, DIM))
    ids = store.add_many(rows, [{"n": i} for i in range(n)])
    gone = np.random.default_rng(2).permutation(ids)[: int(n * share)]
    store.delete(gone)
    left = set(ids.tolist()) - set(gone.tolist())
    for row in rows[:20]:
        hits = store.search(row, 10, where=where)
        assert len(hits) == min(10, len(left))
        assert {h.id for h in hits} <= left
        assert [h.id for h in store.search(row, n, where=where)][:10] == [h.id for h in hits]
    assert len(store) == store.stats().entries == len(left)


def test_identical_vectors_come_by_ascending_id() -> None:
    store = MemoryStore(DIM)
    ids = store.add_many([QUERY] * 150, [{"n": i % 2} for i in range(150)]).tolist()
    store.delete(ids[10:60])  # others move into the holes
    left = ids[:10] + ids[60:]
    for k in (1, 7, 10, 100, 1000):
        for _ in range(2):
            assert [h.id for h in store.search(QUERY, k)] == left[:k]
        assert [h.id for h in store.search_many([QUERY, QUERY], k)[1]] == left[:k]
        odd = [i for i in left if i % 2]
        assert [h.id for h in store.search(QUERY, k, where={"n": 1})] == odd[:k]
    assert {h.score for h in store.search(QUERY, 100)} == {1.0}


@EVERY_POLICY
def test_fifty_tied_entries_leave_in_the_same_order_always(policy: Any) -> None:
    """Equal in all that the policy looks at: the later accessed stays, then the higher id."""
    orders = set()
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(50)
        view = MemoryView.from_arrays([QUERY] * 50, context=[QUERY], ids=order)
        orders.add(
            tuple(
                tuple(sorted(view.ids[policy.select_survivors(view, size)].tolist()))
                for size in range(51)
            )
        )
    assert len(orders) == 1
    if not isinstance(policy, RandomPolicy):
        assert list(orders.pop()) == [tuple(range(50 - size, 50)) for size in range(51)]


@EVERY_POLICY
@pytest.mark.parametrize("equal", [True, False])
def test_a_store_is_emptied_by_force_only(policy: Any, equal: bool) -> None:
    n = 20
    rows = [QUERY] * n if equal else np.random.default_rng(3).normal(size=(n, DIM))

    def fresh() -> MemoryStore:
        store = MemoryStore(DIM, policy=policy, clock=Clock())
        store.add_many(rows, pinned=False)
        return store

    for target in (0, 0.0, Budget(bytes=0), Budget(cost=0)):
        store = fresh()
        check_refused(store, lambda s=store, t=target: s.compact(t), ValueError, ("force=True",))
        done = store.compact(target, force=True)
        assert len(done.dropped) == n
        assert done.forced
        assert len(store) == 0
        assert store.search(QUERY) == []
        assert store.add(QUERY) == n
    for target in (1, n - 1):
        store = fresh()
        done = store.compact(target)
        assert len(store) == target
        assert done.forced == (target == 1)
        assert store.stats().forced_compactions == done.forced


@EVERY_POLICY
def test_the_pinned_stay_whatever_the_target(policy: Any) -> None:
    store = MemoryStore(DIM, policy=policy, clock=Clock())
    store.add_many(np.random.default_rng(3).normal(size=(20, DIM)))
    store.pin([2, 3, 5])
    assert sorted(store.compact(3).dropped.tolist()) == [i for i in range(20) if i not in (2, 3, 5)]
    assert sorted(store.view().ids.tolist()) == [2, 3, 5]
    for target, force in ((2, False), (1, True)):
        before = dump(store)
        with pytest.raises(BudgetExceeded, match="pinned"):
            store.compact(target, force=force)
        assert dump(store) == before
    assert len(store.compact(3).dropped) == 0
    # Nothing at all means nothing but the pinned ones, and needs force.
    store.add_many([QUERY] * 4)
    with pytest.raises(InvalidValue, match="force"):
        store.compact(0)
    assert len(store.compact(0, force=True).dropped) == 4
    assert sorted(store.view().ids.tolist()) == [2, 3, 5]


def test_a_plan_of_another_store_is_refused() -> None:
    one, two = filled(), filled()
    plan = one.plan(2)
    check_refused(
        two, lambda: two.apply(plan), ValueError, ("plan must be one that this store made",)
    )
    one.apply(plan)


def test_an_automatic_pass_takes_half_at_most() -> None:
    store = MemoryStore(DIM, budget=40, low_watermark=0.05)
    store.add_many([QUERY] * 41)
    assert len(store.last_compaction.dropped) == 20
    assert not store.last_compaction.forced
    assert len(store) == 21


def test_an_automatic_pass_takes_more_than_half_if_the_budget_demands_it() -> None:
    """Ten entries of cost 1 and a newcomer of cost 9 under a budget of 10: one of the ten can stay."""
    store = MemoryStore(DIM, budget=Budget(cost=10), low_watermark=1.0)
    store.add_many([QUERY] * 10)
    store.add(QUERY, cost=9)
    assert store.last_compaction.forced
    assert store.view().ids.tolist() == [10, 9] or sorted(store.view().ids.tolist()) == [9, 10]


# ---- paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [5, None, b"a", 2.5, ["a"], "a\0b"], ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        lambda path: MemoryStore.open(path, dim=3),
        lambda path: MemoryStore(3).save_rvf(path),
        lambda path: MemoryStore.load_rvf(path),
        lambda path: AccessLog(3).save(path),
        lambda path: AccessLog.load(path),
    ],
)
def test_what_is_no_path_is_refused_in_our_words(
    call: Callable[[Any], Any], wrong: Any, request: pytest.FixtureRequest
) -> None:
    with pytest.raises(MemsiftError, match="must"):
        call(wrong)


@pytest.mark.parametrize("wrong", [5, b"a", 2.5, ["a"], "a\0b"], ids=repr)
def test_what_is_no_folder_is_refused_in_our_words(wrong: Any) -> None:
    with pytest.raises(MemsiftError, match="folder must"):
        MemoryStore(3, vectors="tiered", folder=wrong)
