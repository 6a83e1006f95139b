"""The chain: each record names the hash of the one before it, and a head kept elsewhere says how far it went.

A chain alone shows that nothing *between* its records was changed by someone who did not recompute it. That none are
missing at its end, and that it was not recomputed from some point on, shows only against a head.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from memsift.audit import fields, shape
from memsift.audit.commitment import EMPTY
from memsift.audit.fields import InvalidHead, InvalidRecord
from memsift.audit.heads import Head, Position
from memsift.audit.record import Kind, Record, State, hash_of
from memsift.audit.verdict import Verdict


def genesis(store_id: str) -> str:
    """What the first record of a store follows: a hash that no other store and no record has."""
    return hashlib.sha256(
        b"memsift audit genesis\x00" + fields.store_id(store_id).encode()
    ).hexdigest()


def link(
    previous: Position | None,
    store_id: str,
    *,
    kind: Kind,
    time: float,
    before: State,
    after: State,
    policy: dict[str, Any] | None = None,
    budget: Mapping[str, int] | None = None,
    context_digest: str | None = None,
    evicted_count: int = 0,
    evicted_commitment: str = EMPTY,
    spared: int = 0,
    forced: bool = False,
    note: Mapping[str, Any] | None = None,
) -> Record:
    """The record that follows `previous` (a record or head of this store; None: the first). `time` in unix seconds.

    Raises
    ------
    InvalidRecord
        A field has a wrong type or form.
    """
    start = genesis(store_id)
    return Record(
        seq=1 if previous is None else previous.seq + 1,
        prev=start if previous is None else previous.hash,
        time=fields.nanoseconds(time),
        kind=kind,
        policy=policy,
        budget=dict(budget or {}),
        before=before,
        after=after,
        context_digest=context_digest,
        evicted_count=evicted_count,
        evicted_commitment=evicted_commitment,
        spared=spared,
        forced=forced,
        note=dict(note or {}),
    )


def prune_note(upto: Position) -> dict[str, Any]:
    """The note of a prune record: records up to and with `upto` may be dropped once it is written."""
    return {"upto_seq": upto.seq, "upto_hash": upto.hash}


def verify(
    bodies: Iterable[bytes], store_id: str, head: Head | None = None, since: Head | None = None
) -> Verdict:
    """Read a log once, from its first record on, and say what it shows. Bad bytes are a verdict, never an error.

    Parameters
    ----------
    bodies : iterable of bytes
        The records' bodies in the order of the log.
    store_id : str
    head : Head or None
        How far the log must go: a head that was kept elsewhere (of a signed one: what `heads.check` returned).
        Without it no log is more than "unproven".
    since : Head or None
        An older head that the log must have grown from.

    Notes
    -----
    A log that does not begin at record 1 must hold a prune record with the seq and hash at which it was cut, and the
    head must cover that record. Otherwise whoever can write the log could have cut it.
    """
    start = genesis(store_id)
    for given in (head, since):
        if given is not None and given.store_id != store_id:
            why = f"the head is one of store {given.store_id}, not of {store_id}"
            return Verdict("broken", 0, 0, 0, start, why)
    if head is not None and since is not None and since.seq > head.seq:
        raise InvalidHead(f"since must not be newer than head ({since.seq} > {head.seq})")

    reader = _Reader(start, head, since)
    for body in bodies:
        if not reader.follows(body):
            break
    return reader.verdict()


class _Reader:
    """A walk along the log: where it stands, what it has met, and the first thing that was wrong."""

    def __init__(self, start: str, head: Head | None, since: Head | None) -> None:
        self.start, self.head = start, head
        self.heads = [h for h in (head, since) if h is not None]
        self.marks: dict[int, list[str]] = {}
        for given in self.heads:
            self.marks.setdefault(given.seq, []).append(given.hash)
        self.first = self.last = 0
        self.hash = self.cut_hash = start
        self.cut_at = 0  # seq of the last record that was dropped
        self.cut_by = 0  # seq of the prune record that says so
        self.bad, self.why = 0, ""
        self._matches(0, start)

    def follows(self, body: bytes) -> bool:
        """Take the next body; False once something is wrong."""
        if self.why:
            return False
        try:
            record = shape.read(body)
        except InvalidRecord as error:
            return self._fail(self.last + 1, str(error))
        except TypeError:
            return self._fail(self.last + 1, "a record must be bytes")
        if not self.first:
            if not self._begins(record):
                return False
        elif record.seq != self.last + 1:
            missing = record.seq > self.last
            words = "it is missing" if missing else f"record {record.seq:,} stands in its place"
            return self._fail(self.last + 1, words)
        if record.prev != self.hash:
            return self._fail(
                record.seq, "it does not follow from the record before it: one of them was changed"
            )
        self.last, self.hash = record.seq, hash_of(body)
        if record.seq in self.marks and not self._matches(record.seq, self.hash):
            return False
        return record.kind != "prune" or self._prunes(record)

    def verdict(self) -> Verdict:
        """What the log shows, once it was read to its end or to the first thing that is wrong."""
        head, newest = self.head, max((h.seq for h in self.heads), default=0)
        if not self.why and newest > self.last:
            self._fail(self.last + 1, f"it is missing, and the head covers {newest:,} records")
        if not self.why and self.cut_at and not self.cut_by:
            self._fail(1, f"the log begins at record {self.first:,}, and no prune record says so")
        if self.why:
            return Verdict("broken", self.bad, self.first, self.last, self.hash, self.why)
        doubt = self._doubt()
        if head is None or doubt:
            return Verdict("unproven", self.last, self.first, self.last, self.hash, doubt)
        beyond = self.last - head.seq
        pruned = f"pruned up to record {self.cut_at:,}" if self.cut_at else ""
        newer = f"newer records, consistent but not covered: {beyond:,}" if beyond else ""
        why = "; ".join(filter(None, (pruned, newer)))
        return Verdict("ok", head.seq, self.first, self.last, self.hash, why)

    def _doubt(self) -> str:
        """Why a consistent log is not proved; empty if it is."""
        for given in self.heads:
            if given.seq < self.cut_at:
                return f"but the head at {given.seq:,} lies among the pruned records"
        if self.head is None:
            grown = "and grown from the older head, " if self.heads else ""
            lost = "" if self.heads else " or all of them replaced"
            return f"{grown}but no head was given, so newer records may be missing{lost}"
        if self.cut_by > self.head.seq:
            return (
                f"but the head at {self.head.seq:,} does not cover record {self.cut_by:,}, which "
                "says that older ones were pruned"
            )
        return ""

    def _begins(self, record: shape.Shape) -> bool:
        self.first = record.seq
        if record.seq == 1:
            if record.prev != self.start:
                return self._fail(1, "it is not the first record of this store")
            return True
        self.cut_at, self.cut_hash = record.seq - 1, record.prev
        self.hash = record.prev
        return self._matches(self.cut_at, record.prev)

    def _prunes(self, record: shape.Shape) -> bool:
        note = json.loads(record.note)
        upto = note["upto_seq"]
        known = {self.cut_at: self.cut_hash, record.seq - 1: record.prev}
        if note["upto_hash"] != known.get(upto, note["upto_hash"]):
            return self._fail(record.seq, f"it names another hash of record {upto:,}")
        if self.cut_at and upto == self.cut_at and not self.cut_by:
            self.cut_by = record.seq
        return True

    def _matches(self, seq: int, found: str) -> bool:
        if any(wanted != found for wanted in self.marks.get(seq, ())):
            return self._fail(seq, "its hash is not the one that the head names")
        return True

    def _fail(self, seq: int, why: str) -> bool:
        self.bad, self.why = seq, why
        return False
