"""Tables to sift, filled without memsift."""

from __future__ import annotations

from uuid import UUID

from psycopg import sql

KINDS = {int: "bigint", str: "text", UUID: "uuid"}


def make(db, entries, *, table="memories", kind="vector", dim=8, time="bigint", extra=""):
    """A table with a column for everything a memory has, and rows for `entries`."""
    ids = KINDS[type(entries[0].id)] if entries else "bigint"
    db.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(table)))
    db.execute(
        sql.SQL(
            "CREATE TABLE {} (id {} PRIMARY KEY, embedding {}({}), seen {}, added {}, hits int,"
            " keep boolean, tokens int, owner text {})"
        ).format(sql.Identifier(table), *map(sql.SQL, (ids, kind, str(dim), time, time, extra)))
    )
    # psycopg takes a % in a name for a placeholder, unless it is doubled.
    insert = sql.SQL("INSERT INTO {} VALUES (%s, %s, {}, {}, %s, %s, %s, %s)").format(
        sql.Identifier(table.replace("%", "%%")), *[moment(time)] * 2
    )
    with db.cursor() as cursor:
        cursor.executemany(insert, [values(row) for row in entries])


def moment(time):
    """A tick as a value of that type: of timestamps it is microseconds."""
    if time.startswith("timestamp"):
        return sql.SQL("('epoch'::timestamp + %s * interval '1 microsecond')::{}").format(
            sql.SQL(time)
        )
    return sql.SQL("%s")


def values(row):
    return (
        row.id,
        str(list(row.vector)),
        row.accessed_tick,
        row.created_tick,
        row.access_count,
        row.pinned,
        row.cost,
        row.tenant,
    )


NAMES = {
    "time": "seen",
    "created": "added",
    "count": "hits",
    "pin": "keep",
    "cost": "tokens",
    "tenant": "owner",
}
