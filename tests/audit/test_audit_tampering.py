"""Eleven attacks on a log, each many times: what a head catches, and what cannot be caught without one."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from audit_logs import (
    STORE,
    InvalidRecord,
    Log,
    chained,
    change,
    edited,
    honest_log,
    prune,
    rechained,
)

from memsift.audit import Record, genesis, verify

TRIALS = 250


def _edit(rng: random.Random, log: Log) -> list[bytes]:
    """One record says something else; its successors stay as they were."""
    at = rng.randrange(len(log.records))
    bodies = log.bodies
    if rng.random() < 0.5:
        bodies[at] = edited(rng, log.records[at]).body()
    else:
        body = bytearray(bodies[at])
        body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
        bodies[at] = bytes(body)
    return bodies


def _insert(rng: random.Random, log: Log) -> list[bytes]:
    at = rng.randrange(len(log.records))
    before = log.records[at - 1] if at else None
    if log.records[0].seq > 1 and not at:
        at, before = 1, log.records[0]
    record = change(rng, before)
    if rng.random() < 0.5:
        return [r.body() for r in (*log.records[:at], record, *log.records[at:])]
    return [r.body() for r in rechained(log, at, [record, *log.records[at:]])]


def _reorder(rng: random.Random, log: Log) -> list[bytes]:
    i, j = sorted(rng.sample(range(len(log.records)), 2))
    order = list(log.records)
    order[i], order[j] = order[j], order[i]
    if rng.random() < 0.5:
        return [r.body() for r in order]
    return [r.body() for r in rechained(log, i, order[i:])]


def _drop_middle(rng: random.Random, log: Log) -> list[bytes]:
    at = rng.randrange(1, len(log.records) - 1)
    end = rng.randrange(at + 1, len(log.records))
    if rng.random() < 0.5:
        return log.bodies[:at] + log.bodies[end:]
    return [r.body() for r in rechained(log, at, log.records[end:])]


def _drop_tail(rng: random.Random, log: Log) -> list[bytes]:
    return log.bodies[: -rng.randrange(1, len(log.records))]


def _drop_head(rng: random.Random, log: Log) -> list[bytes]:
    """With or without a forged prune record: after the head, before it, or in the place of the last record."""
    cut = rng.randrange(1, len(log.records) - 1)
    rest, last = log.records[cut:], log.records[-1]
    how = rng.randrange(4)
    if how == 1:
        rest = [*rest, prune(rng, last, log.records[cut - 1])]
    elif how == 2:
        forged = prune(rng, rest[-2], log.records[cut - 1]) if len(rest) > 1 else None
        rest = [*rest[:-1], forged] if forged else rest
    elif how == 3:
        rest = chained(rest, None, 1, genesis(STORE))
    return [r.body() for r in rest]


def _drop_all(rng: random.Random, log: Log) -> list[bytes]:
    return rng.choice(([], honest_log(rng, rng.randrange(1, 5)).bodies))


def _roll_back(rng: random.Random, log: Log) -> list[bytes]:
    """An old copy is put back, and the store goes on from it."""
    at = rng.randrange(1, len(log.records))
    records = log.records[:at]
    for _ in range(rng.randrange(len(log.records))):
        records = [*records, change(rng, records[-1])]
    return [r.body() for r in records]


def _rechain(rng: random.Random, log: Log) -> list[bytes]:
    """One record is changed, and all hashes after it are computed again."""
    at = rng.randrange(len(log.records))
    changed = edited(rng, log.records[at])
    return [r.body() for r in rechained(log, at, [changed, *log.records[at + 1 :]])]


def _fork(rng: random.Random, log: Log) -> list[bytes]:
    """The same beginning, then another story of the same length or longer."""
    at = rng.randrange(1, len(log.records))
    records = log.records[:at]
    while len(records) < len(log.records) + rng.randrange(3):
        records = [*records, change(rng, records[-1])]
    return [r.body() for r in records]


ATTACKS = {
    "edit": _edit,
    "insert": _insert,
    "reorder": _reorder,
    "drop middle": _drop_middle,
    "drop tail": _drop_tail,
    "drop head": _drop_head,
    "drop all": _drop_all,
    "roll back": _roll_back,
    "re-chain": _rechain,
    "fork": _fork,
}


def tampered(name: str, rng: random.Random) -> tuple[Log, list[bytes]]:
    while True:
        log = honest_log(rng, rng.randrange(4, 16), prunes=rng.randrange(3))
        if len(log.records) < 3:
            continue
        try:
            bodies = ATTACKS[name](rng, log)
        except InvalidRecord:
            continue  # a forged prune record cannot name a later one; the forger tries again
        if bodies != log.bodies:
            return log, bodies


@pytest.mark.parametrize("name", ATTACKS)
def test_a_head_catches_every_attack_and_nothing_is_proved_without_one(name):
    rng = random.Random(name)
    seen: Counter[tuple[str, str]] = Counter()
    for _ in range(TRIALS):
        log, bodies = tampered(name, rng)
        assert verify(log.bodies, STORE, log.head).status == "ok"
        caught = verify(bodies, STORE, log.head)
        alone = verify(bodies, STORE)
        assert caught.status != "ok", str(caught)
        assert alone.status != "ok", str(alone)
        assert caught.exit_code in (2, 3)
        # Only a cut that is explained beyond the head leaves the question open; all else is plainly broken.
        if caught.status == "unproven":
            assert name == "drop head"
            assert "does not cover" in caught.why
        seen[caught.status, alone.status] += 1
    print(f"{name}: {dict(seen)}")
    assert sum(seen.values()) == TRIALS
    if name in ("drop tail", "re-chain", "fork", "roll back", "drop all"):
        assert seen["broken", "unproven"], (
            "this cannot be seen without a head, and the page says so"
        )


def test_a_naive_forger_is_caught_without_a_head():
    """Who does not compute hashes again gives himself away, unless it is the last record that he touches."""
    rng = random.Random(11)
    for _ in range(TRIALS):
        log = honest_log(rng, rng.randrange(4, 16))
        at = rng.randrange(2, len(log.records) - 1)
        record = log.records[at]
        stories = {
            "edit": [*log.records[:at], edited(rng, record), *log.records[at + 1 :]],
            "insert": [*log.records[:at], change(rng, log.records[at - 1]), *log.records[at:]],
            "reorder": [
                *log.records[: at - 1],
                record,
                log.records[at - 1],
                *log.records[at + 1 :],
            ],
            "drop middle": [*log.records[:at], *log.records[at + 1 :]],
            "drop head": log.records[at:],
        }
        for name, records in stories.items():
            verdict = verify([r.body() for r in records], STORE)
            assert verdict.status == "broken", name
            where = 1 if name == "drop head" else at + 1 + (name in ("edit", "insert"))
            assert verdict.seq == where - (name == "reorder"), name


def test_every_single_bit_of_a_log_matters():
    log = honest_log(random.Random(12), 2)
    for at, body in enumerate(log.bodies):
        for bit in range(8 * len(body)):
            flipped = bytearray(body)
            flipped[bit // 8] ^= 1 << bit % 8
            bodies = log.bodies
            bodies[at] = bytes(flipped)
            verdict = verify(bodies, STORE, log.head)
            assert verdict.status == "broken"
            # A first record with another seq looks like the start of a pruned log; then the second stands wrong.
            assert verdict.seq in (at + 1, at + 2) or verdict.first != 1


def test_a_roll_back_together_with_its_head_shows_against_a_newer_head():
    rng = random.Random(13)
    log = honest_log(rng, 12)
    old = log.records[:6]
    old_head = replace(log.head, seq=6, hash=old[-1].hash)
    bodies = [r.body() for r in old]
    assert verify(bodies, STORE, old_head).status == "ok", "an old head proves an old log"
    assert verify(bodies, STORE, log.head).status == "broken"
    assert verify(bodies, STORE, since=log.head).status == "broken"


def test_a_lie_at_the_time_of_writing_is_a_sound_chain():
    """What a chain cannot do; `replay` can, where the inputs are held (test_audit_replay)."""
    rng = random.Random(14)
    truth: list[Record] = honest_log(rng, 6).records
    lies = chained([edited(rng, r) for r in truth], None, 1, genesis(STORE))
    head = replace(honest_log(rng, 1).head, seq=6, hash=lies[-1].hash)
    assert verify([r.body() for r in lies], STORE, head).status == "ok"
