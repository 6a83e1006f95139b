"""memsift's embedders for whatever takes LangChain's."""

from __future__ import annotations

from typing import Any

from langchain_core.embeddings import Embeddings

from memsift.agent import embedders
from memsift.agent.embedding import embedded


class MemsiftEmbeddings(Embeddings):
    """One of memsift's embedders as LangChain's `Embeddings`: the default works offline.

    Parameters
    ----------
    embedder : Embedder, str, callable or None
        As for `AgentMemory.open`.

    Attributes
    ----------
    dim : int
        Length of the vectors: what LangGraph's `IndexConfig` calls `dims`.
    """

    def __init__(self, embedder: Any = None) -> None:
        self.embedder = embedders.chosen(embedder)

    @property
    def dim(self) -> int:
        return int(self.embedder.dim)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A unit vector of each text."""
        made: list[list[float]] = embedded(self.embedder, texts).tolist()
        return made

    def embed_query(self, text: str) -> list[float]:
        """A unit vector of one text."""
        return self.embed_documents([text])[0]
