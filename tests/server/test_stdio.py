"""Stdio that cannot be knocked over: every line is answered, stdout carries JSON alone, nothing makes it exit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import hostile
import pytest
from hostile import Campaign, expected
from mcp_talk import HELLO, PATIENCE, Talk, command, environment

from memsift.server.mcp import frames
from memsift.server.mcp.frames import LARGEST_LINE, understand

ERAS = ("2025-11-25", "2026-07-28")


@pytest.mark.parametrize("era", ERAS)
def test_hostile_messages_are_answered_once_each_and_nobody_falls_over(
    tmp_path: Path, era: str
) -> None:
    done = hostile.run(tmp_path / "m.memsift", 400, seed=11, era=era)
    assert done.bad_lines == []
    assert done.missing == []
    assert done.surplus == []
    assert done.unnamed == done.unnamed_expected > 50
    assert done.replies > 150
    assert done.exit_code == 0
    assert done.grown < 64 * 2**20
    assert b"Traceback" not in done.stderr


def test_a_line_is_understood_as_a_dumb_model_says() -> None:
    kinds = set()
    for line in Campaign(5, "2025-11-25").lines(3000):
        by_id, unnamed = expected(line)
        frame = understand(line)
        ids = [reply["id"] for reply in frame.replies]
        assert ids.count(None) == unnamed, line[:300]
        if frame.message is None:
            assert sorted(map(str, by_id.elements())) == sorted(
                str(i) for i in ids if i is not None
            )
        else:
            assert not ids
        kinds.add((frame.message is None, len(ids), unnamed))
    assert len(kinds) >= 4


@pytest.mark.parametrize(
    ("line", "id_"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"%s"}}', 7),
        (b'{"id":"seven","jsonrpc":"2.0","method":"ping","params":{"x":"%s"}}', "seven"),
        (b'{"method":"ping","params":{"x":"%s"},"jsonrpc":"2.0","id":7}', 7),
        (b'{"method":"ping","params":{"x":"%s"},"id":-7,"jsonrpc":"2.0"}', -7),
        (b'{"method":"ping","params":{"id":7,"x":"%s"},"jsonrpc":"2.0"}', None),
        (b'{"method":"ping","params":{"x":"%s","id":7}}', None),
        (b'{"method":"ping","params":{"x":"%s, \\"id\\":7}"}}', None),
        (b'{"id":true,"x":"%s"}', None),
        (b"%s!", None),
    ],
)
def test_a_line_that_is_too_long_is_answered_by_its_id_where_that_can_be_told(line, id_) -> None:
    long = line.replace(b"%s", b"x" * LARGEST_LINE)
    (reply,) = understand(long).replies
    assert reply["id"] == id_
    assert str(LARGEST_LINE) in reply["error"]["message"]


def test_lines_up_to_the_limit_are_read_and_longer_ones_refused_without_an_end(
    tmp_path: Path,
) -> None:
    with Talk(tmp_path / "m.memsift") as talk:
        talk.hello()
        before = talk.rss()
        frame = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": ""}})
        fill = LARGEST_LINE - len(frame)
        talk.raw(frame.replace('""', f'"{"x" * fill}"').encode())
        assert talk.next() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        talk.raw(frame.replace('""', f'"{"x" * (fill + 1)}"').encode())
        assert talk.next()["error"]["code"] == frames.INVALID_REQUEST
        for _ in range(5):
            talk.raw(b'{"jsonrpc":"2.0","id":9,' + b" " * (8 * LARGEST_LINE))
            assert talk.next()["id"] == 9
        assert talk.ask("ping")["result"] == {}
        assert talk.rss() - before < 64 * 2**20
        assert talk.close() == 0


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"hello", frames.PARSE_ERROR),
        (b"\xff\xfe\x00", frames.PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', frames.PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', frames.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', frames.INVALID_REQUEST),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', frames.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":["ping"]}', frames.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', frames.INVALID_PARAMS),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', frames.INVALID_REQUEST),
        (b"[]", frames.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"[" * 20000 + b"]" * 20000 + b"}}",
         frames.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"[" * 70 + b"]" * 70 + b"}}",
         frames.INVALID_REQUEST),
    ],
)  # fmt: skip
def test_what_is_no_message_has_a_decided_answer(line: bytes, code: int) -> None:
    (reply,) = understand(line).replies
    assert reply["error"]["code"] == code
    named = b'"id":1,' in line and code != frames.PARSE_ERROR
    assert reply["id"] == (1 if named else None)


PRINTING = """
import ctypes, os, sys
import memsift.server.mcp.calls as calls
print("while starting")
def loud(desk, arguments, progress):
    print("in a tool"); sys.stdout.flush(); sys.__stdout__.write("past it\\n"); sys.__stdout__.flush()
    os.write(1, b"to the descriptor\\n")
    ctypes.CDLL(None).puts(b"from a library"); ctypes.CDLL(None).fflush(None)
    os.system("echo from a child; cat")
    raise RuntimeError("secret words")
import memsift.server.mcp.tools as tools, dataclasses
tools.ALWAYS = (dataclasses.replace(tools.STATS, run=loud), *tools.ALWAYS[1:])
import memsift.cli
memsift.cli.main()
"""


@pytest.mark.skipif(os.name != "posix", reason="calls the C library by its POSIX name")
def test_whoever_prints_prints_to_stderr(tmp_path: Path) -> None:
    script = tmp_path / "loud.py"
    script.write_text(PRINTING.replace('print("while starting")\n', ""))
    argv = [sys.executable, "-W", "error", str(script), *command(tmp_path / "m.memsift")[3:]]
    with Talk("", argv=argv) as talk:
        talk.hello()
        result = talk.call("memory_stats")
        assert result["isError"]
        assert "secret" not in str(result)
        assert talk.ask("ping")["result"] == {}
        assert talk.close() == 0
        assert talk.bad == []
        for words in (
            b"in a tool",
            b"past it",
            b"to the descriptor",
            b"from a library",
            b"a child",
        ):
            assert words in talk.stderr
        assert b"RuntimeError at loud.py" in talk.stderr
        assert b"secret words" not in talk.stderr


def test_calls_that_are_under_way_are_answered_after_the_client_closed_its_end(
    tmp_path: Path,
) -> None:
    """As when lines come from a file: `memsift serve m.memsift < lines`."""
    with Talk(tmp_path / "m.memsift") as talk:
        talk.hello()
        for number in range(60):
            arguments = {"text": f"fact {number}"}
            talk.send(
                id=number,
                method="tools/call",
                params={"name": "memory_add", "arguments": arguments},
            )
        assert talk.close() == 0
        answers = [talk.next() for _ in range(60)]
        assert sorted(answer["id"] for answer in answers) == list(range(60))
        assert all(not answer["result"].get("isError") for answer in answers)


def test_lines_may_come_from_a_file_and_answers_go_into_one(tmp_path: Path) -> None:
    lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}]
    lines += [{"jsonrpc": "2.0", "id": i, "method": "tools/list"} for i in range(1, 20)]
    asked, answers = tmp_path / "in", tmp_path / "out"
    asked.write_text("\n".join(map(json.dumps, lines)))  # the last one without a line break
    with asked.open("rb") as source, answers.open("wb") as sink:
        argv = command(tmp_path / "m.memsift")
        done = subprocess.run(
            argv, stdin=source, stdout=sink, stderr=subprocess.PIPE, env=environment(), timeout=PATIENCE
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in answers.read_text().splitlines()]
    assert sorted(answer["id"] for answer in found) == list(range(20))


def test_a_client_that_stops_reading_stops_the_server(tmp_path: Path) -> None:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    argv = command(tmp_path / "m.memsift")
    with subprocess.Popen(argv, env=environment(), **pipes) as server:
        server.stdout.close()
        server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 2)
        server.stdin.flush()
        assert server.wait(PATIENCE) == 0
        assert b"Traceback" not in server.stderr.read()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_it_ends_in_good_order_when_it_is_told_to(tmp_path: Path) -> None:
    with Talk(tmp_path / "m.memsift") as talk:
        talk.hello()
        talk.call("memory_add", {"text": "tea"})
        talk.call("memory_search", {"query": "tea"})
        talk.process.terminate()
        assert talk.process.wait(PATIENCE) == 0
    with Talk(tmp_path / "m.memsift") as talk:
        talk.hello()
        hits = talk.call("memory_search", {"query": "tea", "touch": False})["structuredContent"][
            "hits"
        ]
        assert [(hit["text"], hit["access_count"]) for hit in hits] == [("tea", 1)]
