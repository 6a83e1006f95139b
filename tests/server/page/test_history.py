"""What is read of the audit chain for drawing: sums over a made-up chain, however long."""

from __future__ import annotations

import json

import pytest

history = pytest.importorskip("memsift.server.page.history", reason="needs memsift[mcp]")
series = history.series


def body(seq: int, kind: str, evicted: int = 0, restored: int = 0) -> bytes:
    state = {"entries": 1, "bytes": 1, "cost": 1, "digest": None}
    note = {"restored": restored} if kind == "restore" else {}
    record = {"seq": seq, "time": seq * 10**9, "kind": kind, "evicted_count": evicted}
    return json.dumps(record | {"note": note, "after": state}).encode()


def test_a_story_adds_up() -> None:
    told = [
        body(1, "compaction", 5),
        body(2, "restore", restored=2),
        body(3, "erase", 1),
        body(4, "compaction", 4),
    ]
    found = series(told)
    assert found["times"] == [1.0, 2.0, 3.0, 4.0]
    assert found["evicted"] == [5, 5, 5, 9]
    assert found["restored"] == [0, 2, 2, 2]
    assert (found["pruned"], found["readable"]) == (0, True)


def test_a_long_chain_is_drawn_by_few_points_and_the_last_is_among_them() -> None:
    found = series([body(seq, "compaction", 1) for seq in range(101, 5_101)])
    assert len(found["times"]) == len(found["evicted"]) == 240
    assert (found["evicted"][-1], found["times"][-1]) == (5_000, 5_100.0)
    assert found["evicted"] == [int(time) - 100 for time in found["times"]]
    assert (found["records"], found["pruned"]) == (5_000, 100)


@pytest.mark.parametrize(
    "bad", [b"", b"\xff", b"[]", b"null", b"{}", b'{"seq": "x"}', b"[" * 50_000]
)
def test_what_cannot_be_read_ends_the_lines(bad: bytes) -> None:
    found = series([body(1, "compaction", 3), bad, body(3, "compaction", 3)])
    assert (found["evicted"], found["readable"]) == ([3], False)
