"""Embedders: text in, vectors out. The default works offline; none loads anything before its first text."""

from memsift.agent.embedders.base import (
    EXACT_ONLY,
    Embedder,
    embed_and_count,
    near_duplicate,
    tokens,
)
from memsift.agent.embedders.choose import as_embedder, default, parse
from memsift.agent.embedders.function import Function
from memsift.agent.embedders.hashed import HashedNgrams
from memsift.agent.embedders.wordllama import Wordllama

__all__ = [
    "EXACT_ONLY",
    "Embedder",
    "Function",
    "HashedNgrams",
    "Wordllama",
    "as_embedder",
    "default",
    "embed_and_count",
    "near_duplicate",
    "parse",
    "tokens",
]
