"""The stdio transport: one message per line, and nothing else ever on stdout.

The SDK's own transport takes lines of any length and drops what it cannot read. This one bounds a line, answers
everything (`frames`), reads no further while many requests are under way, and lets these end before it closes.
"""

from __future__ import annotations

import json
import os
import threading
from array import array
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from anyio import from_thread
from anyio.abc import ObjectSendStream
from anyio.lowlevel import EventLoopToken, current_token
from anyio.to_thread import run_sync
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from memsift.server.mcp.frames import (
    INVALID_REQUEST,
    LARGEST_LINE,
    Frame,
    refusal,
    too_long,
    understand,
)

try:
    import fcntl
    import termios
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

CHUNK = 65536
# Requests that may be under way at once; the next one stays in the pipe.
AT_ONCE = 32
# How long they may still take once the client has closed its end.
FAREWELL_SECONDS = 30.0


async def serve_stdio(server: Server[Any], source: int, sink: int) -> None:
    """Serve one client over two file descriptors until it closes its end."""
    inbox, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbox, answers = anyio.create_memory_object_stream[SessionMessage](0)
    writing, traffic = anyio.Lock(), Traffic()

    async def send(line: bytes) -> None:
        async with writing:
            if _fits(sink, len(line)):
                os.write(sink, line)  # a thread would cost more than the write
            else:
                await run_sync(_write, sink, line)

    async def read() -> None:
        async with inbox:
            async for frame in _frames(source):
                for reply in frame.replies:
                    await send(_dump(reply))
                if frame.message is None:
                    continue
                try:
                    message = jsonrpc_message_adapter.validate_python(frame.message, by_name=False)
                except ValueError:
                    await send(_dump(_malformed(frame.message)))
                    continue
                await traffic.below(AT_ONCE)
                traffic.came(frame.message)
                await inbox.send(SessionMessage(message))
            with anyio.move_on_after(FAREWELL_SECONDS):
                await traffic.below(1)

    async def write() -> None:
        async with answers:
            async for answer in answers:
                await send(_encode(answer))
                traffic.answered(getattr(answer.message, "id", None))

    with _gone_client():
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            group.start_soon(read)
            await server.run(messages, outbox, server.create_initialization_options())
            group.cancel_scope.cancel()


class Traffic:
    """Requests that wait for their answers. One that the client cancels gets none."""

    def __init__(self) -> None:
        self._waiting: Counter[Any] = Counter()
        self._moved = anyio.Event()

    def came(self, message: dict[str, Any]) -> None:
        """A message goes to the server."""
        if message.get("method") == "notifications/cancelled":
            self._done(message.get("params", {}).get("requestId"), every=True)
        elif "method" in message and "id" in message:
            self._waiting[_key(message["id"])] += 1

    def answered(self, id_: Any) -> None:
        """An answer was written."""
        self._done(id_, every=False)

    async def below(self, count: int) -> None:
        """Wait until fewer than `count` are under way."""
        while self._waiting.total() >= count:
            await self._moved.wait()

    def _done(self, id_: Any, *, every: bool) -> None:
        left = self._waiting.pop(_key(id_), 0) - 1
        if left > 0 and not every:
            self._waiting[_key(id_)] = left
        self._moved.set()
        self._moved = anyio.Event()


def _key(id_: Any) -> str:
    """The SDK takes "7" and 7 for the same when it cancels."""
    return str(id_)


@contextmanager
def _gone_client() -> Iterator[None]:
    """A client that closed its end of stdout is no error: there is nobody left to serve."""
    try:
        yield
    except* (BrokenPipeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass


async def _frames(source: int) -> AsyncIterator[Frame]:
    """Lines as they come in; of one that is too long, only both ends are kept."""
    held, dropped, head = bytearray(), False, b""
    async for chunk in _chunks(source):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            held += end
            yield too_long(head, bytes(held[-4096:])) if dropped else understand(bytes(held))
            held, dropped, head = bytearray(), False, b""
        held += rest
        if len(held) > LARGEST_LINE or dropped:
            head = head or bytes(held[:4096])
            held, dropped = held[-4096:], True
    if held:
        yield too_long(head, bytes(held)) if dropped else understand(bytes(held))


async def _chunks(source: int) -> AsyncIterator[bytes]:
    """What comes in, piece by piece, until the client closes its end."""
    try:
        await anyio.wait_readable(source)
    except (
        OSError,
        NotImplementedError,
        ValueError,
    ):  # a file, or a system that cannot wait for pipes
        async for chunk in _chunks_by_thread(source):
            yield chunk
        return
    while chunk := os.read(source, CHUNK):
        yield chunk
        await anyio.wait_readable(source)


async def _chunks_by_thread(source: int) -> AsyncIterator[bytes]:
    send, chunks = anyio.create_memory_object_stream[bytes](0)
    arguments = source, send, current_token()
    # A daemon, unlike the pool's threads: a read that nobody ends must not keep the process from ending.
    threading.Thread(target=_pump, args=arguments, name="stdin", daemon=True).start()
    while chunk := await chunks.receive():
        yield chunk


def _pump(source: int, send: ObjectSendStream[bytes], token: EventLoopToken) -> None:
    """Hand on what comes in, each piece once the last one was taken; at the end, an empty one."""
    try:
        while True:
            chunk = os.read(source, CHUNK)
            from_thread.run(send.send, chunk, token=token)
            if not chunk:
                return
    except (OSError, RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return  # the server has ended


def _malformed(message: dict[str, Any]) -> dict[str, Any]:
    return refusal(INVALID_REQUEST, "this is no JSON-RPC message", message.get("id"))


def _encode(answer: SessionMessage) -> bytes:
    message = answer.message
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:  # text that is no Unicode, echoed from what the client sent
        words = "text must be valid Unicode"
        return _dump(refusal(INVALID_REQUEST, words, getattr(message, "id", None)))


def _dump(reply: dict[str, Any]) -> bytes:
    return json.dumps(reply).encode() + b"\n"


def _fits(sink: int, size: int) -> bool:
    """Whether so many bytes can be written without waiting: into a pipe that is empty and large enough."""
    if fcntl is None or not hasattr(fcntl, "F_GETPIPE_SZ"):
        return False
    unread = array("i", [0])
    try:
        room = fcntl.fcntl(sink, fcntl.F_GETPIPE_SZ)  # of anything but a pipe, this fails
        fcntl.ioctl(sink, termios.FIONREAD, unread)
    except OSError:
        return False
    return unread[0] == 0 and size <= room


def _write(sink: int, line: bytes) -> None:
    view = memoryview(line)
    while view:
        view = view[os.write(sink, view) :]
