"""Honest logs: what verifies, against which heads, and what is only consistent."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
from audit_logs import STORE, chained, change, honest_log, prune

from memsift.audit import Head, InvalidHead, State, genesis, link, verify
from memsift.audit.record import hash_of
from memsift.errors import InvalidValue


def head_of(record, store_id=STORE):
    return Head(store_id, record.seq, record.hash, record.time)


def test_the_story_of_a_log():
    rng = random.Random(0)
    log = honest_log(rng, 5)
    proved = verify(log.bodies, STORE, log.head)
    assert (proved.status, proved.seq, proved.exit_code) == ("ok", 5, 0)
    assert str(proved) == "ok: complete up to record 5"

    alone = verify(log.bodies, STORE)
    assert (alone.status, alone.seq, alone.exit_code) == ("unproven", 5, 3)
    assert str(alone).startswith("unproven: records 1 to 5 consistent, but no head was given")
    assert alone.hash == log.head.hash

    broken = verify(log.bodies[:2] + log.bodies[3:], STORE, log.head)
    assert (broken.status, broken.seq, broken.exit_code) == ("broken", 3, 2)
    assert str(broken) == "broken at record 3: it is missing"

    short = verify(log.bodies[:3], STORE, log.head)
    assert str(short) == "broken at record 4: it is missing, and the head covers 5 records"

    older = verify(log.bodies, STORE, head_of(log.records[2]))
    assert str(older) == (
        "ok: complete up to record 3; newer records, consistent but not covered: 2"
    )


def test_an_empty_log():
    start = Head(STORE, 0, genesis(STORE), 0)
    assert verify([], STORE, start).status == "ok"
    assert str(verify([], STORE)).startswith("unproven: an empty log consistent")
    wrong = replace(start, hash="0" * 64)
    assert verify([], STORE, wrong).status == "broken"
    assert verify(honest_log(random.Random(0), 2).bodies, STORE, wrong).status == "broken"
    assert verify([], STORE, head_of(change(random.Random(0), None))).status == "broken"


def test_stores_do_not_share_their_chains():
    assert genesis("a") != genesis("b")
    log = honest_log(random.Random(1), 3, store_id="a")
    other = verify(log.bodies, "b")
    assert str(other) == "broken at record 1: it is not the first record of this store"
    swapped = verify(log.bodies, "b", log.head)
    assert str(swapped) == "broken: the head is one of store a, not of b"
    for bad in ("", "a b", "a/b", "ä", "a" * 65, ".a", None, "a\n"):
        with pytest.raises(InvalidValue, match="store_id must be"):
            genesis(bad)


def test_since_shows_growth():
    log = honest_log(random.Random(2), 9)
    since = head_of(log.records[3])
    assert verify(log.bodies, STORE, log.head, since=since).status == "ok"
    grown = verify(log.bodies, STORE, since=since)
    assert grown.status == "unproven"
    assert "grown from the older head" in str(grown)
    assert verify(log.bodies[:3], STORE, since=since).status == "broken"
    fork = log.records[:3] + chained([change(random.Random(9), None)], log.records[2], 0, "")
    assert verify([r.body() for r in fork], STORE, since=since).status == "broken"
    with pytest.raises(InvalidHead, match="since must not be newer"):
        verify(log.bodies, STORE, since, since=log.head)


def test_two_heads_of_one_place_cannot_both_hold():
    log = honest_log(random.Random(2), 4)
    other = replace(log.head, hash="0" * 64)
    assert verify(log.bodies, STORE, log.head, since=other).status == "broken"


def test_a_pruned_log_is_proved_only_by_a_head_that_covers_the_cut():
    rng = random.Random(4)
    whole = honest_log(rng, 8).records
    cut = prune(rng, whole[-1], whole[4])
    more = change(rng, cut)
    kept = [*whole[5:], cut, more]
    bodies = [r.body() for r in kept]

    proved = verify(bodies, STORE, head_of(more))
    assert str(proved) == "ok: complete up to record 10; pruned up to record 5"
    assert (proved.first, proved.last) == (6, 10)
    assert verify(bodies, STORE, head_of(cut)).status == "ok"
    assert verify(bodies, STORE).status == "unproven"

    uncovered = verify(bodies, STORE, head_of(whole[-1]))
    assert (uncovered.status, uncovered.exit_code) == ("unproven", 3)
    assert "does not cover record 9" in str(uncovered)
    lost = verify(bodies, STORE, head_of(whole[1]))
    assert lost.status == "unproven"
    assert "lies among the pruned records" in str(lost)
    assert verify(bodies, STORE, head_of(more), since=head_of(whole[1])).status == "unproven"
    # The last record that was dropped is still known by its hash.
    assert verify(bodies, STORE, head_of(more), since=head_of(whole[4])).status == "ok"
    fork = replace(head_of(whole[4]), hash="0" * 64)
    assert verify(bodies, STORE, head_of(more), since=fork).status == "broken"


def test_a_cut_must_be_where_the_prune_record_says():
    rng = random.Random(5)
    whole = honest_log(rng, 8).records
    cut = prune(rng, whole[-1], whole[4])
    for start in (1, 4, 6, 8):
        verdict = verify([r.body() for r in [*whole[start:], cut]], STORE, head_of(cut))
        assert verdict.status == "broken", start
    assert verify([cut.body()], STORE, head_of(cut)).status == "broken"
    # Records that are still there although they might have gone harm nobody.
    assert verify([r.body() for r in [*whole, cut]], STORE, head_of(cut)).status == "ok"


def test_everything_before_the_prune_record_may_go():
    rng = random.Random(6)
    whole = honest_log(rng, 4).records
    cut = prune(rng, whole[-1], whole[-1])
    more = change(rng, cut)
    assert verify([cut.body(), more.body()], STORE, head_of(more)).status == "ok"
    lie = link(
        whole[-1],
        STORE,
        kind="prune",
        time=1.0,
        before=cut.before,
        after=cut.after,
        note={"upto_seq": 4, "upto_hash": "0" * 64},
    )
    for bodies in ([lie.body()], [*(r.body() for r in whole), lie.body()]):
        verdict = verify(bodies, STORE, head_of(lie))
        assert str(verdict) == "broken at record 5: it names another hash of record 4"


@pytest.mark.parametrize("junk", [b"", b"{}", b"\xff\xfe", b"[" * 100_000, "text", None, 7])
def test_junk_among_the_records_is_a_verdict(junk):
    log = honest_log(random.Random(7), 4)
    for at in range(5):
        bodies = [*log.bodies[:at], junk, *log.bodies[at:]]
        verdict = verify(bodies, STORE, log.head)
        assert (verdict.status, verdict.seq) == ("broken", at + 1)


def test_two_hundred_honest_logs_verify():
    rng = random.Random(8)
    pruned = 0
    for trial in range(200):
        log = honest_log(rng, rng.randrange(1, 25), prunes=trial % 4)
        pruned += log.records[0].seq > 1
        assert verify(log.bodies, STORE, log.head).status == "ok"
        assert verify(iter(log.bodies), STORE).status == "unproven"
        for record in rng.sample(log.records, min(4, len(log.records))):
            older = head_of(record)
            assert verify(log.bodies, STORE, older).status in ("ok", "unproven")
            assert verify(log.bodies, STORE, log.head, since=older).status == "ok"
    assert pruned > 50


def test_a_hundred_thousand_records_verify_quickly():
    # Written without `link`, so that the bytes come from somewhere else than the code they test.
    state = State(10_000, 16_000_000, 400_000, "1" * 64)
    first = link(
        None,
        STORE,
        kind="compaction",
        time=1.0,
        before=state,
        after=state,
        policy={"name": "coherence", "configuration": {"alpha": 0.25, "beta": 0.35, "gamma": 0.4}},
        budget={"entries": 10_000, "cost": 2_000_000},
        context_digest="2" * 64,
        evicted_count=12,
        evicted_commitment="3" * 64,
    )
    front, back = first.body().split(first.prev.encode())
    bodies, prev = [], first.prev
    for seq in range(1, 100_001):
        body = front + prev.encode() + back.replace(b'"seq":1,', b'"seq":%d,' % seq)
        bodies.append(body)
        prev = hash_of(body)
    head = Head(STORE, 100_000, prev, 0)
    began = time.perf_counter()
    verdict = verify(bodies, STORE, head)
    seconds = time.perf_counter() - began
    print(f"100,000 records of {len(body)} bytes verified in {seconds:.2f} s")
    assert verdict.status == "ok"
    assert seconds < 10
    assert verify(bodies[:50_000] + bodies[50_001:], STORE, head).seq == 50_001
