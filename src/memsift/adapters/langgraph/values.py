"""An item's value as the text that is kept, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from memsift.checks import TEXT_BYTES
from memsift.errors import CorruptStore, InvalidType, InvalidValue

DEPTH = 64


def to_text(value: Any) -> str:
    """A value as compact JSON.

    Raises
    ------
    InvalidType
        Not a dict, or something in it that JSON has not: it would come back as something else.
    InvalidValue
        NaN or infinity, deeper than 64, or more than 65,536 bytes.
    """
    if not isinstance(value, Mapping):
        raise InvalidType(f"value must be a dict or None; got a {type(value).__name__}")
    plain = _strict(value, "value", DEPTH)
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    try:
        size = len(text.encode())
    except UnicodeEncodeError:  # a lone surrogate can be written as an escape only
        text = json.dumps(plain, separators=(",", ":"))
        size = len(text)
    if size > TEXT_BYTES:
        raise InvalidValue(f"value must be at most {TEXT_BYTES:,} bytes of JSON; got {size:,}")
    return text


def _strict(value: Any, where: str, depth: int) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidValue(f"{where} must be finite, as JSON demands; got {value}")
        return value
    if depth == 0:
        raise InvalidValue(f"value must be nested at most {DEPTH} deep; got deeper")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InvalidType(f"{where} must have text keys; got a {type(key).__name__}")
        return {key: _strict(inner, _place(where, key), depth - 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(inner, _place(where, i), depth - 1) for i, inner in enumerate(value)]
    raise InvalidType(
        f"{where} must be JSON (text, number, true, false, null, list, object); got a {type(value).__name__}"
    )


def _place(where: str, key: object) -> str:
    place = f"{where}[{key!r:.40}]"
    return place if len(place) <= 120 else f"{place[:60]}...{place[-57:]}"


def from_text(text: str) -> dict[str, Any]:
    """The value that a kept text says.

    Raises
    ------
    CorruptStore
        It is no JSON object: something else than this adapter wrote it.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise CorruptStore("payload", "text of an item must be a JSON object; it is not")
    return value
