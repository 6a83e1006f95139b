"""Which table holds the memories, and what its columns are called."""

from __future__ import annotations

from dataclasses import dataclass, fields

from memsift import checks
from memsift.errors import InvalidType, InvalidValue

# PostgreSQL cuts longer names off without an error, and would mean another table.
NAME_BYTES = 63
UNITS = {"ticks": 0, "seconds": 1, "milliseconds": 1000, "microseconds": 1_000_000}
ACCESS = "memsift_access"


@dataclass(frozen=True)
class Mapping:
    """The names of a table and of its columns; None where there is no such column.

    Parameters
    ----------
    table : str
    schema : str or None
        The first of the search path that has the table by default.
    id : str
        Integers, texts or UUIDs, unique.
    embedding : str
        `vector` or `halfvec`.
    time : str or None
        The last access: a timestamp, or a number (see `unit`).
    created : str or None
        When it was added, in the same form; stands in for `time` where that is NULL.
    count : str or None
        How often it was returned.
    pin : str or None
        Whether it must stay: a boolean.
    cost : str or None
        Tokens.
    tenant : str or None
        To whom it belongs: text, an integer or a UUID.
    version : str or None
        What changes whenever a row does. The system column `xmin` does so by itself; name another column, or None,
        where there is no xmin, as in distributed tables.
    unit : str
        What numbers in `time` count: `ticks` (a counter of your own), `seconds`, `milliseconds` or `microseconds` since
        1970.
    access : str or None
        A table of memsift's in the same schema for those of `time`, `count`, `pin` and `cost` that have no column; see
        `PgvectorSource.create_access_table`.
    kept : tuple of str
        Further columns that a file archive keeps, as JSON.
    """

    table: str
    schema: str | None = None
    id: str = "id"
    embedding: str = "embedding"
    time: str | None = None
    created: str | None = None
    count: str | None = None
    pin: str | None = None
    cost: str | None = None
    tenant: str | None = None
    version: str | None = "xmin"
    unit: str = "ticks"
    access: str | None = None
    kept: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.one_of(self.unit, "Mapping.unit", tuple(UNITS))
        kept = self.kept
        if isinstance(kept, (str, bytes)) or not isinstance(kept, (tuple, list)):
            raise InvalidType(f"Mapping.kept must be names of columns; got {checks.shown(kept)}")
        object.__setattr__(self, "kept", tuple(kept))
        for name in kept:
            _name(name, "Mapping.kept")
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("unit", "kept") and not (
                value is None and field.default in (None, "xmin")
            ):
                _name(value, f"Mapping.{field.name}")

    @property
    def columns(self) -> dict[str, str]:
        """What is mapped to a column, with its name."""
        roles = ("id", "embedding", "time", "created", "count", "pin", "cost", "tenant", "version")
        return {role: getattr(self, role) for role in roles if getattr(self, role) is not None}


def _name(value: object, what: str) -> None:
    """Refuse what PostgreSQL would take for another name, or for none."""
    if not isinstance(value, str):
        raise InvalidType(f"{what} must be a name; got {checks.shown(value)}")
    if not value or "\0" in value:
        raise InvalidValue(f"{what} must be a name without NUL; got {checks.shown(value)}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidValue(f"{what} must be valid Unicode; got a lone surrogate") from None
    if size > NAME_BYTES:
        raise InvalidValue(f"{what} must be at most {NAME_BYTES} bytes of UTF-8; got {size}")
