"""What every policy must hold."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar
from unittest import SkipTest

import numpy as np
import numpy.typing as npt

from memsift.policies import CompactionPolicy, ScoredPolicy, from_dict, parse, to_text
from memsift.policies.registry import POLICIES
from memsift.store import MemoryStore
from memsift.view import COLUMNS, MemoryView

DIM = 8
Columns = dict[str, npt.NDArray[Any]]


def columns(n: int, seed: int = 0) -> Columns:
    """Columns of n entries of a memory in use: `vectors` (n, 8), `ids`, ticks, counts and the rest, each (n,).

    Most entries were never returned, some share their ticks, and ids have gaps.
    """
    rng = np.random.default_rng(seed)
    created = np.sort(rng.integers(1, 2 * n + 2, n))
    count = np.where(rng.random(n) < 0.6, 0, rng.integers(0, 9, n))
    accessed = np.where(count > 0, created + rng.integers(0, n + 1, n), created)
    return {
        "vectors": rng.normal(size=(n, DIM)),
        "ids": np.cumsum(rng.integers(1, 4, n)),
        "created_tick": created,
        "accessed_tick": accessed,
        "created_at": 1.7e9 + 60.0 * created,
        "accessed_at": 1.7e9 + 60.0 * accessed,
        "access_count": count,
        "use_count": count // 2,
        "cost": rng.integers(0, 50, n),
        "nbytes": rng.integers(100, 900, n),
        "importance": np.where(rng.random(n) < 0.5, np.nan, rng.random(n)),
    }


def queries(count: int, seed: int = 100) -> npt.NDArray[np.float64]:
    """A window of queries: (count, 8)."""
    return np.random.default_rng(seed).normal(size=(count, DIM))


def view_of(entries: Columns, context: npt.ArrayLike | None = None, **changes: Any) -> MemoryView:
    """The view of some columns, a few of them replaced."""
    window = queries(5) if context is None else context
    arrays = {**entries, **changes}
    return MemoryView.from_arrays(arrays.pop("vectors"), context=window, now=1.8e9, **arrays)


class PolicyTests:
    """Inherit, and name the policy.

    Attributes
    ----------
    policy : CompactionPolicy
    nested : bool
        Who survives a smaller target also survives a larger one. A policy that keeps the highest scores is nested.
        False for one that weighs entries against each other, such as for diversity.
    ties_by_rule : bool
        Among entries that it cannot tell apart, the later accessed stays, then the higher id. False for a policy that
        can tell all entries apart, such as by lot.
    """

    policy: ClassVar[CompactionPolicy]
    nested: ClassVar[bool] = True
    ties_by_rule: ClassVar[bool] = True

    def select(self, view: MemoryView, target: int, context: Any = None) -> list[int]:
        """The rows that the policy keeps."""
        arguments = (view, target) if context is None else (view, target, context)
        return [int(row) for row in self.policy.select_survivors(*arguments)]

    def kept_ids(self, view: MemoryView, target: int, context: Any = None) -> set[int]:
        return set(view.ids[self.select(view, target, context)].tolist())

    # ---- what a choice is ------------------------------------------------------------------------------------

    def test_it_is_a_policy_and_its_name_is_a_short_text(self) -> None:
        assert isinstance(self.policy, CompactionPolicy)
        assert not isinstance(self.policy, type), "an instance is wanted, not the class"
        assert isinstance(self.policy.name, str)
        assert 0 < len(self.policy.name) <= 40
        assert self.policy.name.isprintable()

    def test_rows_are_integers_ascending_without_repeats_and_in_range(self) -> None:
        for n in (1, 2, 3, 50, 700):
            view = view_of(columns(n, seed=n))
            for target in {1, n // 3, n // 2, n - 1, n}:
                rows = np.asarray(self.policy.select_survivors(view, target))
                assert rows.ndim == 1
                assert rows.dtype.kind == "i", f"rows must be integers; got {rows.dtype}"
                assert (np.diff(rows) > 0).all(), "rows must ascend without repeats"
                assert not rows.size or (rows[0] >= 0 and rows[-1] < n)

    def test_exactly_the_target_survives(self) -> None:
        view = view_of(columns(60))
        for target in range(61):
            assert len(self.select(view, target)) == target

    def test_a_target_of_nothing_keeps_nothing(self) -> None:
        rows = np.asarray(self.policy.select_survivors(view_of(columns(9)), 0))
        assert rows.shape == (0,)
        assert rows.dtype.kind == "i"

    def test_a_target_of_all_or_more_keeps_all(self) -> None:
        view = view_of(columns(9))
        for target in (9, 10, 2**40):
            assert self.select(view, target) == list(range(9))

    def test_an_empty_memory_has_no_survivors(self) -> None:
        for context in (queries(5), queries(0)):
            view = view_of(columns(0), context)
            for target in (0, 1, 7):
                assert self.select(view, target) == []

    def test_a_single_entry_survives_any_target_but_nothing(self) -> None:
        view = view_of(columns(1))
        assert self.select(view, 0) == []
        assert self.select(view, 1) == [0]

    # ---- what a choice depends on ----------------------------------------------------------------------------

    def test_the_view_is_left_as_it_was(self) -> None:
        view = view_of(columns(50))
        names = (*COLUMNS, "vectors", "context")
        before = [view.digest(), *(getattr(view, name).tobytes() for name in names)]
        self.select(view, 20)
        self.select(view, 20, queries(3, seed=1))
        assert [view.digest(), *(getattr(view, name).tobytes() for name in names)] == before

    def test_the_same_question_has_the_same_answer(self) -> None:
        first, again = view_of(columns(80)), view_of(columns(80))
        wanted = self.select(first, 30)
        self.select(view_of(columns(40, seed=1)), 7)
        assert self.select(first, 30) == wanted
        assert self.select(again, 30) == wanted

    def test_slots_do_not_matter(self) -> None:
        """The same entries in another order have the same survivors."""
        entries = columns(120)
        for seed in range(3):
            order = np.random.default_rng(seed).permutation(120)
            moved = {name: column[order] for name, column in entries.items()}
            for target in (1, 40, 100):
                kept = self.kept_ids(view_of(entries), target)
                assert self.kept_ids(view_of(moved), target) == kept

    def test_survivors_of_a_smaller_target_survive_a_larger_one(self) -> None:
        if not self.nested:
            raise SkipTest("this policy weighs entries against each other")
        view = view_of(columns(60))
        kept = [set(self.select(view, target)) for target in range(61)]
        for smaller, larger in pairwise(kept):
            assert smaller <= larger

    def test_an_explicit_context_replaces_the_view_s(self) -> None:
        entries, other = columns(80), queries(4, seed=7)
        for target in (1, 30):
            wanted = self.select(view_of(entries, other), target)
            assert self.select(view_of(entries), target, other) == wanted
            assert self.select(view_of(entries, queries(0)), target, other) == wanted

    def test_a_memory_that_was_asked_nothing_can_be_compacted(self) -> None:
        entries, nothing = columns(80), queries(0)
        kept = self.select(view_of(entries, nothing), 30)
        assert len(kept) == 30
        assert self.select(view_of(entries), 30, nothing) == kept

    # ---- ties ------------------------------------------------------------------------------------------------

    def test_of_entries_that_differ_in_nothing_the_highest_ids_stay(self) -> None:
        self._ties_are_ruled()
        ids = np.random.default_rng(0).permutation(40) * 3
        alike = {name: np.repeat(column[:1], 40, axis=0) for name, column in columns(1).items()}
        view = view_of(alike, ids=ids)
        for target in (1, 13, 39):
            assert self.kept_ids(view, target) == set(sorted(ids.tolist())[-target:])

    def test_of_entries_that_differ_in_their_last_access_the_latest_stay(self) -> None:
        """The latest access first, then the higher id: ids fall here while ticks rise, two entries to a tick."""
        self._ties_are_ruled()
        alike = {name: np.repeat(column[:1], 40, axis=0) for name, column in columns(1).items()}
        ticks, ids = 100 + np.arange(40) // 2, np.arange(40)[::-1]
        view = view_of(alike, ids=ids, accessed_tick=ticks)
        rule = sorted(range(40), key=lambda row: (ticks[row], ids[row]), reverse=True)
        for target in (1, 2, 13, 39):
            assert set(self.select(view, target)) == set(rule[:target])

    def _ties_are_ruled(self) -> None:
        if not self.ties_by_rule:
            raise SkipTest("this policy can tell all entries apart")

    # ---- extremes --------------------------------------------------------------------------------------------

    def test_columns_at_their_limits_do_no_harm(self) -> None:
        full, late = np.full(12, 2**63 - 1), np.full(12, 2**62)
        mixed = np.arange(12) % 2
        extremes: list[Columns] = [
            {"access_count": full, "use_count": full},
            {"access_count": mixed * full, "use_count": mixed * full},
            {"created_tick": late, "accessed_tick": late},
            {"created_tick": mixed * late, "accessed_tick": late + np.arange(12)},
            {"created_at": np.full(12, -1e11), "accessed_at": np.full(12, 1e11)},
            {"cost": np.full(12, 2**40), "nbytes": np.full(12, 2**40)},
            {"importance": np.full(12, np.nan)},
            {"importance": np.zeros(12)},
            {"ids": 2**63 - 1 - np.arange(12)},
        ]
        for changes in extremes:
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                rows = self.select(view_of(columns(12), **changes), 5)
            assert len(set(rows)) == 5, f"with {', '.join(changes)} at their limits"

    def test_vectors_that_all_point_one_way_do_no_harm(self) -> None:
        one = np.ones((30, DIM))
        for context in (one[:3], -one[:3]):
            view = view_of(columns(30), context, vectors=one)
            assert len(self.select(view, 11)) == 11

    # ---- within a store --------------------------------------------------------------------------------------

    def test_a_store_with_it_holds_its_budget(self) -> None:
        store = MemoryStore(DIM, budget=20, policy=self.policy)
        for i, vector in enumerate(columns(90)["vectors"]):
            store.add(vector, pinned=i < 3)
            assert len(store) <= 20
            if i % 4 == 0:
                store.search(vector + 0.3, k=2)
        assert store.holds([0, 1, 2]).all(), "pinned entries stay"

    # ---- a policy that gives scores --------------------------------------------------------------------------

    def test_scores_are_finite_float32_one_for_each_entry(self) -> None:
        policy = self._scored()
        for n in (0, 1, 50):
            for context in (queries(5), queries(0)):
                view = view_of(columns(n), context)
                for term in policy.terms(view):
                    assert isinstance(term.name, str)
                    assert np.isfinite(term.weight)
                    assert term.values.shape == (n,)
                    assert term.values.dtype == np.float32
                    assert np.isfinite(term.values).all()

    def test_exact_scores_agree_with_the_quick_ones(self) -> None:
        """Exact keys of any rows rank as the float32 scores do, wherever these differ clearly."""
        policy = self._scored()
        for context in (queries(5), queries(0)):
            view = view_of(columns(50), context)
            rows = np.random.default_rng(0).permutation(50)[:30]
            scores = np.zeros(50)
            for term in policy.terms(view):
                scores += term.weight * term.values.astype(np.float64)
            scores = scores[rows]
            keys = policy.exact(view, rows)
            assert keys.shape == (30,)
            clearly = scores[:, None] > scores + 1e-4 * policy.scale
            assert (keys[:, None] > keys)[clearly].all()

    def test_name_and_configuration_give_the_policy_back(self) -> None:
        policy = self._scored()
        written = policy.to_dict()
        read = json.loads(json.dumps(written, allow_nan=False))
        assert read == written
        assert read["name"] == policy.name
        assert type(policy).from_configuration(read["configuration"]) == policy
        if policy.name in POLICIES:
            assert from_dict(read) == policy

    def test_its_short_text_gives_the_policy_back(self) -> None:
        policy = self._scored()
        if policy.name not in POLICIES:
            raise SkipTest("this policy is not registered, so no text can name it")
        assert parse(to_text(policy)) == policy

    def test_its_label_is_one_line_and_stable(self) -> None:
        policy = self._scored()
        assert repr(policy) == repr(replace(policy))
        assert repr(policy).isprintable()
        assert " at 0x" not in repr(policy), "an address in memory is no label"

    def test_it_is_a_frozen_value(self) -> None:
        policy = self._scored()
        assert policy == replace(policy)
        assert hash(policy) == hash(replace(policy))
        try:
            policy.name = "changed"  # type: ignore[misc]
        except AttributeError:
            return
        raise AssertionError("a policy must not be changed once it is made")

    def _scored(self) -> ScoredPolicy:
        if not isinstance(self.policy, ScoredPolicy):
            raise SkipTest("this policy gives no scores")
        return self.policy
