"""Each adapter needs its own framework and no other, and says so."""

from __future__ import annotations

import subprocess
import sys

import pytest

FRAMEWORKS = {"langgraph": "langgraph", "langchain": "langchain_core", "adk": "google"}
PROBE = """
import sys
sys.modules[sys.argv[2]] = None
from memsift.errors import MissingExtra
try:
    __import__(f"memsift.adapters.{sys.argv[1]}")
except MissingExtra as error:
    print(error)
"""


@pytest.mark.parametrize("extra", FRAMEWORKS)
def test_without_its_framework_an_adapter_names_the_extra(extra: str) -> None:
    command = [sys.executable, "-c", PROBE, extra, FRAMEWORKS[extra]]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert f"pip install 'memsift[{extra}]'" in said
