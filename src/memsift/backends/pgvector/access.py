"""What memsift itself counts, for tables that do not: one narrow table in the same schema, made on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql
from psycopg.sql import Composable, Composed

from memsift.backends.ids import Id
from memsift.backends.pgvector.mapping import UNITS
from memsift.backends.pgvector.names import quoted
from memsift.backends.pgvector.table import STAMPS, Table

CREATE = """
    CREATE TABLE IF NOT EXISTS {} (
        source text NOT NULL, id text NOT NULL, accessed_at timestamptz,
        access_count bigint NOT NULL DEFAULT 0, pinned boolean NOT NULL DEFAULT false, cost bigint,
        PRIMARY KEY (source, id))"""
# In the order of the ids, so that two callers do not wait for each other in a circle.
COUNT = """
    INSERT INTO {access} AS a (source, id, accessed_at, access_count)
    SELECT {source}, t.id, clock_timestamp(), 1
    FROM (SELECT t.{id}::text AS id FROM {table} AS t WHERE t.{id} = ANY({ids}::{kind}) ORDER BY 1) AS t
    ON CONFLICT (source, id) DO UPDATE SET
        accessed_at = greatest(a.accessed_at + interval '1 microsecond', excluded.accessed_at),
        access_count = a.access_count + 1"""


def create(db: psycopg.Connection[Any], schema: str, name: str) -> None:
    """Make the table, if it is not there."""
    db.execute(sql.SQL(CREATE).format(quoted(schema, name)), {})


def record(db: psycopg.Connection[Any], table: Table, ids: Sequence[Id]) -> int:
    """Count one access of each entry, in the user's columns or in ours, in one transaction; how many are known."""
    values = {"ids": list(dict.fromkeys(ids)), "source": table.key}
    with db.transaction():
        known = 0
        changes = _changes(table)
        if changes:
            update = sql.SQL("UPDATE {} AS t SET {} WHERE {} = ANY({}::{})").format(
                table.name,
                sql.SQL(", ").join(changes),
                table.column("id"),
                sql.Placeholder("ids"),
                table.id_array,
            )
            known = db.execute(update, values).rowcount
        if table.has_access and not (table.mapping.time and table.mapping.count):
            insert = sql.SQL(COUNT).format(
                access=table.access,
                table=table.name,
                source=sql.Placeholder("source"),
                id=quoted(table.mapping.id),
                ids=sql.Placeholder("ids"),
                kind=table.id_array,
            )
            known = db.execute(insert, values).rowcount
        return known


def _changes(table: Table) -> list[Composed]:
    """The assignments of an UPDATE of the user's columns."""
    mapping, out = table.mapping, []
    if mapping.time:
        column = table.column("time")
        out.append(_set(mapping.time, _later(table, column)))
    if mapping.count:
        column = table.column("count")
        out.append(_set(mapping.count, sql.SQL("coalesce({}, 0) + 1").format(column)))
    return out


def _later(table: Table, column: Composed) -> Composed:
    """A time that is later than the one in the column, in the column's own form."""
    kind, unit = table.types["time"], table.mapping.unit
    if kind in STAMPS:
        return sql.SQL("greatest(clock_timestamp()::{}, {} + interval '1 microsecond')").format(
            sql.SQL(kind), column
        )
    if unit == "ticks":
        return sql.SQL("(SELECT coalesce(max({}), 0) + 1 FROM {} AS u)").format(
            sql.SQL("u.{}").format(quoted(str(table.mapping.time))), table.name
        )
    now = sql.SQL("extract(epoch FROM clock_timestamp()) * {}").format(sql.Literal(UNITS[unit]))
    return sql.SQL("greatest(({})::{}, {})").format(now, sql.SQL(kind), column)


def _set(name: str, value: Composable) -> Composed:
    return sql.SQL("{} = {}").format(quoted(name), value)
