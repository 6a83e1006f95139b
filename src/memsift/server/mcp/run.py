"""Running the MCP server over stdio, within a process whose stdout is already kept for it."""

from __future__ import annotations

import signal
from collections.abc import Callable

import anyio

from memsift.server.mcp.app import build
from memsift.server.mcp.desk import Desk
from memsift.server.mcp.stdio import serve_stdio


def run_stdio(
    desk: Desk, source: int, sink: int, *, allow_erase: bool, opened: Callable[[], object]
) -> None:
    """Serve until the client closes its end or the process is told to end.

    `opened` is called in a thread once the memory is there; what it raises ends the server.
    """

    async def main() -> None:
        server = build(desk, allow_erase=allow_erase)
        async with anyio.create_task_group() as group:
            group.start_soon(_until_told, group.cancel_scope)
            group.start_soon(_opening, opened)
            await serve_stdio(server, source, sink)
            group.cancel_scope.cancel()

    anyio.run(main)


async def _opening(opened: Callable[[], object]) -> None:
    await anyio.to_thread.run_sync(opened, abandon_on_cancel=True)


async def _until_told(scope: anyio.CancelScope) -> None:
    """End in good order on SIGTERM and SIGINT, where a system has such."""
    try:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                scope.cancel()
                return
    except (NotImplementedError, ValueError):  # Windows; or not in the main thread
        return
