"""A recorded decision is run again; what the record hides, and what lies show."""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
from dataclasses import replace

import numpy as np
import pytest

from memsift import Budget, CoherencePolicy, LruPolicy, MemoryStore
from memsift.audit import State, commitment, confirms, evicted_commitment, link, replay

KEY = bytes(range(32, 64))
CANARY = "CANARY-Ann-lives-in-Graz"


def filled(seed: int, n: int = 60, budget: int | None = None) -> MemoryStore:
    rng = np.random.default_rng(seed)
    store = MemoryStore(dim=8, budget=budget, clock=lambda: 1_764_000_000.0)
    for i in range(n):
        metadata = {"who": CANARY, "n": f"{CANARY}-{i}"}
        store.add(rng.normal(size=8), metadata=metadata, cost=int(rng.integers(1, 50)))
    for _ in range(10):
        store.search(rng.normal(size=8), k=3)
    return store


def recorded(plan, spared=()):
    """The record that a store would write."""
    stay = set(spared)
    victims = [i for i in plan.victims.tolist() if i not in stay]
    after = State(*plan.after, "0" * 64)
    if stay:
        after = after._replace(entries=plan.before.entries - len(victims))
    return link(
        None,
        "s",
        kind="compaction",
        time=1.0,
        policy=replay.policy_fields(plan.policy),
        budget=plan.target.limits,
        before=State(*plan.before, commitment.sealed(KEY, plan.digest)),
        after=after,
        context_digest=commitment.context_digest(KEY, plan.view.context),
        evicted_count=len(victims),
        evicted_commitment=evicted_commitment(KEY, victims),
        spared=len(stay),
        forced=plan.forced,
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("policy", [CoherencePolicy(), CoherencePolicy(gamma=0.9), LruPolicy()])
def test_the_same_decision_confirms_the_record(seed, policy):
    target = (20, 0.3, Budget(entries=50, cost=600))[seed % 3]
    record = recorded(filled(seed).plan(target, policy=policy))
    # The same history again, in another store: nothing is taken from the first plan.
    again = filled(seed).plan(target, policy=policy)
    assert replay.differences(record, KEY, again) == []
    assert confirms(record, KEY, again)
    assert not confirms(record, KEY[::-1], again), "without the key nothing can be confirmed"


def test_another_decision_does_not_confirm_it():
    record = recorded(filled(1).plan(20))
    plans = {
        "policy": filled(1).plan(20, policy=LruPolicy()),
        "budget": filled(1).plan(21),
        "before": filled(1, n=61).plan(20),
        "before.digest": filled(2).plan(20),
        "evicted_commitment": filled(2).plan(20),
    }
    for name, plan in plans.items():
        assert name in replay.differences(record, KEY, plan)
    touched = filled(1)
    touched.search(np.ones(8), k=1)
    found = replay.differences(record, KEY, touched.plan(20))
    assert {"before.digest", "context_digest"} <= set(found)


def test_every_lie_at_the_time_of_writing_is_caught_where_the_inputs_are_held():
    caught = 0
    for seed in range(30):
        rng = random.Random(seed)
        plan = filled(seed).plan(20)
        truth, victims = recorded(plan), plan.victims.tolist()
        innocent = rng.choice([i for i in plan.view.ids.tolist() if i not in victims])
        swapped = [*victims[1:], innocent]
        lies = {
            "kind": replace(truth, kind="erase"),
            "policy": replace(truth, policy={"name": "lru", "configuration": {}}),
            "budget": replace(truth, budget={"entries": 19}),
            "before": replace(truth, before=truth.before._replace(entries=99)),
            "before.digest": replace(truth, before=truth.before._replace(digest="0" * 64)),
            "after": replace(truth, after=truth.after._replace(cost=1)),
            "context_digest": replace(truth, context_digest=None),
            "evicted_count": replace(truth, evicted_count=truth.evicted_count - 1),
            "evicted_commitment": replace(
                truth, evicted_commitment=evicted_commitment(KEY, swapped)
            ),
            "spared": replace(truth, spared=1),
            "forced": replace(truth, forced=not truth.forced),
        }
        unread = replace(truth, before=truth.before._replace(digest=None))
        assert replay.differences(unread, KEY, plan) == ["before.digest"]
        for name, lie in lies.items():
            assert replay.differences(lie, KEY, plan) == [name]
            assert not confirms(lie, KEY, plan)
            caught += 1
    assert caught == 330


def test_spared_victims_are_told_by_who_knows_them():
    plan = filled(3).plan(20)
    spared = plan.victims[[2, 5]]
    record = recorded(plan, spared.tolist())
    assert confirms(record, KEY, plan, spared)
    assert not confirms(record, KEY, plan)
    assert not confirms(record, KEY, plan, plan.victims[[2, 6]])
    stranger = int(plan.view.ids[plan.keep][0])
    assert "spared ids" in replay.differences(record, KEY, plan, [int(spared[0]), stranger])


def test_a_stranger_s_policy_goes_by_its_name():
    class Oldest:
        name = "oldest"

        def select_survivors(self, view, target_size, context_window=None):
            return np.arange(len(view))[len(view) - target_size :]

    plan = filled(4).plan(20, policy=Oldest())
    record = recorded(plan)
    assert record.policy == {"name": "oldest", "configuration": {}}
    assert confirms(record, KEY, plan)


def test_a_proof_shows_who_was_evicted():
    plan = filled(5).plan(20)
    record, victims = recorded(plan), plan.victims.tolist()
    root, count = record.evicted_commitment, record.evicted_count
    for id_ in victims:
        assert commitment.check(root, count, KEY, id_, commitment.proof(KEY, victims, id_))
    survivor = int(plan.view.ids[plan.keep][0])
    forged = commitment.proof(KEY, [*victims, survivor], survivor)
    assert not commitment.check(root, count, KEY, survivor, forged)


def test_a_record_holds_no_vector_text_metadata_or_id():
    store = filled(6)
    # Ids above all counts, so that one in a record could not be taken for a number of entries.
    plan = store.plan(20)
    record = recorded(plan)
    bodies = {"real": record.body()}
    vectors = [entry.vector for entry in store.get(plan.victims) if entry is not None]
    queries = list(plan.view.context)
    needles: set[bytes] = {CANARY.encode(), CANARY[7:].encode(), plan.digest.encode()}
    for row in [*vectors, *queries]:
        raw = np.ascontiguousarray(row, dtype=np.float32).tobytes()
        needles |= {raw, raw.hex().encode(), base64.b64encode(raw), repr(row.tolist()).encode()}
        needles |= {hashlib.sha256(raw).hexdigest().encode(), f"{row[0]:.6f}".encode()}
    window = plan.view.context.tobytes()
    needles.add(hashlib.sha256(window).hexdigest().encode())
    for id_ in plan.view.ids.tolist():
        for spelt in (str(id_).encode(), id_.to_bytes(8, "little"), id_.to_bytes(8, "big")):
            for hashed in (
                hashlib.sha256(spelt),
                hashlib.sha256(b"\x00" + spelt),
                hashlib.md5(spelt, usedforsecurity=False),
                hmac.new(b"", spelt, hashlib.sha256),
                hmac.new(b"s", spelt, hashlib.sha256),
            ):
                needles.add(hashed.hexdigest().encode())
    victims = plan.victims.tolist()
    for ids in (victims, victims[:1]):
        needles.add(repr(ids).replace(" ", "")[1:-1].encode() if len(ids) > 1 else b"[%d]" % ids[0])
        needles.add(evicted_commitment(bytes(32), ids).encode())
    # The scanner finds what is there: in a body that leaks, and the seal in the real one.
    bodies["leak"] = record.body().replace(b'"policy":', b'"policy":"' + CANARY.encode() + b'",')
    assert any(n in bodies["leak"] for n in needles)
    assert commitment.sealed(KEY, plan.digest).encode() in bodies["real"]
    found = [n for n in needles if n in bodies["real"]]
    assert found == []
    assert len(needles) > 1000
