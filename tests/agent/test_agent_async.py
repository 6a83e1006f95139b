"""The awaited memory: the same answers, and a cancelled call happens whole or not at all."""

from __future__ import annotations

import asyncio
import inspect
import threading
from pathlib import Path
from typing import Any

import pytest
from bag import Bag, facts, opened

from memsift.agent import AgentMemory, AsyncAgentMemory
from memsift.errors import ClosedStore, EmbedderMismatch, InvalidType, UnknownEntry


class Slow(Bag):
    """An embedder that says when it has begun, and goes on when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may = threading.Event(), threading.Event()
        self.may.set()

    def embed(self, texts: Any) -> Any:
        self.begun.set()
        assert self.may.wait(60)
        return super().embed(texts)


async def awaited(path: Path, embedder: Bag | None = None, **options: Any) -> AsyncAgentMemory:
    return await AsyncAgentMemory.open(
        path / "agent.memsift", embedder=embedder or Bag(), touch_flush_seconds=1000.0, **options
    )


async def begun(embedder: Slow) -> None:
    await asyncio.get_running_loop().run_in_executor(None, embedder.begun.wait, 60)


def texts_in(path: Path) -> list[str]:
    with opened(path) as memory:
        return [text for _, text in memory.store.texts.all()]


def test_every_method_has_its_namesake() -> None:
    def public(cls: type) -> set[str]:
        return {name for name in vars(cls) if not name.startswith("_")}

    assert public(AgentMemory) == public(AsyncAgentMemory)
    for name in public(AsyncAgentMemory):
        assert inspect.iscoroutinefunction(getattr(AsyncAgentMemory, name)), name
        assert inspect.getdoc(getattr(AsyncAgentMemory, name))


def test_all_of_them_do_what_the_others_do(tmp_path: Path) -> None:
    async def story() -> None:
        async with await awaited(tmp_path, budget=10) as memory:
            told: list[tuple[int, int]] = []
            assert (await memory.remember(facts(1)[0], pinned=True)).id == 0
            await memory.remember_many(facts(5), progress=lambda *done: told.append(done))
            assert [one.text for one in await memory.recall("fact3 said3", 1)] == [facts(4)[3]]
            await memory.feedback([3])
            await memory.pin(2)
            await memory.unpin([0, 2])
            assert (await memory.explain(3))["entry"]["use_count"] == 1
            plan = await memory.plan(4)
            done = await memory.apply(plan)
            assert done.dropped.tolist() == plan.victims.tolist()
            await memory.restore(done.dropped)
            await memory.forget(4)
            assert (await memory.compact(3)).after.entries == 3
            assert (await memory.erase(0)).complete
            assert [one is None for one in await memory.get([0, 4])] == [True, True]
            await memory.reembed(Bag(32), progress=lambda *done: told.append(done))
            found = await memory.stats()
            assert (found.embedder, found.store.entries) == (
                "bag@1/32",
                3 - (0 not in done.dropped),
            )
            await asyncio.sleep(0)
            assert told[0] == (5, 5)
            with pytest.raises(UnknownEntry):
                await memory.forget(99)
            with pytest.raises(InvalidType):
                await memory.recall("x", "y")

    asyncio.run(story())


def test_calls_of_many_tasks_are_all_there(tmp_path: Path) -> None:
    async def story() -> None:
        async with await awaited(tmp_path) as memory:
            found = await asyncio.gather(*(memory.remember(text) for text in facts(40)))
            assert sorted(one.id for one in found) == list(range(40))

    asyncio.run(story())
    assert sorted(texts_in(tmp_path)) == sorted(facts(40))


def test_a_call_that_waits_is_cancelled_and_never_happens(tmp_path: Path) -> None:
    async def story() -> None:
        embedder = Slow()
        async with await awaited(tmp_path, embedder) as memory:
            embedder.may.clear()
            first = asyncio.create_task(memory.remember("the first of them"))
            await begun(embedder)
            second = asyncio.create_task(memory.remember("never heard of"))
            await asyncio.sleep(0)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            embedder.may.set()
            assert (await first).id == 0
            assert (await memory.remember("another one")).id == 1

    asyncio.run(story())
    assert texts_in(tmp_path) == ["the first of them", "another one"]


def test_a_call_that_is_at_work_is_cancelled_and_happens_whole(tmp_path: Path) -> None:
    async def story() -> None:
        embedder = Slow()
        async with await awaited(tmp_path, embedder) as memory:
            embedder.may.clear()
            task = asyncio.create_task(memory.remember_many(facts(30)))
            await begun(embedder)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            embedder.may.set()
            assert len(await memory.recall("fact1", 100)) == 30

    asyncio.run(story())
    assert texts_in(tmp_path) == facts(30)


def test_close_waits_for_what_was_begun(tmp_path: Path) -> None:
    async def story() -> None:
        embedder = Slow()
        memory = await awaited(tmp_path, embedder)
        embedder.may.clear()
        tasks = [asyncio.create_task(memory.remember(text)) for text in facts(3)]
        await begun(embedder)
        closing = asyncio.create_task(memory.close())
        await asyncio.sleep(0)
        with pytest.raises(ClosedStore):
            await memory.remember("too late")
        closing.cancel()  # it goes on all the same
        with pytest.raises(asyncio.CancelledError):
            await closing
        embedder.may.set()
        await memory.close()
        await memory.close()
        assert [task.done() for task in tasks] == [True] * 3

    asyncio.run(story())
    assert texts_in(tmp_path) == facts(3)


def test_what_cannot_be_opened_says_so(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with pytest.raises(EmbedderMismatch):
        asyncio.run(awaited(tmp_path, Bag(16)))
    for thread in threading.enumerate():
        if thread.name.startswith("memsift-agent"):
            thread.join(60)
            assert not thread.is_alive()


def test_an_opening_that_is_cancelled_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may, made = threading.Event(), threading.Event(), []
    original = AgentMemory.open.__func__  # type: ignore[attr-defined]

    def slowly(cls: Any, *args: Any, **options: Any) -> Any:
        begun.set()
        assert may.wait(60)
        made.append(original(cls, *args, **options))
        return made[0]

    monkeypatch.setattr(AgentMemory, "open", classmethod(slowly))

    async def story() -> None:
        task = asyncio.create_task(awaited(tmp_path))
        await asyncio.get_running_loop().run_in_executor(None, begun.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        may.set()

    asyncio.run(story())
    for thread in threading.enumerate():
        if thread.name.startswith("memsift-agent"):
            thread.join(60)
    with pytest.raises(ClosedStore):
        made[0].remember("x")
