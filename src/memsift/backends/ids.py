"""Ids of other systems: integers, texts and UUIDs, their order, and the numbers that stand for them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.errors import InvalidType, InvalidValue

Id = int | str | UUID
KINDS: tuple[type, ...] = (int, str, UUID)


def key_of(id_: Id) -> Any:
    """What ids are ordered by: integers by value, texts by their UTF-8, UUIDs by their bytes."""
    if isinstance(id_, UUID):
        return id_.bytes
    return id_.encode() if isinstance(id_, str) else id_


def order_of(id_: Id) -> tuple[int, Any]:
    """What ids of several kinds are ordered by: integers, then texts, then UUIDs."""
    return KINDS.index(type(id_)), key_of(id_)


def numbers(ids: Sequence[Id]) -> npt.NDArray[np.int64]:
    """Numbers in the order of `ids`, as a policy's ties want them: (n,) int64, each different.

    Integers from 0 on stand for themselves; of all others it is the rank.

    Raises
    ------
    InvalidType
        Not an integer, a text or a UUID.
    InvalidValue
        One of them is there twice.
    """
    kinds = {type(id_) for id_ in ids}
    if not kinds <= set(KINDS):
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InvalidType(f"ids must be integers, texts or UUIDs; got {found}")
    keys = [order_of(id_) for id_ in ids]
    if len(set(keys)) < len(keys):
        raise InvalidValue("ids must differ from each other; got one twice")
    if kinds == {int} and 0 <= min(ids) <= max(ids) <= checks.LARGEST_INT:  # type: ignore[operator]
        return np.array(ids, np.int64)
    out = np.empty(len(keys), np.int64)
    out[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return out


def audit_numbers(ids: Sequence[Id]) -> npt.NDArray[np.int64]:
    """The number by which the audit commits to each id: (n,) int64, each different.

    Integers from 0 on stand for themselves, others for the first 63 bits of SHA-256 of their text. Should two of a
    batch meet, the later takes the next free number.
    """
    taken: set[int] = set()
    for id_ in sorted(ids, key=order_of):
        if isinstance(id_, int) and 0 <= id_ <= checks.LARGEST_INT:
            number = id_
        else:
            number = int.from_bytes(hashlib.sha256(str(id_).encode()).digest()[:8], "big") >> 1
        while number in taken:
            number = (number + 1) % checks.LARGEST_INT
        taken.add(number)
    return np.array(sorted(taken), np.int64)


def to_json(id_: Id) -> Any:
    """An id as JSON: integers and texts as they are, a UUID as `{"uuid": text}`."""
    return {"uuid": str(id_)} if isinstance(id_, UUID) else id_


def from_json(value: Any) -> Id:
    """The id that `to_json` wrote.

    Raises
    ------
    InvalidValue
    """
    if isinstance(value, dict) and value.keys() == {"uuid"} and isinstance(value["uuid"], str):
        try:
            return UUID(value["uuid"])
        except ValueError:
            raise InvalidValue("an id's uuid must be one; it is not") from None
    if type(value) is int or isinstance(value, str):
        return value
    raise InvalidValue(f"an id must be an integer, a text or a uuid; got {type(value).__name__}")
