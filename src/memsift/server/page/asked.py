"""What a request asks for, checked: the parameters of a query, the fields of a JSON body."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from starlette.requests import Request

from memsift import checks
from memsift.errors import InvalidType, InvalidValue

BODY_BYTES = 64 * 1024
IDS = 1_000

_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII).fullmatch
_SHARE = re.compile(r"0?\.[0-9]{1,6}", re.ASCII).fullmatch


class Query:
    """The parameters of a GET: each at most once, none that is not known."""

    def __init__(self, request: Request, *known: str) -> None:
        pairs = request.query_params.multi_items()
        names = [name for name, _ in pairs]
        for name in names:
            if name not in known:
                allowed = ", ".join(known) or "none"
                raise InvalidValue(f"parameters must be among {allowed}; got {checks.shown(name)}")
            if names.count(name) > 1:
                raise InvalidValue(f"{name} must be given once; got it {names.count(name)} times")
        self._given = dict(pairs)

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        text = self._given.get(name)
        if text is None:
            return default
        if not _INTEGER(text):
            raise InvalidValue(
                f"{name} must be an integer from {low} to {high}; got {checks.shown(text)}"
            )
        return checks.integer(int(text), name, low, high)

    def one_of(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        return checks.one_of(self._given.get(name, default), name, allowed)

    def text(self, name: str, longest: int, *, default: str | None = None) -> str:
        """Text of 1 to `longest` characters."""
        value = self._given.get(name, default)
        if not (value and value.strip() and len(value) <= longest):
            came = f"{len(value)} of them" if value and value.strip() else "none"
            raise InvalidValue(f"{name} must be text of 1 to {longest} characters; got {came}")
        return value

    def target(self, name: str, default: float) -> int | float:
        """A number of entries, or a share of them such as 0.5."""
        text = self._given.get(name)
        if text is None:
            return default
        if _SHARE(text) and float(text) > 0:
            return float(text)
        if _INTEGER(text) and int(text) >= 1:
            return int(text)
        raise InvalidValue(
            f"{name} must be a number of entries from 1 on, or a share between 0 and 1 such as 0.5; "
            f"got {checks.shown(text)}"
        )


class TooLarge(InvalidValue):
    """A body has more bytes than any honest one."""


class NotJson(InvalidType):
    """A body does not say that it is JSON."""


async def body(request: Request, *fields: str) -> dict[str, Any]:
    """The fields of a JSON object, no more and no fewer.

    Raises
    ------
    NotJson, TooLarge, InvalidType, InvalidValue
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise NotJson(f"content-type must be application/json; got {checks.shown(kind)}")
    raw = bytearray()
    async for part in request.stream():
        raw += part
        if len(raw) > BODY_BYTES:
            raise TooLarge(f"a body must be of at most {BODY_BYTES} bytes; got more")
    try:
        found = json.loads(raw.decode(), parse_constant=_no_number, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise InvalidValue("a body must be strict JSON; got something else") from None
    if not isinstance(found, dict):
        raise InvalidType(f"a body must be a JSON object; got {checks.shown(found)}")
    if found.keys() != set(fields):
        came = ", ".join(sorted(found))[:60] or "none"
        raise InvalidValue(f"fields must be {', '.join(fields)}; got {came}")
    return found


def ids(value: object) -> list[int]:
    """A list of 1 to 1,000 ids."""
    if not isinstance(value, list):
        raise InvalidType(f"ids must be a list of integers; got {checks.shown(value)}")
    if not 1 <= len(value) <= IDS:
        raise InvalidValue(f"ids must be 1 to {IDS} of them; got {len(value)}")
    return [int(id_) for id_ in checks.ids(value)]


def _no_number(word: str) -> NoReturn:
    raise ValueError(word)


def _once(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field is there twice")
    return found
