"""Four processes with two threads each on one file, and a SIGKILL each second."""

from __future__ import annotations

from test_kill import campaign, needs_fork


@needs_fork
def test_a_crowd_keeps_its_books() -> None:
    figures = campaign("processes", "6", "--seed", "1")
    assert figures["failures"] == 0
    assert figures["kills"] >= 3
    assert figures["slowest commit after a kill, seconds"] < 1
    assert figures["adds acknowledged"] > 50
