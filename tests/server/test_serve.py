"""`memsift serve` as it is started: files, budgets, options, clients of both eras, many processes on one file."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import crowd
import httpx2
import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_talk import PATIENCE, Talk, command, environment

from memsift.agent import AgentMemory
from memsift.cli.app import cli

ERAS = pytest.mark.parametrize(
    ("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")]
)


# ---- what is started -----------------------------------------------------------------------------


@pytest.mark.anyio
@ERAS
async def test_the_official_client_over_stdio(tmp_path: Path, mode: str, version: str) -> None:
    program, *arguments = command(tmp_path / "m.memsift")
    server = StdioServerParameters(command=program, args=arguments, env=environment())
    async with Client(server, mode=mode) as client:
        assert client.protocol_version == version
        await client.call_tool("memory_add", {"text": "The kettle is in the sink."})
        found = await client.call_tool("memory_search", {"query": "kettle"})
        assert found.structured_content["hits"][0]["text"] == "The kettle is in the sink."


def test_a_new_file_gets_a_budget_that_is_said_and_its_owner_alone(tmp_path: Path) -> None:
    with Talk(tmp_path / "m.memsift") as talk:
        talk.hello()
        assert talk.call("memory_stats")["structuredContent"]["budget"] == {"entries": 10_000}
        assert talk.close() == 0
        assert b"m.memsift is made with a budget of 10,000 entries" in talk.stderr
        assert b"serving default: 0 memories" in talk.stderr
    assert (tmp_path / "m.memsift").stat().st_mode & 0o777 == 0o600
    with Talk(tmp_path / "m.memsift", "--budget-cost", "500") as talk:
        talk.hello()
        assert talk.call("memory_stats")["structuredContent"]["budget"] == {"cost": 500}
        assert talk.close() == 0
        assert b"is made" not in talk.stderr


def test_namespaces_are_apart_and_named_by_the_command_alone(tmp_path: Path) -> None:
    file = tmp_path / "m.memsift"
    for name in ("one", "two"):
        with Talk(file, "--namespace", name, "--budget", "10") as talk:
            talk.hello()
            talk.call("memory_add", {"text": f"this is {name}"})
            hits = talk.call("memory_search", {"query": "this"})["structuredContent"]["hits"]
            assert [(h["text"], h["source"]) for h in hits] == [
                (f"this is {name}", f"memsift://{name}/0")
            ]
            asked = talk.call("memory_search", {"query": "this", "namespace": "one"})
            assert asked["isError"]


@pytest.mark.parametrize("damage", ["another embedder", "no memory at all", "no such embedder"])
def test_what_cannot_be_served_ends_with_a_line_and_a_code(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "m.memsift"
    if damage == "another embedder":
        AgentMemory.open(file, embedder="wordllama", budget=10).close()
    elif damage == "no memory at all":
        file.write_bytes(b"hello" * 1000)
    more = ["--embedder", "magic"] if damage == "no such embedder" else []
    done = subprocess.run(
        command(file, *more), input=b"", capture_output=True, env=environment(), timeout=PATIENCE
    )
    assert done.returncode in (1, 2)
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr
    assert 1 <= len(done.stderr.strip().splitlines()) <= 6
    if damage == "another embedder":
        assert b"hashed" in done.stderr
        assert b"wordllama" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--http", "--host", "0.0.0.0"], "--host must be of this machine alone"),
        (
            ["--http", "--host", "0.0.0.0", "--token-file", "t"],
            "--host must be of this machine alone",
        ),
        (
            ["--http", "--host", "::", "--allowed-host", "a.org"],
            "--host must be of this machine alone",
        ),
        (
            ["--http", "--host", "10.0.0.1", "--allowed-host", "a.org"],
            "--host must be of this machine",
        ),
        (["--http", "--allowed-host", "*"], "--allowed-host must be a name"),
        (["--http", "--port", "65536"], "not in the range"),
        (["--http", "--host", "no such host"], "--host must be of this machine"),
        (["--private"], "go with --http"),
        (["--allowed-host", "a.org"], "go with --http"),
        (["--read-only"], "FILE must exist"),
        (["--budget", "0"], "Budget.entries must be"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path, arguments, words) -> None:
    result = CliRunner().invoke(cli, ["serve", str(tmp_path / "m.memsift"), *arguments])
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []


# ---- HTTP ----------------------------------------------------------------------------------------


@contextmanager
def over_http(argv: list[str], secret_in: Path) -> Iterator[tuple[str, str, list[bytes]]]:
    """A server's address and token, and what it wrote to stderr; it must end in good order when it is told to."""
    with subprocess.Popen(
        argv, stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as server:
        lines: list[bytes] = []
        try:
            while not lines or b"; the token is in" not in lines[-1]:
                lines.append(server.stderr.readline())
                assert lines[-1], lines
            url = re.search(rb"(http://\S+)/mcp;", lines[-1])[1].decode()
            secret = secret_in.read_text().strip()
            yield url, secret, lines
        finally:
            server.terminate()
        assert server.wait(PATIENCE) == 0
        assert server.stdout.read() == b""
        lines += server.stderr.readlines()
        assert secret.encode() not in b"".join(lines)
        assert b"Traceback" not in b"".join(lines)


@pytest.mark.anyio
@ERAS
async def test_the_official_client_over_http(tmp_path: Path, mode: str, version: str) -> None:
    file = tmp_path / "m.memsift"
    argv = command(file, "--http", "--port", "0")
    with over_http(argv, tmp_path / "m.memsift.token") as (url, secret, _):
        headers = {"Authorization": f"Bearer {secret}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
        ):
            assert client.protocol_version == version
            await client.call_tool("memory_add", {"text": "The kettle is in the sink."})
            found = await client.call_tool("memory_search", {"query": "kettle"})
            assert found.structured_content["hits"][0]["access_count"] == 1
        async with httpx2.AsyncClient() as http:
            assert (await http.post(f"{url}/mcp", json={})).status_code == 401
            page, state = await http.get(url), await http.get(f"{url}/api/state")
            assert "<html" in page.text
            assert (state.json()["entries"], state.json()["may_write"]) == (1, False)
            assert (await http.post(f"{url}/api/pin", json={"ids": [0]})).status_code == 401
    with AgentMemory.open(file, embedder="hashed") as memory:
        assert memory.get(0)[0].access_count == 1


@pytest.mark.anyio
async def test_off_loopback_with_a_token_and_a_name(tmp_path: Path) -> None:
    argv = command(tmp_path / "m.memsift", "--http", "--host", "0.0.0.0", "--port", "0")
    argv += ["--token-file", str(tmp_path / "t"), "--allowed-host", "memory.example.org"]
    with over_http(argv, tmp_path / "t") as (url, secret, _):
        here = url.replace("0.0.0.0", "127.0.0.1")
        async with httpx2.AsyncClient() as http:
            named = {"Host": "memory.example.org"}
            shown = {**named, "Authorization": f"Bearer {secret}"}
            for headers, status in (({"Host": "10.0.0.1"}, 421), (named, 401), (shown, 200)):
                assert (await http.get(f"{here}/api/state", headers=headers)).status_code == status


@pytest.mark.anyio
async def test_a_read_only_server_has_a_page_that_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "m.memsift"
    with AgentMemory.open(file, embedder="hashed", budget=10) as memory:
        memory.remember("The kettle is in the sink.")
    argv = command(file, "--http", "--port", "0", "--read-only")
    with over_http(argv, tmp_path / "m.memsift.token") as (url, secret, _):
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}) as http:
            assert (await http.get(f"{url}/api/state")).json()["may_write"] is False
            assert (await http.post(f"{url}/api/pin", json={"ids": [0]})).status_code in (401, 403)
    with AgentMemory.open(file, embedder="hashed") as memory:
        assert memory.get(0)[0].pinned is False


def test_read_only_makes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "m.memsift"
    AgentMemory.open(file, embedder="hashed", budget=10).close()
    for options, words in (
        (["--namespace", "other"], "--namespace must be in the file"),
        (["--budget", "5"], "cannot change a budget"),
    ):
        result = CliRunner().invoke(cli, ["serve", str(file), "--read-only", *options])
        assert result.exit_code == 2
        assert words in " ".join(result.output.split())


# ---- nothing leaks -------------------------------------------------------------------------------

LOUD = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
logging.getLogger().setLevel(logging.DEBUG)
import memsift.cli
memsift.cli.main()
"""


def test_nothing_that_was_stored_is_in_stderr_errors_or_the_audit_log(tmp_path: Path) -> None:
    canary, note, asked = "xylophone-canary-7741", "marimba-canary-1093", "celesta-canary-5512"
    file, script = tmp_path / "m.memsift", tmp_path / "loud.py"
    script.write_text(LOUD)
    argv = [
        sys.executable,
        "-X",
        "dev",
        "-W",
        "ignore",
        str(script),
        *command(file, "--budget", "4")[3:],
    ]
    with Talk("", argv=argv) as talk:
        talk.hello()
        said = []
        for i in range(8):
            talk.call("memory_add", {"text": f"{canary} {i}", "metadata": {"note": note}})
        found = talk.call("memory_search", {"query": asked, "k": 3})
        assert canary in str(found)  # the positive control: it is there to be found
        assert note in str(found)
        ids = [hit["id"] for hit in found["structuredContent"]["hits"]]
        for name, arguments in [
            ("memory_add", {"text": canary, "supersedes": 999}),
            ("memory_add", {"text": canary, "importance": 7}),
            ("memory_add", {"text": canary + "\x00"}),
            ("memory_add", {"texts": [canary, 5]}),
            ("memory_add", {"text": canary, "metadata": {"k": [note]}}),
            ("memory_search", {"query": asked, "where": {"note": {"$no": note}}}),
            ("memory_explain", {"id": 999}),
            ("memory_restore", {"ids": [999]}),
            ("memory_audit", {"last": 50}),
            ("memory_stats", {}),
            ("memory_feedback", {"ids": ids}),
            ("memory_compact", {"target_pct": 50}),
        ]:  # fmt: skip
            said.append(str(talk.call(name, arguments)))
        talk.raw(f'{{"jsonrpc":"2.0","id":5,"method":"{canary}"'.encode())
        talk.send(id=6, method=f"x/{asked}")
        talk.send(id=7, method="tools/call", params={"name": canary * 10, "arguments": {}})
        talk.ask("ping")
        assert talk.close() == 0
        for word in (canary, note, asked):
            assert word.encode() not in talk.stderr
        assert not any(canary in words or asked in words for words in said)
        # What a client sent itself may come back to it, and no more than a little of it.
        assert all(len(words) < 700 for words in said[:8])
    with AgentMemory.open(file, embedder="hashed") as memory:
        log = b"\n".join(memory.store.audit.bodies())
        assert len(log) > 500
        assert canary.encode() not in log


@pytest.mark.anyio
async def test_nothing_that_was_stored_is_in_stderr_over_http(tmp_path: Path) -> None:
    canary, asked = "xylophone-canary-7741", "celesta-canary-5512"
    script = tmp_path / "loud.py"
    script.write_text(LOUD)
    argv = [
        sys.executable,
        str(script),
        *command(tmp_path / "m.memsift", "--http", "--port", "0")[3:],
    ]
    with over_http(argv, tmp_path / "m.memsift.token") as (url, secret, lines):
        for mode in ("auto", "legacy"):
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}) as http,
                Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
            ):
                await client.call_tool("memory_add", {"texts": [canary, f"{canary} 2"]})
                found = await client.call_tool("memory_search", {"query": asked})
                assert canary in str(found.structured_content)
                await client.call_tool("memory_search", {"query": asked, "k": canary})
                seen = await http.get(f"{url}/api/search", params={"q": asked})
                assert asked not in seen.headers.values()
    told = b"".join(lines)
    assert b"serving default" in told
    for word in (canary, asked):
        assert word.encode() not in told


# ---- many at once --------------------------------------------------------------------------------


def test_eight_servers_on_one_file_lose_nothing(tmp_path: Path) -> None:
    done = crowd.run(tmp_path / "m.memsift", servers=8, seconds=4.0)
    assert done.problems == []
    assert done.added > 40
    assert done.evicted > 0
