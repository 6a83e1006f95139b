"""`where`: what a filter accepts, against a model that reads it afresh for every entry."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsift.errors import InvalidFilter
from memsift.index import compile_filter

FACT = {"kind": "fact", "year": 2021, "score": 0.5, "done": True, "note": None, "n": 1, "s": ""}


@pytest.mark.parametrize(
    ("where", "accepted"),
    [
        # Equality.
        ({"kind": "fact"}, True),
        ({"kind": "plan"}, False),
        ({"kind": "fac"}, False),
        ({"year": 2021}, True),
        ({"year": 2021.0}, True),
        ({"year": "2021"}, False),
        ({"score": 0.5}, True),
        ({"s": ""}, True),
        ({"kind": "fact", "year": 2021}, True),
        ({"kind": "fact", "year": 2022}, False),
        # True is not 1, and null is not nothing.
        ({"done": True}, True),
        ({"done": False}, False),
        ({"done": 1}, False),
        ({"done": 1.0}, False),
        ({"n": 1}, True),
        ({"n": True}, False),
        ({"note": None}, True),
        ({"kind": None}, False),
        ({"missing": None}, False),
        ({"missing": ""}, False),
        # $ne alone accepts a missing key.
        ({"kind": {"$ne": "plan"}}, True),
        ({"kind": {"$ne": "fact"}}, False),
        ({"missing": {"$ne": "fact"}}, True),
        ({"missing": {"$ne": None}}, True),
        ({"note": {"$ne": None}}, False),
        ({"done": {"$ne": 1}}, True),
        # $in.
        ({"kind": {"$in": ["plan", "fact"]}}, True),
        ({"kind": {"$in": ("fact",)}}, True),
        ({"kind": {"$in": ["plan"]}}, False),
        ({"kind": {"$in": []}}, False),
        ({"done": {"$in": [1, 0]}}, False),
        ({"note": {"$in": [None]}}, True),
        ({"missing": {"$in": [None]}}, False),
        # Order: numbers with numbers, text with text.
        ({"year": {"$gt": 2020}}, True),
        ({"year": {"$gt": 2021}}, False),
        ({"year": {"$gte": 2021}}, True),
        ({"year": {"$lt": 2021.5}}, True),
        ({"year": {"$lte": 2020}}, False),
        ({"year": {"$gte": 2020, "$lt": 2022}}, True),
        ({"year": {"$gte": 2022, "$lt": 2030}}, False),
        ({"year": {"$gt": "2020"}}, False),
        ({"year": {"$lt": math.inf}}, True),
        ({"year": {"$gt": 10**400}}, False),
        ({"score": {"$lt": 10**400}}, True),
        ({"kind": {"$gt": "eggs"}}, True),
        ({"kind": {"$lt": "g", "$ne": "fog"}}, True),
        ({"kind": {"$gt": 5}}, False),
        ({"done": {"$gt": 0}}, False),
        ({"note": {"$gte": 0}}, False),
        ({"missing": {"$lt": 5}}, False),
        ({"missing": {"$gte": 5}}, False),
        # $and, $or.
        ({"$and": [{"kind": "fact"}, {"year": 2021}]}, True),
        ({"$and": [{"kind": "fact"}, {"year": 2022}]}, False),
        ({"$or": [{"kind": "plan"}, {"year": 2021}]}, True),
        ({"$or": [{"kind": "plan"}, {"year": 2022}]}, False),
        ({"$or": [{"kind": "plan"}], "year": 2021}, False),
        ({"$or": [{"kind": "fact"}], "$and": [{"year": 2021}], "n": 1}, True),
        ({"$or": [{"$and": [{"kind": "fact"}, {"n": 2}]}, {"score": {"$gt": 0.4}}]}, True),
    ],
)
def test_what_a_filter_accepts(where: dict[str, Any], accepted: bool) -> None:
    assert compile_filter(where)(FACT) is accepted


def test_lists_and_objects_equal_no_value() -> None:
    test = compile_filter({"tags": "a"})
    assert not test({"tags": ["a"]})
    assert not test({"tags": {"a": 1}})
    assert compile_filter({"tags": {"$ne": "a"}})({"tags": ["a"]})
    assert not compile_filter({"tags": {"$gt": "a"}})({"tags": ["b"]})


def nested(levels: int) -> dict[str, Any]:
    where: dict[str, Any] = {"n": 1}
    for level in range(levels):
        where = {("$and", "$or")[level % 2]: [where]}
    return where


def test_eight_levels_are_allowed_and_nine_are_not() -> None:
    """Seen: the eighth was refused, with a message that allows it."""
    assert compile_filter(nested(8))(FACT)
    with pytest.raises(InvalidFilter, match=r"at most 8 deep; got deeper"):
        compile_filter(nested(9))
    with pytest.raises(InvalidFilter, match=r"at most 8 deep"):
        compile_filter(nested(900))


def test_a_thousand_conditions_are_allowed_and_one_more_is_not() -> None:
    conditions = [{"n": i} for i in range(999)]
    assert compile_filter({"$or": conditions})(FACT)
    with pytest.raises(InvalidFilter, match="at most 1000 conditions"):
        compile_filter({"$or": [*conditions, {"n": 999}]})


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (None, r"where must be a dict"),
        ([], r"where must be a dict"),
        ("kind", r"where must be a dict.*'kind'"),
        ({}, r"where must hold at least one condition; got an empty dict"),
        ({5: 1}, r"where must have text keys; got 5"),
        ({None: 1}, r"text keys"),
        ({"$not": {"n": 1}}, r"knows the operators \$and and \$or; got '\$not'"),
        ({"$in": [1]}, r"knows the operators \$and and \$or"),
        ({"n": {}}, r"where\['n'\] must hold a value or operators; got an empty dict"),
        ({"n": {"$exists": True}}, r"where\['n'\] knows the operators .*got '\$exists'"),
        ({"n": {"a": 1}}, r"knows the operators"),
        ({"n": {5: 1}}, r"knows the operators.*got 5"),
        ({"n": {"$gt": 1, "$near": 2}}, r"got '\$near'"),
        ({"n": [1]}, r"where\['n'\] must be text, a number, true, false or null"),
        ({"n": {1, 2}}, r"must be text"),
        ({"n": b"1"}, r"must be text"),
        ({"n": float("nan")}, r"must be a number that equals itself; got nan"),
        ({"n": {"$gt": float("nan")}}, r"where\['n'\]\['\$gt'\].*nan"),
        ({"n": {"$in": [1, float("nan")]}}, r"nan"),
        ({"n": {"$gt": True}}, r"must be a number or text; got True"),
        ({"n": {"$lt": None}}, r"must be a number or text; got None"),
        ({"n": {"$lte": [1]}}, r"must be a number or text"),
        ({"n": {"$in": "abc"}}, r"must be a list of values; got 'abc'"),
        ({"n": {"$in": {"a": 1}}}, r"must be a list of values"),
        ({"n": {"$in": [[1]]}}, r"must be text"),
        ({"n": {"$ne": [1]}}, r"must be text"),
        ({"n": {"$ne": {"$gt": 1}}}, r"must be text"),
        ({"$and": []}, r"where\['\$and'\] must be a list of at least one filter"),
        ({"$or": {"n": 1}}, r"must be a list of at least one filter"),
        ({"$or": "n"}, r"must be a list"),
        ({"$or": [{"n": 1}, {}]}, r"where\['\$or'\]\[1\] must hold at least one condition"),
        ({"$or": [{"n": 1}, 5]}, r"where\['\$or'\]\[1\] must be a dict"),
        ({"$and": [{"$or": [{"n": {"$x": 1}}]}]}, r"where\['\$and'\]\[0\]\['\$or'\]\[0\]\['n'\]"),
    ],
)
def test_what_is_no_filter_is_refused_by_place(where: Any, words: str) -> None:
    with pytest.raises(InvalidFilter, match=words):
        compile_filter(where)


def test_messages_stay_short_whatever_comes() -> None:
    for where in ({"k" * 10_000: []}, {"n": {"$" + "x" * 10_000: 1}}, {"n": {"$in": "y" * 10_000}}):
        with pytest.raises(InvalidFilter) as refused:
            compile_filter(where)
        assert len(str(refused.value)) < 250


def test_numpy_text_and_floats_are_welcome_as_what_they_are() -> None:
    assert compile_filter({"score": np.float64(0.5)})(FACT)
    assert compile_filter({"kind": np.str_("fact")})(FACT)


# ---- the model -----------------------------------------------------------------------------------------------


def same(a: Any, b: Any) -> bool:
    """JSON's equality: a bool only equals a bool."""
    return (a is b) if isinstance(a, bool) or isinstance(b, bool) else a == b


def holds(where: dict[str, Any], entry: dict[str, Any]) -> bool:
    """Reads the filter as its documentation does: all keys, all operators on a key."""
    for key, condition in where.items():
        if key == "$and":
            held = all(holds(part, entry) for part in condition)
        elif key == "$or":
            held = any(holds(part, entry) for part in condition)
        else:
            operators = condition if isinstance(condition, dict) else {"$in": [condition]}
            held = all(compares(op, key, operand, entry) for op, operand in operators.items())
        if not held:
            return False
    return True


def compares(op: str, key: str, operand: Any, entry: dict[str, Any]) -> bool:
    if op == "$ne":
        return key not in entry or not same(entry[key], operand)
    if key not in entry:
        return False
    value = entry[key]
    if op == "$in":
        return any(same(value, one) for one in operand)
    texts = isinstance(value, str) and isinstance(operand, str)
    numbers = all(type(x) in (int, float) for x in (value, operand))
    if not texts and not numbers:
        return False
    less, equal = value < operand, value == operand
    return {
        "$lt": less,
        "$lte": less or equal,
        "$gt": not less and not equal,
        "$gte": not less,
    }[op]


keys = st.sampled_from("abc")
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.0, 1.0, -0.5, 1e300, 2**53 + 1, float(2**53)]),
    st.sampled_from(["", "a", "b", "ab", "é"]),
)
ordered = scalars.filter(lambda value: value is not None and not isinstance(value, bool))
operators = st.fixed_dictionaries(
    {},
    optional={
        "$in": st.lists(scalars, max_size=3),
        "$ne": scalars,
        "$gt": ordered,
        "$gte": ordered,
        "$lt": ordered,
        "$lte": ordered,
    },
).filter(bool)
leaves = st.dictionaries(keys, scalars | operators, min_size=1, max_size=3)
filters = st.recursive(
    leaves,
    lambda inner: st.dictionaries(
        st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=1, max_size=3), min_size=1
    ),
    max_leaves=6,
)
entries = st.dictionaries(keys, scalars | st.lists(scalars, max_size=2), max_size=3)


@settings(max_examples=500, deadline=None)
@given(filters, st.lists(entries, min_size=1, max_size=6))
def test_a_filter_means_what_it_says(where: dict[str, Any], memories: list[dict[str, Any]]) -> None:
    test = compile_filter(where)
    for memory in memories:
        assert test(memory) is holds(where, memory)


anything = st.recursive(
    scalars | st.floats() | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "$and", "$or", "$in", "$gt", "$ne", ""]) | st.integers(0, 1),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(anything)
def test_anything_is_a_filter_or_refused(where: Any) -> None:
    try:
        test = compile_filter(where)
    except InvalidFilter:
        return
    assert test(FACT) in (True, False)
