"""Entries of one namespace as the file has them, every row's sum checked before anything is used."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.checks import Metadata
from memsift.errors import CorruptStore
from memsift.kernels import word_sums
from memsift.storage import rows
from memsift.table import Entries, EntryTable

Ids = npt.NDArray[np.int64]

CHUNK = 500  # ids per statement


class Fetch:
    """Reads the rows of namespace number `ns`, whose vectors have `dim` elements."""

    def __init__(self, db: sqlite3.Connection, ns: int, dim: int) -> None:
        self._db, self._ns, self._dim = db, ns, dim

    def live(self, table: EntryTable) -> Entries:
        """Every live entry, its vector read to where the empty table will have it."""
        span = self._ns << rows.ID_BITS, (self._ns + 1) << rows.ID_BITS
        where = "key >= ? AND key < ?"
        live = f"SELECT row FROM entry WHERE {where} AND archived_at IS NULL ORDER BY key"
        raw = rows.joined(row for (row,) in self._db.execute(live, span))
        resting = (
            f"SELECT 1 FROM entry INDEXED BY archived WHERE archived_at IS NOT NULL AND {where}"
        )
        if self._db.execute(resting, span).fetchone() is None:
            select = f"SELECT row FROM vector WHERE {where} ORDER BY key"
        else:
            select = (
                "SELECT v.row FROM entry e CROSS JOIN vector v ON v.key = e.key "
                "WHERE e.key >= ? AND e.key < ? AND e.archived_at IS NULL ORDER BY e.key"
            )
        blobs, sums = iter(self._db.execute(select, span)), [np.empty(0, np.uint32)]
        for part in table.room(len(raw) // rows.PACKED.itemsize):
            self._fill(part, islice(blobs, len(part)))
            sums.append(word_sums(part))
        if next(blobs, None) is not None:
            raise CorruptStore("vector", "must have one row per entry; got more")
        notes = self._db.execute(f"SELECT key, json FROM note WHERE {where}", span)
        return self._checked(raw, table.filled, np.concatenate(sums), notes)

    def entries(self, where: str, ids: Ids | None = None) -> Entries:
        """Entries of the file as columns and vectors, ascending by id. Every row's sum is checked.

        Parameters
        ----------
        where : str
            A condition on `e`, the entry table; with `ids` it holds `{}` for the list of their keys.
        """
        join = f"FROM entry e JOIN vector v ON v.key = e.key WHERE {where} ORDER BY e.key"
        join_notes = f"FROM entry e JOIN note n ON n.key = e.key WHERE {where}"
        found: list[Any] = []
        notes: list[Any] = []
        keys = [] if ids is None else rows.keys(self._ns, np.sort(ids))
        for start in range(0, max(1, len(keys)), CHUNK):
            part = keys[start : start + CHUNK]
            marks = ",".join("?" * len(part))
            found += self._db.execute(f"SELECT e.row, v.row {join}".format(marks), part)
            notes += self._db.execute(f"SELECT n.key, n.json {join_notes}".format(marks), part)
        vectors = np.empty((len(found), self._dim), dtype=np.float32)
        self._fill(vectors, ((vector,) for _, vector in found))
        raw = rows.joined(row for row, _ in found)
        return self._checked(raw, vectors, word_sums(vectors), notes)

    def _fill(self, vectors: npt.NDArray[np.float32], blobs: Iterable[Any]) -> None:
        """Write blobs into the rows of `vectors`, which there must be exactly as many of."""
        size, place = 4 * self._dim, 0
        room = vectors.data.cast("B") if len(vectors) else memoryview(b"")
        try:
            for (blob,) in blobs:
                room[place : place + size] = blob
                place += size
        except (TypeError, ValueError):
            raise CorruptStore(
                "vector", f"rows must be {size} bytes, one per entry; got another"
            ) from None
        if place != len(room):
            raise CorruptStore("vector", f"must have {len(vectors)} rows, one per entry; got fewer")
        if sys.byteorder == "big":
            vectors.byteswap(inplace=True)

    def _checked(self, raw: bytes, vectors: Any, sums: rows.Sums, noted: Iterable[Any]) -> Entries:
        columns = rows.unpacked(raw, sums)
        ids, wanted = columns["ids"], rows.note_sums(raw)
        notes: list[Metadata | None] = [None] * ids.size
        sums = np.zeros(ids.size, np.uint32)
        for key, text in noted:
            id_ = key - (self._ns << rows.ID_BITS)
            place = int(np.searchsorted(ids, id_))
            if place < ids.size and ids[place] == id_:  # others belong to archived entries
                notes[place], sums[place] = rows.note(text), rows.note_sum(text)
        wrong = np.flatnonzero(sums != wanted)
        if wrong.size:
            raise CorruptStore("note", f"sum must fit the text; it does not for id {ids[wrong[0]]}")
        return Entries(vectors, columns, notes)
