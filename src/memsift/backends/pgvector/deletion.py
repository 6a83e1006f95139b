"""A plan carried out in the database: what is still as it was leaves, archived or not, in one transaction."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
from psycopg import sql
from psycopg.sql import Composed

from memsift.backends.base import Applied, Archive, Scanned, SourcePlan
from memsift.backends.ids import Id
from memsift.backends.pgvector.names import quoted
from memsift.backends.pgvector.rows import vectors_of
from memsift.backends.pgvector.table import Table

# RETURNING sees the rows before they are gone; nobody else sees them gone before the commit.
DELETE = """
    DELETE FROM {name} AS t USING {due}
    WHERE {id} = due.id AND {mark} = due.mark AND NOT {pinned}
    RETURNING {returning}"""
DUE = "unnest({ids}::{kind}, {marks}::text[]) AS due (id, mark)"
LEAVING = "{id}, {embedding}, {tenant}, {tick}, {created}, {count}, {cost}, {note}"


def apply(
    db: psycopg.Connection[Any],
    table: Table,
    plan: SourcePlan,
    archive: Archive | None,
    into: str | None,
) -> Applied:
    """Delete the victims of a plan that are as they were; `into`: the table that gets their rows."""
    values: dict[str, Any] = {"ids": plan.ids, "marks": plan.marks, "source": table.key}
    values |= {f"kept{i}": name for i, name in enumerate(table.mapping.kept)}
    with db.transaction():
        if table.has_access:
            # An access that is being counted now is seen, or waits: the table is locked against writers for a moment.
            db.execute(
                sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(table.access), {}
            )
        if archive is not None:
            rows = db.execute(_delete(table, leaving=True), values, binary=True).fetchall()
            if rows:
                archive(_scanned(table, rows))
        elif into is not None:
            moved = sql.SQL(
                "WITH gone AS ({}), kept AS (INSERT INTO {} SELECT gone.* FROM gone) SELECT {} FROM gone"
            ).format(
                _delete(table, whole=True),
                quoted(table.schema, into),
                quoted(table.mapping.id),
            )
            rows = db.execute(moved, values).fetchall()
        else:
            rows = db.execute(_delete(table), values).fetchall()
        dropped: list[Id] = [row[0] for row in rows]
        gone = set(dropped)
        left = [id_ for id_ in plan.ids if id_ not in gone]
        there = _present(db, table, left) if left else set()
        if table.has_access and dropped:
            forget = sql.SQL("DELETE FROM {} WHERE source = {} AND id = ANY({}::text[])").format(
                table.access, sql.Placeholder("source"), sql.Placeholder("ids")
            )
            db.execute(forget, {"source": table.key, "ids": [str(id_) for id_ in dropped]})
    return Applied(
        dropped,
        [id_ for id_ in left if id_ in there],
        [id_ for id_ in left if id_ not in there],
    )


def _delete(table: Table, *, leaving: bool = False, whole: bool = False) -> Composed:
    due = sql.SQL(DUE).format(
        ids=sql.Placeholder("ids"), kind=table.id_array, marks=sql.Placeholder("marks")
    )
    if table.has_access:
        due = sql.SQL("{} LEFT JOIN {} AS a ON a.source = {} AND a.id = due.id::text").format(
            due, table.access, sql.Placeholder("source")
        )
    returning: sql.Composable = sql.SQL("t.*") if whole else table.column("id")
    if leaving:
        kept = [
            sql.SQL("{}::text, to_jsonb({})").format(
                sql.Placeholder(f"kept{i}"), sql.SQL("t.{}").format(quoted(name))
            )
            for i, name in enumerate(table.mapping.kept)
        ]
        returning = sql.SQL(LEAVING).format(
            id=table.column("id"),
            embedding=table.column("embedding"),
            tenant=table.tenant,
            tick=table.tick,
            created=table.created,
            count=table.count,
            cost=table.cost,
            note=sql.SQL("jsonb_build_object({})").format(sql.SQL(", ").join(kept)),
        )
    return sql.SQL(DELETE).format(
        name=table.name,
        due=due,
        id=table.column("id"),
        mark=table.mark,
        pinned=table.pinned,
        returning=returning,
    )


def _present(db: psycopg.Connection[Any], table: Table, ids: list[Id]) -> set[Id]:
    query = sql.SQL("SELECT {} FROM {} AS t WHERE {} = ANY({}::{})").format(
        table.column("id"), table.name, table.column("id"), sql.Placeholder("ids"), table.id_array
    )
    return {row[0] for row in db.execute(query, {"ids": ids}).fetchall()}


def _scanned(table: Table, rows: list[tuple[Any, ...]]) -> Scanned:
    ids, blobs, tenants, ticks, created, counts, costs, notes = zip(*rows, strict=True)
    return Scanned(
        list(ids),
        [""] * len(ids),
        {
            "vectors": vectors_of(table, blobs),
            "accessed_tick": np.array(ticks, np.int64),
            "created_tick": np.array(created, np.int64),
            "access_count": np.array(counts, np.int64),
            "cost": np.array(costs, np.int64),
        },
        list(tenants),
        list(notes),
    )
