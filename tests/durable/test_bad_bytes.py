"""Files with wrong bytes: a typed error or the same contents, no signal, no hang, no memory without bound."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from crash import mutants
from test_kill import campaign, needs_fork

from memsift import MemoryStore
from memsift.errors import CorruptStore


@needs_fork
def test_six_hundred_mutants() -> None:
    figures = campaign("bytes", "600", "--seed", "1")
    assert figures["failures"] == 0
    assert figures["mutants"] == 600
    assert figures["typed errors"] > 300
    assert figures["slowest, seconds"] < 2


@pytest.fixture
def raw(tmp_path: Path) -> bytes:
    mutants.make(tmp_path / "whole.memsift")
    return (tmp_path / "whole.memsift").read_bytes()


@pytest.mark.parametrize("size", [1, 15, 16, 99, 100, 511])
def test_what_is_too_short_is_refused_and_left_alone(tmp_path: Path, raw: bytes, size: int) -> None:
    """SQLite takes a file of less than a page for an empty one: it was written over."""
    path = tmp_path / "short.memsift"
    path.touch(0o600)
    path.write_bytes(raw[:size])
    with pytest.raises(CorruptStore, match=f"got {size} bytes"):
        MemoryStore.open(path, mutants.DIM)
    assert path.read_bytes() == raw[:size]


@pytest.mark.parametrize("percent", range(1, 100, 7))
def test_a_truncated_file_is_refused_and_left_alone(
    tmp_path: Path, raw: bytes, percent: int
) -> None:
    path = tmp_path / "cut.memsift"
    path.touch(0o600)
    path.write_bytes(raw[: len(raw) * percent // 100])
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        store = MemoryStore.open(path, mutants.DIM, clock=lambda: 1.7e9)
    except CorruptStore:
        pass
    else:  # the last page is one that only a look at everything reads
        found = store.verify()
        store.close()
        assert percent == 99
        assert not found.ok
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
