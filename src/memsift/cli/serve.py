"""`memsift serve`: the memory as an MCP server, over stdio or HTTP."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memsift.cli.options import budget_of, budget_options, namespace_option, store_file
from memsift.errors import InvalidValue, MemsiftError

if TYPE_CHECKING:
    from memsift.agent import AgentMemory
    from memsift.budget import Budget
    from memsift.server.mcp.desk import Desk

DEFAULT_BUDGET = 10_000
# What these write at lower levels quotes messages, and messages are what is stored.
TALKATIVE = (
    "mcp",
    "sse_starlette",
    "uvicorn",
    "starlette",
    "anyio",
    "asyncio",
    "httpx2",
    "httpcore2",
)


@click.command()
@store_file
@namespace_option
@click.option(
    "--http", "over_http", is_flag=True, help="Serve MCP and the page over HTTP instead of stdio."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where HTTP listens.")
@click.option(
    "--port",
    default=8765,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="0 takes a free one.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the HTTP token lies; made (0600) if it is not there.  [default: FILE.token]",
)
@click.option(
    "--allowed-host",
    "allowed",
    multiple=True,
    help="A name under which HTTP is reached from elsewhere; repeatable.",
)
@click.option(
    "--read-only", is_flag=True, help="Offer only what changes nothing; searches leave no trace."
)
@click.option("--private", is_flag=True, help="Reading on the page needs the token too.")
@click.option("--embedder", help="Such as wordllama, hashed, minilm; the default works offline.")
@click.option("--allow-erase", is_flag=True, help="Offer memory_erase as well.")
@budget_options
def serve(
    file: Path, namespace: str, over_http: bool, host: str, port: int, token_file: Path | None,
    allowed: tuple[str, ...], read_only: bool, private: bool, embedder: str | None, allow_erase: bool,
    **budget: Any,
) -> None:  # fmt: skip
    """Serve a memory to agents by the Model Context Protocol. FILE is made if it is not there.

    \b
    Example:
      memsift serve agent.memsift                     # stdio: what an MCP client starts
      memsift serve agent.memsift --http --port 8765  # http://127.0.0.1:8765/mcp, and the page at /
    """
    limits = budget_of(budget["budget_entries"], budget["budget_bytes"], budget["budget_cost"])
    _check(over_http, host, allowed, token_file, private)
    if read_only:
        _check_read_only(file, namespace, limits)
    if limits is None and not file.exists():
        limits = budget_of(DEFAULT_BUDGET, None, None)
        _say(
            f"{file.name} is made with a budget of {DEFAULT_BUDGET:,} entries; --budget sets another"
        )
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)

    def open_memory() -> AgentMemory:
        from memsift.agent import AgentMemory

        return AgentMemory.open(file, namespace, embedder, limits)

    if over_http:
        _serve_http(
            open_memory, namespace, host, port, token_file or file.with_name(file.name + ".token"),
            allowed, private=private, read_only=read_only, allow_erase=allow_erase,
        )  # fmt: skip
    else:
        _serve_stdio(open_memory, namespace, read_only=read_only, allow_erase=allow_erase)


def _serve_stdio(
    open_memory: Callable[[], AgentMemory], namespace: str, *, read_only: bool, allow_erase: bool
) -> None:
    from memsift.server.mcp.wire import wire

    with wire() as (source, sink):
        desk = _desk(open_memory, namespace, read_only)
        try:
            with _quickly():
                from memsift.server.mcp.run import run_stdio
            run_stdio(desk, source, sink, allow_erase=allow_erase, opened=lambda: _announce(desk))
            desk.wait()  # a client that left at once must not hide why there was no memory
        except BaseExceptionGroup as group:
            raise _first(group) from None
        finally:
            with suppress(MemsiftError):
                desk.close()


def _serve_http(
    open_memory: Callable[[], AgentMemory], namespace: str, host: str, port: int, token_file: Path,
    allowed: tuple[str, ...], *, private: bool, read_only: bool, allow_erase: bool,
) -> None:  # fmt: skip
    from memsift.server.http.names import Names, is_loopback
    from memsift.server.http.token import token_of

    desk = _desk(open_memory, namespace, read_only)
    with _quickly():
        from memsift.server.http.app import build as build_http
        from memsift.server.http.app import shows_token
        from memsift.server.http.gate import LARGEST_BODY
        from memsift.server.http.run import listen, run
        from memsift.server.mcp.app import build
        from memsift.server.mcp.endpoint import Endpoint
        from memsift.server.page import routes
    try:
        token = token_of(token_file)
        with listen(host, port) as sock:
            port = sock.getsockname()[1]
            at_home = is_loopback(host)
            names = Names(port, allowed)
            endpoint = Endpoint(build(desk, allow_erase=allow_erase), LARGEST_BODY)
            _announce(desk)
            page = routes(desk.memory, may_write=lambda asked: not read_only and shows_token(asked))
            app = build_http(endpoint, token, names, page, open_reads=at_home and not private)
            shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
            _say(f"http://{shown}:{port}/mcp; the token is in {token_file}")
            run(app, sock)
    finally:
        with suppress(MemsiftError):
            desk.close()


@contextmanager
def _quickly() -> Iterator[None]:
    """Import the SDK in nine tenths of the time: most of it makes classes, which no collection would free."""
    # Its plugins would see every message that is validated; without them none is looked for either.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


def _desk(open_memory: Callable[[], AgentMemory], namespace: str, read_only: bool) -> Desk:
    from memsift.server.mcp.desk import Desk

    return Desk(open_memory, namespace, read_only=read_only)


def _check(
    over_http: bool, host: str, allowed: tuple[str, ...], token_file: Path | None, private: bool
) -> None:
    from memsift.server.http.names import Names, is_loopback

    Names(0, allowed)
    if not over_http:
        if allowed or private or token_file is not None:
            raise InvalidValue("--allowed-host, --private and --token-file go with --http")
        return
    if not is_loopback(host) and (token_file is None or not allowed):
        raise InvalidValue(
            "--host must be of this machine alone (127.0.0.1), or --token-file and --allowed-host must say who may "
            f"come in and under which name; got {host[:60]!r}"
        )


def _check_read_only(file: Path, namespace: str, limits: Budget | None) -> None:
    """Opening a memory makes what is not there: nothing of that here."""
    from memsift.storage.namespaces import names_in

    if limits is not None:
        raise InvalidValue("--read-only cannot change a budget; leave --budget out")
    if not file.exists():
        raise InvalidValue("FILE must exist to be served read-only")
    if namespace not in [name for name, _, _ in names_in(file)]:
        raise InvalidValue("--namespace must be in the file to be served read-only; it is not")


def _announce(desk: Desk) -> None:
    """What is served, on stderr: figures only."""
    memory = desk.memory
    budget = memory.store.budget
    mode = ", read-only" if desk.read_only else ""
    _say(f"serving {desk.namespace}: {len(memory):,} memories within {budget}{mode}")


def _say(words: str) -> None:
    print(f"memsift: {words}", file=sys.stderr, flush=True)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
