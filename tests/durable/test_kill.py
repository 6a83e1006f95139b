"""Writers killed at named points and at any moment: nothing acknowledged is lost, nothing is half done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from crash.points import POINTS

TORTURE = Path(__file__).with_name("torture.py")


def campaign(*arguments: str) -> dict[str, Any]:
    """The last line of a short campaign, run in a process of its own: it forks and kills."""
    command = [sys.executable, str(TORTURE), *arguments, "--dry"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1].split(": ", 1)[1])
    return figures


needs_fork = pytest.mark.skipif(
    not hasattr(os, "fork") or not hasattr(signal, "SIGKILL"), reason="needs fork"
)


@needs_fork
def test_sixty_kills() -> None:
    figures = campaign("kill", "60", "--seed", "1")
    assert figures["failures"] == 0
    assert figures["kills"] == 60
    assert figures["named points"] >= 14
    assert figures["kills during recovery"] > 0


def test_there_are_enough_points() -> None:
    assert len(POINTS) >= 14
