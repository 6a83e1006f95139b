"""LangGraph's filters on values: equality, `$eq $ne $gt $gte $lt $lte`, nested objects and lists.

As in `InMemoryStore`, but that what has no order (a missing field, a list) is not greater than anything, and raises
nothing: one item without the field must not break the search of all others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from memsift.checks import shown
from memsift.errors import InvalidFilter

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_DEPTH = 32


def check(filter_: Any) -> dict[str, Any]:
    """A filter as it came, if it can be applied.

    Raises
    ------
    InvalidFilter
        Not a dict, an unknown operator, or deeper than 32.
    """
    if not isinstance(filter_, dict):
        raise InvalidFilter(f"filter must be a dict; got {shown(filter_)}")
    for condition in filter_.values():
        _check(condition, _DEPTH)
    return filter_


def _check(condition: Any, depth: int) -> None:
    if depth == 0:
        raise InvalidFilter(f"filter must be nested at most {_DEPTH} deep; got deeper")
    if isinstance(condition, dict):
        if _has_operators(condition):
            for name in condition:
                if name not in ("$eq", "$ne", *_ORDER):
                    raise InvalidFilter(
                        f"filter knows the operators $eq, $ne, {', '.join(_ORDER)}; got {shown(name)}"
                    )
        else:
            for inner in condition.values():
                _check(inner, depth - 1)
    elif isinstance(condition, (list, tuple)):
        for inner in condition:
            _check(inner, depth - 1)


def matches(value: dict[str, Any], filter_: dict[str, Any]) -> bool:
    """Whether an item's value has every field that a checked filter names, as it says."""
    return all(_fits(value.get(key), condition) for key, condition in filter_.items())


def _fits(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        if _has_operators(wanted):
            return all(_holds(found, name, operand) for name, operand in wanted.items())
        return isinstance(found, dict) and matches(found, wanted)
    if isinstance(wanted, (list, tuple)):
        same = isinstance(found, (list, tuple)) and len(found) == len(wanted)
        return same and all(_fits(f, w) for f, w in zip(found, wanted, strict=True))
    return bool(found == wanted)


def _holds(found: Any, name: str, operand: Any) -> bool:
    if name in ("$eq", "$ne"):
        return bool(found == operand) == (name == "$eq")
    numbers = _number(found), _number(operand)
    if None not in numbers:
        return _ORDER[name](*numbers)
    texts = isinstance(found, str) and isinstance(operand, str)
    return texts and _ORDER[name](found, operand)


def _number(value: Any) -> float | None:
    """Numbers and what reads as one, as InMemoryStore takes them."""
    if not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _has_operators(condition: dict[Any, Any]) -> bool:
    return any(isinstance(key, str) and key.startswith("$") for key in condition)
