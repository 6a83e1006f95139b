"""`where`: a filter on metadata, compiled once into a test of one entry.

    {"kind": "fact"}                              equality
    {"kind": {"$in": ["fact", "plan"]}}           $in, $ne, $gt, $gte, $lt, $lte
    {"$or": [{"kind": "fact"}, {"year": {"$gte": 2020, "$lt": 2030}}]}     $and, $or

Several keys, or several operators on one key, must all hold. A missing key equals nothing and has no order, so
only `$ne` accepts it. Numbers compare with numbers and text with text; true and false are not numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from memsift.checks import Metadata, shown
from memsift.errors import InvalidFilter

Filter = Callable[[Metadata], bool]

_MISSING = object()
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS = ("$in", "$ne", *_ORDER)
_DEPTH = 8
_TERMS = 1000


def compile_filter(where: object) -> Filter:
    """The test that `where` describes.

    Raises
    ------
    InvalidFilter
        An unknown operator, an operand of the wrong kind, more than 8 levels of `$and` / `$or`, or more than 1,000
        conditions; the message names the place.
    """
    return _compile(where, "where", _DEPTH, [_TERMS])


def _compile(where: object, path: str, depth: int, terms: list[int]) -> Filter:
    if not isinstance(where, dict):
        raise InvalidFilter(f"{path} must be a dict of conditions; got {shown(where)}")
    if not where:
        raise InvalidFilter(f"{path} must hold at least one condition; got an empty dict")
    if depth < 0:
        raise InvalidFilter(f"{path} must nest $and and $or at most {_DEPTH} deep; got deeper")
    tests = []
    for key, condition in where.items():
        terms[0] -= 1
        if terms[0] < 0:
            raise InvalidFilter(f"where must hold at most {_TERMS} conditions; got more")
        if not isinstance(key, str):
            raise InvalidFilter(f"{path} must have text keys; got {shown(key)}")
        here = f"{path}[{key!r:.40}]"
        if key in ("$and", "$or"):
            if not isinstance(condition, list) or not condition:
                raise InvalidFilter(
                    f"{here} must be a list of at least one filter; got {shown(condition)}"
                )
            parts = [_compile(c, f"{here}[{i}]", depth - 1, terms) for i, c in enumerate(condition)]
            tests.append(_all(parts) if key == "$and" else _any(parts))
        elif key.startswith("$"):
            raise InvalidFilter(f"{path} knows the operators $and and $or; got {key[:40]!r}")
        elif isinstance(condition, dict):
            tests.append(_all(_operators(key, condition, here)))
        else:
            tests.append(_equals(key, _scalar(condition, here)))
    return _all(tests)


def _operators(key: str, condition: dict[Any, Any], path: str) -> list[Filter]:
    tests: list[Filter] = []
    for name, operand in condition.items():
        if name not in _OPERATORS:
            raise InvalidFilter(
                f"{path} knows the operators {', '.join(_OPERATORS)}; got {shown(name)}"
            )
        here = f"{path}[{name!r}]"
        if name == "$in":
            if not isinstance(operand, (list, tuple)):
                raise InvalidFilter(f"{here} must be a list of values; got {shown(operand)}")
            tests.append(_among(key, [_scalar(v, here) for v in operand]))
        elif name == "$ne":
            tests.append(_not(_equals(key, _scalar(operand, here))))
        else:
            if isinstance(operand, bool) or not isinstance(operand, (int, float, str)):
                raise InvalidFilter(f"{here} must be a number or text; got {shown(operand)}")
            tests.append(_ordered(key, _ORDER[name], _scalar(operand, here)))
    if not tests:
        raise InvalidFilter(f"{path} must hold a value or operators; got an empty dict")
    return tests


def _scalar(value: object, path: str) -> Any:
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise InvalidFilter(
            f"{path} must be text, a number, true, false or null; got {shown(value)}"
        )
    if value != value:
        raise InvalidFilter(f"{path} must be a number that equals itself; got nan")
    return value


def _equals(key: str, value: object) -> Filter:
    # True == 1 in Python, but not in JSON.
    is_bool = isinstance(value, bool)

    def test(metadata: Metadata) -> bool:
        found = metadata.get(key, _MISSING)
        return found == value and isinstance(found, bool) == is_bool

    return test


def _among(key: str, values: list[Any]) -> Filter:
    kinds = (str, int, float, bool, type(None))
    allowed = {(value, isinstance(value, bool)) for value in values}

    def test(metadata: Metadata) -> bool:
        found = metadata.get(key, _MISSING)
        return isinstance(found, kinds) and (found, isinstance(found, bool)) in allowed

    return test


def _ordered(key: str, compare: Callable[[Any, Any], bool], value: Any) -> Filter:
    kinds = str if isinstance(value, str) else (int, float)

    def test(metadata: Metadata) -> bool:
        found = metadata.get(key)
        return isinstance(found, kinds) and not isinstance(found, bool) and compare(found, value)

    return test


def _not(test: Filter) -> Filter:
    return lambda metadata: not test(metadata)


def _all(tests: list[Filter]) -> Filter:
    return tests[0] if len(tests) == 1 else lambda metadata: all(test(metadata) for test in tests)


def _any(tests: list[Filter]) -> Filter:
    return lambda metadata: any(test(metadata) for test in tests)
