"""The MCP server as an ASGI app, for `/mcp`: the SDK's streamable HTTP, with its sessions bounded."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

# Only clients of 2025-11-25 and before have sessions.
MOST_SESSIONS = 100
IDLE_SECONDS = 900.0


class Endpoint:
    """An ASGI app that serves MCP while `running()` is entered."""

    def __init__(self, server: Server[Any], largest_body: int) -> None:
        self._manager = StreamableHTTPSessionManager(
            server,
            max_request_body_size=largest_body,
            max_sessions=MOST_SESSIONS,
            session_idle_timeout=IDLE_SECONDS,
            # The gate in front is stricter: this one accepts the origin of any local port, and none off loopback.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )

    def running(self) -> AbstractAsyncContextManager[None]:
        """The sessions' lifetime; once per endpoint."""
        return self._manager.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(scope, receive, send)
