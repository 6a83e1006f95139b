"""One validator for everything else that comes through a door: numbers, ids, metadata.

All messages are written here, so that they read alike: the parameter, what is allowed, what came.
"""

from __future__ import annotations

import json
import math
import operator
import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.errors import InvalidMetadata, InvalidType, InvalidValue

Metadata = dict[str, Any]

METADATA_BYTES = 16 * 1024
METADATA_DEPTH = 8
TEXT_BYTES = 65_536
LARGEST_COST = 2**40  # 8 million such entries still sum within int64
LARGEST_INT = 2**63 - 1


def integer(value: object, name: str, low: int, high: int | None = None) -> int:
    """`value` as an int within [low, high]. Bools and floats are refused, numpy integers are welcome."""
    if isinstance(value, (bool, np.bool_)):
        raise InvalidType(f"{name} must be an integer of at least {low}; got {value!r}")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidType(
            f"{name} must be an integer of at least {low}; got {shown(value)}"
        ) from None
    if number < low or (high is not None and number > high):
        allowed = f"at least {low}" if high is None else f"from {low} to {high}"
        raise InvalidValue(f"{name} must be an integer {allowed}; got {shown(number)}")
    return number


def fraction(value: object, name: str, *, zero: bool = True) -> float:
    """`value` as a float within [0, 1], or (0, 1] with `zero=False`."""
    allowed = "from 0 to 1" if zero else "above 0, up to 1"
    number = real(value, name, allowed)
    if not 0.0 <= number <= 1.0 or (number == 0.0 and not zero):
        raise InvalidValue(f"{name} must be a number {allowed}; got {shown(value)}")
    return number


def real(value: object, name: str, allowed: str = "that is finite") -> float:
    """`value` as a finite float. Bools are refused."""
    # Named kinds: `np.number` would let complex numbers and time spans in, and `float` would cut them down.
    kinds = (int, float, np.integer, np.floating)
    if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(value, kinds):
        raise InvalidType(f"{name} must be a number {allowed}; got {shown(value)}")
    try:
        number = float(value)
    except (OverflowError, TypeError):
        number = math.inf
    if not math.isfinite(number):
        raise InvalidValue(f"{name} must be a number {allowed}; got {shown(value)}")
    return number


def at_least_zero(value: object, name: str) -> float:
    """`value` as a finite float of at least 0."""
    number = real(value, name, "of at least 0")
    if number < 0.0:
        raise InvalidValue(f"{name} must be a number of at least 0; got {shown(value)}")
    return number


def flag(value: object, name: str) -> bool:
    """`value` as a bool; nothing else is taken for one."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidType(f"{name} must be True or False; got {shown(value)}")
    return bool(value)


def one_of(value: object, name: str, allowed: tuple[str, ...]) -> str:
    """`value` if it is one of a few words."""
    if not isinstance(value, str):
        raise InvalidType(f"{name} must be one of {', '.join(allowed)}; got {shown(value)}")
    if value not in allowed:
        raise InvalidValue(f"{name} must be one of {', '.join(allowed)}; got {shown(value)}")
    return value


def path(value: object, name: str = "path") -> Path:
    """A path from what users write."""
    if not isinstance(value, (str, os.PathLike)) or isinstance(os.fspath(value), bytes):
        raise InvalidType(f"{name} must be text or a path; got {shown(value)}")
    if "\0" in os.fspath(value):
        raise InvalidValue(f"{name} must hold no NUL character; it does")
    return Path(value)


def text(value: object, name: str = "text") -> str:
    """`value` as text that can be kept: 1 to 65,536 bytes of UTF-8, no NUL character, no lone surrogate.

    Messages never hold a part of it.
    """
    if not isinstance(value, str):
        raise InvalidType(f"{name} must be text; got a {type(value).__name__}")
    plain = str(value)
    try:
        size = len(plain.encode())
    except UnicodeEncodeError:
        raise InvalidValue(f"{name} must be valid Unicode; got a lone surrogate") from None
    if not 1 <= size <= TEXT_BYTES:
        raise InvalidValue(f"{name} must be 1 to {TEXT_BYTES:,} bytes of UTF-8; got {size:,}")
    if "\0" in plain:
        raise InvalidValue(f"{name} must hold no NUL character; it does")
    return plain


def texts(value: object, name: str = "texts") -> list[str]:
    """A list of texts, every one checked."""
    if isinstance(value, (str, bytes, dict)) or not isinstance(value, Iterable):
        raise InvalidType(f"{name} must be a list of texts; got a {type(value).__name__}")
    return [text(item, f"{name}[{i}]") for i, item in enumerate(value)]


def ids(value: object, name: str = "ids") -> npt.NDArray[np.int64]:
    """One id or many as (m,) int64, in the order given."""
    if isinstance(value, (str, bytes, bool)):
        raise InvalidType(f"{name} must be an id or ids (integers); got {shown(value)}")
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        if value.ndim != 1:
            raise InvalidValue(
                f"{name} must be one id or a flat list of ids; got shape {value.shape}"
            )
        if value.size and value.dtype.kind not in "iu":
            raise InvalidType(f"{name} must be integers; got dtype {value.dtype}")
        if value.size and value.min() < 0:
            raise InvalidValue(f"{name} must be integers of at least 0; got {value.min()}")
        return np.minimum(value.astype(np.uint64), np.uint64(LARGEST_INT)).astype(np.int64)
    many = value if isinstance(value, Iterable) else (value,)
    # No store gives out the largest id: whatever lies beyond it is as unknown.
    return np.array([min(integer(i, name, 0), LARGEST_INT) for i in many], dtype=np.int64)


def timestamp(value: object, name: str) -> float:
    """Unix seconds, UTC, of a number or of an aware datetime; a naive one is taken as UTC."""
    if isinstance(value, datetime):
        from datetime import UTC

        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        try:
            return aware.timestamp()
        except (OverflowError, ValueError):
            # The year 9999 in a western zone lies past datetime's range once it is moved to UTC.
            raise InvalidValue(
                f"{name} must lie within the years 1 to 9999 UTC; got {value}"
            ) from None
    return real(value, name, "of unix seconds, or a datetime")


def metadata(value: object, name: str = "metadata") -> tuple[Metadata | None, int]:
    """A private copy of strict-JSON metadata, and its size in bytes of compact UTF-8 JSON.

    Raises
    ------
    InvalidType
        Not a dict (or None).
    InvalidMetadata
        Keys that are no text, values that JSON has not (NaN, dates, sets), NUL characters or lone surrogates,
        integers beyond 64 bits, more than 16 KiB, deeper than 8.
    """
    if value is None:
        return None, 0
    if not isinstance(value, dict):
        raise InvalidType(f"{name} must be a dict or None; got {shown(value)}")
    if not value:
        return None, 0
    budget = [METADATA_BYTES]
    copy = _strict(value, name, METADATA_DEPTH, budget)
    size = len(json.dumps(copy, ensure_ascii=False, separators=(",", ":")).encode())
    if size > METADATA_BYTES:
        raise InvalidMetadata(f"{name} must be at most {METADATA_BYTES} bytes of JSON; got {size}")
    return copy, size


def thawed(value: Any) -> Any:
    """A copy of checked metadata that its receiver may change."""
    if isinstance(value, dict):
        return {k: thawed(v) if isinstance(v, (dict, list)) else v for k, v in value.items()}
    return [thawed(v) for v in value] if isinstance(value, list) else value


def _strict(value: Any, where: str, depth: int, budget: list[int]) -> Any:
    """A copy of JSON data; `budget` ends the walk over data that is larger than could be stored anyway."""
    budget[0] -= 1
    if budget[0] < 0:
        raise InvalidMetadata(
            f"{where}: metadata must be at most {METADATA_BYTES} bytes of JSON; got more"
        )
    # Exact types: a subclass of str or int could change what it says later.
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        if not -LARGEST_INT - 1 <= value <= LARGEST_INT:
            raise InvalidMetadata(
                f"{where} must fit into 64 bits; got an integer of {value.bit_length()} bits"
            )
        return value
    if kind is float:
        if not math.isfinite(value):
            raise InvalidMetadata(f"{where} must be finite, as JSON demands; got {value}")
        return value
    if kind is str:
        return _text(value, where, budget)
    if kind is dict or kind is list:
        if depth == 0:
            raise InvalidMetadata(
                f"{where} must be nested at most {METADATA_DEPTH} deep; got deeper"
            )
        if kind is list:
            return [_strict(v, _place(where, i), depth - 1, budget) for i, v in enumerate(value)]
        copy = {}
        for key, item in value.items():
            if type(key) is not str:
                raise InvalidMetadata(f"{where} must have text keys; got {shown(key)}")
            copy[_text(key, where, budget)] = _strict(item, _place(where, key), depth - 1, budget)
        return copy
    raise InvalidMetadata(
        f"{where} must be JSON (text, number, true, false, null, list, object); got {kind.__name__}"
    )


def _place(where: str, key: object) -> str:
    """`where[key]`, cut short enough for a message, however long and deep the keys are."""
    place = f"{where}[{key!r:.40}]"
    return place if len(place) <= 120 else f"{place[:60]}...{place[-57:]}"


def _text(value: str, where: str, budget: list[int]) -> str:
    budget[0] -= len(value)
    if budget[0] < 0:
        raise InvalidMetadata(
            f"{where}: metadata must be at most {METADATA_BYTES} bytes of JSON; got more"
        )
    if "\x00" in value:
        raise InvalidMetadata(
            f"{where} must not hold a NUL character, which databases refuse; got one"
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidMetadata(f"{where} must be valid Unicode; got a lone surrogate") from None
    return value


def shown(value: object) -> str:
    """A short, safe picture of whatever came: never more than 60 characters of it."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    plain = value.item() if isinstance(value, np.number) else value
    text = repr(plain) if isinstance(plain, (int, float, str, bytes, type(None))) else ""
    return f"{text[:60] or 'a value'} ({type(value).__name__})"
