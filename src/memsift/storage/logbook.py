"""The access log in a store's file: rows of the table `log`, one per event, within a limit of bytes.

A row's number is the sum of the lengths of all rows that were ever written before it, so that the bytes between two
rows are known without reading them. Each row carries a CRC-32 over the rest of itself.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memsift.accesslog.events import (
    ADD,
    KINDS,
    LIMIT,
    NEED,
    NO_IDS,
    QUERY,
    Event,
    Float32,
    Holds,
    Ids,
    added,
    asked,
    kept_within,
    mentions,
    still_held,
    used,
)
from memsift.accesslog.log import AccessLog
from memsift.errors import CorruptStore, InvalidType, InvalidValue
from memsift.storage.file import connect, translated
from memsift.storage.namespaces import Config, Settings, checked_name, find_or_make
from memsift.vectors import as_unit_rows

# Kind, flag, number of ids, time, cost, k, touch; then the vector, the ids, the groups, and the sum.
HEAD = struct.Struct("<BBH4xdqII")
SUM = struct.Struct("<I")
# Searches that wait for the next write; a store that cannot write remembers no more of them.
WAITING = 4096
LAST = 2**62
PLACEHOLDER = Event(0, 0.0)


class Logbook:
    """The log of namespace number `ns`: a `Listener` whose memories and uses are written at once, whose queries wait.

    Every call but `query`, `waiting` and `written` is made within a transaction of the caller's; if that fails, SQLite
    undoes it and the queries still wait.

    Parameters
    ----------
    limit : int
        Bytes that the rows may take.
    holds : callable, optional
        Says which ids the store still holds; they outlive the rest.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        ns: int,
        dim: int,
        limit: int = LIMIT,
        holds: Holds | None = None,
    ) -> None:
        self._db, self._ns, self._dim = db, ns, dim
        self.limit, self.holds = limit, holds
        self._queries: list[Event] = []
        self._flushed = 0
        self._full_at = -1  # the number of the row at which it may be full; not known yet
        self._unsure = False  # a transaction has begun and is not known to have become true

    # ---- listening -------------------------------------------------------------------------------

    def begin(self, ids: Ids, vectors: Float32, cost: Ids, at: npt.NDArray[np.float64]) -> None:
        """What the store holds already, when the recording begins: (n,) in any order; those known are left out."""
        newest = self._newest()
        order = [row for row in np.argsort(ids).tolist() if ids[row] > newest]
        self.append(
            event
            for row in order
            for event in added(
                ids[row : row + 1], vectors[row : row + 1], cost[row : row + 1], at[row]
            )
        )

    def add(self, ids: Ids, vectors: Float32, cost: Ids, at: float) -> None:
        """Memories came."""
        self.append(added(ids, vectors, cost, at))

    def use(self, ids: Ids, at: float) -> None:
        """Memories helped."""
        self.append(used(ids, at))

    def query(
        self, vector: Float32, ids: Ids, k: int, touch: int, at: float, *, filtered: bool = False
    ) -> None:
        """A search counted. It waits for the next write."""
        self._queries = self._queries[-WAITING + 1 :]
        self._queries.append(asked(vector.copy(), ids, k, touch, at, filtered))

    def flush(self) -> None:
        """Write the queries that wait, before anything else of the transaction."""
        if self._unsure:
            self._full_at = -1
        self._unsure = True
        if self._queries:
            self.append(self._queries)
        self._flushed = len(self._queries)

    def written(self) -> None:
        """The transaction became true: what `flush` wrote waits no more."""
        del self._queries[: self._flushed]
        self._flushed, self._unsure = 0, False

    @property
    def waiting(self) -> int:
        """Queries that the file does not know yet."""
        return len(self._queries)

    # ---- rows ------------------------------------------------------------------------------------

    def append(self, events: Iterable[Event]) -> None:
        """Write events after all others, and let the oldest go if that is too much."""
        with translated():
            end = self._end()
            for event in events:
                row = pack(event)
                self._db.execute("INSERT INTO log VALUES (?, ?, ?)", (self._ns, end, row))
                end += len(row)
                if end > self._full_at:
                    self._make_room(end)

    def _newest(self) -> int:
        """The id of the last memory that was written down, -1 if there is none."""
        select = "SELECT row FROM log WHERE ns = ? AND hex(substr(row, 1, 1)) = ? ORDER BY seq DESC LIMIT 1"
        found = self._db.execute(select, (self._ns, f"{ADD:02X}")).fetchone()
        return -1 if found is None else int(unpack(found[0], self._dim).ids.max(initial=-1))

    def _end(self) -> int:
        select = "SELECT seq, length(row) FROM log WHERE ns = ? ORDER BY seq DESC LIMIT 1"
        found = self._db.execute(select, (self._ns,)).fetchone()
        if found is None:
            return 0
        if not all(isinstance(number, int) and 0 <= number < LAST for number in found):
            raise CorruptStore("log", "rows must have a number and a length; the last one has not")
        return int(found[0] + found[1])

    def _make_room(self, end: int) -> None:
        self._full_at = self._first() + self.limit
        if end <= self._full_at:
            return
        # Of each row its length, its kind, and the id that a memory has behind its vector.
        select = (
            "SELECT seq, length(row), hex(substr(row, 1, 1)), substr(row, ?, 8) "
            "FROM log WHERE ns = ? ORDER BY seq"
        )
        place = HEAD.size + 4 * self._dim + 1
        found = self._db.execute(select, (place, self._ns)).fetchall()
        sizes = np.array([size for _, size, _, _ in found], np.int64)
        keep = np.ones(len(found), np.bool_)
        if sizes.sum() > self.limit:
            held = np.array([_is_memory(kind, id_) for _, _, kind, id_ in found])
            ids = [id_ for (_, _, _, id_), is_memory in zip(found, held, strict=True) if is_memory]
            held[held] &= still_held(self.holds, list(np.frombuffer(b"".join(ids), "<i8")))
            keep = kept_within(self.limit, sizes, held)
            gone = ((self._ns, found[i][0]) for i in np.flatnonzero(~keep))
            self._db.executemany("DELETE FROM log WHERE ns = ? AND seq = ?", gone)
        self._full_at = end + self.limit - int(sizes[keep].sum())

    def _first(self) -> int:
        found = self._db.execute("SELECT min(seq) FROM log WHERE ns = ?", (self._ns,)).fetchone()
        return int(found[0] or 0)

    def _rows(self) -> Iterator[tuple[int, bytes]]:
        select = "SELECT seq, row FROM log WHERE ns = ? ORDER BY seq"
        yield from self._db.execute(select, (self._ns,))

    def _events(self) -> Iterator[tuple[int, Event]]:
        for seq, row in self._rows():
            yield seq, unpack(row, self._dim)

    def read(self) -> AccessLog:
        """The whole log.

        Raises
        ------
        CorruptStore
            A row whose sum does not fit, or that says what cannot be.
        """
        try:
            return AccessLog.of((event for _, event in self._events()), self._dim)
        except (InvalidValue, InvalidType) as error:
            raise CorruptStore("log", str(error)) from None

    def erase(self, ids: Ids, vectors: Float32) -> int:
        """Remove every row that names one of these ids, and every query as good as one of `vectors` (m, dim).

        What the log itself has as vectors of these ids is compared too. A row that cannot be read goes as well: nobody
        can say what is in it. Returns how many rows went.
        """
        known = [as_unit_rows(vectors, self._dim)]
        for _, row in self._rows():
            event = _or_none(row, self._dim)
            if event is not None and event.kind == ADD and np.isin(event.ids, ids).all():
                known.append(np.array([event.vector]))
        seqs, broken = list[int](), list[bool]()

        def events() -> Iterator[Event]:
            for seq, row in self._rows():
                event = _or_none(row, self._dim)
                seqs.append(seq)
                broken.append(event is None)
                yield PLACEHOLDER if event is None else event

        leaves = list(mentions(events(), ids, np.concatenate(known)))
        gone = [
            (self._ns, seq)
            for seq, leaf, bad in zip(seqs, leaves, broken, strict=True)
            if leaf or bad
        ]
        self._db.executemany("DELETE FROM log WHERE ns = ? AND seq = ?", gone)
        return len(gone)

    def clear(self) -> None:
        """Remove everything, also what waits."""
        self._queries, self._flushed, self._full_at = [], 0, -1
        self._db.execute("DELETE FROM log WHERE ns = ?", (self._ns,))


def pack(event: Event) -> bytes:
    """An event as a row."""
    head = HEAD.pack(
        event.kind, event.flag, event.ids.size, event.at, event.cost, event.k, event.touch
    )
    vector = b"" if event.vector is None else event.vector.astype("<f4").tobytes()
    body = head + vector + event.ids.astype("<i8").tobytes() + event.groups.astype("<i8").tobytes()
    return body + SUM.pack(zlib.crc32(body))


def unpack(row: object, dim: int) -> Event:
    """The event of a row.

    Raises
    ------
    CorruptStore
    """
    if not isinstance(row, bytes) or len(row) < HEAD.size + SUM.size:
        raise CorruptStore("log", "rows must be bytes with head and sum; one is not")
    body, total = row[: -SUM.size], row[-SUM.size :]
    if SUM.pack(zlib.crc32(body)) != total:
        raise CorruptStore("log", "sum must fit the row; it does not")
    kind, flag, count, at, cost, k, touch = HEAD.unpack_from(body)
    fat = 4 * dim if kind in (ADD, QUERY) else 0
    ids_at, groups_at = HEAD.size + fat, HEAD.size + fat + 8 * count
    if kind not in KINDS or flag > 1 or len(body) != groups_at + (8 * count if kind == NEED else 0):
        raise CorruptStore("log", "rows must be as long as they say; one is not")
    vector = np.frombuffer(body[HEAD.size : ids_at], "<f4").astype(np.float32) if fat else None
    ids = np.frombuffer(body[ids_at:groups_at], "<i8").astype(np.int64)
    groups = np.frombuffer(body[groups_at:], "<i8").astype(np.int64) if kind == NEED else NO_IDS
    return Event(kind, at, ids, vector, cost, k, touch, bool(flag), groups)


def _is_memory(kind: str, id_: object) -> bool:
    return kind == f"{ADD:02X}" and isinstance(id_, bytes) and len(id_) == 8


def _or_none(row: object, dim: int) -> Event | None:
    try:
        return unpack(row, dim)
    except CorruptStore:
        return None


def read_log_of(path: Path, namespace: str) -> tuple[AccessLog, Config]:
    """The log in a store's file that exists, and what the store keeps to."""
    db = connect(path, "normal", 5.0, create=False)
    try:
        found = find_or_make(db, Settings(checked_name(namespace)))
        with translated():
            return Logbook(db, found.ns, found.dim).read(), found.config
    finally:
        db.close()
