"""A log as JSON lines, and the page about it."""

from __future__ import annotations

import io
import random
import re
from pathlib import Path

import pytest
from audit_logs import STORE, honest_log

from memsift.audit import InvalidRecord, export, verify

PAGE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")


def test_an_export_verifies_anywhere():
    log = honest_log(random.Random(1), 30, prunes=2)
    stream = io.BytesIO()
    assert export.write(iter(log.bodies), stream) == len(log.bodies)
    assert stream.getvalue().count(b"\n") == len(log.bodies)
    stream.seek(0)
    assert verify(export.read(stream), STORE, log.head).status == "ok"
    stream.seek(0)
    assert list(export.read(stream)) == log.bodies


def test_it_streams():
    log = honest_log(random.Random(2), 5)
    taken = 0

    def bodies():
        nonlocal taken
        for body in log.bodies:
            taken += 1
            yield body

    class Pipe:
        def __init__(self):
            self.seen = []

        def write(self, line):
            self.seen.append((taken, line))

    pipe = Pipe()
    export.write(bodies(), pipe)
    assert [n for n, _ in pipe.seen] == [1, 2, 3, 4, 5]
    lines = iter([line for _, line in pipe.seen])

    class Source:
        def readline(self, size):
            return next(lines, b"")

    reader = export.read(Source())
    assert next(reader) == log.bodies[0]
    assert len(list(lines)) == 4, "nothing is read ahead"


def test_an_empty_file_is_an_empty_log():
    assert list(export.read(io.BytesIO(b""))) == []
    assert export.write([], io.BytesIO()) == 0


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda t: t.replace(b"\n", b"\r\n"), "carriage return"),
        (lambda t: t[:-1], "cut off"),
        (lambda t: t[:-100], "cut off"),
        (lambda t: t + b"\n", "empty"),
        (lambda t: b"\n" + t, "line 1 .* empty"),
        (lambda t: t + b"x" * 10**6, "longer than a record"),
    ],
)
def test_a_spoilt_file_is_refused(spoil, words):
    log = honest_log(random.Random(3), 4)
    stream = io.BytesIO()
    export.write(log.bodies, stream)
    with pytest.raises(InvalidRecord, match=words):
        list(export.read(io.BytesIO(spoil(stream.getvalue()))))


def test_lines_cannot_be_smuggled_in():
    with pytest.raises(InvalidRecord, match="one line"):
        export.write([b"{}\n{}"], io.BytesIO())


def test_the_page_s_python_runs(tmp_path, monkeypatch):
    pytest.importorskip("cryptography")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert blocks
    space: dict = {}
    for block in blocks:
        exec(compile(block, "docs/audit.md", "exec"), space)  # noqa: S102 - our own document
