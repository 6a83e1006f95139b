"""Which fields of a document mean what: the columns of sources that keep them in a payload or in metadata."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.errors import InvalidType, InvalidValue

# Microseconds in one of them.
UNITS = {"seconds": 1_000_000, "milliseconds": 1000, "microseconds": 1, "iso": 1_000_000}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = 2**62
# The roles of fields, and by which of them a view's column is told.
ROLES = ("time", "created", "count", "pin", "cost", "tenant")
COLUMNS = {
    "accessed_tick": np.int64,
    "created_tick": np.int64,
    "accessed_at": np.float64,
    "created_at": np.float64,
    "access_count": np.int64,
    "cost": np.int64,
    "pinned": np.bool_,
}


@dataclass(frozen=True)
class Fields:
    """The names of fields. A document need not have them: it then counts as never returned, not pinned, of cost 1.

    Parameters
    ----------
    time : str
        The last access. Numbers count `unit`; texts are ISO 8601, in UTC unless they say otherwise. Written by
        `record_access`.
    created : str or None
        When it was added, in either form; stands in for `time` where that is missing.
    count : str
        How often it was returned. Written by `record_access`.
    pin : str or None
        Whether it must stay: true, or a number above 0.
    cost : str or None
        Tokens.
    tenant : str or None
        To whom it belongs: text, a number or a boolean.
    unit : str
        What numbers in `time` and `created` count since 1970: `seconds`, `milliseconds` or `microseconds`. With `iso`
        they are seconds too, but `record_access` writes a text, in UTC.

    Raises
    ------
    InvalidType, InvalidValue
        A name that is no text, is empty or is given to two roles.
    """

    time: str = "accessed_at"
    created: str | None = "created_at"
    count: str = "access_count"
    pin: str | None = "pinned"
    cost: str | None = "cost"
    tenant: str | None = None
    unit: str = "seconds"

    def __post_init__(self) -> None:
        checks.one_of(self.unit, "Fields.unit", tuple(UNITS))
        taken: dict[str, str] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ROLES or (value is None and field.name not in ("time", "count")):
                continue
            _check_name(value, f"Fields.{field.name}")
            if value in taken:
                raise InvalidValue(
                    f"Fields.{field.name} must be another field than {taken[value]}; got {value!r:.60}"
                )
            taken[value] = field.name

    @property
    def names(self) -> dict[str, str]:
        """The name of each role that has one."""
        return {role: getattr(self, role) for role in ROLES if getattr(self, role) is not None}

    def columns(
        self, found: Sequence[Mapping[str, Any]], wanted: frozenset[str]
    ) -> dict[str, npt.NDArray[Any]]:
        """The view's columns of some documents, `pinned` always among them: (n,) each.

        `found` has the values of each one's roles, as they are stored; those that make no sense count as missing.
        """
        names = [name for name in COLUMNS if name in wanted or name == "pinned"]
        return {
            name: np.array([getattr(self, f"_{name}")(values) for values in found], COLUMNS[name])
            for name in names
        }

    def tenant_of(self, values: Mapping[str, Any]) -> str | None:
        """To whom a document belongs, as text."""
        tenant = values.get("tenant")
        if isinstance(tenant, bool):
            return str(tenant).lower()
        return str(tenant) if isinstance(tenant, (str, int, float)) else None

    def mark(self, values: Mapping[str, Any]) -> str:
        """What a document is like as far as its mapped fields tell."""
        return digest([values.get(role) for role in ROLES])

    def accessed(self, values: Mapping[str, Any], micros: int) -> dict[str, Any]:
        """The fields, by role, of a document that was returned once more, at `micros` since 1970."""
        count = min(self._access_count(values) + 1, checks.LARGEST_INT)
        return {"time": self.moment(micros), "count": count}

    def moment(self, micros: int) -> int | float | str:
        """A time as `record_access` writes it."""
        if self.unit == "iso":
            return (EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds")
        return micros / 1_000_000 if self.unit == "seconds" else micros // UNITS[self.unit]

    def _accessed_tick(self, values: Mapping[str, Any]) -> int:
        last = _micros(values.get("time"), self.unit)
        return self._created_tick(values) if last is None else last

    def _created_tick(self, values: Mapping[str, Any]) -> int:
        return _micros(values.get("created"), self.unit) or 0

    def _accessed_at(self, values: Mapping[str, Any]) -> float:
        return self._accessed_tick(values) / 1_000_000

    def _created_at(self, values: Mapping[str, Any]) -> float:
        return self._created_tick(values) / 1_000_000

    def _access_count(self, values: Mapping[str, Any]) -> int:
        return _whole(values.get("count"), 0, checks.LARGEST_INT)

    def _cost(self, values: Mapping[str, Any]) -> int:
        return _whole(values.get("cost"), 1, checks.LARGEST_COST)

    def _pinned(self, values: Mapping[str, Any]) -> bool:
        pin = values.get("pin")
        return pin is True or (is_number(pin) and pin > 0)


def digest(value: Any) -> str:
    """128 bits of BLAKE2b over a JSON-ready value, in hex."""
    text = json.dumps(value, sort_keys=True, default=str, separators=(",", ":"))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a finite number, and no boolean."""
    kind = isinstance(value, (int, float)) and not isinstance(value, bool)
    return kind and (isinstance(value, int) or math.isfinite(value))  # type: ignore[arg-type]


def instant(text: object) -> datetime | None:
    """An ISO 8601 text as an aware datetime; None if it is none."""
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if found is None or found.tzinfo is not None:
        return found
    return found.replace(tzinfo=UTC)


def _micros(value: Any, unit: str) -> int | None:
    """A stored time as microseconds since 1970, from 0 on; None if it is none."""
    if is_number(value):
        factor = UNITS[unit]
        # Integers stay exact; floats are cut off before they grow past what an integer of 64 bits holds.
        most = LATEST // factor
        return (
            min(max(0, value), most) * factor
            if isinstance(value, int)
            else round(min(max(0.0, value), float(most)) * factor)
        )
    found = instant(value)
    return None if found is None else max(0, (found - EPOCH) // timedelta(microseconds=1))


def _whole(value: Any, default: int, most: int) -> int:
    return min(max(0, int(value)), most) if is_number(value) else default


def _check_name(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise InvalidType(f"{what} must be the name of a field; got {checks.shown(value)}")
    if not value or "\0" in value:
        raise InvalidValue(f"{what} must be a name without NUL; got {checks.shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"{what} must be valid Unicode; got a lone surrogate") from None
