"""What entries say: a text for each that has one, in the transaction of its entry, read from the file on demand."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.errors import CorruptStore, InvalidValue
from memsift.storage import rows
from memsift.storage.fetch import CHUNK
from memsift.storage.file import translated
from memsift.storage.journal import Journal

Ids = npt.NDArray[np.int64]

# What `checked` reads.
FOUND = "key, CAST(text AS BLOB), hash, sum FROM payload"


class Texts:
    """`store.texts`: texts of entries, live or archived. They come and go with their entries.

    Nothing of them is kept in memory: what other processes wrote is there at once.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        journal: Journal,
        reading: AbstractContextManager[object],
        writing: AbstractContextManager[object],
    ) -> None:
        self._db, self._journal = db, journal
        self._reading, self._writing = reading, writing

    def put(self, ids: Any, texts: Sequence[str]) -> None:
        """Keep a text with each of these entries, in place of the one that it had.

        Parameters
        ----------
        ids : (m,) ints, distinct
            Live or archived.
        texts : list of m str
            1 to 65,536 bytes of UTF-8 each, without NUL characters and lone surrogates.

        Raises
        ------
        UnknownEntry
            One of them is neither live nor archived; nothing was kept.
        """
        wanted, said = checks.ids(ids), checks.texts(texts)
        if len(said) != wanted.size:
            raise InvalidValue(f"texts must be one per id ({wanted.size}); got {len(said)}")
        if np.unique(wanted).size != wanted.size:
            raise InvalidValue("ids must be distinct; one comes twice")
        if not wanted.size:
            return
        with self._writing, translated():
            keys = rows.keys(self._journal.ns, wanted)
            hashes = [zlib.crc32(text.encode()) for text in said]
            sums = map(_sum, keys, hashes)
            self._journal.said(list(zip(keys, said, hashes, sums, strict=True)))

    def get(self, ids: Any) -> list[str | None]:
        """The texts of these ids, in the order asked; None where there is none.

        Raises
        ------
        CorruptStore
            A text is not what was written.
        """
        wanted = checks.ids(ids)
        with self._reading, translated():
            keys = rows.keys(self._journal.ns, wanted[wanted < 1 << rows.ID_BITS])
            found: dict[int, str] = {}
            for start in range(0, len(keys), CHUNK):
                part = keys[start : start + CHUNK]
                marks = ",".join("?" * len(part))
                query = f"SELECT {FOUND} WHERE key IN ({marks})"
                found.update(checked(self._db.execute(query, part)))
            if self._journal.texts and len(found) < len(set(keys)):
                self._demand_none(set(keys) - found.keys())
        base = self._journal.ns << rows.ID_BITS
        return [found.get(base + id_) for id_ in wanted.tolist()]

    def find(self, texts: Sequence[str]) -> list[list[int]]:
        """For each of these texts the ids of entries that say exactly that, live or archived, ascending."""
        said = checks.texts(texts)
        hashes = sorted({zlib.crc32(text.encode()) for text in said})
        ids: dict[str, list[int]] = {}
        with self._reading, translated():
            for start in range(0, len(hashes), CHUNK):
                part = hashes[start : start + CHUNK]
                marks = ",".join("?" * len(part))
                # Left alone, SQLite would rather walk over all texts of the namespace.
                where = f"INDEXED BY said WHERE hash IN ({marks}) AND key >= ? AND key < ?"
                query = f"SELECT {FOUND} {where} ORDER BY key"
                for key, text in checked(self._db.execute(query, [*part, *self._span])):
                    ids.setdefault(text, []).append(key - self._span[0])
        return [ids.get(text, []) for text in said]

    def count(self) -> int:
        """How many entries have a text, archived ones included."""
        with self._reading:
            return self._journal.texts

    def nbytes(self) -> int:
        """UTF-8 bytes of all texts of the namespace, archived ones included."""
        with self._reading, translated():
            query = (
                "SELECT total(length(CAST(text AS BLOB))) FROM payload WHERE key >= ? AND key < ?"
            )
            return int(self._db.execute(query, self._span).fetchone()[0])

    def all(self) -> list[tuple[int, str]]:
        """Every id that has a text, with it, ascending."""
        base = self._span[0]
        with self._reading, translated():
            query = f"SELECT {FOUND} WHERE key >= ? AND key < ? ORDER BY key"
            rows_found = self._db.execute(query, self._span)
            found = [(key - base, text) for key, text in checked(rows_found)]
        if len(found) != self._journal.texts:
            raise CorruptStore("payload", f"must have {self._journal.texts} rows; got {len(found)}")
        return found

    def _demand_none(self, keys: set[int]) -> None:
        """Where every entry has a text, none of these keys may be an entry's."""
        count = "SELECT count(*) FROM entry WHERE key >= ? AND key < ?"
        if self._db.execute(count, self._span).fetchone()[0] != self._journal.texts:
            return
        one = "SELECT 1 FROM entry WHERE key = ?"
        if any(self._db.execute(one, (key,)).fetchone() for key in keys):
            raise CorruptStore("payload", "must hold a text for each entry; one is gone")

    @property
    def _span(self) -> tuple[int, int]:
        return self._journal.ns << rows.ID_BITS, (self._journal.ns + 1) << rows.ID_BITS


def _sum(key: int, hash_: int) -> int:
    """A sum over a row's key and the hash of its text: a text that lies under another's key is noticed too."""
    return zlib.crc32(key.to_bytes(8, "little"), hash_)


def checked(found: Any) -> Iterator[tuple[int, str]]:
    """Keys and texts of rows of the `payload` table (its text as bytes), each with its hash and its sum."""
    for key, raw, hash_, total in found:
        # As bytes: SQLite's own complaint about text that is no UTF-8 would quote it.
        sound = isinstance(raw, bytes) and zlib.crc32(raw) == hash_ and _sum(key, hash_) == total
        if not sound:
            raise CorruptStore("payload", "sum must fit the text; it does not for one row")
        try:
            yield key, raw.decode()
        except UnicodeDecodeError:
            raise CorruptStore("payload", "text must be UTF-8; it is not in one row") from None
