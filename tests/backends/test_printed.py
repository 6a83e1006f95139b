"""A source's plan in words: every figure whole, nothing that steers a terminal."""

from __future__ import annotations

import pytest

from memsift.backends.printed import _reasons, safe


@pytest.mark.parametrize("signals", [1, 2, 3, 5])
def test_no_figure_is_cut_short(signals: int) -> None:
    names = [f"signal{i}" for i in range(signals)]
    parts = {name: {"contribution": -1.0 - i} for i, name in enumerate(names)}
    reason = {"id": 7, "signals": parts, "score": -12.3456, "margin": -0.98765}
    head, row = _reasons([reason])
    assert head.split() == ["id", *names, "score", "to", "the", "cut"]
    figures = [f"{-1.0 - i:.4f}" for i in range(signals)]
    assert row.split() == ["7", *figures, "-12.3456", "-0.9877"]


def test_an_id_steers_no_terminal() -> None:
    assert safe("a\x1b[2J") == "a\\x1b[2J"
    assert safe(None) == "(none)"
    assert safe("x" * 50) == "xxxxxxxxx..xxxxxxxxx"
