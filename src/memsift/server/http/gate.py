"""The gate in front of everything: names, token, rate, size, and how long a body may take.

In that order, so that nothing is read from whoever may not come in. What passes is handed on with its body in memory;
`scope["memsift.token"]` says whether the token was shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memsift.server.http.limits import Bucket
from memsift.server.http.names import Names
from memsift.server.http.token import Token

LARGEST_BODY = 4 * 1024 * 1024
BODY_SECONDS = 15.0
# Bodies are in memory while they are served: so many at once, of which only a few may be large.
AT_ONCE = 32
LARGE, LARGE_AT_ONCE = 256 * 1024, 4
STREAMS = 64
RATE, BURST = 200.0, 400
BAD_RATE, BAD_BURST = 5.0, 20

HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    b"object-src 'none'",
}


class Refused(Exception):
    """A request that does not come in: its status and, in a few words, why."""

    def __init__(self, status: int, words: str, retry: int | None = None) -> None:
        super().__init__(words)
        self.status, self.words, self.retry = status, words, retry


@dataclass
class Gate:
    """An ASGI app in front of `app`.

    Parameters
    ----------
    token : Token
    names : Names
    open_reads : bool
        Reading under /api needs no token: for a server that only this machine reaches.
    """

    app: ASGIApp
    token: Token
    names: Names
    open_reads: bool = True
    good: Bucket = field(default_factory=lambda: Bucket(RATE, BURST))
    bad: Bucket = field(default_factory=lambda: Bucket(BAD_RATE, BAD_BURST))
    _calls: int = 0
    _large: int = 0
    _streams: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        try:
            self._check_names(scope)
            self._check_token(scope)
            if not self.good.take():
                raise Refused(429, "too many requests", retry=1)
            await self._let_in(scope, receive, send)
        except Refused as refused:
            await _refuse(send, refused)

    def _check_names(self, scope: Scope) -> None:
        hosts, origins = _all(scope, b"host"), _all(scope, b"origin")
        if len(hosts) != 1 or not self.names.serves(hosts[0]):
            raise Refused(421, "Host must be a name of this server")
        if len(origins) > 1 or (origins and not self.names.trusts(origins[0])):
            raise Refused(403, "Origin must be this server's own")
        if "cross-site" in _all(scope, b"sec-fetch-site") or "same-site" in _all(
            scope, b"sec-fetch-site"
        ):
            # Following a link to the page is fine; being a part of another site is not.
            linked = "navigate" in _all(scope, b"sec-fetch-mode") and "document" in _all(
                scope, b"sec-fetch-dest"
            )
            if not (linked and scope["method"] == "GET" and _is_shell(scope["path"])):
                raise Refused(403, "requests from other sites are not served")

    def _check_token(self, scope: Scope) -> None:
        query = scope["query_string"].decode("latin-1")
        if any("token" in name.lower() for name, _ in parse_qsl(query, keep_blank_values=True)):
            raise Refused(
                400, "a token belongs into the Authorization header, never into the address"
            )
        shown = [value for name, value in scope["headers"] if name == b"authorization"]
        scope["memsift.token"] = len(shown) == 1 and self.token.accepts(shown[0])
        if scope["memsift.token"] or (not shown and self._is_free(scope)):
            return
        if not self.bad.take():
            raise Refused(429, "too many requests without the right token", retry=4)
        raise Refused(401, "the token is missing or wrong")

    def _is_free(self, scope: Scope) -> bool:
        """What needs no token: /health; the page's own files, which hold no data; on loopback, what it reads."""
        path = scope["path"]
        if scope["method"] not in ("GET", "HEAD") or path == "/mcp" or path.startswith("/mcp/"):
            return False
        return self.open_reads or path == "/health" or _is_shell(path)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        """With the body read, and within what may run at once. A GET of /mcp is a stream that stays."""
        stream = scope["method"] == "GET" and scope["path"] == "/mcp"
        full = self._streams >= STREAMS if stream else self._calls >= AT_ONCE
        if full:
            raise Refused(503, "too many requests at once", retry=1)
        self._streams += stream
        self._calls += not stream
        large = False
        try:
            large = self._is_large(scope)
            self._large += large
            body = await _read(receive)
            await self.app(scope, _replay(body, receive), _sealed(send))
        finally:
            self._streams -= stream
            self._calls -= not stream
            self._large -= large

    def _is_large(self, scope: Scope) -> bool:
        lengths = _all(scope, b"content-length")
        declared = int(lengths[0]) if lengths and lengths[0].isdigit() else None
        if declared is not None and declared > LARGEST_BODY:
            raise Refused(413, f"a body must be at most {LARGEST_BODY} bytes")
        chunked = bool(_all(scope, b"transfer-encoding"))
        if not chunked and (declared or 0) <= LARGE:
            return False
        if self._large >= LARGE_AT_ONCE:
            raise Refused(503, "too many large requests at once", retry=1)
        return True


def _is_shell(path: str) -> bool:
    """The page's own files: the same for everybody, without any data."""
    return path == "/" or path == "/favicon.ico" or path.startswith("/static/")


def _all(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


async def _read(receive: Receive) -> bytes:
    body = bytearray()
    with anyio.move_on_after(BODY_SECONDS) as patience:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refused(400, "the client went away")
            body += message.get("body", b"")
            if len(body) > LARGEST_BODY:
                raise Refused(413, f"a body must be at most {LARGEST_BODY} bytes")
            if not message.get("more_body", False):
                break
    if patience.cancelled_caught:
        raise Refused(408, f"a body must come within {BODY_SECONDS:.0f} seconds")
    return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """`receive` as if nothing had been read yet."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _sealed(send: Send) -> Send:
    """`send` that adds the headers that every reply carries, where the app did not choose them itself."""

    async def seal(message: Message) -> None:
        if message["type"] == "http.response.start":
            given: Sequence[tuple[bytes, bytes]] = message.get("headers", [])
            names = {name.lower() for name, _ in given}
            extra = [(name, value) for name, value in HEADERS.items() if name not in names]
            if message["status"] in (429, 503) and b"retry-after" not in names:
                extra.append((b"retry-after", b"1"))
            message = {**message, "headers": [*given, *extra]}
        await send(message)

    return seal


async def _refuse(send: Send, refused: Refused) -> None:
    body = refused.words.encode() + b"\n"
    # The body was not read: what comes on this connection next would be its rest.
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *HEADERS.items(),
    ]
    if refused.retry is not None:
        headers.append((b"retry-after", str(refused.retry).encode()))
    if refused.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="memsift"'))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
