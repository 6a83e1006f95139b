"""The store with a file: every call is a transaction, several processes may share it, victims rest before they go."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift import checks, exchange
from memsift import index as indexes
from memsift.accesslog import AccessLog, held_by
from memsift.budget import Budget, Size
from memsift.errors import (
    ClosedStore,
    EmbedderMismatch,
    ForkedStore,
    InvalidType,
    InvalidValue,
    MemsiftError,
    StoreBusy,
    UnknownEntry,
)
from memsift.ghosts import Ghosts
from memsift.index.hnsw.saved import Companion, remove_all
from memsift.policies.base import CompactionPolicy
from memsift.regret import Regret
from memsift.storage import erasure, namespaces, reembedding
from memsift.storage.archive import Archive
from memsift.storage.file import connect, translated
from memsift.storage.guards import Reading, Writing
from memsift.storage.journal import Journal
from memsift.storage.ledger import Ledger
from memsift.storage.logbook import Logbook
from memsift.storage.recorder import Recorder
from memsift.storage.reembedding import Embed
from memsift.storage.texts import Texts
from memsift.storage.verification import Verification, check
from memsift.store import MemoryStore
from memsift.types import Compaction, Hit, MemoryEntry, Receipt
from memsift.vectors import as_unit_row

Ids = npt.NDArray[np.int64]


class DurableStore(MemoryStore):
    """A `MemoryStore` that lives in a file. Made by `MemoryStore.open`, which see.

    Attributes
    ----------
    path : Path
    namespace : str
    audit : Ledger
        The chain of decisions: `verify`, `export`, `head`.
    texts : Texts
        What entries say, kept in the file beside them: `put`, `get`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: namespaces.Settings,
        *,
        durability: str,
        busy_timeout: float,
        touch_flush_seconds: float,
        clock: Callable[[], float],
        vectors: str = "float32",
    ) -> None:
        self.path = checks.path(path)
        self._pid = os.getpid()
        self._flush_after = touch_flush_seconds
        self._timer: threading.Timer | None = None
        self._depth = 0
        self._doomed = False
        self._stale = False
        self._last: Compaction | None = None
        self._db = connect(self.path, durability, busy_timeout, create=settings.dim is not None)
        try:
            found = namespaces.find_or_make(self._db, settings)
            config = settings.over(found.config)
            indexes.demand(config.index)
            super().__init__(
                found.dim,
                config.budget,
                config.policy,
                low_watermark=config.low_watermark,
                clock=clock,
                index=config.index,
                vectors=vectors,
                folder=self.path.parent,
            )
            self.namespace = found.name
            self._journal = Journal(self._db, found)
            self._memory.index_home = Companion(
                self.path, found.name, found.store_id, found.secret, self._journal.erasures_by_now
            )
            self._archive = Archive(self._db, self._journal)
            self._reading, self._writing = Reading(self), Writing(self)
            self.audit = Ledger(self._db, found, self._reading)
            self.texts = Texts(self._db, self._journal, self._reading, self._writing)
            self._memory.sink = Recorder(self._journal, self._archive, self.audit)
            if erasure.unfinished(self._db):
                erasure.finish(self._db, self.path)
            with self._writing, translated():
                # What was asked for is written and holds from the same moment on, or not at all.
                self._journal.reconfigure(self._memory, settings)
                self._memory.hold_budget()
                self._archive.purge(clock())
        except BaseException:
            self._db.close()
            raise
        self._at_exit = partial(_close, weakref.ref(self))
        atexit.register(self._at_exit)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all calls within one commit: all of them come true at its end, or none. It may be nested.

        Other threads of this process wait meanwhile, and other processes' writes. An error from within undoes
        everything; one that was caught inside does so at the end. `erase` and `close` have no place in it.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, MemoryStore.open(f"{folder}/a.memsift", 2) as store:
        ...     with store.transaction():
        ...         store.texts.put(store.add([1, 0]), ["north"])
        ...     store.texts.get([0])
        ['north']
        """
        with self._writing:
            yield

    @property
    def embedder(self) -> str | None:
        """Fingerprint of what made the vectors, if somebody said."""
        return self._journal.config.embedder

    def _alone(self, name: str) -> None:
        """`name` cannot be part of a transaction."""
        if self._depth:
            raise InvalidValue(f"{name} must be called outside of a transaction; got it within one")

    # ---- the archive -----------------------------------------------------------------------------

    def get(self, ids: Any, *, include_archived: bool = False) -> list[MemoryEntry | None]:
        """As `MemoryStore.get`; with `include_archived` also what rests in the archive."""
        wanted = checks.ids(ids)
        if not checks.flag(include_archived, "include_archived"):
            return super().get(wanted)
        with self._reading, translated():
            found = super().get(wanted)
            missing = np.unique(wanted[[entry is None for entry in found]])
            resting = self._archive.entries(missing).listed() if missing.size else []
            by_id = {entry.id: entry for entry in resting}
            return [
                by_id.get(id_) if entry is None else entry
                for id_, entry in zip(wanted.tolist(), found, strict=True)
            ]

    def retire(self, ids: Any) -> None:
        """Let entries leave, pinned or not, to rest in the archive: by the caller's wish, not by a policy's choice.

        Raises
        ------
        UnknownEntry
            One of them is not in the store; nothing was changed.
        """
        with self._writing:
            slots = np.unique(self._slots(ids))
            if slots.size:
                self._memory.delete(slots, rest=True)

    def archived(self) -> Ids:
        """Ids that rest in the archive, ascending: (n,) int64."""
        with self._reading, translated():
            return self._archive.ids()

    def restore(self, ids: Any) -> Compaction | None:
        """Bring entries back from the archive with their counters. Ids that are live already stay as they are.

        They count as accessed now. If they do not fit, others leave by the store's policy, as in an `add`.

        Returns
        -------
        Compaction or None
            What left to make room.

        Raises
        ------
        UnknownEntry
            One of them is neither live nor archived; nothing was changed.
        BudgetExceeded
            They cannot fit beside the pinned entries; nothing was changed.
        """
        wanted = np.unique(checks.ids(ids))
        with self._writing, translated():
            missing = wanted[self._memory.table.slots_of(wanted) < 0]
            found = self._archive.entries(missing)
            _all_known(missing, found.columns["ids"], "in the archive")
            before = self._memory.counts["compactions"]
            if missing.size:
                size, digest = self._state()
                self._memory.restore(found)
                now = self._memory.clock()
                self.audit.restored(missing.size, size, digest, self._memory, now)
            return self.last_compaction if self._memory.counts["compactions"] > before else None

    def erase(self, ids: Any, *, vacuum: bool = True) -> Receipt:
        """Remove entries for good, live or archived, from every place within reach.

        Parameters
        ----------
        vacuum : bool
            Write the file anew, so that no gap in a page keeps a remnant of a moved row. Without it the remnants may
            stay until the next vacuum, and the receipt says so.

        Raises
        ------
        UnknownEntry
            One of them is neither live nor archived nor a ghost; nothing was erased.
        """
        wanted = np.unique(checks.ids(ids))
        clean = checks.flag(vacuum, "vacuum")
        self._check_process()
        with self._lock:
            self._alone("erase")
            with self._writing, translated():
                table, size, digest = self._memory.table, *self._state()
                slots = table.slots_of(wanted)
                live, resting = slots[slots >= 0], wanted[slots < 0]
                found = self._archive.entries(resting)
                known = np.union1d(found.columns["ids"], self._memory.ghosts.ids)
                _all_known(resting, known, "in the store, its archive or among its ghosts")
                vectors = np.concatenate([table.vectors[live], found.vectors])
                self._memory.forget_queries(vectors)
                self._memory.impressions.forget(vectors)
                self._memory.ghosts.returned(wanted, scrub=True)
                self._memory.crowding.erased(wanted)
                self._logbook().erase(wanted, vectors)
                if isinstance(self._memory.log, AccessLog):
                    self._memory.log.erase(wanted, vectors)
                if live.size:
                    self._memory.delete(live)
                self._journal.deleted(resting)
                self._journal.erasures += 1
                self._memory.index.erased(self._journal.erasures)
                head = self.audit.erased(wanted, size, digest, self._memory, self._memory.clock())
                erasure.announce(self._db)
                table.scrub()
            places = {"rows, texts, archive, ghosts, metadata and recent queries": "erased"}
            places |= {"memory of this process": "erased"}
            places |= erasure.finish(self._db, self.path, vacuum=clean)
            return Receipt(wanted, places | erasure.unreachable(self.path), head)

    def search(
        self, query: Any, k: int = 10, *, include_archived: bool = False, **options: Any
    ) -> list[Hit]:
        """As `MemoryStore.search`; with `include_archived` also among the victims that can still be restored.

        A hit from the archive is not touched: `hit.id in store` is false until it is restored.
        """
        if not checks.flag(include_archived, "include_archived"):
            return super().search(query, k, **options)
        if options.get("where") is not None:
            raise InvalidType("where must be left out with include_archived; got both")
        unit = as_unit_row(query, self.dim, "query")
        with self._reading, translated():
            hits = super().search(query, k, **options)
            found, scores = self._archive.search(unit, checks.integer(k, "k", 1))
            notes = found.metadata or [None] * len(scores)
            resting = zip(found.columns["ids"].tolist(), scores.tolist(), notes, strict=True)
            both = hits + [Hit(id_, score, note or {}) for id_, score, note in resting]
            return sorted(both, key=lambda hit: (-hit.score, hit.id))[:k]

    @classmethod
    def import_rvf(
        cls,
        source: str | os.PathLike[str],
        path: str | os.PathLike[str],
        namespace: str = "default",
        budget: Budget | int | None = None,
        policy: CompactionPolicy | None = None,
    ) -> DurableStore:
        """A new namespace of the file at `path` with what a .rvf holds; see `load_rvf`.

        Its chain of decisions begins anew: the one in the .rvf belongs to another store.

        Raises
        ------
        InvalidValue
            The namespace has had entries already.
        CorruptStore
        """
        snapshot = exchange.load(source)
        known, chosen, watermark = exchange.settings_of(snapshot)
        made = MemoryStore.open(
            path,
            snapshot.dim,
            namespace,
            known if budget is None else budget,
            chosen if policy is None else policy,
            low_watermark=watermark,
        )
        try:
            with made._writing:
                exchange.fill(made._memory, snapshot)
        except BaseException:
            made.close()
            raise
        return made

    def _regret(self) -> Regret:
        with translated():
            return self._memory.ghosts.regret(self._archive.ids)

    def reembed(self, embed: Embed, dim: int, embedder: str) -> None:
        """Make every vector anew from its entry's text: in the file whole or not at all; see `AgentMemory.reembed`.

        Parameters
        ----------
        embed : callable
            (n, dim) float32 unit rows of n texts. Other processes' writes wait while it works.
        dim : int
        embedder : str
            Its fingerprint.

        Raises
        ------
        InvalidValue
            An entry has no text, live or archived.
        BudgetExceeded
            Pinned entries do not fit with longer vectors.
        """
        length = checks.integer(dim, "dim", 1, 65_536)
        name = namespaces.checked_embedder(embedder)
        if name is None:
            raise InvalidType("embedder must be a fingerprint (text); got None")
        self._check_process()
        with self._lock:
            self._alone("reembed")
            with self._reading:
                pass  # what others wrote is known, and that this store can be used
            self.flush()
            memory, records = self._memory, isinstance(self._memory.log, Logbook)
            try:
                with translated():
                    reembedding.rewrite(self._journal, embed, length, name)
            except BaseException:
                self._journal.rollback()
                raise
            self.dim, self._stale = length, True
            self._journal.config = replace(self._journal.config, embedder=name)
            self._journal.become(length)
            memory.ghosts, memory.log = Ghosts(length, 0), None
            self._reload()
            with suppress(OSError):
                remove_all(self.path, [self.namespace])
            with self._writing, translated():
                memory.hold_budget()
                self._archive.purge(memory.clock())
            if records:
                self.record()

    def _bodies(self) -> list[bytes] | None:
        return list(self.audit.bodies())

    def _state(self) -> tuple[Size, str]:
        """What a record says of the memory."""
        return self._memory.table.size, self._memory.view().digest()

    def prune_audit(self, keep: int) -> str | None:
        """Drop all but the last `keep` audit records, and record that.

        Returns the new head's hash, or None if there are no more. Keep a head from before: it proves what the
        dropped records said to whoever kept them.
        """
        count = checks.integer(keep, "keep", 0)
        with self._writing, translated():
            self._journal.touch_state()
            return self.audit.pruned(count, self._memory, self._memory.clock())

    @contextmanager
    def recording(self) -> Iterator[Callable[..., str]]:
        """A transaction in which records of decisions can be written that were carried out elsewhere."""
        with self._writing, translated():
            self._journal.touch_state()
            yield self.audit.elsewhere

    def _settle(self) -> None:
        self.flush()

    def verify(self) -> Verification:
        """Check everything that can be checked: pages, sums, the table against the file, the index, bounds, the chain.

        What is wrong is in the answer, not raised.
        """
        self._check_process()
        with self._lock:
            if self._closed:
                self._check_usable()
            found = {}
            try:
                self.flush()
                with self._reading:
                    found["memory"] = "ok"
            except MemsiftError as error:
                found["memory"] = str(error)
            return check(self._memory, self._journal, self._archive, self.audit, found)

    def record(self, log: AccessLog | bool | None = True) -> None:
        """Write down what is stored, asked and used from now on: in the file if `log` is True, or in an `AccessLog`.

        The file keeps 64 MiB of it at most; False or None ends the recording and keeps what was recorded. Each process
        records its own calls, and says so each time that it opens the file.
        """
        if not isinstance(log, bool):
            super().record(log)
            return
        with self._writing, translated():
            self._memory.log = None
            if log:
                book = self._logbook()
                view = self._memory.view()
                book.begin(view.ids, view.vectors, view.cost, view.created_at)
                self._journal.touch_state()
                book.written()
                self._memory.log = book

    def access_log(self) -> AccessLog:
        """What the file has recorded."""
        with self._reading, translated():
            return self._logbook().read()

    def _logbook(self) -> Logbook:
        return Logbook(self._db, self._journal.ns, self.dim, holds=held_by(self._memory))

    # ---- life ------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the touches that wait. Done by itself within `touch_flush_seconds`, and by every other write."""
        self._check_process()
        with self._lock:
            if self._journal.pending and self._depth == 0:
                with self._writing:
                    pass

    def close(self) -> None:
        """Write what waits and let the file go. Closing twice is no error."""
        if self._pid != os.getpid():
            return  # the file belongs to the process that opened it; its lock may be held for ever in this one
        if self._compactor is not None:
            self._compactor.close()  # before the lock, which its thread may wait for
        with self._lock:
            if not self._closed:
                self._alone("close")
                try:
                    with suppress(EmbedderMismatch):  # nobody can use what waits
                        self.flush()
                finally:
                    self._stop_timer()
                    self._memory.index.close()
                    self._memory.crowding.close()
                    self._closed = True
                    self._db.close()
                    atexit.unregister(self._at_exit)

    def __del__(self) -> None:
        with suppress(Exception):  # one that was never opened has nothing to close
            self.close()

    _closed = False

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise ForkedStore(
                f"this store was opened in process {self._pid}; open it again in this one ({os.getpid()})"
            )

    def _usable(self) -> bool:
        return not self._closed and self._pid == os.getpid()

    def _check_usable(self) -> None:
        if self._closed:
            raise ClosedStore(f"this store was closed; open {self.path.name} again")
        if self._stale:
            self._reload()

    def _begin(self) -> None:
        self._last = self._memory.last_compaction
        try:
            self._journal.begin(self._memory)
        except StoreBusy:
            raise  # before anything was read
        except BaseException:
            self._stale = True
            self._journal.rollback()
            raise

    def _reload(self) -> None:
        """What is in RAM may not be what is in the file: read it again, now or at the next call."""
        self._stale = True
        self._journal.reload(self._memory)
        self._stale = False

    def _flush_later(self) -> None:
        """Somebody may stop calling: the touches that wait are written by a timer then."""
        if self._timer is None and self._journal.pending:
            self._timer = threading.Timer(self._flush_after, _flush_by_timer, [weakref.ref(self)])
            self._timer.daemon = True
            self._timer.start()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _all_known(wanted: Ids, known: Ids, where: str) -> None:
    missing = np.setdiff1d(wanted, known)
    if missing.size:
        raise UnknownEntry(
            f"ids must be {where}; got {', '.join(map(str, missing[:5]))}, which are not"
        )


def _flush_by_timer(reference: weakref.ref[DurableStore]) -> None:
    store = reference()
    if store is None:
        return
    with store._lock:
        store._timer = None
        try:
            if not store._closed:
                store.flush()
        except StoreBusy:
            store._flush_later()
        except MemsiftError:
            # The next call meets the same trouble and reports it to somebody.
            return


def _close(reference: weakref.ref[DurableStore]) -> None:
    store = reference()
    if store is not None:
        try:
            store.close()
        except MemsiftError:
            return
