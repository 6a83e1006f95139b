"""The chain: each record names the hash of the one before it, and a head kept elsewhere says how far it went.

A chain alone shows that nothing *between* its records was changed by someone who did not recompute it. That none are
missing at its end, and that it was not recomputed from some point on, shows only against a head.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memsift.audit import fields, shape
from memsift.audit.commitment import EMPTY
from memsift.audit.fields import InvalidHead, InvalidRecord
from memsift.audit.heads import Head, Position
from memsift.audit.record import Kind, Record, State, hash_of

Status = Literal["ok", "broken", "unproven"]
EXIT_CODES = {"ok": 0, "broken": 2, "unproven": 3}


@dataclass(frozen=True)
class Verdict:
    """What a log's records show.

    Parameters
    ----------
    status : "ok", "broken" or "unproven"
        Complete up to the given head; changed at `seq`; consistent, but not shown to be complete.
    seq : int
        ok: the head's seq. broken: the first record that is wrong or missing. unproven: the last record.
    first, last : int
        The first record that the log holds, and the last one that follows from it; 0 and 0 of an empty log.
    hash : str
        The hash of record `last`.
    why : str
        In words; after "ok" what lies beyond the proof, if anything does.
    """

    status: Status
    seq: int
    first: int
    last: int
    hash: str
    why: str

    @property
    def exit_code(self) -> int:
        """0 proved, 2 broken, 3 unproven. 1 is left to programs, for "could not run"."""
        return EXIT_CODES[self.status]

    def __str__(self) -> str:
        if self.status == "broken":
            return f"broken at record {self.seq:,}: {self.why}"
        span = f"records {self.first:,} to {self.last:,}" if self.last else "an empty log"
        if self.status == "unproven":
            return f"unproven: {span} consistent, {self.why}"
        return f"ok: complete up to record {self.seq:,}" + (f"; {self.why}" if self.why else "")


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
    heads = [h for h in (head, since) if h is not None]
    for given in heads:
        if given.store_id != store_id:
            why = f"the head is one of store {given.store_id}, not of {store_id}"
            return Verdict("broken", 0, 0, 0, start, why)
    if head is not None and since is not None and since.seq > head.seq:
        raise InvalidHead(f"since must not be newer than head ({since.seq} > {head.seq})")

    reader = _Reader(start, heads)
    for body in bodies:
        if not reader.follows(body):
            return reader.broken()
    return reader.verdict(head, heads)


class _Reader:
    """A walk along the log: where it stands, what it has met, and the first thing that was wrong."""

    def __init__(self, start: str, heads: list[Head]) -> None:
        self.start = start
        self.heads = heads
        self.marks: dict[int, list[str]] = {}
        for head in heads:
            self.marks.setdefault(head.seq, []).append(head.hash)
        self.first = self.last = 0
        self.hash = start
        self.cut_at = self.cut_by = (
            0  # seq before the first record; seq of the prune record that says so
        )
        self.cut_hash = start
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
            return self._fail(record.seq, "it does not follow from the record before it")
        self.last, self.hash = record.seq, hash_of(body)
        if record.seq in self.marks and not self._matches(record.seq, self.hash):
            return False
        return record.kind != "prune" or self._prunes(record)

    def broken(self) -> Verdict:
        return Verdict("broken", self.bad, self.first, self.last, self.hash, self.why)

    def verdict(self, head: Head | None, heads: list[Head]) -> Verdict:
        """What the log shows, once all of it was read."""
        if self.why:
            return self.broken()
        for given in heads:
            if given.seq > self.last:
                self._fail(
                    self.last + 1, f"it is missing, and the head covers {given.seq:,} records"
                )
                return self.broken()
        if self.cut_at and not self.cut_by:
            self._fail(1, f"the log begins at record {self.first:,}, and no prune record says so")
            return self.broken()
        why = self._doubt(head, heads)
        if head is None or why:
            return Verdict("unproven", self.last, self.first, self.last, self.hash, why)
        beyond = self.last - head.seq
        pruned = f"pruned up to record {self.cut_at:,}" if self.cut_at else ""
        newer = f"newer records, consistent but not covered: {beyond:,}" if beyond else ""
        why = "; ".join(filter(None, (pruned, newer)))
        return Verdict("ok", head.seq, self.first, self.last, self.hash, why)

    def _doubt(self, head: Head | None, heads: list[Head]) -> str:
        if head is None:
            return "but no head was given, so newer records may be missing or all of them replaced"
        if self.cut_by > head.seq:
            return (
                f"but the head at {head.seq:,} does not cover record {self.cut_by:,}, which says "
                "that older ones were pruned"
            )
        for given in heads:
            if given.seq < self.cut_at:
                return f"but the head at {given.seq:,} lies among the pruned records"
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
