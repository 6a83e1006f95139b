"""The same memory for coroutines: one thread does everything, in the order of the calls.

A call that is cancelled before its turn never happens; one whose turn has come goes on to its end, and is true as a
whole. Either way the next call finds a sound memory.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from memsift.agent.memory import AgentMemory, Target
from memsift.agent.records import AgentStats, Recollection, Remembered
from memsift.errors import ClosedStore
from memsift.plan import Plan
from memsift.policies.base import CompactionPolicy
from memsift.types import Compaction, Receipt

P = ParamSpec("P")
R = TypeVar("R")


class AsyncAgentMemory:
    """An `AgentMemory` whose methods are awaited. Made by `await AsyncAgentMemory.open(...)`.

    Each takes what its namesake takes. `progress` is called in the event loop.

    Attributes
    ----------
    memory : AgentMemory
        The memory itself, which other threads may use at the same time.
    """

    def __init__(self, memory: AgentMemory, thread: ThreadPoolExecutor) -> None:
        self.memory, self._thread = memory, thread
        self._closed = False

    @classmethod
    async def open(cls, path: str | os.PathLike[str], *args: Any, **options: Any) -> Self:
        """As `AgentMemory.open`."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="memsift-agent")
        opening = thread.submit(AgentMemory.open, path, *args, **options)
        try:
            memory = await asyncio.wrap_future(opening)
        except BaseException:
            # Cancelled amid the opening: nobody will ever close what comes of it.
            opening.add_done_callback(_close_opened)
            thread.shutdown(wait=False)
            raise
        return cls(memory, thread)

    async def _do(
        self,
        method: Callable[Concatenate[AgentMemory, P], R],
        *args: P.args,
        **options: P.kwargs,
    ) -> R:
        if self._closed:
            raise ClosedStore(f"this memory was closed; open {self.memory.store.path.name} again")
        return await asyncio.wrap_future(self._thread.submit(method, self.memory, *args, **options))

    async def remember(self, text: str, **options: Any) -> Remembered:
        """As `AgentMemory.remember`."""
        return await self._do(AgentMemory.remember, text, **options)

    async def remember_many(
        self,
        texts: Iterable[str],
        *,
        progress: Callable[[int, int], object] | None = None,
        **options: Any,
    ) -> list[Remembered]:
        """As `AgentMemory.remember_many`."""
        told = None if progress is None else _in_this_loop(progress)
        return await self._do(AgentMemory.remember_many, texts, progress=told, **options)

    async def recall(self, query: str, k: int = 5, **options: Any) -> list[Recollection]:
        """As `AgentMemory.recall`."""
        return await self._do(AgentMemory.recall, query, k, **options)

    async def get(self, ids: Any) -> list[Recollection | None]:
        """As `AgentMemory.get`."""
        return await self._do(AgentMemory.get, ids)

    async def feedback(self, ids: Any, *, used: bool = True) -> None:
        """As `AgentMemory.feedback`."""
        await self._do(AgentMemory.feedback, ids, used=used)

    async def pin(self, ids: Any) -> None:
        """As `AgentMemory.pin`."""
        await self._do(AgentMemory.pin, ids)

    async def unpin(self, ids: Any) -> None:
        """As `AgentMemory.unpin`."""
        await self._do(AgentMemory.unpin, ids)

    async def forget(self, ids: Any) -> None:
        """As `AgentMemory.forget`."""
        await self._do(AgentMemory.forget, ids)

    async def explain(self, id_: int) -> dict[str, Any]:
        """As `AgentMemory.explain`."""
        return await self._do(AgentMemory.explain, id_)

    async def plan(
        self,
        target: Target = None,
        policy: CompactionPolicy | None = None,
        context: Any = None,
        *,
        force: bool = False,
    ) -> Plan:
        """As `AgentMemory.plan`."""
        return await self._do(AgentMemory.plan, target, policy, context, force=force)

    async def apply(self, plan: Plan) -> Compaction:
        """As `AgentMemory.apply`."""
        return await self._do(AgentMemory.apply, plan)

    async def compact(
        self,
        target: Target = None,
        policy: CompactionPolicy | None = None,
        context: Any = None,
        *,
        force: bool = False,
    ) -> Compaction:
        """As `AgentMemory.compact`."""
        return await self._do(AgentMemory.compact, target, policy, context, force=force)

    async def restore(self, ids: Any) -> Compaction | None:
        """As `AgentMemory.restore`."""
        return await self._do(AgentMemory.restore, ids)

    async def erase(self, ids: Any) -> Receipt:
        """As `AgentMemory.erase`."""
        return await self._do(AgentMemory.erase, ids)

    async def reembed(
        self, embedder: Any, *, progress: Callable[[int, int], object] | None = None
    ) -> None:
        """As `AgentMemory.reembed`."""
        told = None if progress is None else _in_this_loop(progress)
        await self._do(AgentMemory.reembed, embedder, progress=told)

    async def stats(self) -> AgentStats:
        """As `AgentMemory.stats`."""
        return await self._do(AgentMemory.stats)

    async def close(self) -> None:
        """Let the calls that wait come to their end, then close. Closing twice is no error.

        A cancelled close goes on in the background.
        """
        if not self._closed:
            self._closed = True
            self._closing = self._thread.submit(self.memory.close)
            self._thread.shutdown(wait=False)
        await asyncio.shield(asyncio.wrap_future(self._closing))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _in_this_loop(progress: Callable[[int, int], object]) -> Callable[[int, int], object]:
    loop = asyncio.get_running_loop()
    return lambda done, total: loop.call_soon_threadsafe(progress, done, total)


def _close_opened(opening: Any) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
