"""Rows of the server as columns of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql

from memsift.backends.base import Scanned
from memsift.backends.ids import Id
from memsift.backends.pgvector.table import Table
from memsift.errors import SourceTrouble

BATCH = 5000
# As pgvector sends a vector: two numbers of two bytes, of which the first is its length, then the elements.
HEAD = 4
ELEMENTS = {"vector": ">f4", "halfvec": ">f2"}
COLUMNS = {
    "accessed_tick": np.int64,
    "created_tick": np.int64,
    "access_count": np.int64,
    "cost": np.int64,
    "pinned": np.bool_,
}


def vectors_of(table: Table, blobs: Sequence[bytes | None]) -> npt.NDArray[np.float32]:
    """Vectors as pgvector sends them: (n, dim) float32, zeros for NULL.

    Raises
    ------
    SourceTrouble
        They are of different lengths.
    """
    kind = ELEMENTS[table.types["embedding"]]
    rows = [None if blob is None else np.frombuffer(blob, kind, offset=HEAD) for blob in blobs]
    sizes = {row.size for row in rows if row is not None} | ({table.dim} if table.dim else set())
    if len(sizes) > 1:
        raise SourceTrouble(f"vectors must be of one length; got {sorted(sizes)[:5]}")
    out = np.zeros((len(rows), sizes.pop() if sizes else 1), np.float32)
    for place, row in enumerate(rows):
        if row is not None:
            out[place] = row
    return out


def fetch(db: psycopg.Connection[Any], table: Table, ids: list[Id]) -> npt.NDArray[np.float32]:
    """The vectors of some entries, in the order of `ids`; zeros for what is not there."""
    query = sql.SQL("SELECT {}, {} FROM {} AS t WHERE {} = ANY({}::{})").format(
        table.column("id"),
        table.column("embedding"),
        table.name,
        table.column("id"),
        sql.Placeholder("ids"),
        table.id_array,
    )
    found = dict(db.execute(query, {"ids": ids}, binary=True).fetchall())
    return vectors_of(table, [found.get(id_) for id_ in ids])


def scan(db: psycopg.Connection[Any], table: Table, needs: frozenset[str]) -> Iterator[Scanned]:
    """All entries in batches, as of one moment: the columns that are needed, vectors only if they are."""
    forms = {
        "accessed_tick": table.tick,
        "created_tick": table.created,
        "access_count": table.count,
        "cost": table.cost,
        "pinned": table.pinned,
    }
    names = [name for name in COLUMNS if name in needs or name == "pinned"]
    wanted = [table.column("id"), table.mark, table.tenant, *(forms[name] for name in names)]
    if "vectors" in needs:
        wanted.append(table.column("embedding"))
    query = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(wanted), table.entries)
    with db.transaction(), db.cursor(name="memsift", binary=True) as cursor:
        cursor.execute(query, {"source": table.key})
        while rows := cursor.fetchmany(BATCH):
            ids, marks, tenants, *rest = zip(*rows, strict=True)
            columns: dict[str, npt.NDArray[Any]] = {
                name: np.array(values, COLUMNS[name])
                for name, values in zip(names, rest, strict=False)
            }
            if "vectors" in needs:
                columns["vectors"] = vectors_of(table, rest[-1])
            yield Scanned(list(ids), list(marks), columns, list(tenants))
