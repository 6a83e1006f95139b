"""LangChain's public test suite for vector stores, in a process of its own, for its pytest plugins."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("langchain_core", reason="the extra langchain is not installed")
pytest.importorskip("langchain_tests", reason="langchain-tests is not installed")

SUITE = Path(__file__).parent / "langchain_suite"


def test_langchain_s_own_suite_passes(tmp_path: Path) -> None:
    """Sync and async, in a file and without one, with sockets forbidden; none is skipped."""
    plugins = ["-p", "pytest_asyncio.plugin", "-p", "pytest_socket"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", str(SUITE / "pytest.ini"), *plugins),
            *("--disable-socket", "--allow-unix-socket", "-p", "no:cacheprovider"),
            *("-q", f"--basetemp={tmp_path / 'inner'}", str(SUITE / "suite.py")),
        ],
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert re.search(r"^50 passed in", done.stdout, re.MULTILINE), done.stdout[-500:]
