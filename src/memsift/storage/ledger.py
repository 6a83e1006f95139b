"""The audit log of one namespace in its file: each record in the transaction of the change that it tells of."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.audit import Head, Record, State, Verdict, commitment, export, genesis, link, verify
from memsift.audit.chain import prune_note
from memsift.audit.record import Kind
from memsift.audit.replay import differences, policy_fields
from memsift.budget import Budget, Size
from memsift.errors import CorruptStore, InvalidValue
from memsift.plan import Plan
from memsift.storage.file import refusal, translated
from memsift.storage.namespaces import Namespace
from memsift.types import Compaction, Ids

if TYPE_CHECKING:
    from memsift.memory import Memory


class Ledger:
    """`store.audit`: the chain of decisions of one namespace.

    It holds no vector, text, metadata or id: victims are committed to under a key that stays in the file.
    """

    def __init__(
        self, db: sqlite3.Connection, found: Namespace, guard: AbstractContextManager[object]
    ) -> None:
        self._db, self._namespace, self._guard = db, found, guard

    @property
    def store_id(self) -> str:
        """The identity that the chain begins with."""
        return self._namespace.store_id

    def bodies(self) -> Iterator[bytes]:
        """Each record as canonical JSON, oldest first."""
        query = "SELECT body FROM audit WHERE ns = ? ORDER BY seq"
        with self._guard, translated():
            return iter([body for (body,) in self._db.execute(query, (self._namespace.ns,))])

    def __len__(self) -> int:
        with self._guard, translated():
            query = "SELECT count(*) FROM audit WHERE ns = ?"
            return int(self._db.execute(query, (self._namespace.ns,)).fetchone()[0])

    def verify(self, head: Head | None = None, since: Head | None = None) -> Verdict:
        """Whether the chain is whole.

        Parameters
        ----------
        head : Head, optional
            How far the chain must go, kept elsewhere: `Head.parse(text)`, or of a signed one what
            `memsift.audit.heads.check(signed, public_key)` returned. Without it the answer is at best "consistent,
            completeness unproven".
        since : Head, optional
            An older head that the chain must still contain.
        """
        return verify(self.bodies(), self.store_id, head=head, since=since)

    def head(self) -> Head:
        """Where the chain ends now: to be kept outside of the file, signed or not."""
        last = self._last()
        seq, hash_ = (last.seq, last.hash) if last else (0, genesis(self.store_id))
        return Head(self.store_id, seq, hash_, time.time_ns())

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write the records as JSON lines into a new file (0600) and return their number.

        Raises
        ------
        InvalidValue
            Something is there already, or the folder is not.
        DiskTrouble
            The disk is full, or failed; no part of a file is left.
        """
        bodies = self.bodies()
        at = checks.path(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            stream = os.fdopen(os.open(at, flags, 0o600), "wb")
        except OSError as error:
            raise refusal("path must be a new file in a folder that exists", error) from None
        try:
            with stream:
                count = export.write(bodies, stream)
                stream.flush()
                os.fsync(stream.fileno())
            return count
        except BaseException as error:
            with suppress(OSError):
                os.unlink(path)
            if isinstance(error, OSError):
                raise refusal("the audit log could not be written", error) from error
            raise

    def replay(self, seq: int, plan: Plan, spared: Iterable[int] = ()) -> list[str]:
        """Run a recorded decision again: the fields of record `seq` that `plan` does not bear out, none if it does.

        Parameters
        ----------
        plan : Plan
            Made again by the same policy for the same target, from the memory as it was before.
        spared : ids
            Its victims that stayed.

        Raises
        ------
        InvalidValue
            There is no such record.
        """
        query = "SELECT body FROM audit WHERE ns = ? AND seq = ?"
        with self._guard, translated():
            found = self._db.execute(query, (self._namespace.ns, seq)).fetchone()
        if found is None:
            raise InvalidValue(f"seq must be that of a record in the log; got {seq}")
        return differences(Record.parse(found[0]), self._namespace.secret, plan, spared)

    # ---- writing, within the caller's transaction ------------------------------------------------

    def compacted(
        self, memory: Memory, plan: Plan, done: Compaction, digest: str, purged: int, now: float
    ) -> str:
        """Record a compaction that has just happened; returns the new head's hash."""
        return self._append(
            "compaction",
            now,
            policy=policy_fields(plan.policy),
            budget=plan.target,
            before=self._state(done.before, digest),
            after=self._state(done.after, memory.view().digest()),
            context_digest=commitment.context_digest(self._namespace.secret, plan.view.context),
            evicted=done.dropped,
            spared=len(done.spared),
            forced=done.forced,
            note={"purged": purged},
        )

    def erased(self, ids: Ids, before: Size, digest: str, memory: Memory, now: float) -> str:
        """Record an erasure."""
        return self._append(
            "erase",
            now,
            policy=None,
            budget=memory.budget,
            before=self._state(before, digest),
            after=self._state(memory.table.size, memory.view().digest()),
            evicted=ids,
        )

    def restored(self, count: int, before: Size, digest: str, memory: Memory, now: float) -> str:
        """Record that entries came back."""
        return self._append(
            "restore",
            now,
            policy=None,
            budget=memory.budget,
            before=self._state(before, digest),
            after=self._state(memory.table.size, memory.view().digest()),
            note={"restored": count},
        )

    def elsewhere(self, now: float, **fields: Any) -> str:
        """Record what a plan did to memories that another system holds; `fields` as of `audit.link`."""
        return self._append("compaction", now, **fields)

    def context_digest(self, context: npt.NDArray[np.float32]) -> str | None:
        """The digest of a context window (w, dim) under this namespace's key."""
        return commitment.context_digest(self._namespace.secret, context)

    def pruned(self, keep: int, memory: Memory, now: float) -> str | None:
        """Drop all but the last `keep` records, and say so in a new one; None if there are no more."""
        last = self._last()
        upto = 0 if last is None else last.seq - keep
        query = "SELECT body FROM audit WHERE ns = ? AND seq = ?"
        found = self._db.execute(query, (self._namespace.ns, upto)).fetchone()
        if found is None:
            return None
        state = self._state(memory.table.size, memory.view().digest())
        note = prune_note(Record.parse(found[0]))
        head = self._append(
            "prune", now, policy=None, budget=memory.budget, before=state, after=state, note=note
        )
        self._db.execute("DELETE FROM audit WHERE ns = ? AND seq <= ?", (self._namespace.ns, upto))
        return head

    def _append(
        self, kind: Kind, now: float, *, budget: Budget, evicted: Ids | None = None, **fields: Any
    ) -> str:
        ids = [] if evicted is None else evicted.tolist()
        record = link(
            self._last(),
            self.store_id,
            kind=kind,
            time=max(0.0, now),
            budget=budget.limits,
            evicted_count=len(ids),
            evicted_commitment=commitment.evicted_commitment(self._namespace.secret, ids),
            **fields,
        )
        self._db.execute(
            "INSERT INTO audit VALUES (?, ?, ?)", (self._namespace.ns, record.seq, record.body())
        )
        return record.hash

    def _last(self) -> Record | None:
        query = "SELECT body FROM audit WHERE ns = ? ORDER BY seq DESC LIMIT 1"
        with self._guard, translated():
            found = self._db.execute(query, (self._namespace.ns,)).fetchone()
        if found is None:
            return None
        try:
            return Record.parse(found[0])
        except (InvalidValue, TypeError) as error:
            raise CorruptStore("audit", f"its last record must be canonical; {error}") from None

    def _state(self, size: Size, digest: str) -> State:
        return State(*size, commitment.sealed(self._namespace.secret, digest))
