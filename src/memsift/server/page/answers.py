"""How the page's server answers: JSON that nobody keeps, and errors that tell what was wrong and nothing else."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from memsift.errors import (
    BudgetExceeded,
    EmbedderFailed,
    InvalidType,
    InvalidValue,
    MemsiftError,
    StaleView,
    StoreBusy,
    UnknownEntry,
)
from memsift.server.page.asked import NotJson, TooLarge
from memsift.server.page.looks import GoneLook

Endpoint = Callable[[Request], Awaitable[Response]]

log = logging.getLogger(__name__)

HEADERS = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            # What the memory holds is others' text: the browser itself refuses to take any of it for markup.
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

# By the first that fits. Their words name what was asked and what is allowed; no other error's words leave the house.
STATUS: tuple[tuple[type[MemsiftError], int], ...] = (
    (TooLarge, 413),
    (NotJson, 415),
    (GoneLook, 410),
    (UnknownEntry, 404),
    (BudgetExceeded, 409),
    (InvalidValue, 400),
    (InvalidType, 400),
)
UNSAID: tuple[tuple[type[MemsiftError], int, str], ...] = (
    (StoreBusy, 503, "another process is writing to the file; try again"),
    (EmbedderFailed, 503, "the embedder could not make a vector of this text"),
    (StaleView, 503, "the memory is changing too quickly; try again"),
)


def answer(values: dict[str, Any], status: int = 200) -> Response:
    return JSONResponse(values, status, headers={**HEADERS, "Cache-Control": "no-store"})


def refusal(message: str, status: int) -> Response:
    response = answer({"error": message}, status)
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def reading(ask: Callable[[Request], dict[str, Any]]) -> Endpoint:
    """An endpoint of a function that reads: in a thread, since the store may wait for its file."""

    @functools.wraps(ask)
    async def endpoint(request: Request) -> Response:
        return await _told(run_in_threadpool(ask, request))

    return endpoint


def writing(
    do: Callable[[Request], Awaitable[dict[str, Any]]], may_write: Callable[[Request], bool]
) -> Endpoint:
    """An endpoint of a coroutine that changes the memory, for who may: asked before the body is read."""

    @functools.wraps(do)
    async def endpoint(request: Request) -> Response:
        if not may_write(request):
            return refusal("changing the memory needs the token, as Authorization: Bearer", 401)
        return await _told(do(request))

    return endpoint


async def _told(done: Awaitable[dict[str, Any]]) -> Response:
    try:
        return answer(await done)
    except MemsiftError as error:
        for kind, status in STATUS:
            if isinstance(error, kind):
                return refusal(str(error), status)
        for kind, status, words in UNSAID:
            if isinstance(error, kind):
                return refusal(words, status)
        return _failed(error)
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> Response:
    # The name alone: an error's words may hold a path, and what it carries may hold what was stored.
    name = type(error).__name__
    log.error("a request of the page failed: %s", name)
    return refusal(f"the memory could not answer ({name})", 500)
