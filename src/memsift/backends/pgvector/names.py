"""Names of the user's in SQL."""

from __future__ import annotations

from psycopg import sql


def quoted(*names: str) -> sql.Identifier:
    """A name, or one within another, for statements that are run with parameters, be it none: `execute(query, {})`.

    psycopg looks for placeholders in quoted names as well: a column called `%s` would be one.
    """
    return sql.Identifier(*(name.replace("%", "%%") for name in names))
