"""A source by its URL, for command lines and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memsift.checks import shown
from memsift.errors import InvalidType, InvalidValue

if TYPE_CHECKING:
    from memsift.backends.base import Source
    from memsift.backends.fields import Fields


def open_source(url: object, place: str | None = None, **settings: Any) -> Source:
    """The source that a URL names.

    Parameters
    ----------
    url : str
        `postgresql://...`, `qdrant://HOST:PORT/COLLECTION`, `qdrant+path://FOLDER#COLLECTION`, or the same of `chroma`;
        `+https` for TLS. What follows the scheme is shown in no message: it may hold a password.
    place : str
        The table or collection.
    **settings
        What the kind of source takes: of PostgreSQL `columns`, a dict of what is mapped to which column (the fields of
        `Mapping`), and the parameters of `PgvectorSource`. Of Qdrant and Chroma `columns` (the fields of `Fields`, of
        Qdrant also `embedding`, a vector's name) and the parameters of their `source_of_url`.

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


def _qdrant(
    url: str, place: str | None, columns: dict[str, str] | None = None, **settings: Any
) -> Source:
    from memsift.backends.qdrant import source_of_url

    names = dict(columns or {})
    vector = names.pop("embedding", None)
    _no_table(settings)
    return source_of_url(url, place, fields=_fields(names), vector=vector, **settings)


def _chroma(
    url: str, place: str | None, columns: dict[str, str] | None = None, **settings: Any
) -> Source:
    from memsift.backends.chroma import source_of_url

    _no_table(settings)
    return source_of_url(url, place, fields=_fields(columns or {}), **settings)


def _fields(names: dict[str, str]) -> Fields:
    from memsift.backends.fields import Fields

    for role in names:
        if role not in Fields.__dataclass_fields__:
            raise InvalidValue(
                f"columns must name roles among {', '.join(sorted(Fields.__dataclass_fields__))}; "
                f"got {shown(role)}"
            )
    return Fields(**names)


def _no_table(settings: dict[str, Any]) -> None:
    if settings.pop("archive_into", None) is not None:
        raise InvalidValue("an archive table is for PostgreSQL; archive into a file")


OPENERS = {"postgresql": _postgresql, "postgres": _postgresql} | {
    f"{system}{form}": opener
    for system, opener in (("qdrant", _qdrant), ("chroma", _chroma))
    for form in ("", "+https", "+path")
}
