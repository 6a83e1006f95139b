"""A LangGraph store that is always full: what is there is whole and what was put last, and the budget holds."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="the extra langgraph is not installed")

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from langgraph.store.base import PutOp
from langgraph_kit import index

from memsift import AdaptivePolicy, LfuPolicy, LruPolicy
from memsift.adapters.langgraph import MemsiftStore

names = st.tuples(st.sampled_from([("a",), ("a", "b"), ("c",)]), st.sampled_from("klmn"))
# As many vectors as words, one entry without any.
words = st.lists(st.sampled_from(["tea", "rain", "walk"]), max_size=3, unique=True)
puts = st.lists(st.tuples(names, words), min_size=1, max_size=3)
ENTRIES = 7


class Bounded(RuleBasedStateMachine):
    """Two handles on one file with room for seven entries; the model is what was put last under each name."""

    @initialize(
        low_watermark=st.sampled_from([0.5, 1.0]),
        policy=st.sampled_from([LruPolicy(), LfuPolicy(), AdaptivePolicy()]),
    )
    def begin(self, low_watermark: float, policy: Any) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.last: dict[Any, Any] = {}
        self.count = 0
        options: Any = {"index": index(["words[*]"]), "budget": ENTRIES, "policy": policy}
        self.two = [
            MemsiftStore(self.folder / "a.memsift", low_watermark=low_watermark, **options)
            for _ in range(2)
        ]

    def teardown(self) -> None:
        for store in self.two:
            store.close()
        shutil.rmtree(self.folder)

    @rule(which=st.integers(0, 1), batch=puts)
    def put(self, which: int, batch: Any) -> None:
        ops = []
        for name, said in batch:
            self.count += 1
            self.last[name] = {"words": [f"{word} {self.count}" for word in said]}
            ops.append(PutOp(*name, self.last[name]))
        self.two[which].batch(ops)
        if batch[-1][0] not in [
            name for name, _ in batch[:-1]
        ]:  # else it came earlier in the batch
            assert self.two[which].get(*batch[-1][0]).value == self.last[batch[-1][0]]

    @rule(which=st.integers(0, 1), name=names)
    def delete(self, which: int, name: Any) -> None:
        self.two[which].delete(*name)
        self.last.pop(name, None)

    @rule(which=st.integers(0, 1), name=names)
    def read(self, which: int, name: Any) -> None:
        found = self.two[which].get(*name)
        assert found is None or found.value == self.last[name]

    @rule(which=st.integers(0, 1), name=names)
    def restore(self, which: int, name: Any) -> None:
        store = self.two[which]
        there, rests = store.get(*name), name in store.archived()
        if rests and there is None:
            assert store.restore(*name)
            back = store.get(*name)
            if back is not None:
                self.last[name] = back.value
        else:
            assert not store.restore(*name)

    @rule(which=st.integers(0, 1), share=st.sampled_from([0.5, 0.9]))
    def compact_behind_its_back(self, which: int, share: float) -> None:
        self.two[which].store.compact(share)

    @invariant()
    def what_is_there_is_whole_and_the_last(self) -> None:
        for store in getattr(self, "two", []):
            assert len(store.store) <= ENTRIES
            found = {(item.namespace, item.key): item for item in store.search((), limit=50)}
            asked = {(i.namespace, i.key): i for i in store.search((), query="x", limit=50)}
            assert found.keys() == asked.keys() <= self.last.keys()
            for name, item in found.items():
                assert item.value == self.last[name] == asked[name].value
                assert (asked[name].score is None) == (not item.value["words"])
            assert set(store.list_namespaces()) == {namespace for namespace, _ in found}


Bounded.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestBounded = Bounded.TestCase


def test_the_last_of_a_batch_stays_also_if_it_was_there_before(tmp_path: Path) -> None:
    options: Any = {"index": index(["words[*]"]), "budget": ENTRIES, "policy": LruPolicy()}
    with MemsiftStore(tmp_path / "a.memsift", low_watermark=0.5, **options) as store:
        store.batch([PutOp(("a",), "k", {"words": []}), PutOp(("a",), "m", {"words": []})])
        three = {"words": ["tea", "rain", "walk"]}
        last = PutOp(("a",), "k", {"words": [], "again": True})
        store.batch([PutOp(("a",), "l", three), PutOp(("b",), "l", three), last])
        assert store.get(("a",), "k").value == last.value


PUTTER = """
import sys
from memsift.adapters.langgraph import MemsiftStore
sys.path.insert(0, sys.argv[2])
from langgraph_kit import index
store = MemsiftStore(sys.argv[1], index=index(["words[*]"]), budget=20)
for i in range(1_000_000):
    store.put(("n",), str(i % 15), {"words": [f"{i} a", f"{i} b", f"{i} c"][: 1 + i % 3]})
    print(i, flush=True)
"""


@pytest.mark.parametrize("after", [1, 17, 40])
def test_a_killed_process_leaves_whole_items_and_no_put_is_lost(tmp_path: Path, after: int) -> None:
    path = tmp_path / "a.memsift"
    command = [sys.executable, "-c", PUTTER, str(path), str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as putter:
        assert putter.stdout is not None
        done = [putter.stdout.readline() for _ in range(after)][-1]
        putter.send_signal(signal.SIGKILL)
        last = int([done, *putter.stdout.read().split()][-1])
    with MemsiftStore(path, index=index(["words[*]"]), budget=20) as store:
        assert store.store.verify().ok
        found = store.search(("n",), limit=50)
        assert sum(len(item.value["words"]) for item in found) == len(store.store)
        newest = max(int(item.value["words"][0].split()[0]) for item in found)
        assert newest in (last, last + 1)
