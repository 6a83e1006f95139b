"""An agent's memory beside a dict of texts: the same repeats, the same victims, the same answers, also reopened."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag import Bag, opened
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memsift import FifoPolicy
from memsift.errors import UnknownEntry

WORDS = ["cat", "dog", "house", "river", "red", "old", "went", "home", "7", "8"]
LEAST = 0.7777  # no two texts are so near to each other, give or take a little
words = st.sampled_from(WORDS)
# Near each other, or near a third one only: what a threshold and a batch can be wrong about.
alike = st.lists(words, max_size=2).map(
    lambda more: " ".join(["cat", "dog", "house", "river", *more])
)
texts = st.one_of(alike, st.lists(words, min_size=1, max_size=6).map(" ".join))
draws = st.integers(0, 99)


def unit(text: str) -> np.ndarray[Any, Any]:
    """A vector of its own making: as many places as there are words."""
    row = np.array([text.split().count(word) for word in WORDS], np.float64)
    return row / np.linalg.norm(row)


def digits(text: str) -> list[str]:
    return [word for word in text.split() if word.isdigit()]


class Words(Bag):
    """As the model sees it, so that no two words share a place."""

    def embed(self, texts: Any) -> Any:
        return np.array([unit(text) for text in texts]) @ np.eye(len(WORDS), self.dim)


class AgentRules(RuleBasedStateMachine):
    @initialize(budget=st.integers(2, 8))
    def start(self, budget: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="memsift-agent-"))
        self.budget, self.embedder = budget, Words(16)
        self.live: dict[int, str] = {}
        self.resting: dict[int, str] = {}
        self.pinned: set[int] = set()
        self.uses: dict[int, int] = {}
        self.next_id = 0
        self.open()

    def open(self) -> None:
        options = {"budget": self.budget, "policy": FifoPolicy(), "low_watermark": 1.0}
        options |= {"archive": 10_000, "embedder": self.embedder, "near_duplicate": LEAST}
        self.memory = opened(self.folder, **options)
        self.other = opened(self.folder, **options)

    def teardown(self) -> None:
        with contextlib.suppress(AttributeError):
            self.memory.close()
            self.other.close()
        shutil.rmtree(getattr(self, "folder", ""), ignore_errors=True)

    # ---- the model -------------------------------------------------------------------------------

    def twin(self, text: str) -> int | None:
        """The entry that says the same; equal texts first, then by cosine, older before younger."""
        equal = [id_ for id_, said in sorted(self.live.items()) if said == text]
        if equal:
            return equal[0]
        found = [
            (round(float(unit(text) @ unit(said)), 4), -id_)
            for id_, said in self.live.items()
            if digits(said) == digits(text)
        ]
        best = max(found, default=(0.0, 0))
        return -best[1] if best[0] >= LEAST else None

    def evict(self, count: int, but: tuple[int, ...] = ()) -> list[int]:
        free = [id_ for id_ in sorted(self.live) if id_ not in self.pinned and id_ not in but]
        for id_ in free[:count]:
            self.resting[id_] = self.live.pop(id_)
        return free[:count]

    def learn(self, text: str) -> tuple[int, bool, list[int]]:
        if (twin := self.twin(text)) is not None:
            return twin, False, []
        id_, self.next_id = self.next_id, self.next_id + 1
        self.live[id_], self.uses[id_] = text, 0
        return id_, True, self.evict(max(0, len(self.live) - self.budget), (id_,))

    def one(self, draw: int, among: Any) -> int:
        ids = sorted(among)
        return ids[draw % len(ids)] if ids else draw

    def either(self, elsewhere: bool) -> Any:
        return self.other if elsewhere else self.memory

    # ---- the rules -------------------------------------------------------------------------------

    @rule(text=texts, elsewhere=st.booleans())
    def remember(self, text: str, elsewhere: bool) -> None:
        found = self.either(elsewhere).remember(text)
        assert (found.id, found.added, list(found.evicted)) == self.learn(text)

    @rule(said=st.lists(texts, max_size=6), elsewhere=st.booleans())
    def remember_many(self, said: list[str], elsewhere: bool) -> None:
        # A batch looks for repeats before it makes room: one of an entry that leaves meanwhile is no addition.
        if len(self.live) + len(said) > self.budget:
            return
        found = self.either(elsewhere).remember_many(said)
        assert [(one.id, one.added) for one in found] == [self.learn(text)[:2] for text in said]

    @precondition(lambda self: self.live)
    @rule(text=texts, draw=draws)
    def supersede(self, text: str, draw: int) -> None:
        old = self.one(draw, self.live)
        found = self.memory.remember(text, supersedes=old)
        self.resting[old] = self.live.pop(old)
        assert (found.id, found.added) == self.learn(text)[:2]

    @rule(text=texts)
    def supersede_nothing(self, text: str) -> None:
        with pytest.raises(UnknownEntry):
            self.memory.remember(text, supersedes=self.next_id)

    @rule(text=texts, k=st.integers(1, 5), elsewhere=st.booleans(), archived=st.booleans())
    def recall(self, text: str, k: int, elsewhere: bool, archived: bool) -> None:
        found = self.either(elsewhere).recall(text, k, include_archived=archived)
        said = self.live | (self.resting if archived else {})
        scores = sorted((float(unit(text) @ unit(other)) for other in said.values()), reverse=True)
        assert [one.score for one in found] == pytest.approx(scores[:k], abs=1e-6)
        assert [one.text for one in found] == [said[one.id] for one in found]
        assert [one.score for one in found] == pytest.approx(
            [float(unit(text) @ unit(said[one.id])) for one in found], abs=1e-6
        )

    @rule(draw=draws, elsewhere=st.booleans())
    def feedback(self, draw: int, elsewhere: bool) -> None:
        id_ = self.one(draw, self.live)
        if id_ in self.live:
            self.either(elsewhere).feedback(id_)
            self.uses[id_] += 1

    @rule(draw=draws, pinned=st.booleans())
    def pin(self, draw: int, pinned: bool) -> None:
        id_ = self.one(draw, self.live)
        if id_ not in self.live:
            return
        if not pinned:
            self.memory.unpin(id_)
            self.pinned.discard(id_)
        elif len(self.pinned | {id_}) < self.budget - 1:
            self.memory.pin(id_)
            self.pinned.add(id_)

    @rule(draw=draws, elsewhere=st.booleans())
    def forget(self, draw: int, elsewhere: bool) -> None:
        id_ = self.one(draw, self.live)
        if id_ in self.live:
            self.either(elsewhere).forget(id_)
            del self.live[id_]
            self.pinned.discard(id_)

    @precondition(lambda self: self.resting)
    @rule(draw=draws, elsewhere=st.booleans())
    def restore(self, draw: int, elsewhere: bool) -> None:
        id_ = self.one(draw, self.resting)
        if id_ in self.pinned and len(self.pinned & {*self.live, id_}) >= self.budget - 1:
            return
        self.either(elsewhere).restore(id_)
        self.live[id_] = self.resting.pop(id_)
        self.evict(max(0, len(self.live) - self.budget), (id_,))

    @precondition(lambda self: self.resting or self.live)
    @rule(draw=draws)
    def erase(self, draw: int) -> None:
        id_ = self.one(draw, [*self.live, *self.resting])
        self.memory.erase(id_)
        self.live.pop(id_, None)
        self.resting.pop(id_, None)
        self.pinned.discard(id_)

    @precondition(lambda self: self.live)
    @rule(draw=draws, elsewhere=st.booleans())
    def compact(self, draw: int, elsewhere: bool) -> None:
        held = self.pinned & self.live.keys()
        target = max(1, len(held), draw % len(self.live))
        done = self.either(elsewhere).compact(target)
        assert done.dropped.tolist() == self.evict(len(self.live) - target)

    @rule(dim=st.sampled_from([10, 16, 32]))
    def reembed(self, dim: int) -> None:
        self.embedder = Words(dim)
        self.other.close()
        self.memory.reembed(self.embedder)
        self.memory.close()
        self.open()

    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self.other.close()
        self.open()

    # ---- what must always be true ----------------------------------------------------------------

    @invariant()
    def both_hold_what_the_model_holds(self) -> None:
        if not hasattr(self, "memory"):
            return
        for memory in (self.memory, self.other):
            ids = range(self.next_id + 1)
            found = {one.id: one for one in memory.get(ids) if one}
            assert {i: one.text for i, one in found.items() if not one.archived} == self.live
            assert {i: one.text for i, one in found.items() if one.archived} == self.resting
            assert {i for i, one in found.items() if one.pinned} == self.pinned & found.keys()
            assert {i: one.use_count for i, one in found.items()} == {
                i: self.uses[i] for i in found
            }
            assert len(memory) == len(self.live) <= self.budget
            assert memory.store.texts.count() == len(found)

    @precondition(lambda self: hasattr(self, "memory"))
    @rule()
    def nothing_is_wrong(self) -> None:
        assert self.memory.store.verify().ok


AgentRules.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestAgentRules = AgentRules.TestCase
