"""How many requests are under way: what a transport asks before it reads on, and before it closes."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

# Requests of one client that may be under way at once; the next one stays in the pipe.
AT_ONCE = 32


class Traffic:
    """Counts requests, as middleware of the server."""

    def __init__(self) -> None:
        self._under_way = 0
        self._moved = anyio.Event()

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        self._under_way += 1
        try:
            return await call_next(ctx)
        finally:
            self._under_way -= 1
            self._moved.set()
            self._moved = anyio.Event()

    async def room(self) -> None:
        """Wait until fewer than `AT_ONCE` are under way."""
        while self._under_way >= AT_ONCE:
            await self._moved.wait()

    async def quiet(self) -> None:
        """Wait until none is, those that were just handed over included."""
        for _ in range(8):
            await anyio.lowlevel.checkpoint()
        while self._under_way:
            await self._moved.wait()
