"""JSON without the liberties that Python's reader takes: no NaN, no key twice, no infinity, no depth without end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from memsift.errors import CorruptStore
from memsift.formats.rvf.files import Buffer
from memsift.formats.rvf.private import Part


def dumped(value: object) -> bytes:
    """Compact UTF-8 with sorted keys.

    Raises
    ------
    ValueError, TypeError
        JSON has no such value, or would give back another one (a tuple, a key that is no text).
    """
    text = json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    data = text.encode()
    if json.loads(text) != value:
        raise ValueError("only text keys, lists and objects come back from JSON as they went")
    return data


def loaded(data: Buffer, depth: int) -> Any:
    """The value of strict JSON, nested at most `depth` deep; any fault is a ValueError.

    >>> loaded(b'{"a":1,"a":2}', 8)
    Traceback (most recent call last):
    ValueError: the key 'a' comes twice
    """
    raw = bytes(data)
    try:
        value = _DECODER.decode(raw.decode())
    except RecursionError:
        raise ValueError("nested far too deep") from None
    if b"\\u" in raw:  # lone surrogates can only come as escapes, and have no bytes
        json.dumps(value, ensure_ascii=False).encode()
    # As many brackets as the depth allows cannot nest deeper; most data ends here.
    if raw.count(b"{") + raw.count(b"[") > depth and _deeper(value, depth):
        raise ValueError(f"nested deeper than {depth}")
    return value


def loaded_object(data: Buffer, depth: int, section: str, offset: int) -> dict[str, Any]:
    """A strict JSON object, or `CorruptStore`."""
    try:
        value = loaded(data, depth)
    except ValueError as error:
        raise CorruptStore(
            section, f"strict JSON was expected; {str(error)[:80]}", offset
        ) from None
    if not isinstance(value, dict):
        raise CorruptStore(
            section, f"a JSON object was expected, {type(value).__name__} came", offset
        )
    return value


def lines(parts: list[Part], section: str, longest: int) -> Iterator[tuple[bytes, int]]:
    """The lines of some bodies, without their ends, each with its segment's offset."""
    for body, offset in parts:
        data = bytes(body)
        start = 0
        while start < len(data):
            end = data.find(b"\n", start, start + longest + 1)
            if end < 0:
                raise CorruptStore(
                    section,
                    f"lines of at most {longest} bytes were expected, a longer one came",
                    offset,
                )
            yield data[start:end], offset
            start = end + 1


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0.0:
        raise ValueError(f"{text[:20]} lies beyond float64")
    return number


def _integer(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= (number := int(text)) < 2**64:
        raise ValueError(f"{text[:20]} lies beyond 64 bits")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = sorted(key for key, _ in pairs)
        twice = next(a for a, b in pairwise(keys) if a == b)
        raise ValueError(f"the key {twice[:20]!r} comes twice")
    return made


def _deeper(value: Any, depth: int) -> bool:
    if not isinstance(value, (dict, list)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return depth == 0 or any(_deeper(item, depth - 1) for item in inner)


_DECODER = json.JSONDecoder(
    parse_constant=_constant,
    parse_float=_finite,
    parse_int=_integer,
    object_pairs_hook=_unique,
)
