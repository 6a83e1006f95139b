"""Words that records, heads and keys share: their errors, and what a store id, a hash and a time look like."""

from __future__ import annotations

import re

from memsift import checks
from memsift.errors import InvalidValue

NANOSECONDS = 1_000_000_000
LARGEST_NUMBER = 10**19 - 1
"""Numbers have at most 19 digits, which holds every int64."""

_STORE_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,63}").fullmatch
_HASH = re.compile(r"[0-9a-f]{64}").fullmatch


class InvalidRecord(InvalidValue):
    """Fields or bytes that are no audit record."""


class InvalidHead(InvalidValue):
    """Text that is no head, or a head that the given key has not signed."""


class InvalidKey(InvalidValue):
    """A key, key file or change of keys that cannot be used or trusted."""


def store_id(value: object) -> str:
    """`value` as a store id; it must be safe in one word of a line."""
    if not isinstance(value, str) or not _STORE_ID(value):
        raise InvalidValue(
            "store_id must be 1 to 64 letters, digits, '_', '.' or '-', beginning with a letter "
            f"or digit; got {checks.shown(value)}"
        )
    return value


def is_hash(value: object) -> bool:
    """Whether `value` is a SHA-256 in lowercase hex."""
    return isinstance(value, str) and _HASH(value) is not None


def is_number(value: object, low: int = 0) -> bool:
    """Whether `value` is an int (not a bool) from `low` to 19 digits."""
    return type(value) is int and low <= value <= LARGEST_NUMBER


def nanoseconds(seconds: float) -> int:
    """Unix seconds, UTC, as whole nanoseconds.

    >>> nanoseconds(1.5)
    1500000000
    """
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not 0 <= seconds < 10**10:
        raise InvalidRecord(
            f"time must be unix seconds from 0 to 10,000,000,000; got {checks.shown(seconds)}"
        )
    return round(seconds * NANOSECONDS)
