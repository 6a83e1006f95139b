"""Progress of a call in a thread, told to the client, if it asked for it, without waiting for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio import from_thread

from memsift.server.mcp.desk import Progress


@asynccontextmanager
async def progress_of(context: Any) -> AsyncIterator[Progress]:
    """A function to call from the worker thread; all that it said is sent before this ends.

    The thread may hold the memory's write lock, so it never waits for a client that reads slowly: it puts its news into
    a list, and a task sends the newest.
    """
    news: list[tuple[int, int]] = []
    called, ended = anyio.Event(), False

    def say(done: int, total: int) -> None:
        news.append((done, total))
        from_thread.run_sync(called.set)

    async def send() -> None:
        nonlocal called
        told = -1
        while True:
            await called.wait()
            called, over = anyio.Event(), ended
            while news:
                done, total = news.pop(0)
                if done > told:
                    told = done
                    await context.session.report_progress(done, total)
            if over:
                return

    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(send)
        try:
            yield say
        except Exception as error:  # past the group, which would wrap it
            failure = error
        finally:
            ended = True
            called.set()
    if failure is not None:
        raise failure


def silent(done: int, total: int) -> None:
    """Nobody asked."""
