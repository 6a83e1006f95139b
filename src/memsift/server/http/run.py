"""Running the app: uvicorn on a socket of ours, with patience for nobody's headers."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from memsift.errors import InvalidValue
from memsift.server.http.gate import Gate

HEAD_SECONDS = 10.0
MOST_CONNECTIONS = 256


class Impatient(H11Protocol):
    """HTTP/1.1 that closes a connection whose request head takes more than 10 seconds; uvicorn's waits for ever."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._hurry()

    def data_received(self, data: bytes) -> None:
        if self._idle():
            self._hurry()
        super().data_received(data)
        if not self._idle():
            self._relax()

    def connection_lost(self, exc: Exception | None) -> None:
        self._relax()
        super().connection_lost(exc)

    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _hurry(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _relax(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        if self._idle() and not self.transport.is_closing():
            self.transport.close()


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one.

    Raises
    ------
    InvalidValue
        The address cannot be had.
    """
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        if hasattr(socket, "SO_REUSEADDR") and not hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((bare, port))
        found.listen(128)
    except (OSError, OverflowError) as error:
        found.close()
        words = getattr(error, "strerror", None) or "no such address"
        raise InvalidValue(f"--host and --port must be an address that is free; {words}") from None
    return found


def run(app: Gate, sock: socket.socket) -> None:
    """Serve until the process is told to end; then come back, so that the memory can be closed."""
    # uvicorn ends in good order and then raises the signal again: this is what it meets.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with suppress(KeyboardInterrupt):
        server(app).run(sockets=[sock])


def server(app: Any) -> uvicorn.Server:
    """uvicorn as we want it: no access log, for addresses may hold what is searched for."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=Impatient,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=5,
        )
    )
