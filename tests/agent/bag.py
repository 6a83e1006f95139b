"""A small embedder for tests: words counted into as many places as there are dimensions. No two runs differ."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memsift.agent import AgentMemory

WORD = re.compile(r"\w+")


class Bag:
    """Texts with the same words, in whatever order, have the same vector; with other words, most likely another."""

    def __init__(self, dim: int = 256, fingerprint: str | None = None) -> None:
        self.dim = dim
        self.fingerprint = fingerprint or f"bag@1/{dim}"
        self.near_duplicate = 0.9
        self.asked: list[int] = []  # how many texts each call brought

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        self.asked.append(len(texts))
        out = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(out, texts, strict=True):
            for word in WORD.findall(text.lower()):
                row[zlib.crc32(word.encode()) % self.dim] += 1.0
        return out

    def tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(WORD.findall(text)) for text in texts]


def opened(path: Path, **options: Any) -> AgentMemory:
    given: dict[str, Any] = {"embedder": Bag(), "touch_flush_seconds": 1000.0}
    return AgentMemory.open(path / "agent.memsift", **(given | options))


def facts(n: int, start: int = 0) -> list[str]:
    """Texts that have next to nothing in common."""
    return [f"fact{i} about thing{i * 7} in place{i * 13} said{i}" for i in range(start, start + n)]
