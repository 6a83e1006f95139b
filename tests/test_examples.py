"""The examples run as their reader would run them: offline, in an empty folder, without a word on stderr."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memsift.agent.embedders import wordllama

EXAMPLES = Path(__file__).parents[1] / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="an installed package has none")
needs_wordllama = pytest.mark.skipif(not wordllama.installed(), reason="needs memsift[embed]")

# Whatever would go out to the network is an error.
OFFLINE = """
import runpy, socket, sys

def refused(*_):
    raise AssertionError("an example looked for the network")

socket.socket.connect = socket.getaddrinfo = refused
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(folder: Path, name: str, *args: str, stdin: int = subprocess.DEVNULL) -> str:
    """What an example prints."""
    command = [sys.executable, "-X", "utf8", "-c", OFFLINE, str(EXAMPLES / name), *args]
    done = subprocess.run(
        command, cwd=folder, stdin=stdin, capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


def numbers(pattern: str, text: str) -> list[int]:
    found = re.search(pattern, text)
    assert found, text
    return [int(group) for group in found.groups()]


def test_every_example_is_tried_here_and_short() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {"chat.py", "coding_agent.py", "library.py"}
    for name in names:
        lines = (EXAMPLES / name).read_text().splitlines()
        assert len(lines) < 80
        assert max(map(len, lines)) <= 120


@needs_wordllama
def test_chat_remembers_and_forgets_within_its_budget(tmp_path: Path) -> None:
    said = run(tmp_path, "chat.py")
    entries, tokens, budget = numbers(r"(\d+) facts, (\d+) of (\d+) tokens", said)
    assert tokens <= budget == 140
    told, forgotten = said.count("\nyou "), said.count("forgot: ")
    assert forgotten >= 1
    assert entries + forgotten <= told + 1
    assert "memory  My brother Rui repairs boats in Setúbal." in said
    assert re.search(r"What am I allergic to\?\nmemory  My name is Ines and I am allergic", said)
    assert list(tmp_path.iterdir()) == []


@needs_wordllama
def test_chat_knows_who_it_talked_to_before(tmp_path: Path) -> None:
    first = run(tmp_path, "chat.py", "me.memsift")
    again = run(tmp_path, "chat.py", "me.memsift")
    assert "(I knew that)" not in first
    assert "!My name is Ines and I am allergic to shellfish.\nmemory  (I knew that)" in again


@needs_wordllama
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_chat_listens_to_a_terminal(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    os.write(ours, b"I like green tea.\nWhich tea do I like?\n\n")
    try:
        said = run(tmp_path, "chat.py", stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert "memory  I like green tea." in said
    assert "1 facts" in said


@needs_wordllama
def test_coding_agent_gives_reasons_and_admits_what_it_regrets(tmp_path: Path) -> None:
    said = run(tmp_path, "coding_agent.py")
    assert "Login tokens expire after one hour" in said
    evicted, of, stay = numbers(r"evicted (\d+) of (\d+), (\d+) stay", said)
    assert evicted + stay == of
    assert "Plan: evict" in said
    wanted = numbers(r"later wanted (\d+)", said)[0]
    assert said.count("came back: ") == wanted >= 1
    assert "the audit chain: ok" in said


@needs_wordllama
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_coding_agent_reads_a_repository(tmp_path: Path) -> None:
    repository = tmp_path / "work"
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    for subject in ("Add the parser", "Fix the cache", "Log jobs", "Fix the cache", "Release"):
        command = ["git", "-C", str(repository), *who, "commit", "-q", "--allow-empty", "-m"]
        subprocess.run([*command, subject], check=True)
    said = run(tmp_path, "coding_agent.py", str(repository))
    assert "remembered 5 commits, 4 of them different" in said


def test_library_compares_policies(tmp_path: Path) -> None:
    said = run(tmp_path, "library.py")
    shares = {
        name: int(share) for name, share in re.findall(r"^(\w[\w ]*?) +(\d+)%", said, re.MULTILINE)
    }
    assert shares.keys() == {"LRU", "LFU", "coherence", "our own"}
    # A seventh of the notes, taken by chance, would find a seventh of the answers.
    assert min(shares.values()) > 20
    assert "evicted 50 of 100, 50 stay" in said
    assert "from the file: MemoryStore(50 entries of dim 32" in said
