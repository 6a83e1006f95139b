"""A store in a file beside one in RAM that gets the same calls: same hits, same victims, same state, also reopened."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crash.state import differences, dump, live
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import model as m
from memsift import Budget, CoherencePolicy, FifoPolicy, LfuPolicy, LruPolicy, MemoryStore
from memsift.errors import BudgetExceeded, MemsiftError, UnknownEntry

DIM = 4
POLICIES = [
    LruPolicy(),
    LfuPolicy(),
    FifoPolicy(),
    CoherencePolicy(),
    CoherencePolicy(alpha=0.0, beta=0.25, gamma=0.75, window=25),
]
draws = st.integers(0, 99)
notes = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {}, optional={"kind": st.sampled_from(["fact", "plan"]), "n": st.integers(0, 4)}
    ),
    st.just({"note": "é\n\u2028" * 20, "deep": [{"a": [1.5, None, True]}]}),
)
newcomers = st.fixed_dictionaries(
    {
        "vector": draws,
        "metadata": notes,
        "cost": st.integers(0, 6),
        "importance": st.sampled_from([None, 0.0, 0.25, 1.0]),
        "pinned": st.sampled_from([False] * 9 + [True]),
    }
)
limits = st.one_of(
    st.fixed_dictionaries({"entries": st.integers(1, 12)}),
    st.fixed_dictionaries({"bytes": st.integers(800, 3000)}),
    st.fixed_dictionaries({"entries": st.integers(3, 12), "cost": st.integers(8, 40)}),
    st.just({}),
)


class DurableRules(RuleBasedStateMachine):
    """`store` is the one under test, `other` a second handle on its file, `twin` the same memory in RAM."""

    @initialize(
        budget=limits,
        policy=st.sampled_from(POLICIES),
        low=st.sampled_from([0.97, 1.0, 0.5]),
        first=st.lists(newcomers, max_size=14),
    )
    def start(self, budget: Any, policy: Any, low: float, first: list[Any]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="memsift-rules-"))
        self.clock = m.Clock()
        self.grid = np.random.default_rng(3).normal(size=(12, DIM)).round(1)
        self.options: dict[str, Any] = {"budget": Budget(**budget), "policy": policy}
        self.options |= {"low_watermark": low, "clock": self.clock}
        self.twin = MemoryStore(DIM, **self.options)
        self.store = self.opened(archive=Budget())
        self.other = self.opened()
        self.add_many(first, False)

    def opened(self, **options: Any) -> Any:
        path = self.folder / "rules.memsift"
        quiet = {"touch_flush_seconds": 1000.0}
        return MemoryStore.open(path, DIM, **self.options, **quiet, **options)

    def teardown(self) -> None:
        for name in ("store", "other"):
            with contextlib.suppress(AttributeError, MemsiftError):
                getattr(self, name).close()
        shutil.rmtree(getattr(self, "folder", ""), ignore_errors=True)

    def both(self, elsewhere: bool, deed: Any) -> Any:
        """One call on the file, from this handle or the other one, and on the twin: same answer or same refusal."""
        if elsewhere:
            self.store.flush()
        try:
            wanted = deed(self.twin)
        except MemsiftError as error:
            with pytest.raises(type(error)):
                deed(self.other if elsewhere else self.store)
            return None
        found = deed(self.other if elsewhere else self.store)
        if elsewhere:
            self.other.flush()
        return found, wanted

    def an_id(self, draw: int) -> int:
        ids = self.twin.view().ids
        if draw % 10 == 0 or not len(ids):
            return draw % (self.twin._memory.next_id + 1)
        return int(np.sort(ids)[draw % len(ids)])

    @rule(seconds=st.sampled_from([0.5, 60.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(batch=st.lists(newcomers, max_size=30), elsewhere=st.booleans())
    def add_many(self, batch: list[Any], elsewhere: bool) -> None:
        rows = np.array([self.grid[b["vector"] % 12] for b in batch]).reshape(len(batch), DIM)
        names = ("metadata", "cost", "importance", "pinned")
        named = {name: [b[name] for b in batch] for name in names}
        found = self.both(elsewhere, lambda s: s.add_many(rows, **named).tolist())
        assert found is None or found[0] == found[1]

    @rule(item=newcomers, elsewhere=st.booleans())
    def add(self, item: Any, elsewhere: bool) -> None:
        named = {**item, "vector": self.grid[item["vector"] % 12]}
        found = self.both(elsewhere, lambda s: s.add(**named))
        assert found is None or found[0] == found[1]

    @rule(
        qs=st.lists(draws, min_size=1, max_size=4),
        k=st.integers(1, 15),
        touch=st.sampled_from([True, True, False, 0, 1]),
        where=st.sampled_from([None, {"kind": "fact"}]),
        elsewhere=st.booleans(),
    )
    def search(self, qs: list[int], k: int, touch: Any, where: Any, elsewhere: bool) -> None:
        queries = [self.grid[q % 12] for q in qs]
        named = {"k": k, "touch": touch, "where": where}
        found = self.both(elsewhere, lambda s: s.search_many(queries, **named))
        assert found[0] == found[1]

    @rule(ids=st.lists(draws, max_size=4), elsewhere=st.booleans())
    def feedback(self, ids: list[int], elsewhere: bool) -> None:
        chosen = [self.an_id(d) for d in ids]
        self.both(elsewhere, lambda s: s.feedback(chosen))

    @rule(ids=st.lists(draws, max_size=3), pinned=st.booleans(), elsewhere=st.booleans())
    def pin(self, ids: list[int], pinned: bool, elsewhere: bool) -> None:
        chosen = [self.an_id(d) for d in ids]
        self.both(elsewhere, lambda s: s.pin(chosen) if pinned else s.unpin(chosen))

    @rule(
        draw=draws,
        changes=st.fixed_dictionaries(
            {}, optional={"cost": st.integers(0, 9), "metadata": notes, "vector": draws}
        ),
        elsewhere=st.booleans(),
    )
    def update(self, draw: int, changes: Any, elsewhere: bool) -> None:
        if "vector" in changes:
            changes = {**changes, "vector": self.grid[changes["vector"] % 12]}
        id_ = self.an_id(draw)
        self.both(elsewhere, lambda s: s.update(id_, **changes))

    @rule(ids=st.lists(draws, max_size=4), elsewhere=st.booleans())
    def delete(self, ids: list[int], elsewhere: bool) -> None:
        chosen = [self.an_id(d) for d in ids]
        self.both(elsewhere, lambda s: s.delete(chosen))

    @rule(
        goal=st.one_of(st.none(), st.integers(0, 12), st.sampled_from([0.0, 0.3, 0.5, 1.0])),
        force=st.booleans(),
        elsewhere=st.booleans(),
    )
    def compact(self, goal: Any, force: bool, elsewhere: bool) -> None:
        records = len(self.store.audit)
        found = self.both(elsewhere, lambda s: s.compact(goal, force=force))
        assert len(self.store.audit) == records + (found is not None)
        if found:
            done, wanted = found
            assert done.dropped.tolist() == wanted.dropped.tolist()
            assert (done.before, done.after, done.forced) == (
                wanted.before,
                wanted.after,
                wanted.forced,
            )
            assert np.isin(done.dropped, self.store.archived()).all()
            assert done.audit_head == self.store.audit.head().hash

    @precondition(lambda self: self.store.archived().size)
    @rule(draws=st.lists(draws, min_size=1, max_size=4), elsewhere=st.booleans())
    def restore(self, draws: list[int], elsewhere: bool) -> None:
        resting = self.store.archived()
        ids = np.unique(resting[np.array(draws) % resting.size])
        self.store.flush()
        entries = self.store._archive.entries(ids)
        store = self.other if elsewhere else self.store
        before = self.twin._memory.counts["compactions"]
        saved = live(self.twin)
        try:
            self.twin._memory.restore(entries)
        except BudgetExceeded:
            with pytest.raises(BudgetExceeded):
                store.restore(ids)
            # A memory in RAM has no journal to be read again: put the newcomers out by hand.
            keep = ~np.isin(self.twin._memory.table.column("ids"), ids)
            self.twin._memory.table.remove(keep)
            assert differences(saved, live(self.twin)) == []
            return
        done = store.restore(ids)
        assert (done is not None) == (self.twin._memory.counts["compactions"] > before)
        for entry, row in zip(store.get(ids), entries.vectors, strict=True):
            assert entry.vector.tobytes() == row.tobytes()

    @rule(draws=st.lists(draws, max_size=3), elsewhere=st.booleans(), vacuum=st.booleans())
    def erase(self, draws: list[int], elsewhere: bool, vacuum: bool) -> None:
        known = np.sort(np.concatenate([self.twin.view().ids, self.store.archived()]))
        store = self.other if elsewhere else self.store
        self.store.flush()
        if not known.size:
            with pytest.raises(UnknownEntry):
                store.erase([0])
            return
        ids = np.unique(known[np.array(draws, int) % known.size])
        gone = [self.twin.get(ids), self.store._archive.entries(ids).vectors]
        vectors = [e.vector for e in gone[0] if e] + list(gone[1])
        receipt = store.erase(ids, vacuum=vacuum)
        assert receipt.ids.tolist() == ids.tolist()
        self.twin._memory.forget_queries(np.array(vectors, np.float32).reshape(-1, DIM))
        self.twin.delete([id_ for id_ in ids.tolist() if id_ in self.twin])

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.opened()
        before = dump(self.store)
        self.store.close()
        self.store = self.opened()
        assert differences(before, dump(self.store)) == []

    @rule()
    def verify(self) -> None:
        found = self.store.verify()
        assert found.ok, str(found)

    @rule()
    def look_from_the_other_side(self) -> None:
        self.store.flush()
        assert differences(dump(self.store), dump(self.other)) == []

    @rule(draw=draws, entries=st.integers(1, 20))
    def another_budget(self, draw: int, entries: int) -> None:
        """Refused with nothing changed, or true at once for every handle."""
        budget = Budget(entries=entries)
        self.store.close()
        before = dump(self.other)
        try:
            self.twin._memory.budget, was = budget, self.twin._memory.budget
            self.twin._memory.hold_budget()
        except BudgetExceeded:
            self.twin._memory.budget = was
            self.options["budget"] = budget
            with pytest.raises(BudgetExceeded):
                self.opened()
            self.options["budget"] = was
            self.store = self.opened()
            assert differences(before, dump(self.store)) == []
            return
        self.options["budget"] = budget
        self.store = self.opened()
        assert self.other.stats().entries <= entries
        assert self.other.budget == budget

    @invariant()
    def twins(self) -> None:
        if hasattr(self, "store"):
            assert differences(live(self.twin), live(self.store)) == []
            assert self.store.budget.fits(self.store.stats().size)


TestDurableRules = DurableRules.TestCase
TestDurableRules.settings = settings(
    max_examples=m.EXAMPLES,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
