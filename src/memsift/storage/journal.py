"""The journal of one namespace: every change of a memory as rows of the file, and other processes' changes back.

A writing call is one transaction: catch up, flush what waits, change, commit. A reading call asks SQLite whether the
file moved (one cheap pragma) and catches up if it did: each transaction leaves the ids that it changed in the
`change` table, and those entries are read again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memsift.audit.record import hash_of
from memsift.errors import CorruptStore, EmbedderMismatch, UnknownEntry
from memsift.kernels import word_sums
from memsift.storage import rows
from memsift.storage.fetch import Fetch
from memsift.storage.file import translated
from memsift.storage.ghosts import GhostRows
from memsift.storage.impressions import ImpressionRows
from memsift.storage.logbook import Logbook
from memsift.storage.namespaces import Config, Namespace, Settings
from memsift.storage.pending import Pending
from memsift.view import COLUMNS

if TYPE_CHECKING:
    from memsift.memory import Memory

Ids = npt.NDArray[np.int64]


class State(NamedTuple):
    """A namespace's row: generation, configuration as text, clocks and counters, the window's queries."""

    generation: int
    config: str
    values: dict[str, Any]
    queries: npt.NDArray[np.float32]


# Transactions that are remembered one by one; a process that slept through more reads everything again.
REMEMBERED = 1000


class Journal:
    """Reads and writes the rows of one namespace.

    Parameters
    ----------
    db : sqlite3.Connection
        In autocommit mode.
    found : Namespace
        As it stands in the file.
    """

    def __init__(self, db: sqlite3.Connection, found: Namespace) -> None:
        self.db, self.ns, self.name = db, found.ns, found.name
        self._identity = found.identity
        self.config = found.config
        self.become(found.dim)
        self.erasures = 0  # how often something was erased from this namespace
        self.texts = 0  # how many of its entries have one, archived ones included
        self.wrote = False  # the memory is ahead of the file, unless the open transaction commits
        self._changed: list[Ids] = []
        self._tick = 0  # the file's tick when it was last read or written
        self._data_version = -1
        self._waited: Pending | None = None  # what waited before the transaction searched
        self._flushed = 0  # ticks that waited when the pending touches were last written

    def become(self, dim: int) -> None:
        """Know nothing yet, and read vectors of this length from now on."""
        self.dim, self._identity = dim, self.identity_with(dim)
        self.fetch = Fetch(self.db, self.ns, dim)
        self.pending = Pending()
        self._impressions = ImpressionRows(self.db, self.ns, dim)
        self.ghosts = GhostRows(self.db, self.ns, dim)
        self.generation = -1

    def identity_with(self, dim: int) -> tuple[Any, ...]:
        """What the namespace's row says that it is, if its vectors have `dim` elements."""
        ns, name, _, *others = self._identity
        return ns, name, dim, *others

    # ---- transactions ----------------------------------------------------------------------------

    def begin(self, memory: Memory) -> None:
        """Take the write lock, catch up, and write what waits."""
        with translated():
            self.db.execute("BEGIN IMMEDIATE")
            self.wrote, self._changed, self._waited = False, [], None
            self._catch_up(memory)
            if isinstance(memory.log, Logbook):
                memory.log.flush()
            self._flushed = 0
            if self.pending:
                self._flush(memory)
                self.wrote = False  # should the call be refused, the touches still wait as they did

    def commit(self, memory: Memory) -> None:
        """Make the transaction true, if it changed anything."""
        with translated():
            if not self.wrote and not self._changed:
                self.db.execute("ROLLBACK")
                return
            self.settle(memory)
            generation = self.generation + 1
            self._write_state(memory, generation)
            ids = np.unique(np.concatenate([*self._changed, np.empty(0, np.int64)]))
            blob = ids.astype("<i8").tobytes()
            self.db.execute("INSERT INTO change VALUES (?, ?, ?)", (self.ns, generation, blob))
            oldest = generation - REMEMBERED
            self.db.execute(
                "DELETE FROM change WHERE ns = ? AND generation <= ?", (self.ns, oldest)
            )
            self.db.execute("COMMIT")
            self.ghosts.committed()
            if isinstance(memory.log, Logbook):
                memory.log.written()
            self.generation, self._tick = generation, memory.tick
            self.pending, self._waited = Pending(), None
            self.wrote = False

    def settle(self, memory: Memory) -> None:
        """Within a transaction: write the touches of searches that were made in it."""
        if self.pending.ticks > self._flushed:
            with translated():
                self._flush(memory)

    def rollback(self) -> None:
        """Undo the transaction in the file. The caller reads the memory again if `wrote`."""
        if self._waited is not None:
            self.pending, self._waited = self._waited, None
        if self.db.in_transaction:
            with translated():
                self.db.execute("ROLLBACK")

    def moved(self) -> bool:
        """Whether another connection has committed since the last look."""
        with translated():
            version = self.db.execute("PRAGMA data_version").fetchone()[0]
        moved = bool(version != self._data_version)
        self._data_version = version
        return moved

    def follow(self, memory: Memory) -> None:
        """Catch up in a read transaction of its own."""
        with self._snapshot():
            self._catch_up(memory)

    def reload(self, memory: Memory) -> None:
        """Read everything again, in a read transaction of its own."""
        with self._snapshot():
            self.load(memory)

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        with translated():
            self.db.execute("BEGIN")
            try:
                yield
            finally:
                if self.db.in_transaction:  # a damaged page may have ended it
                    self.db.execute("COMMIT")

    # ---- what the memory tells -------------------------------------------------------------------

    def added(self, memory: Memory, start: int, vectors: npt.NDArray[np.float32]) -> None:
        """Entries in slots from `start` on are new; their vectors go into the file as they came."""
        table, stop = memory.table, start + len(vectors)
        ids = table.column("ids")[start:stop]
        self._note(ids)
        columns = {name: table.column(name)[start:stop] for name in COLUMNS}
        self._insert(ids, vectors, columns, table.notes(start, stop))

    def _insert(
        self, ids: Ids, vectors: npt.NDArray[np.float32], columns: dict[str, Any], notes: list[Any]
    ) -> None:
        keys = rows.keys(self.ns, ids)
        raw = np.ascontiguousarray(vectors, "<f4").data.cast("B")
        fat, narrow = (
            rows.slices(raw, 4 * self.dim),
            rows.packed(columns, word_sums(vectors), notes),
        )
        self.db.executemany("INSERT INTO vector VALUES (?, ?)", zip(keys, fat, strict=True))
        self.db.executemany("INSERT INTO entry VALUES (?, ?, NULL)", zip(keys, narrow, strict=True))
        self.db.executemany("INSERT INTO note VALUES (?, ?)", rows.note_rows(keys, notes))

    def changed(self, memory: Memory, ids: Ids) -> None:
        """Columns of these entries have other values."""
        self._note(ids)
        found = memory.table.entries(ids)
        narrow = rows.packed(found.columns, memory.table.sums(ids), found.metadata or [])
        keys = rows.keys(self.ns, ids)
        self.db.executemany(
            "UPDATE entry SET row = ? WHERE key = ?", zip(narrow, keys, strict=True)
        )

    def replaced(self, memory: Memory, id_: int, unit: npt.NDArray[np.float32] | None) -> None:
        """An entry has another vector, if one is given, or other metadata."""
        ids = np.array([id_])
        self._note(ids)
        found = memory.table.entries(ids)
        key = rows.keys(self.ns, ids)[0]
        if unit is not None:
            blob = unit.astype("<f4").tobytes()
            self.db.execute("UPDATE vector SET row = ? WHERE key = ?", (blob, key))
        self.db.execute("DELETE FROM note WHERE key = ?", (key,))
        notes = rows.note_rows([key], found.metadata or [None])
        self.db.executemany("INSERT INTO note VALUES (?, ?)", notes)

    def deleted(self, ids: Ids) -> None:
        """Entries are gone: live or archived, from every table."""
        self._note(ids)
        keys = [(key,) for key in rows.keys(self.ns, np.sort(ids))]
        for table in ("vector", "entry", "note"):
            self.db.executemany(f"DELETE FROM {table} WHERE key = ?", keys)
        if self.texts:
            self._unsay(keys)

    def said(self, found: list[tuple[int, str, int, int]]) -> None:
        """Entries have these texts: rows of the `payload` table.

        Raises
        ------
        UnknownEntry
            One of them is not in the file.
        """
        self.wrote = True
        self._unsay([(key,) for key, *_ in found])
        insert = "INSERT INTO payload SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM entry WHERE key = ?1)"
        written = self.db.executemany(insert, found).rowcount if found else 0
        self.texts += written
        if written != len(found):
            raise UnknownEntry(
                f"ids must be in the store or its archive; {len(found) - written} of {len(found)} are not"
            )

    def _unsay(self, keys: list[tuple[int]]) -> None:
        self.texts -= self.db.executemany("DELETE FROM payload WHERE key = ?", keys).rowcount

    def archived(self, ids: Ids, now: float) -> None:
        """Entries rest: they are no longer live, and can be restored."""
        self._note(ids)
        keys = rows.keys(self.ns, np.sort(ids))
        marks = ((now, key) for key in keys)
        self.db.executemany("UPDATE entry SET archived_at = ? WHERE key = ?", marks)

    def restored(self, memory: Memory, ids: Ids) -> None:
        """Archived entries are live again."""
        self._note(ids)
        keys = ((key,) for key in rows.keys(self.ns, ids))
        self.db.executemany("UPDATE entry SET archived_at = NULL WHERE key = ?", keys)
        self.changed(memory, ids)

    def queried(
        self,
        memory: Memory,
        unit: npt.NDArray[np.float32],
        ids: Ids,
        shares: npt.NDArray[np.float64] | None,
        at: float,
    ) -> None:
        """A search counted. It waits for the next write."""
        if self.db.in_transaction and self._waited is None:
            self._waited, self.wrote = self.pending.copy(), True
        attention = None if shares is None else shares.tolist()
        self.pending.add(
            unit.copy(), memory.context.window, ids.tolist(), attention, memory.tick, at
        )

    def touch_state(self) -> None:
        """Only the namespace's own row changed."""
        self.wrote = True

    def _note(self, ids: Ids) -> None:
        # Before the first statement: should that fail, the memory is already ahead of the file.
        self.wrote = True
        self._changed.append(np.array(ids, np.int64))  # a copy: a compaction moves the table's ids

    def _flush(self, memory: Memory) -> None:
        touched = np.fromiter(self.pending.touches, np.int64, len(self.pending.touches))
        self.changed(memory, touched[memory.table.slots_of(touched) >= 0])
        self._flushed = self.pending.ticks

    # ---- the namespace's row ---------------------------------------------------------------------

    def _write_state(self, memory: Memory, generation: int) -> None:
        state = {"tick": memory.tick, "next_id": memory.next_id, "counts": memory.counts}
        state |= {"seen": memory.context.seen, "live": len(memory.table)}
        state |= {"head": self._head(), "erasures": self.erasures, "texts": self.texts}
        state["ghosts"], watched = self.ghosts.written(memory.ghosts)
        self._changed.append(watched)
        state |= memory.lessons.to_state()
        state["impressions"] = self._impressions.written(memory.impressions)
        text = json.dumps(state, separators=(",", ":"))
        context = memory.context.recent().astype("<f4").tobytes()
        config = self.config.text()
        total = rows.state_sum(self._identity, (generation, config, text, context))
        self.db.execute(
            "UPDATE namespace SET generation = ?, config = ?, state = ?, context = ?, sum = ? WHERE ns = ?",
            (generation, config, text, context, total, self.ns),
        )

    def erasures_by_now(self) -> int:
        """As the file says at this moment. The caller holds the lock."""
        with translated():
            return _count(self.read_state().values, "erasures")

    def _head(self) -> str:
        """Hash of the last audit record, empty if there is none: what no later record vouches for."""
        query = "SELECT body FROM audit WHERE ns = ? ORDER BY seq DESC LIMIT 1"
        found = self.db.execute(query, (self.ns,)).fetchone()
        if found is None:
            return ""
        if not isinstance(found[0], bytes):
            raise CorruptStore("audit", "records must be bytes; the last one is not")
        return hash_of(found[0])

    def names_head(self) -> bool:
        """Whether the audit log ends with the record that the namespace's row names."""
        return bool(self.read_state().values.get("head") == self._head())

    def read_state(self) -> State:
        """The namespace's row, checked.

        Raises
        ------
        EmbedderMismatch
            All vectors were made anew by another embedder since this store was opened.
        """
        found = self.db.execute(
            "SELECT generation, config, state, context, sum, dim FROM namespace WHERE ns = ?",
            (self.ns,),
        ).fetchone()
        if found is None:
            raise CorruptStore("namespace", "must be in the file; it was removed")
        generation, config, text, context, total, dim = found
        if rows.state_sum(self.identity_with(dim), found[:4]) != total:
            raise CorruptStore("namespace", "sum must fit the row; it does not")
        if config != self.config.text():
            self._demand_same_embedder(Config.parse(config), dim)
        if len(context) % (4 * self.dim):
            raise CorruptStore("namespace", "context must be whole vectors; it is not")
        state = rows.strict_json(text, "namespace")
        queries = np.frombuffer(context, "<f4").reshape(-1, self.dim).astype(np.float32)
        if not np.isfinite(queries).all():
            raise CorruptStore("namespace", "context must be finite; it is not")
        return State(generation, config, state, queries)

    def _demand_same_embedder(self, config: Config, dim: int) -> None:
        ours, theirs = self.config.embedder, config.embedder
        if dim != self.dim or (None not in (ours, theirs) and ours != theirs):
            raise EmbedderMismatch(
                f"namespace {self.name!r} was embedded anew by {theirs!r}; this store was opened for {ours!r}: "
                "open it again"
            )

    # ---- catching up -----------------------------------------------------------------------------

    def _catch_up(self, memory: Memory) -> None:
        found = self.db.execute(
            "SELECT generation FROM namespace WHERE ns = ?", (self.ns,)
        ).fetchone()
        if found is not None and found[0] == self.generation:
            return
        state = self.read_state()
        since = self.generation
        steps = self.db.execute(
            "SELECT ids FROM change WHERE ns = ? AND generation > ?", (self.ns, since)
        ).fetchall()
        other_config = state.config != self.config.text()
        if since < 0 or other_config or len(steps) != state.generation - since:
            self.load(memory)
            return
        blobs = b"".join(blob for (blob,) in steps)
        if len(blobs) % 8:
            raise CorruptStore("change", f"ids must be 8 bytes each; got {len(blobs)}")
        self._shift(state)
        ids = np.unique(np.frombuffer(blobs, "<i8").astype(np.int64))
        self._reread(memory, ids)
        self._adopt(memory, state, ids)

    def _shift(self, state: State) -> None:
        """What waits here happened after what others have written."""
        tick = state.values.get("tick")
        if not isinstance(tick, int) or isinstance(tick, bool) or tick < 0:
            raise CorruptStore(
                "namespace", f"tick must be a number of at least 0; got {tick!r:.40}"
            )
        self.pending.shift(tick - self._tick)
        self._tick = tick

    def _reread(self, memory: Memory, ids: Ids) -> None:
        """Make these entries what the file says: changed, new, or gone."""
        table = memory.table
        now = self.fetch.entries("e.key IN ({}) AND e.archived_at IS NULL", ids)
        live = now.columns["ids"]
        keep = ~np.isin(table.column("ids"), np.setdiff1d(ids, live))
        if not keep.all():
            table.remove(keep)
        known = table.slots_of(live) >= 0
        memory.revision += 1
        memory.crowding.rewritten(table.overwrite(now.take(known), memory.revision))
        fresh = now.take(~known)
        if len(fresh.vectors):
            fresh.columns["revision"] = np.full(len(fresh.vectors), memory.revision)
            table.append(fresh)
        self.pending.onto(table, live)

    def load(self, memory: Memory) -> None:
        """Read the whole namespace into an empty memory."""
        state = self.read_state()
        self._shift(state)
        if state.config != self.config.text():
            self._keep_to(memory, Config.parse(state.config))
        self._read_all(memory, state)

    def reconfigure(self, memory: Memory, settings: Settings) -> None:
        """Keep to what was asked for, as part of the open transaction."""
        config = settings.over(self.config)
        known = settings.policy is None or settings.policy is memory.policy
        if config.text() != self.config.text() or not known:
            self.wrote = True
            self._keep_to(memory, config)
            self._read_all(memory, self.read_state())

    def _keep_to(self, memory: Memory, config: Config) -> None:
        self.config = config
        if config.policy is not None:
            memory.policy = config.policy
        memory.budget, memory.low_watermark = config.budget, config.low_watermark
        memory.index_kind = config.index

    def _read_all(self, memory: Memory, state: State) -> None:
        memory.clear(self.dim)
        memory.revision += 1
        entries = self.fetch.live(memory.table)
        entries.columns["revision"] = np.full(len(entries.vectors), memory.revision)
        memory.table.append(entries)
        self.pending.onto(memory.table, entries.columns["ids"])
        self._adopt(memory, state)

    def _adopt(self, memory: Memory, state: State, ids: Ids | None = None) -> None:
        values = state.values
        try:
            tick, memory.next_id = int(values["tick"]), int(values["next_id"])
            memory.counts = {name: int(values["counts"].get(name, 0)) for name in memory.counts}
            memory.context.restore(state.queries, int(values["seen"]))
            memory.lessons.restore(values)
            self.ghosts.read(values.get("ghosts"), memory.ghosts, ids)
            self._impressions.read(values.get("impressions"), memory.impressions)
            whole = int(values["live"]) == len(memory.table)
            self.erasures, self.texts = _count(values, "erasures"), _count(values, "texts")
        except CorruptStore:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CorruptStore("namespace", f"state must be whole; {error!r:.80}") from None
        newest = memory.table.column("ids").max(initial=-1)
        if not whole or not newest < memory.next_id <= 1 << rows.ID_BITS:
            raise CorruptStore(
                "entry", "rows must be those that the namespace counts; they are not"
            )
        memory.index.erased(self.erasures)
        memory.tick = tick + self.pending.ticks
        memory.counts["searches"] += self.pending.ticks
        self.pending.mark(memory.table)
        self.pending.replay(memory.context)
        # The window's queries are others now: what the ring knows belongs to the old ones.
        memory.table.ring.forget_all()
        memory.crowding.wake(memory.next_id)
        self.generation, self._tick = state.generation, tick


def _count(values: dict[str, Any], name: str) -> int:
    count = values.get(name, 0)
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise CorruptStore("namespace", f"{name} must be a number; got {count!r:.40}")
    return count
