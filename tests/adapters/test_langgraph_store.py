"""What the LangGraph store does beyond the model: a budget, times to live, other processes, coroutines, refusals."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="the extra langgraph is not installed")

from langgraph.store.base import InvalidNamespaceError, PutOp, SearchOp
from langgraph_kit import DIMS, embed, index

from memsift import Budget, LruPolicy
from memsift.adapters.langgraph import MemsiftStore
from memsift.errors import (
    BudgetExceeded,
    ClosedStore,
    CorruptStore,
    DimensionMismatch,
    InvalidFilter,
    InvalidType,
    InvalidValue,
    UnknownEntry,
)


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.memsift"


@pytest.fixture
def store(path: Path) -> Iterator[MemsiftStore]:
    with MemsiftStore(path, index=index()) as opened:
        yield opened


def keys(found: Any) -> list[str]:
    return [item.key for item in found]


# ---- the budget ----------------------------------------------------------------------------------


def test_what_the_budget_evicts_is_not_found_and_can_be_restored(path: Path) -> None:
    """Three places, least recently used first: a and b are read again, so c leaves when d comes."""
    with MemsiftStore(
        path, index=index(), budget=3, policy=LruPolicy(), low_watermark=1.0
    ) as store:
        for key in "abc":
            store.put(("n",), key, {"text": key})
        assert store.get(("n",), "a").value == {"text": "a"}
        assert keys(store.search(("n",), query="b", limit=1)) == ["b"]
        store.put(("n",), "d", {"text": "d"})
        assert store.get(("n",), "c") is None
        assert sorted(keys(store.search(("n",), query="c"))) == ["a", "b", "d"]
        assert store.archived() == [(("n",), "c")]
        assert store.restore(("n",), "c")
        assert store.get(("n",), "c").value == {"text": "c"}
        assert store.archived() == [(("n",), "a")]
        assert not store.restore(("n",), "nobody")


def test_an_item_leaves_whole(path: Path) -> None:
    """Two vectors each, five places: the third item takes both of the first, though one would make room."""
    options = {"budget": 5, "policy": LruPolicy(), "low_watermark": 1.0}
    with MemsiftStore(path, index=index(["text", "more"]), **options) as store:
        for key in "abc":
            store.put(("n",), key, {"text": f"t{key}", "more": f"m{key}"})
        assert store.get(("n",), "a") is None
        assert len(store.store) == 4
        assert keys(store.search(("n",))) == ["c", "b"]
        assert store.restore(("n",), "a")
        assert store.get(("n",), "a").value == {"text": "ta", "more": "ma"}
        assert len(store.store) == 4
        assert store.store.verify().ok


def test_an_item_that_can_never_fit_is_refused(path: Path) -> None:
    with MemsiftStore(path, index=index(["tags[*]"]), budget=2) as store:
        store.put(("n",), "a", {"tags": ["one"]})
        with pytest.raises(BudgetExceeded):
            store.put(("n",), "b", {"tags": ["one", "two", "three"]})
        assert keys(store.search(())) == ["a"]
        store.put(("n",), "b", {"tags": ["one", "two"]})
        assert keys(store.search(())) == ["b"]
        assert store.store.stats().pinned == 0


def test_a_foreign_compaction_leaves_no_half_item(path: Path) -> None:
    """Somebody compacts the file without this adapter: what lost a part is not found, and the next put clears up."""
    with MemsiftStore(path, index=index(["text", "more"])) as store:
        store.put(("n",), "a", {"text": "ta", "more": "ma"})
        store.put(("n",), "b", {"text": "tb"})
        store.store.retire([0])
        assert store.get(("n",), "a") is None
        assert keys(store.search(("n",), query="ma")) == ["b"]
        assert len(store.store) == 2
        store.put(("n",), "c", {"text": "tc"})
        assert len(store.store) == 2
        assert store.restore(("n",), "a")
        assert store.get(("n",), "a") is not None


def test_a_put_keeps_the_history_of_its_item(store: MemsiftStore) -> None:
    store.put(("n",), "a", {"text": "one"})
    store.get(("n",), "a")
    before = store.store.get(0)[0]
    created = store.get(("n",), "a").created_at
    store.put(("n",), "a", {"text": "two"})
    after = store.store.get(0)[0]
    assert after is not None
    assert before is not None
    assert after.access_count > before.access_count
    assert store.get(("n",), "a").created_at == created


def test_pins_hold_and_alone_may_fill_the_budget(path: Path) -> None:
    with MemsiftStore(path, budget=2) as store:
        for key in "ab":
            store.put(("n",), key, {})
            store.pin(("n",), key)
        with pytest.raises(BudgetExceeded):
            store.put(("n",), "c", {})
        assert sorted(keys(store.search(()))) == ["a", "b"]
        store.unpin(("n",), "a")
        store.put(("n",), "c", {})
        assert sorted(keys(store.search(()))) == ["b", "c"]
        with pytest.raises(UnknownEntry):
            store.pin(("n",), "nobody")


def test_cost_counts_tokens_and_is_shared_by_the_parts(path: Path) -> None:
    value = {"text": "x" * 200, "more": "y" * 200}
    tokens = -(-len(json.dumps(value, separators=(",", ":"))) // 4)
    with MemsiftStore(path, index=index(["text", "more"]), budget=Budget(cost=10_000)) as store:
        store.put(("n",), "a", value)
        assert tokens <= store.store.stats().size.cost <= tokens + 1


def test_erase_takes_the_item_and_its_archived_forms(path: Path) -> None:
    with MemsiftStore(
        path, index=index(), budget=2, policy=LruPolicy(), low_watermark=1.0
    ) as store:
        for key in ("canary-key", "b", "c"):
            store.put(("n",), key, {"text": f"canary of {key}"})
        store.put(("n",), "canary-key", {"text": "a second canary-key"})
        assert store.erase(("n",), "canary-key").complete
        assert store.get(("n",), "canary-key") is None
        assert "canary-key" not in [key for _, key in store.archived()]
    assert b"canary-key" not in path.read_bytes()


# ---- items without vectors -----------------------------------------------------------------------


def test_items_without_vectors_come_last_and_change_nobody_s_score(path: Path) -> None:
    with MemsiftStore(path, index=index()) as store:
        store.put(("n",), "a", {"text": "tea"})
        alone = store.search(("n",), query="rain")[0].score
        for key in "bcd":
            store.put(("n",), key, {"text": "rain"}, index=False)
        found = store.search(("n",), query="rain")
        assert [(item.key, item.score) for item in found] == [
            ("a", alone), ("d", None), ("c", None), ("b", None),
        ]  # fmt: skip
        vectors = [store.store.get(id_)[0].vector for id_ in range(1, 4)]
        assert all(abs(float(v @ w)) < 0.95 for v in vectors for w in vectors if v is not w)
        assert all(not v[:DIMS].any() for v in vectors)


def test_a_put_may_index_its_value_as_a_whole(store: MemsiftStore) -> None:
    """As `$` does in an index's fields. InMemoryStore looks for a field of that name in a put."""
    store.put(("n",), "a", {"deep": {"b": 1}}, index=["$"])
    assert store.search(("n",), query='{"deep": {"b": 1}}')[0].score == pytest.approx(1.0, abs=1e-6)


def test_the_latest_put_comes_first(path: Path) -> None:
    clock = Clock()
    with MemsiftStore(path, clock=clock) as store:
        for key in "abc":
            clock.now += 1
            store.put(("n",), key, {})
        clock.now += 1
        store.put(("n",), "a", {"again": True})
        assert keys(store.search(("n",))) == ["a", "c", "b"]
        assert keys(store.search(("n",), limit=1, offset=1)) == ["c"]


# ---- time to live --------------------------------------------------------------------------------


def test_what_is_not_used_in_time_is_swept(path: Path) -> None:
    clock = Clock()
    with MemsiftStore(
        path, index=index(["text", "more"]), ttl={"default_ttl": 10}, clock=clock
    ) as store:
        store.put(("n",), "used", {"text": "a", "more": "b"})
        store.put(("n",), "found", {"text": "c"})
        store.put(("n",), "idle", {"text": "d"})
        store.put(("n",), "looked at", {"text": "e"})
        store.put(("n",), "eternal", {"text": "f"}, ttl=None)
        clock.now += 6 * 60
        store.get(("n",), "used")
        store.search(("n",), query="c", limit=1)
        store.get(("n",), "looked at", refresh_ttl=False)
        clock.now += 6 * 60
        assert store.get(("n",), "idle", refresh_ttl=False) is not None  # not swept yet
        assert store.sweep_ttl() == 2
        assert sorted(keys(store.search(()))) == ["eternal", "found", "used"]
        clock.now += 11 * 60
        assert store.sweep_ttl() == 2
        assert keys(store.search(())) == ["eternal"]
        assert len(store.store) == 1


def test_expired_items_can_be_hidden_before_they_are_swept(path: Path) -> None:
    clock = Clock()
    with MemsiftStore(path, index=index(), ttl={"omit_expired": True}, clock=clock) as store:
        store.put(("short",), "a", {"text": "tea"}, ttl=1)
        store.put(("long",), "b", {"text": "tea b"})
        clock.now += 61
        assert store.get(("short",), "a") is None
        assert keys(store.search((), query="tea")) == keys(store.search(())) == ["b"]
        assert store.list_namespaces() == [("long",)]
        assert len(store.store) == 2


def test_the_sweeper_sweeps_and_stops(path: Path) -> None:
    clock, swept = Clock(), threading.Event()
    with MemsiftStore(path, clock=clock) as store:
        store.put(("n",), "a", {}, ttl=1)
        clock.now += 100
        sweep = store.sweep_ttl
        store._sweeper._sweep = lambda: (sweep(), swept.set())
        store.start_ttl_sweeper(1e-4)
        assert swept.wait(60)
        store.stop_ttl_sweeper()
        assert len(store.store) == 0


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ([1], InvalidType),
        ({"a": {1, 2}}, InvalidType),
        ({"a": {3: "not text"}}, InvalidType),
        ({"a": math.nan}, InvalidValue),
        ({"a": "x" * 70_000}, InvalidValue),
    ],
)
def test_a_value_that_would_come_back_otherwise_is_refused(
    store: MemsiftStore, value: Any, error: type[Exception]
) -> None:
    good = PutOp(("n",), "good", {"text": "x"})
    with pytest.raises(error, match="value"):
        store.batch([good, PutOp(("n",), "bad", value)])
    assert store.search(()) == []


def test_too_deep_too_long_and_not_text_are_refused(store: MemsiftStore) -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    for call in (
        lambda: store.put(("n",), "k", deep),
        lambda: store.put(("n",), "k" * 9000, {}),
        lambda: store.batch([PutOp(("n",), 3, {})]),  # type: ignore[arg-type]
        lambda: store.batch([PutOp(("n",), "k", {}, None, -1.0)]),
        lambda: store.search((), limit=-1),
        lambda: store.batch(["a put"]),  # type: ignore[list-item]
        lambda: store.search((), filter={"n": {"$near": 1}}),
        lambda: store.search((), filter=[1]),  # type: ignore[arg-type]
        lambda: store.put(("n",), "k", {"text": "x"}, index="text"),  # type: ignore[arg-type]
    ):
        with pytest.raises((InvalidType, InvalidValue, InvalidFilter)):
            call()
    for namespace in ((), ("a.b",), ("",), ("a", "b\0"), ("langgraph",)):
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {})
    with pytest.raises(InvalidNamespaceError):
        store.batch([SearchOp(("a.b",))])
    assert len(store.store) == 0


def test_an_embedding_of_another_length_is_refused(path: Path) -> None:
    with (
        MemsiftStore(path, index={"dims": 3, "embed": embed}) as store,
        pytest.raises(DimensionMismatch, match="dims"),
    ):
        store.put(("n",), "k", {"text": "tea"})


def test_a_text_that_is_no_item_is_corrupt_not_a_crash(store: MemsiftStore) -> None:
    store.put(("n",), "k", {"text": "tea"})
    store.store.texts.put([0], ["[1, 2"])
    with pytest.raises(CorruptStore, match="payload"):
        store.get(("n",), "k")


def test_entries_of_others_are_left_alone(store: MemsiftStore) -> None:
    foreign = store.store.add(
        [1.0] * (DIMS + 16), {"memsift:space": "no JSON", "memsift:key": "[]"}
    )
    store.put(("n",), "k", {"text": "tea"})
    assert keys(store.search((), query="tea")) == keys(store.search(())) == ["k"]
    assert foreign in store.store


# ---- several at once -----------------------------------------------------------------------------

PUTTER = """
import sys
from memsift.adapters.langgraph import MemsiftStore
sys.path.insert(0, sys.argv[2])
from langgraph_kit import index
with MemsiftStore(sys.argv[1], index=index(), busy_timeout=60.0) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for i in range(40):
        store.put(("n",), f"k{i % 4}", {"text": f"{sys.argv[3]} {i}"})
    store.put(("n",), sys.argv[3], {"text": sys.argv[3]})
"""


def test_two_processes_put_the_same_keys_and_one_item_is_left_of_each(path: Path) -> None:
    with MemsiftStore(path, index=index(), busy_timeout=60.0) as store:
        store.put(("n",), "k0", {"text": "first"})
        command = [sys.executable, "-c", PUTTER, str(path), str(Path(__file__).parent)]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        putters = [subprocess.Popen([*command, name], **pipes) for name in ("one", "two")]
        for putter in putters:
            assert putter.stdout.readline() == "ready\n"
        for putter in putters:
            putter.stdin.write("go\n")
            putter.stdin.flush()
        for putter in putters:
            putter.communicate(timeout=120)
            assert putter.returncode == 0
        found = store.search(("n",), limit=100)
        assert sorted(keys(found)) == ["k0", "k1", "k2", "k3", "one", "two"]
        assert len(store.store) == 6
        assert keys(store.search(("n",), query="one", limit=1)) == ["one"]


def test_threads_share_a_store(store: MemsiftStore) -> None:
    def work(name: str) -> None:
        for i in range(10):
            store.put((name,), str(i), {"text": f"{name}{i}"})
            assert keys(store.search((name,), query=f"{name}{i}", limit=1)) == [str(i)]

    threads = [threading.Thread(target=work, args=[name]) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(store.store) == 30


def test_coroutines_and_an_async_embedder(path: Path) -> None:
    async def aembed(texts: Any) -> Any:
        await asyncio.sleep(0)
        return embed(texts)

    async def live() -> None:
        with MemsiftStore(path, index={"dims": DIMS, "embed": aembed}) as store:
            await asyncio.gather(*(store.aput(("n",), str(i), {"text": str(i)}) for i in range(8)))
            assert keys(await store.asearch(("n",), query='{"text": "3"}', limit=1)) == ["3"]
            assert (await store.aget(("n",), "5")).value == {"text": "5"}
            await store.adelete(("n",), "5")
            assert await store.aget(("n",), "5") is None
            assert await store.alist_namespaces() == [("n",)]
        with pytest.raises(ClosedStore):
            await store.aget(("n",), "5")

    asyncio.run(live())


def test_a_cancelled_call_is_done_as_a_whole_or_not_at_all(path: Path) -> None:
    """While the store is held, one call waits for it and one for its turn; both are cancelled: the first is done."""

    async def live(store: MemsiftStore) -> None:
        began = threading.Event()
        do = store._do

        def told(*args: Any) -> Any:
            began.set()
            return do(*args)

        store._do = told  # type: ignore[method-assign]
        with store.store.transaction():
            first = asyncio.create_task(store.aput(("n",), "first", {}))
            second = asyncio.create_task(store.aput(("n",), "second", {}))
            await asyncio.to_thread(began.wait, 60)
            for task in (first, second):
                task.cancel()
            outcomes = await asyncio.gather(first, second, return_exceptions=True)
            assert all(isinstance(o, asyncio.CancelledError) for o in outcomes)
        assert await store.aget(("n",), "second") is None
        assert await store.aget(("n",), "first") is not None

    with MemsiftStore(path) as store:
        asyncio.run(live(store))


def test_a_graph_reads_and_writes_the_store(path: Path) -> None:
    """`StateGraph.compile(store=...)`: a node remembers, the next run in another thread of conversation recalls."""
    graphs = pytest.importorskip("langgraph.graph", reason="langgraph itself is not installed")
    from typing import TypedDict

    from langgraph.runtime import Runtime

    class State(TypedDict):
        said: str
        known: list[str]

    def remember(state: Any, runtime: Any) -> Any:
        known = runtime.store.search(("user",), query=state["said"])
        runtime.store.put(("user",), state["said"], {"text": state["said"]})
        return {"known": [item.value["text"] for item in known]}

    remember.__annotations__ |= {"state": State, "runtime": Runtime}
    with MemsiftStore(path, index=index(), budget=100) as store:
        builder = graphs.StateGraph(State)
        builder.add_node("remember", remember)
        builder.add_edge(graphs.START, "remember")
        graph = builder.compile(store=store)
        assert graph.invoke({"said": "I eat no nuts", "known": []})["known"] == []
        assert graph.invoke({"said": "dinner?", "known": []})["known"] == ["I eat no nuts"]
        known = asyncio.run(graph.ainvoke({"said": "more?", "known": []}))["known"]
        assert sorted(known) == ["I eat no nuts", "dinner?"]


# ---- beside SqliteStore --------------------------------------------------------------------------


def test_it_agrees_with_langgraph_s_sqlite_store() -> None:
    """Names, values and filters; its vectors need a SQLite extension that not every Python can load."""
    sqlite = pytest.importorskip("langgraph.store.sqlite", reason="it is not installed")
    import tempfile

    values = [
        {"n": 1, "s": "a", "t": True, "in": {"x": 1}},
        {"n": 2.5, "s": "b", "t": False},
        {"n": -3, "s": "c"},
        {"s": "a"},
    ]
    filters: list[Any] = [
        None, {"s": "a"}, {"n": 1}, {"t": True}, {"n": {"$gt": 0}}, {"n": {"$gte": 1, "$lt": 2.5}},
        {"n": {"$lte": 1}}, {"s": {"$ne": "a"}}, {"s": {"$eq": "b"}}, {"s": "a", "n": 1}, {"s": {"$gt": "a"}},
    ]  # fmt: skip
    with (
        tempfile.TemporaryDirectory() as folder,
        MemsiftStore(Path(folder) / "a.memsift") as ours,
        sqlite.SqliteStore.from_conn_string(":memory:") as theirs,
    ):
        for store in (ours, theirs):
            for i, value in enumerate(values):
                store.put(("docs", str(i % 2)), str(i), value)
            store.put(("other",), "x", {"s": "a"})
            store.delete(("other",), "x")
        for filter_ in filters:
            for prefix in ((), ("docs",), ("docs", "1"), ("doc",)):
                ask = {"filter": filter_, "limit": 50}
                one, other = ours.search(prefix, **ask), theirs.search(prefix, **ask)
                named = [
                    sorted((i.namespace, i.key, repr(i.value)) for i in x) for x in (one, other)
                ]
                assert named[0] == named[1], (filter_, prefix)
        for ask in ({}, {"max_depth": 1}, {"prefix": ("docs",)}, {"suffix": ("1",)}, {"limit": 1}):
            assert ours.list_namespaces(**ask) == theirs.list_namespaces(**ask)
