"""The one app: MCP at /mcp, the page at /, /health, all behind the gate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from memsift.server.http.gate import Gate
from memsift.server.http.names import Names
from memsift.server.http.token import Token
from memsift.server.mcp.endpoint import Endpoint


def build(
    endpoint: Endpoint,
    token: Token,
    names: Names,
    page: Sequence[BaseRoute] = (),
    *,
    open_reads: bool = True,
) -> Gate:
    """The app of a server; `page` are routes beside /mcp and /health."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with endpoint.running():
            yield

    routes = [Route("/health", _health), Route("/mcp", endpoint), *page]
    return Gate(Starlette(routes=routes, lifespan=lifespan), token, names, open_reads)


def shows_token(request: Request) -> bool:
    """Whether a request came with the token: what the page asks before it changes anything."""
    return bool(request.scope.get("memsift.token"))


async def _health(request: Request) -> JSONResponse:
    """That the server is up; nothing about the memory."""
    return JSONResponse({"status": "ok"})
