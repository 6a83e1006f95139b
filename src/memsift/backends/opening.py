"""A source by its URL, for command lines and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memsift.checks import shown
from memsift.errors import InvalidType, InvalidValue

if TYPE_CHECKING:
    from memsift.backends.base import Source


def open_source(url: object, place: str | None = None, **settings: Any) -> Source:
    """The source that a URL names.

    Parameters
    ----------
    url : str
        `postgresql://...`. What follows the scheme is shown in no message: it may hold a password.
    place : str
        The table or collection.
    **settings
        What the kind of source takes: of PostgreSQL `columns`, a dict of what is mapped to which column (the fields of
        `Mapping`), and the parameters of `PgvectorSource`.

    Raises
    ------
    InvalidValue
        A scheme that is not known, a parameter that the source does not take.
    MissingExtra
        Its client is not installed.
    """
    if not isinstance(url, str):
        raise InvalidType(f"url must be text; got {type(url).__name__}")
    scheme = url.partition("://")[0] if "://" in url else ""
    if scheme not in OPENERS:
        known = ", ".join(f"{name}://" for name in OPENERS)
        raise InvalidValue(f"url must begin with one of {known}")
    return OPENERS[scheme](url, place, **settings)


def _postgresql(
    url: str, place: str | None, columns: dict[str, str] | None = None, **settings: Any
) -> Source:
    from memsift.backends.pgvector import Mapping, PgvectorSource

    if place is None:
        raise InvalidValue("table must be given for PostgreSQL; got None")
    roles = set(Mapping.__dataclass_fields__) - {"table", "kept"}
    for role in columns or {}:
        if role not in roles:
            raise InvalidValue(
                f"columns must name roles among {', '.join(sorted(roles))}; got {shown(role)}"
            )
    return PgvectorSource(url, Mapping(place, **(columns or {})), **settings)  # type: ignore[arg-type]


OPENERS = {"postgresql": _postgresql, "postgres": _postgresql}
