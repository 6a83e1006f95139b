"""A small memory that the page's tests look at, and the barest application around its routes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from memsift.agent import AgentMemory
from memsift.budget import Budget

pytest.importorskip("starlette", reason="needs memsift[mcp]")

TOKEN = "a-token-for-tests"
HOSTILE = [
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>",
    "invoice \u202egpj.exe\u202c and a bell \x07 and a tag \U000e0041\U000e0042",
    "שלום עולם, mixed with English and مرحبا",
    "z̴̡̢̛͙a̵̢͔l̷̰͝g̶̱̈́o̵͎͝ " * 3 + "a" * 500,
]


class Words:
    """A hashed bag of words."""

    dim, fingerprint, near_duplicate = 48, "words@1/48", 0.999

    def embed(self, texts: Sequence[str]) -> Any:
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[0] = 0.1
            for word in text.lower().split():
                row[zlib.crc32(word.encode()) % self.dim] += 1.0
        return rows


def sentences(count: int) -> list[str]:
    """Different texts about a few subjects."""
    subjects = ["train", "soup", "server", "invoice", "dentist", "garden"]
    return [f"note {i} about the {subjects[i % 6]} of day {i * 7 % 31}" for i in range(count)]


def clock_from(start: float = 1_780_000_000.0) -> Any:
    """A clock that moves on by a minute each time that somebody looks."""
    now = [start]

    def clock() -> float:
        now[0] += 60.0
        return now[0]

    return clock


def filled(path: Path, count: int = 60, **options: Any) -> AgentMemory:
    """A memory with pins, uses, an archive of ten, and one restored entry."""
    chosen = {"budget": Budget(entries=200, cost=5_000), "clock": clock_from()} | options
    memory = AgentMemory.open(path, embedder=Words(), **chosen)
    memory.remember_many(
        HOSTILE, metadata=[{"<b>key</b>": "</script>"}] * len(HOSTILE), pinned=True
    )
    ids = [made.id for made in memory.remember_many(sentences(count))]
    for i in range(0, count, 5):
        memory.recall(f"note {i} about the soup", 3)
    memory.feedback(ids[::4])
    memory.compact(count + len(HOSTILE) - 10)
    memory.restore(memory.store.archived()[:1])
    return memory


def may_write(request: Any) -> bool:
    return bool(request.headers.get("authorization") == f"Bearer {TOKEN}")


def application(memory: AgentMemory, *, private: bool = False) -> Any:
    """The page alone; with `private`, its JSON only for who has the token."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse

    from memsift.server.page import routes

    inner = Starlette(routes=routes(memory, may_write=may_write))

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if private and scope["path"].startswith("/api/") and not may_write(Request(scope)):
            await PlainTextResponse("the token is missing or wrong\n", 401)(scope, receive, send)
        else:
            await inner(scope, receive, send)

    return guarded if private else inner


def client_of(memory: AgentMemory) -> Any:
    """A client whose server answers errors rather than raising them."""
    pytest.importorskip("httpx")
    from starlette.testclient import TestClient

    return TestClient(application(memory), raise_server_exceptions=False)


@contextmanager
def served(memory: AgentMemory, *, private: bool = False) -> Iterator[str]:
    """The application on a free port: its address."""
    import uvicorn

    app = application(memory, private=private)
    config = uvicorn.Config(app, lifespan="off", port=0, log_level="error", access_log=False)
    server = uvicorn.Server(config)
    sockets = [config.bind_socket()]
    thread = Thread(target=server.run, args=(sockets,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(20)
