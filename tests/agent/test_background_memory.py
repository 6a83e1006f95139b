"""`AgentMemory.open(background=True)`: compacted ahead of time, and its figures are in `stats`."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsift.agent import AgentMemory
from memsift.errors import InvalidType


def test_a_memory_may_be_compacted_in_the_background(tmp_path: Path) -> None:
    with AgentMemory.open(
        tmp_path / "a.memsift", embedder="hashed", budget=40, background=True, low_watermark=0.5
    ) as memory:
        memory.remember_many([f"fact number {i}: {'x' * i}" for i in range(39)])
        compactor = memory.store._compactor
        assert compactor is not None
        assert compactor.settle()
        assert len(memory) == 20
        assert memory.stats().compactor == compactor.state()
        assert memory.stats().to_dict()["compactor"]["evicted"] == 19


def test_nothing_runs_unless_it_was_asked_for(tmp_path: Path) -> None:
    with AgentMemory.open(tmp_path / "a.memsift", embedder="hashed", budget=40) as memory:
        assert memory.stats().compactor is None
    with pytest.raises(InvalidType, match="background must be True or False"):
        AgentMemory.open(tmp_path / "b.memsift", background="yes")  # type: ignore[arg-type]
    assert not (tmp_path / "b.memsift").exists()
