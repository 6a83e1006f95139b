"""The HTTP server on a free port in a thread, and requests byte by byte."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from memsift.agent import AgentMemory
from memsift.server.http.app import build as build_http
from memsift.server.http.app import shows_token
from memsift.server.http.gate import LARGEST_BODY, Gate
from memsift.server.http.limits import Bucket
from memsift.server.http.names import Names
from memsift.server.http.run import listen, server
from memsift.server.http.token import Token
from memsift.server.mcp.app import build
from memsift.server.mcp.desk import Desk
from memsift.server.mcp.endpoint import Endpoint

SECRET = "a-token-of-these-tests-0123456789-abcdef"
BEARER = ("Authorization", f"Bearer {SECRET}")
PATIENCE = 60.0
ACCEPT = ("Accept", "application/json, text/event-stream")
JSON = ("Content-Type", "application/json")


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Web(NamedTuple):
    """A running server."""

    port: int
    gate: Gate
    desk: Desk

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(
        self,
        method: str = "GET",
        path: str = "/health",
        *headers: tuple[str, str],
        body: bytes = b"",
        host: Sequence[str] | None = None,
        chunks: Sequence[bytes] | None = None,
    ) -> Answer:
        """One request on a connection of its own."""
        lines = [f"{method} {path} HTTP/1.1"]
        lines += [f"Host: {name}" for name in ([self.host] if host is None else host)]
        lines += [f"{name}: {value}" for name, value in headers]
        if chunks is not None:
            lines.append("Transfer-Encoding: chunked")
        elif body or method == "POST":
            lines.append(f"Content-Length: {len(body)}")
        data = "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as sock:
            try:
                sock.sendall(data)
                for chunk in chunks or ():
                    sock.sendall(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                if chunks is not None:
                    sock.sendall(b"0\r\n\r\n")
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before all of it was sent
            return read_answer(sock)

    def mcp(self, message: dict[str, Any], *headers: tuple[str, str]) -> Answer:
        """A message to /mcp with the token."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        return self.ask("POST", "/mcp", BEARER, JSON, ACCEPT, *headers, body=body)


def read_answer(sock: socket.socket) -> Answer:
    data = b""
    try:
        while part := sock.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in rest)}
    return Answer(int(first.split()[1]) if first else 0, headers, body)


async def whoami(request: Request) -> JSONResponse:
    """A route as the page has them: what it read, and whether it might write."""
    body = await request.body()
    return JSONResponse({"may_write": shows_token(request), "length": len(body)})


PAGE: list[BaseRoute] = [
    Route("/", whoami),
    Route("/static/page.js", whoami),
    Route("/api/stats", whoami),
    Route("/api/restore", whoami, methods=["POST"]),
]


@contextmanager
def web(
    file: Path,
    *,
    allowed: Sequence[str] = (),
    read_only: bool = False,
    wide: bool = True,
    **gate: Any,
) -> Iterator[Web]:
    """A server over a memory in `file`; `wide` lets any number of requests in."""
    if not file.exists():
        AgentMemory.open(file, embedder="hashed", budget=100).close()
    desk = Desk(lambda: AgentMemory.open(file, embedder="hashed"), "default", read_only=read_only)
    sock = listen("127.0.0.1", 0)
    port = sock.getsockname()[1]
    endpoint = Endpoint(build(desk, allow_erase=False), LARGEST_BODY)
    app = build_http(endpoint, Token(SECRET), Names(port, allowed), PAGE, **gate)
    if wide:
        app.good, app.bad = Bucket(1e9, 10**9), Bucket(1e9, 10**9)
    running = server(app)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    try:
        wait_for(lambda: running.started or not thread.is_alive())
        yield Web(port, app, desk)
    finally:
        running.should_exit = True
        thread.join(PATIENCE)
        sock.close()
        desk.close()


def wait_for(ready: Any) -> None:
    """uvicorn says by a flag, not by an event, that it is up."""
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.005)
