"""Honest logs to audit, and the means of someone who forges them."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace

from memsift.audit import (
    Head,
    InvalidRecord,
    Record,
    State,
    chain,
    evicted_commitment,
    link,
    prune_note,
)

STORE = "5b0c6a1e-store"
KEY = bytes(range(32))
START = 1_764_000_000.0

POLICIES = (
    {"name": "coherence", "configuration": {"alpha": 0.25, "beta": 0.35, "gamma": 0.4}},
    {"name": "lru", "configuration": {}},
    None,
)


def digest_of(*what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()


@dataclass
class Log:
    """What a store's file holds, and the head that was kept elsewhere."""

    records: list[Record]
    head: Head
    store_id: str = STORE

    @property
    def bodies(self) -> list[bytes]:
        return [r.body() for r in self.records]


def change(rng: random.Random, previous: Record | Head | None, store_id: str = STORE) -> Record:
    """A plausible record of a compaction, an erasure or a restoration."""
    kind = rng.choice(("compaction", "compaction", "compaction", "erase", "restore"))
    entries, gone = rng.randrange(20, 1000), rng.randrange(1, 10)
    ids = [] if kind == "restore" else rng.sample(range(10_000), gone)
    left = entries + gone if kind == "restore" else entries - gone
    tick = rng.random()
    return link(
        previous,
        store_id,
        kind=kind,
        time=START + rng.random() * 1e6,
        policy=rng.choice(POLICIES) if kind == "compaction" else None,
        budget={"entries": 1000, "cost": rng.choice((10**6, 2 * 10**6))},
        before=State(entries, entries * 1600, entries * 40, digest_of(tick, "before")),
        after=State(left, left * 1600, left * 40, digest_of(tick, "after")),
        context_digest=rng.choice((None, digest_of(tick, "context"))),
        evicted_count=len(ids),
        evicted_commitment=evicted_commitment(KEY, ids),
        spared=rng.randrange(3),
        forced=rng.random() < 0.1,
        note={"restored": gone} if kind == "restore" else {},
    )


def prune(rng: random.Random, previous: Record, upto: Record, store_id: str = STORE) -> Record:
    return link(
        previous,
        store_id,
        kind="prune",
        time=START + rng.random(),
        before=previous.after,
        after=previous.after,
        note=prune_note(upto),
    )


def honest_log(rng: random.Random, length: int, prunes: int = 0, store_id: str = STORE) -> Log:
    """`length` changes, and `prunes` cuts at its head somewhere among the later ones."""
    records: list[Record] = []
    last: Record | None = None
    cuts = {rng.randrange(3, length) for _ in range(prunes)} if length > 3 else set()
    for step in range(length):
        last = change(rng, last, store_id)
        records.append(last)
        if step in cuts:
            upto = rng.randrange(len(records) - 1)
            last = prune(rng, last, records[upto], store_id)
            records = [*records[upto + 1 :], last]
    assert last is not None
    return Log(records, Head(store_id, last.seq, last.hash, last.time), store_id)


def chained(records: list[Record], start: Record | None, first: int, prev: str) -> list[Record]:
    """Records with their places and hashes computed again, as a forger with time would do it."""
    out: list[Record] = []
    seq, before = (first, prev) if start is None else (start.seq + 1, start.hash)
    for record in records:
        record = replace(record, seq=seq, prev=before)
        out.append(record)
        seq, before = seq + 1, record.hash
    return out


def rechained(log: Log, at: int, rest: list[Record]) -> list[Record]:
    """The log up to position `at`, then `rest`, chained on."""
    start = log.records[at - 1] if at else None
    first = log.records[0]
    return log.records[:at] + chained(rest, start, first.seq, first.prev)


def edited(rng: random.Random, record: Record) -> Record:
    """The record with one lie in it."""
    lies = [
        {"time": record.time + rng.randrange(1, 10**9)},
        {"spared": record.spared + 1},
        {"forced": not record.forced},
        {"budget": {**record.budget, "entries": 77}},
        {"before": record.before._replace(digest=digest_of(rng.random()))},
        {"after": record.after._replace(entries=record.after.entries + 1)},
        {"policy": {"name": "lfu", "configuration": {}}},
        {"context_digest": digest_of(rng.random())},
        {
            "evicted_commitment": digest_of(rng.random()),
            "evicted_count": record.evicted_count + 1,
        },
    ]
    return replace(record, **rng.choice(lies))


__all__ = [
    "KEY",
    "STORE",
    "InvalidRecord",
    "Log",
    "chain",
    "chained",
    "change",
    "digest_of",
    "edited",
    "honest_log",
    "prune",
    "rechained",
]
