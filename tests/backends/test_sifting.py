"""A sift on the reference source: what it leaves, what it writes, and going on after a stop."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from memsift import MemoryStore
from memsift.backends import RamSource, Sift, SourcePlan, planfile
from memsift.backends.chain import Chain
from memsift.backends.ids import audit_numbers
from memsift.backends.sifting import unfinished
from memsift.errors import CorruptStore, InvalidValue, StoreBusy
from memsift.policies import CoherencePolicy, LruPolicy
from memsift.testing.memories import queries, rows


class Stop(Exception):
    """Somebody pulls the plug."""


class Unsteady(RamSource):
    """Stops after so many calls of apply: `before` or after the rows are gone."""

    def __init__(self, entries, calls=10**9, before=True):
        super().__init__(entries)
        self.left, self.before, self.deleted = calls, before, []

    def apply(self, plan, archive=None):
        self.left -= 1
        if self.left < 0 and self.before:
            raise Stop
        done = super().apply(plan, archive)
        self.deleted += done.dropped
        if self.left < 0:
            raise Stop
        return done


def records(chain):
    with MemoryStore.open(chain, namespace="sift") as store:
        assert store.audit.verify().status == "unproven"
        assert store.audit.verify(store.audit.head()).status == "ok"
        assert store.verify().ok
        return [json.loads(body) for body in store.audit.bodies()]


def test_a_sift_leaves_what_its_plan_says_and_a_record_for_each_batch(tmp_path):
    entries = rows(60)
    source = RamSource(entries)
    plan = source.plan(CoherencePolicy(), 25, context=queries(3))
    seen = []
    sift = Sift.begin(source, plan, tmp_path / "chain.memsift", batch=10, context=queries(3))
    assert source.rows.keys() == {row.id for row in entries}, "nothing has happened yet"
    report = sift.run(seen.append)
    assert source.rows.keys() == {row.id for row in entries} - set(plan.ids)
    assert (report.dropped, report.spared) == (35, 0)
    assert sum(seen) == 35
    found = records(report.chain)
    assert [body["evicted_count"] for body in found] == [10, 10, 10, 5]
    assert [body["before"]["entries"] for body in found] == [60, 50, 40, 30]
    assert found[-1]["after"]["entries"] == 25
    assert all(body["policy"]["name"] == "coherence" for body in found)
    assert all(len(body["context_digest"]) == 64 for body in found)
    assert not unfinished(report.chain)
    assert (report.chain.stat().st_mode & 0o777) == 0o600


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("calls", range(4))
@pytest.mark.parametrize("ending", [None, ".memsift", ".rvf"])
def test_a_sift_that_was_stopped_goes_on(tmp_path, calls, before, ending):
    entries = rows(60)
    source = Unsteady(entries, calls, before)
    plan = source.plan(LruPolicy(), 25)
    chain = tmp_path / "chain.memsift"
    archive = None if ending is None else tmp_path / f"victims{ending}"
    with pytest.raises(Stop):
        Sift.begin(source, plan, chain, archive=archive, batch=10).run()
    assert unfinished(chain)
    with pytest.raises(InvalidValue, match="resume it"):
        Sift.begin(source, plan, chain)
    # Of the next victim that is still there, somebody makes use meanwhile.
    spared = next(id_ for id_ in plan.ids[10 * calls :] if id_ in source.rows or not before)
    spared_now = source.record_access([spared])
    source.left = 10**9
    report = Sift.resume(source, chain).run()
    gone = set(plan.ids) - ({spared} if spared_now else set())
    assert source.rows.keys() == {row.id for row in entries} - gone
    assert sorted(source.deleted) == sorted(gone), "none twice"
    assert (report.dropped, report.spared) == (len(gone), spared_now)
    assert sum(body["evicted_count"] for body in records(chain)) == len(gone)
    assert not unfinished(chain)
    if archive is not None:
        held = RamIds(archive).ids
        assert sorted(held) == sorted(gone), "the archive has each victim once"
        assert {p.name for p in tmp_path.iterdir()} == {"chain.memsift", archive.name}


class RamIds:
    """The source's ids that an archive holds, with their vectors."""

    def __init__(self, archive):
        store = (
            MemoryStore.load_rvf(archive) if archive.suffix == ".rvf" else MemoryStore.open(archive)
        )
        with store:
            held = store.get(store.view().ids)
            self.ids = [entry.metadata["id"] for entry in held]
            self.vectors = {entry.metadata["id"]: entry.vector for entry in held}


def test_an_archive_holds_the_vectors_and_what_was_counted(tmp_path):
    entries = {row.id: row for row in rows(20)}
    source = RamSource(entries.values())
    plan = source.plan(LruPolicy(), 8)
    Sift.begin(source, plan, tmp_path / "c.memsift", archive=tmp_path / "a.memsift").run()
    with MemoryStore.open(tmp_path / "a.memsift") as store:
        for entry in store.get(store.view().ids):
            row = entries[entry.metadata["id"]]
            vector = np.array(row.vector) / np.linalg.norm(row.vector)
            np.testing.assert_allclose(entry.vector, vector, atol=1e-6)
            assert entry.metadata["access_count"] == row.access_count
            assert entry.metadata["accessed_tick"] == row.accessed_tick
            assert entry.metadata["tenant"] == row.tenant
            assert entry.cost == row.cost


def test_an_entry_without_a_direction_can_be_archived(tmp_path):
    entries = [replace(row, vector=[0.0] * 8, pinned=False) for row in rows(6)]
    source = RamSource(entries)
    plan = source.plan(CoherencePolicy(), 2, context=queries(2))
    Sift.begin(source, plan, tmp_path / "c.memsift", archive=tmp_path / "a.memsift").run()
    with MemoryStore.open(tmp_path / "a.memsift") as store:
        assert len(store) == 4
        assert all(entry.metadata["no_vector"] for entry in store.get(store.view().ids))


class TheirPolicy(LruPolicy):
    """A policy of somebody else's, which no registry knows."""

    name = "theirs"


class Plain:
    """A policy that gives no scores."""

    name = "plain"
    needs = frozenset()

    def select_survivors(self, view, target_size, context_window=None):
        return np.arange(min(target_size, len(view)))


@pytest.mark.parametrize("policy", [TheirPolicy(), Plain()])
def test_a_stranger_s_policy_is_written_down_by_its_name(tmp_path, policy):
    source = RamSource([replace(row, pinned=False) for row in rows(20)])
    plan = source.plan(policy, 12)
    Sift.begin(source, plan, tmp_path / "c.memsift", batch=5)
    report = Sift.resume(source, tmp_path / "c.memsift").run()
    assert report.dropped == 8
    assert {body["policy"]["name"] for body in records(report.chain)} == {policy.name}


def test_who_comes_back_just_as_he_was_can_leave_again(tmp_path):
    """Two plans that decide the same are two plans: the chain takes neither for the other."""
    chain = tmp_path / "c.memsift"
    for _ in range(2):
        source = RamSource(rows(30))
        plan = source.plan(LruPolicy(), 20)
        assert Sift.begin(source, plan, chain).run().dropped == 10
        assert len(source.rows) == 20
    assert len(records(chain)) == 2


def test_what_somebody_else_deleted_is_no_victim_of_ours(tmp_path):
    source = RamSource(rows(30))
    plan = source.plan(LruPolicy(), 20)
    sift = Sift.begin(source, plan, tmp_path / "c.memsift")
    del source.rows[plan.ids[0]]
    assert sift.run().dropped == 9
    assert records(tmp_path / "c.memsift")[0]["note"]["absent"] == 1


def test_a_plan_with_no_victims_leaves_no_record(tmp_path):
    source = RamSource(rows(5))
    report = Sift.begin(source, source.plan(LruPolicy(), 5), tmp_path / "c.memsift").run()
    assert (report.dropped, report.audit_head) == (0, None)
    assert records(report.chain) == []
    assert not unfinished(report.chain)


def test_two_processes_do_not_carry_out_one_sift(tmp_path):
    """The second one looked at the chain, then the first was faster with its batch."""
    source, chain = RamSource(rows(40)), tmp_path / "c.memsift"
    sift = Sift.begin(source, source.plan(LruPolicy(), 10), chain, batch=5)

    def meanwhile(_):
        book = Chain(chain)
        book.append(sift.plan, 0, source.apply(sift.plan.part(0, 5)), None)
        book.close()

    with pytest.raises(StoreBusy, match="another process"):
        sift.run(meanwhile)
    assert [body["note"]["batch"] for body in records(chain)] == [0]
    assert Sift.resume(source, chain).run().dropped == 30
    assert [body["note"]["batch"] for body in records(chain)] == list(range(6))


def test_a_sift_goes_on_with_its_own_source_only(tmp_path):
    source = RamSource(rows(10))
    Sift.begin(source, source.plan(LruPolicy(), 5), tmp_path / "c.memsift")
    other = RamSource(rows(10))
    other.name = "another table"
    with pytest.raises(InvalidValue, match="rows in RAM"):
        Sift.resume(other, tmp_path / "c.memsift")
    with pytest.raises(InvalidValue, match="has none"):
        Sift.resume(source, tmp_path / "d.memsift")


def test_a_plan_file_gives_the_plan_back_and_a_changed_one_is_refused(tmp_path):
    source = RamSource(rows(30))
    plan = source.plan(CoherencePolicy(gamma=0.7), 10, by_tenant=True, context=queries(2))
    path = tmp_path / "plan"
    planfile.write(path, plan, {"batch": 7})
    read, about = planfile.read(path)
    assert isinstance(read, SourcePlan)
    assert about == {"batch": 7}
    for name in ("source", "policy", "keep", "shares", "ids", "marks", "tenants", "id", "nonce"):
        assert getattr(read, name) == getattr(plan, name)
    text = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(200):
        mutant = bytearray(text)
        mutant[rng.integers(len(text))] ^= 1 << int(rng.integers(8))
        path.write_bytes(mutant)
        try:
            again, also = planfile.read(path)
        except CorruptStore:
            continue
        # What is not of the plan itself, or only spelt otherwise.
        assert also != about or again.id == plan.id
    for cut in (0, 1, 50, len(text) // 2, len(text) - 2):
        path.write_bytes(text[:cut])
        with pytest.raises(CorruptStore):
            planfile.read(path)


def test_numbers_in_the_audit_differ_and_integers_stand_for_themselves():
    assert audit_numbers([5, 3]).tolist() == [3, 5]
    assert len(set(audit_numbers(["a", "b", "c"]).tolist())) == 3
    assert audit_numbers(["a", "b"]).tolist() == audit_numbers(["b", "a"]).tolist()


@pytest.mark.parametrize("path", ["a.txt", "a", "a.memsift.gz"])
def test_an_archive_has_a_known_ending(tmp_path, path):
    source = RamSource(rows(5))
    with pytest.raises(InvalidValue, match=r"\.memsift or \.rvf"):
        Sift.begin(source, source.plan(LruPolicy(), 2), tmp_path / "c", archive=tmp_path / path)
