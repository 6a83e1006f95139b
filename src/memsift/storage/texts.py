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
from memsift.errors import CorruptStore, InvalidValue, UnknownEntry
from memsift.storage import rows
from memsift.storage.fetch import CHUNK
from memsift.storage.file import translated
from memsift.storage.journal import Journal

Ids = npt.NDArray[np.int64]


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
            sums = map(text_sum, keys, said)
            self._journal.touch_state()
            written = self._db.executemany(
                "INSERT OR REPLACE INTO payload SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM entry WHERE key = ?1)",
                zip(keys, said, sums, strict=True),
            ).rowcount
            if written != len(keys):
                raise UnknownEntry(
                    f"ids must be in the store or its archive; {len(keys) - written} of {len(keys)} are not"
                )

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
                query = f"SELECT key, CAST(text AS BLOB), sum FROM payload WHERE key IN ({marks})"
                found.update(checked(self._db.execute(query, part)))
        base = self._journal.ns << rows.ID_BITS
        return [found.get(base + id_) for id_ in wanted.tolist()]

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
            query = "SELECT key, CAST(text AS BLOB), sum FROM payload WHERE key >= ? AND key < ? ORDER BY key"
            return [
                (key - base, text) for key, text in checked(self._db.execute(query, self._span))
            ]

    @property
    def _span(self) -> tuple[int, int]:
        return self._journal.ns << rows.ID_BITS, (self._journal.ns + 1) << rows.ID_BITS


def text_sum(key: int, text: str) -> int:
    """CRC-32 of a row's key and its text: a text that lies under another's key is noticed too."""
    return _sum(key, text.encode())


def _sum(key: int, raw: bytes) -> int:
    return zlib.crc32(raw, (key ^ key >> 32) & 0xFFFFFFFF)


def checked(found: Any) -> Iterator[tuple[int, str]]:
    """Keys and texts of rows of the `payload` table, each with its sum."""
    for key, raw, total in found:
        # As bytes: SQLite's own complaint about text that is no UTF-8 would quote it.
        if not isinstance(raw, bytes) or _sum(key, raw) != total:
            raise CorruptStore("payload", "sum must fit the text; it does not for one row")
        try:
            yield key, raw.decode()
        except UnicodeDecodeError:
            raise CorruptStore("payload", "text must be UTF-8; it is not in one row") from None
