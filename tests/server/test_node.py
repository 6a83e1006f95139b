"""The official inspector and the official conformance suite, where node is there and npm has or gets them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import web_talk
from mcp_talk import SOURCE, command
from starlette.types import ASGIApp, Receive, Scope, Send
from web_talk import BEARER, web

INSPECTOR = "@modelcontextprotocol/inspector@0.15.0"
HERE = Path(__file__).parent
PASSING = {
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
}


def node_version() -> int:
    try:
        done = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=60)
        return int(done.stdout.strip().lstrip("v").split(".")[0])
    except (OSError, ValueError):
        return 0


NODE = node_version()
# Later ones use a function that node 20 has not.
CONFORMANCE = f"@modelcontextprotocol/conformance@{'0.1.16' if NODE >= 22 else '0.1.13'}"

pytestmark = pytest.mark.skipif(
    NODE < 20 or shutil.which("npx") is None, reason="needs node 20 or later, with npx"
)


def npx(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a package; skip, with npm's words, if npm cannot get it."""
    environment = {
        **os.environ,
        "npm_config_update_notifier": "false",
        "npm_config_fetch_retries": "1",
    }
    try:
        done = subprocess.run(
            ["npx", "-y", *arguments], cwd=cwd, capture_output=True, text=True, env=environment, timeout=240
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not get the package in time")
    if done.returncode and re.search(r"npm (ERR!|error)", done.stderr):
        pytest.skip(f"npm cannot get the package: {done.stderr.strip().splitlines()[-1][:200]}")
    return done


def inspect(cwd: Path, *arguments: str) -> Any:
    done = npx(INSPECTOR, "--cli", *arguments, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_inspector_over_stdio(tmp_path: Path) -> None:
    program, *rest = command(tmp_path / "m.memsift")
    served = ["-e", f"PYTHONPATH={SOURCE}", program, *rest]
    tools = inspect(tmp_path, *served, "--method", "tools/list")["tools"]
    assert {"memory_add", "memory_search", "memory_compact"} <= {tool["name"] for tool in tools}
    call = [*served, "--method", "tools/call", "--tool-name"]
    added = inspect(tmp_path, *call, "memory_add", "--tool-arg", "text=The kettle is in the sink.")
    assert added["structuredContent"]["added"] == 1


class Trusted:
    """Neither has an option for a header: this shows the token for them. Names are checked as ever."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            shown = (b"authorization", BEARER[1].encode())
            scope = {**scope, "headers": [*scope["headers"], shown]}
        await self.app(scope, receive, send)


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server over HTTP that sees the token with every request."""
    real = web_talk.server
    monkeypatch.setattr(web_talk, "server", lambda app: real(Trusted(app)))
    with web(tmp_path / "m.memsift") as served:
        yield f"http://{served.host}/mcp"


def test_the_inspector_over_http(tmp_path: Path, trusted: str) -> None:
    listed = inspect(tmp_path, trusted, "--transport", "http", "--method", "tools/list")
    assert len(listed["tools"]) == 11


def test_the_conformance_suite(tmp_path: Path, trusted: str) -> None:
    """All scenarios run. Those that memsift is not to pass stand in `conformance.yml` with their reasons."""
    expected = HERE / "conformance.yml"
    done = npx(
        CONFORMANCE, "server", "--url", trusted, "--expected-failures", str(expected), cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    passed = set(re.findall(r"^✓ ([\w-]+): \d+ passed, 0 failed", done.stdout, re.MULTILINE))
    assert passed >= PASSING
