"""The stdio transport: one message per line, and nothing else ever on stdout.

The SDK's own transport takes lines of any length and drops what it cannot read. This one bounds a line, answers
everything (`frames`), reads no further while many calls are under way, and lets these end before it closes.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.abc
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
from memsift.server.mcp.traffic import Traffic

CHUNK = 65536
# How long calls may still take once the client has closed its end.
FAREWELL_SECONDS = 30.0


async def serve_stdio(server: Server[Any], traffic: Traffic, source: int, sink: int) -> None:
    """Serve one client over two file descriptors until it closes its end."""
    inbox, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbox, answers = anyio.create_memory_object_stream[SessionMessage](0)
    writing = anyio.Lock()

    async def send(line: bytes) -> None:
        async with writing:
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
                await traffic.room()
                await inbox.send(SessionMessage(message))
            with anyio.move_on_after(FAREWELL_SECONDS):
                await traffic.quiet()

    async def write() -> None:
        async with answers:
            async for answer in answers:
                await send(_encode(answer))

    with _gone_client():
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            group.start_soon(read)
            await server.run(messages, outbox, server.create_initialization_options())
            group.cancel_scope.cancel()


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
    while chunk := await run_sync(os.read, source, CHUNK, abandon_on_cancel=True):
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


def _malformed(message: dict[str, Any]) -> dict[str, Any]:
    return refusal(INVALID_REQUEST, "this is no JSON-RPC message", message.get("id"))


def _encode(answer: SessionMessage) -> bytes:
    message = answer.message
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:  # text that is no Unicode, echoed from what the client sent
        return _dump(
            refusal(INVALID_REQUEST, "text must be valid Unicode", getattr(message, "id", None))
        )


def _dump(reply: dict[str, Any]) -> bytes:
    return json.dumps(reply).encode() + b"\n"


def _write(sink: int, line: bytes) -> None:
    view = memoryview(line)
    while view:
        view = view[os.write(sink, view) :]
