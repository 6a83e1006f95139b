"""The pages about the server: their snippets start a server that answers, their tables and figures are the code's."""

from __future__ import annotations

import json
import re
import runpy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from mcp_talk import Talk, command, environment

from memsift.server.http import gate, run
from memsift.server.mcp import endpoint, frames, replies, shapes
from memsift.server.mcp.tools import tools_for

ROOT = Path(__file__).parents[2]
MCP = (ROOT / "docs" / "mcp.md").read_text()
SECURITY = (ROOT / "docs" / "security.md").read_text()
SNIPPETS = dict(re.findall(r"<!-- client: ([\w-]+) -->\n```json\n(.*?)```", MCP, re.DOTALL))
# Where each client looks for its servers.
KEYS = {
    "claude-code": "mcpServers",
    "claude-desktop": "mcpServers",
    "cursor": "mcpServers",
    "vscode": "servers",
    "vscode-http": "servers",
}


def test_there_is_a_snippet_for_each_client() -> None:
    assert SNIPPETS.keys() == KEYS.keys()


@pytest.mark.parametrize("client", KEYS)
def test_a_snippet_is_what_the_client_reads_and_what_it_starts_answers(
    client: str, tmp_path: Path
) -> None:
    (server,) = json.loads(SNIPPETS[client])[KEYS[client]].values()
    if client == "vscode-http":
        assert server["type"] == "http"
        assert server["url"] == "http://127.0.0.1:8765/mcp"
        (asked,) = json.loads(SNIPPETS[client])["inputs"]
        assert server["headers"] == {"Authorization": f"Bearer ${{input:{asked['id']}}}"}
        return
    assert server.keys() <= {"type", "command", "args"}
    assert server.get("type", "stdio") == "stdio"
    assert server["command"] == "memsift"
    subcommand, file, *options = server["args"]
    assert (subcommand, file) == ("serve", "/home/you/agent.memsift")
    argv = [*command(tmp_path / "agent.memsift"), *options]
    with Talk("", argv=argv) as talk:
        talk.hello()
        assert talk.call("memory_stats")["structuredContent"]["entries"] == 0


@pytest.mark.anyio
async def test_the_python_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", MCP, re.DOTALL)
    program, *arguments = command(tmp_path / "agent.memsift")
    code = code.replace(
        'command="memsift", args=["serve", "/home/you/agent.memsift"]', "command=P, args=A, env=E"
    )
    names: dict[str, Any] = {"P": program, "A": arguments, "E": environment()}
    exec(compile(code, "mcp.md", "exec"), names)  # noqa: S102 - our own document
    await names["main"]()
    assert capsys.readouterr().out == "The kettle is in the sink.\n"


def test_the_table_of_tools_is_the_servers() -> None:
    rows = re.findall(
        r"^\| `(memory_\w+)` \| .* \| (yes|no)\b.* \| (yes|no)\b.*\|$", MCP, re.MULTILINE
    )
    told = {name: (changes == "yes", destroys == "yes") for name, changes, destroys in rows}
    tools = tools_for(read_only=False, allow_erase=True)
    assert told == {name: (tool.changes, tool.destroys) for name, tool in tools.items()}


def test_the_figures_are_the_codes() -> None:
    mib = 2**20
    assert f"at most {gate.LARGEST_BODY // mib} MiB, declared or chunked" in SECURITY
    assert f"within {gate.BODY_SECONDS:.0f} seconds" in SECURITY
    assert f"head must come within {run.HEAD_SECONDS:.0f} seconds" in SECURITY
    assert (
        f"{gate.RATE:.0f} requests per second on average, {gate.AT_ONCE} at once, {gate.LARGE_AT_ONCE} of them large, "
        f"{gate.STREAMS} streams, {endpoint.MOST_SESSIONS} sessions, {run.MOST_CONNECTIONS} connections"
    ) in SECURITY
    assert f"Wrong tokens: {gate.BAD_RATE:.0f} per second" in SECURITY
    assert f"at most {frames.LARGEST_LINE // mib} MiB; every line" in SECURITY
    assert f"about {replies.LARGEST_REPLY:,} characters" in MCP
    assert f"{shapes.LONGEST_TEXT:,} characters long" in MCP
    assert f"up to {shapes.MOST_TEXTS:,};" in MCP
    for word in ("anonymous", "irreversible", "GDPR"):
        said = [line for line in SECURITY.splitlines() if word in line]
        assert said == ["- Nothing here makes stored data anonymous."] * (word == "anonymous")


def test_links_lead_somewhere() -> None:
    for page in (MCP, SECURITY):
        for target in re.findall(r"\]\(([\w-]+\.md)\)", page):
            assert (ROOT / "docs" / target).exists()


@pytest.mark.anyio
@pytest.mark.skipif(
    any(find_spec(name) is None for name in ("wordllama", "tokenizers", "safetensors")),
    reason="the transcript was made with memsift[embed]",
)
async def test_the_transcript_is_what_happens(tmp_path: Path) -> None:
    made = runpy.run_path(str(ROOT / "tools" / "mcp_transcript.py"))
    text = await made["transcript"](tmp_path / "demo.memsift")
    assert text == (ROOT / "docs" / "mcp-transcript.md").read_text()
    print(text[text.index("## Recall before and after") :])
