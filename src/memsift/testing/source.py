"""What every source must hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar
from unittest import SkipTest
from uuid import UUID

import numpy as np

from memsift.backends import Scanned, Source
from memsift.backends.ids import Id, key_of
from memsift.backends.ram import Row
from memsift.budget import share_of
from memsift.errors import BudgetExceeded, InvalidValue
from memsift.policies import CoherencePolicy, FifoPolicy, LfuPolicy, LruPolicy
from memsift.testing.memories import (
    DIM,
    HOSTILE,
    POLICIES,
    TENANTS,
    id_of,
    in_ram,
    queries,
    rows,
    unit,
)


class SourceTests:
    """Inherit, and say how to fill a source and how to look into it without it.

    Attributes
    ----------
    id_kinds : tuple of type
        Ids that the source can have: int, str, UUID.
    provides : frozenset of str
        Columns that the source must provide.
    """

    id_kinds: ClassVar[tuple[type, ...]] = (int, str, UUID)
    provides: ClassVar[frozenset[str]] = frozenset(
        {"accessed_tick", "access_count", "cost", "pinned", "vectors"}
    )

    def source_of(self, entries: Sequence[Row]) -> Source:
        """A source that holds exactly these entries."""
        raise NotImplementedError("source_of(entries) must be defined")

    def ids_in(self, source: Source) -> set[Id]:
        """The ids that the system holds, asked without the source's own methods."""
        raise NotImplementedError("ids_in(source) must be defined")

    def change(self, source: Source, id_: Id, **changes: Any) -> None:
        """Change an entry behind the source's back: `pinned` or `vector`."""
        raise NotImplementedError("change(source, id_, **changes) must be defined")

    def rows(self, n: int, seed: int = 0) -> list[Row]:
        """Memories with ids of the first kind."""
        return rows(n, seed, partial(id_of, self.id_kinds[0]))

    # ---- scanning --------------------------------------------------------------------------------------------

    def test_it_is_a_source_and_says_what_it_provides(self) -> None:
        source = self.source_of(self.rows(3))
        assert isinstance(source, Source)
        assert source.name.isprintable()
        assert self.provides <= source.provides

    def test_a_scan_gives_every_entry_once_with_what_was_asked(self) -> None:
        entries = self.rows(57)
        found = _by_id(self.source_of(entries).scan(frozenset({"access_count", "cost"})))
        assert found.keys() == {row.id for row in entries}
        for row in entries:
            assert found[row.id]["access_count"] == row.access_count
            assert found[row.id]["cost"] == row.cost
            assert found[row.id]["pinned"] == row.pinned
            assert found[row.id]["tenant"] == row.tenant

    def test_vectors_are_read_only_if_somebody_looks_at_them(self) -> None:
        entries = self.rows(20)
        source = self.source_of(entries)
        for batch in source.scan(frozenset({"accessed_tick"})):
            assert "vectors" not in batch.columns
        found = _by_id(source.scan(frozenset({"vectors"})))
        for row in entries:
            np.testing.assert_allclose(unit(found[row.id]["vectors"]), unit(row.vector), atol=1e-6)

    def test_later_accesses_have_higher_ticks(self) -> None:
        entries = self.rows(40)
        found = _by_id(self.source_of(entries).scan(frozenset({"accessed_tick"})))
        ours = np.array([row.accessed_tick for row in entries])
        theirs = np.array([int(found[row.id]["accessed_tick"]) for row in entries])
        assert (np.sign(ours[:, None] - ours) == np.sign(theirs[:, None] - theirs)).all()

    def test_an_empty_source_can_be_scanned_and_planned(self) -> None:
        source = self.source_of([])
        assert sum(map(len, source.scan(frozenset({"cost"})))) == 0
        assert len(source.plan(LruPolicy(), 5)) == 0
        assert len(source.plan(CoherencePolicy(), 5, by_tenant=True, context=queries(2))) == 0

    # ---- planning --------------------------------------------------------------------------------------------

    def test_victims_are_those_of_the_store_in_ram(self) -> None:
        for seed in range(3):
            entries = self.rows(70, seed)
            source = self.source_of(entries)
            for policy in POLICIES:
                for context in (None, queries(1), queries(5)):
                    for keep in (10, 35, 69):
                        wanted = in_ram(entries, policy, keep, context)
                        plan = source.plan(policy, keep, context=context)
                        assert set(plan.ids) == wanted, f"{policy}, {keep} of seed {seed}"
                        assert len(plan.ids) == len(wanted)

    def test_ids_of_every_kind_are_ordered_alike(self) -> None:
        """Entries that only their ids tell apart: the highest stay, texts by their bytes, UUIDs by theirs."""
        for kind in self.id_kinds:
            entries = [
                Row(id=id_of(kind, i), vector=[1.0] * DIM, created_tick=1, accessed_tick=1)
                for i in range(30)
            ]
            ordered = sorted((row.id for row in entries), key=key_of)
            source = self.source_of(entries)
            for policy in POLICIES:
                plan = source.plan(policy, 12, context=queries(2))
                assert sorted(plan.ids, key=key_of) == ordered[:18], f"{kind.__name__}, {policy}"

    def test_every_tenant_is_a_memory_of_its_own(self) -> None:
        entries = self.rows(90)
        source = self.source_of(entries)
        for policy in POLICIES:
            for keep in (6, 0.5):
                plan = source.plan(policy, keep, by_tenant=True, context=queries(3))
                wanted = set[Id]()
                for tenant in TENANTS:
                    own = [row for row in entries if row.tenant == tenant]
                    stay = keep if isinstance(keep, int) else share_of(len(own), keep)
                    wanted |= in_ram(own, policy, stay, queries(3))
                assert set(plan.ids) == wanted
                assert {s.tenant: s.held for s in plan.shares} == {
                    tenant: sum(row.tenant == tenant for row in entries) for tenant in TENANTS
                }
                of = {row.id: row.tenant for row in entries}
                assert plan.tenants == [of[id_] for id_ in plan.ids]

    def test_a_plan_changes_nothing(self) -> None:
        entries = self.rows(30)
        source = self.source_of(entries)
        before = _by_id(source.scan(self.provides))
        source.plan(CoherencePolicy(), 5, context=queries(3))
        after = _by_id(source.scan(self.provides))
        assert {i: r["mark"] for i, r in before.items()} == {i: r["mark"] for i, r in after.items()}
        assert self.ids_in(source) == {row.id for row in entries}

    def test_who_fits_stays(self) -> None:
        source = self.source_of(self.rows(20))
        for keep in (20, 21, 10**9, 1.0):
            plan = source.plan(LfuPolicy(), keep)
            assert len(plan) == 0
            assert plan.held == 20

    def test_a_share_is_rounded_up(self) -> None:
        entries = [replace(row, pinned=False) for row in self.rows(7)]
        assert len(self.source_of(entries).plan(LruPolicy(), 0.5)) == 3

    def test_a_plan_tells_why(self) -> None:
        source = self.source_of(self.rows(40))
        plan = source.plan(CoherencePolicy(), 10, context=queries(3))
        assert plan.reasons
        for reason in plan.reasons:
            parts = [signal["contribution"] for signal in reason["signals"].values()]
            assert list(reason["signals"]) == ["recency", "frequency", "coherence"]
            assert abs(sum(parts) - reason["score"]) < 1e-4
            assert reason["margin"] <= 0
        assert "keep 10" in str(plan)

    def test_pinned_entries_stay_and_must_fit(self) -> None:
        entries = [replace(row, pinned=i < 6) for i, row in enumerate(self.rows(20))]
        source = self.source_of(entries)
        for policy in POLICIES:
            plan = source.plan(policy, 6, context=queries(2))
            assert set(plan.ids) == {row.id for row in entries[6:]}
            _refused(BudgetExceeded, partial(source.plan, policy, 5))

    def test_what_makes_no_sense_is_refused(self) -> None:
        source = self.source_of(self.rows(5))
        wrong_ones: tuple[Any, ...] = (0, -1, 0.0, 1.5, float("nan"), True, "5")
        for keep in wrong_ones:
            _refused((ValueError, TypeError), partial(source.plan, LruPolicy(), keep))
        wrong = np.ones((2, DIM + 1))
        _refused(InvalidValue, lambda: source.plan(CoherencePolicy(), 2, context=wrong))

    def test_a_policy_that_needs_what_is_not_there_is_refused(self) -> None:
        class Demanding(FifoPolicy):
            needs: ClassVar[frozenset[str]] = frozenset({"typicality", "heat"})

        source = self.source_of(self.rows(5))
        error = _refused(InvalidValue, lambda: source.plan(Demanding(), 2))
        assert "heat, typicality" in str(error)

    # ---- applying --------------------------------------------------------------------------------------------

    def test_exactly_the_victims_go(self) -> None:
        for kind in self.id_kinds:
            entries = rows(60, ids=partial(id_of, kind))
            source = self.source_of(entries)
            plan = source.plan(CoherencePolicy(), 20, context=queries(3))
            done = source.apply(plan)
            assert sorted(done.dropped, key=key_of) == sorted(plan.ids, key=key_of)
            assert (done.spared, done.absent) == ([], [])
            assert self.ids_in(source) == {row.id for row in entries} - set(plan.ids)

    def test_a_plan_is_applied_part_by_part_and_nobody_goes_twice(self) -> None:
        entries = self.rows(50)
        source = self.source_of(entries)
        plan = source.plan(LruPolicy(), 15)
        for start in range(0, len(plan), 8):
            part = plan.part(start, start + 8)
            assert set(source.apply(part).dropped) == set(part.ids)
            again = source.apply(part)
            assert again.dropped == again.spared == []
            assert set(again.absent) == set(part.ids)
        assert len(self.ids_in(source)) == 15

    def test_what_was_touched_pinned_or_changed_since_is_spared(self) -> None:
        source = self.source_of(self.rows(40))
        plan = source.plan(LruPolicy(), 10)
        touched, pinned, changed = plan.ids[0], plan.ids[1], plan.ids[2]
        assert source.record_access([touched]) == 1
        self.change(source, pinned, pinned=True)
        self.change(source, changed, vector=[-1.0] * DIM)
        done = source.apply(plan)
        assert set(done.spared) == {touched, pinned, changed}
        assert set(done.dropped) == set(plan.ids[3:])
        assert {touched, pinned, changed} <= self.ids_in(source)

    def test_what_leaves_is_archived_before(self) -> None:
        entries = {row.id: row for row in self.rows(30)}
        source = self.source_of(list(entries.values()))
        plan = source.plan(LruPolicy(), 12)
        source.record_access(plan.ids[:1])
        kept = dict[Id, Any]()

        def archive(leaving: Scanned) -> None:
            assert set(leaving.ids) <= self.ids_in(source), "before, not after"
            kept.update(zip(leaving.ids, leaving.columns["vectors"], strict=True))

        done = source.apply(plan, archive)
        assert kept.keys() == set(done.dropped) == set(plan.ids[1:])
        for id_, vector in kept.items():
            np.testing.assert_allclose(unit(vector), unit(entries[id_].vector), atol=1e-6)

    def test_if_the_archive_fails_nothing_leaves(self) -> None:
        entries = self.rows(20)
        source = self.source_of(entries)
        plan = source.plan(LruPolicy(), 5)

        def full(_: Scanned) -> None:
            raise OSError("no space left")

        _refused(OSError, lambda: source.apply(plan, full))
        assert self.ids_in(source) == {row.id for row in entries}
        assert len(source.apply(plan).dropped) == len(plan), "and the plan still holds"

    def test_hostile_ids_are_only_ids(self) -> None:
        if str not in self.id_kinds:
            raise SkipTest("this source has no texts for ids")
        entries = [
            replace(row, id=id_, pinned=False)
            for row, id_ in zip(self.rows(99), HOSTILE, strict=False)
        ]
        source = self.source_of(entries)
        plan = source.plan(LruPolicy(), 2)
        assert source.record_access(["nobody' OR '1'='1"]) == 0
        assert set(source.apply(plan).dropped) == set(plan.ids)
        assert len(plan) == len(HOSTILE) - 2
        assert self.ids_in(source) == {row.id for row in entries} - set(plan.ids)

    # ---- counting accesses -----------------------------------------------------------------------------------

    def test_an_access_counts_and_is_the_latest(self) -> None:
        entries = self.rows(20)
        source = self.source_of(entries)
        ids = [entries[3].id, entries[7].id]
        before = _by_id(source.scan(frozenset({"accessed_tick", "access_count"})))
        unknown = id_of(type(ids[0]), 10_000)
        assert source.record_access([*ids, unknown]) == 2
        after = _by_id(source.scan(frozenset({"accessed_tick", "access_count"})))
        latest = max(row["accessed_tick"] for row in before.values())
        for row in entries:
            if row.id in ids:
                assert after[row.id]["access_count"] == before[row.id]["access_count"] + 1
                assert after[row.id]["accessed_tick"] > latest
            else:
                assert after[row.id] == before[row.id]
        assert source.record_access([]) == 0


def _by_id(batches: Iterator[Scanned]) -> dict[Id, dict[str, Any]]:
    out: dict[Id, dict[str, Any]] = {}
    for batch in batches:
        assert len(batch.ids) == len(batch.marks) == len(batch.tenants)
        for row, id_ in enumerate(batch.ids):
            assert id_ not in out, "an entry came twice"
            out[id_] = {name: column[row] for name, column in batch.columns.items()}
            out[id_] |= {"mark": batch.marks[row], "tenant": batch.tenants[row]}
    return out


def _refused(kind: Any, call: Callable[[], object]) -> BaseException:
    try:
        call()
    except kind as error:
        found: BaseException = error
        return found
    raise AssertionError(f"must be refused with {kind}")
