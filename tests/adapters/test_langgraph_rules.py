"""The LangGraph store beside LangGraph's own `InMemoryStore`: the same calls, the same answers."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="the extra langgraph is not installed")

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph_kit import Model, embed, index

from memsift.adapters.langgraph import MemsiftStore

labels = st.sampled_from(["a", "b", "*", "ä", "c c"])
namespaces = st.lists(labels, min_size=1, max_size=3).map(tuple)
prefixes = st.lists(labels, max_size=2).map(tuple)
keys = st.sampled_from(["k", "l", "", "a.b", "\0", "\ud800", "🙂"])
words = st.sampled_from(["tea", "rain", "a long walk", "\0nul", "ünder"])
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, -1.25]) | words
# Each field says something that no other field says, as InMemoryStore demands within one item.
values_ = st.fixed_dictionaries(
    {},
    optional={
        "text": words.map("text {}".format),
        "more": words.map("more {}".format),
        "tags": st.lists(words.map("tag {}".format), max_size=3, unique=True),
        "n": st.integers(-3, 3) | st.sampled_from([0.5, 2.5]),
        "flag": st.booleans(),
        "in": st.fixed_dictionaries(
            {}, optional={"x": scalars, "y": st.lists(scalars, max_size=2)}
        ),
    },
)
orders = st.sampled_from(["$gt", "$gte", "$lt", "$lte"])
conditions = (
    scalars
    | st.dictionaries(st.sampled_from(["$eq", "$ne"]), scalars, min_size=1, max_size=2)
    | st.fixed_dictionaries({"x": scalars})
    | st.fixed_dictionaries({"x": st.fixed_dictionaries({"$ne": scalars})})
    | st.fixed_dictionaries({"y": st.lists(scalars, max_size=2)})
)
filters = (
    st.none()
    | st.dictionaries(st.sampled_from(["text", "n", "flag", "in", "none"]), conditions, max_size=2)
    # What has no number is sorted out first, where InMemoryStore would raise.
    | st.dictionaries(orders, st.integers(-3, 3), min_size=1, max_size=2).map(
        lambda order: {"n": {"$ne": None} | order}
    )
)
indexing = st.sampled_from([None, None, None, False, ["more"], ["in.x", "text"]])


def told(item: Any) -> Any:
    return None if item is None else (item.namespace, item.key, item.value)


class Beside(RuleBasedStateMachine):
    """Two handles on one file, as two processes would have it, and a model in RAM."""

    indexed = True

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        config = index() if self.indexed else None
        self.model = Model(index=config)
        self.two = [MemsiftStore(self.folder / "a.memsift", index=config) for _ in range(2)]

    def teardown(self) -> None:
        for store in self.two:
            store.close()
        shutil.rmtree(self.folder)

    @rule(
        which=st.integers(0, 1),
        ops=st.lists(
            st.tuples(namespaces, keys, st.none() | values_, indexing), min_size=1, max_size=4
        ),
    )
    def put(self, which: int, ops: Any) -> None:
        if not self.indexed:
            ops = [(namespace, key, value, None) for namespace, key, value, _ in ops]
        batch = [PutOp(namespace, key, value, paths) for namespace, key, value, paths in ops]
        assert self.two[which].batch(batch) == [None] * len(batch)
        self.model.batch(batch)

    @rule(
        which=st.integers(0, 1), names=st.lists(st.tuples(namespaces, keys), min_size=1, max_size=3)
    )
    def get(self, which: int, names: Any) -> None:
        ops = [GetOp(namespace, key) for namespace, key in names]
        ours, theirs = self.two[which].batch(ops), self.model.batch(ops)
        assert list(map(told, ours)) == list(map(told, theirs))

    @rule(
        which=st.integers(0, 1),
        prefix=prefixes,
        filter_=filters,
        limit=st.integers(0, 4),
        offset=st.integers(0, 3),
        query=st.none() | words,
    )
    def search(
        self, which: int, prefix: Any, filter_: Any, limit: int, offset: int, query: Any
    ) -> None:
        whole = SearchOp(prefix, filter_, 1000, 0, query)
        ours, theirs = self.two[which].batch([whole])[0], self.model.batch([whole])[0]
        scored = [item for item in theirs if item.score is not None]
        assert [told(item) for item in ours[: len(scored)]] == [told(item) for item in scored]
        for one, other in zip(ours, scored, strict=False):
            assert one.score == pytest.approx(other.score, abs=1e-6)
        rest = [told(item) for item in theirs if item.score is None]
        assert sorted(map(repr, map(told, ours[len(scored) :]))) == sorted(map(repr, rest))
        # A page is a piece of the whole. (InMemoryStore shows the same un-indexed items on every page.)
        page = self.two[which].batch([SearchOp(prefix, filter_, limit, offset, query)])[0]
        assert [told(item) for item in page] == [told(i) for i in ours[offset : offset + limit]]

    @rule(
        which=st.integers(0, 1),
        wanted=st.lists(st.tuples(st.sampled_from(["prefix", "suffix"]), prefixes), max_size=2),
        depth=st.none() | st.integers(1, 3),
        limit=st.integers(0, 5),
        offset=st.integers(0, 2),
    )
    def list_namespaces(self, which: int, wanted: Any, depth: Any, limit: int, offset: int) -> None:
        for empty in set(self.model._data) - self.model.live_namespaces():
            del self.model._data[empty]
        match = tuple(MatchCondition(kind, path) for kind, path in wanted)
        op = ListNamespacesOp(match, depth, limit, offset)
        assert self.two[which].batch([op]) == self.model.batch([op])

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.two[which].close()
        config = index() if self.indexed else None
        self.two[which] = MemsiftStore(self.folder / "a.memsift", index=config)

    @invariant()
    def every_entry_is_part_of_an_item(self) -> None:
        if hasattr(self, "two"):
            said = sum(len(items) for items in self.model._data.values())
            vectors = sum(
                max(1, len({str(v) for v in self.model._vectors[ns].get(key, {}).values()}))
                for ns, items in self.model._data.items()
                for key in items
            )
            assert said <= len(self.two[0].store) == vectors


class BesidePlain(Beside):
    """Without an index: names and values alone."""

    indexed = False


Beside.TestCase.settings = BesidePlain.TestCase.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None
)
TestBeside = Beside.TestCase
TestBesidePlain = BesidePlain.TestCase


def test_the_model_s_embeddings_are_all_different() -> None:
    assert len({tuple(row) for row in embed(["tea", "rain", "text tea"])}) == 3
