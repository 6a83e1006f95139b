"""The half of a LangChain vector store that looks: by id, by meaning, by marginal relevance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from memsift import checks
from memsift.adapters.keys import Name, checked_key
from memsift.adapters.langchain.documents import Filter, document
from memsift.adapters.shelf import Shelf
from memsift.errors import InvalidFilter
from memsift.types import Hit

Scored = tuple[Document, float]


class Search(VectorStore):
    """Looks on a shelf of documents, for whoever has put them there.

    Parameters
    ----------
    shelf : Shelf
    embedding : Embeddings
    """

    def __init__(self, shelf: Shelf, embedding: Embeddings) -> None:
        self._shelf, self._embedding = shelf, embedding
        self.store = shelf.store

    @property
    def embeddings(self) -> Embeddings:
        """What makes the vectors."""
        return self._embedding

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Documents by their ids, in their order, without those that are not there. Counts an access of each."""
        with self._shelf.looking() as keys:
            names = [Name((), checked_key(id_, "ids")) for id_ in dict.fromkeys(ids)]
            held = {found[0]: name for name in names if (found := keys.find(name)) is not None}
            entries = dict(zip(held, self._shelf.entries(list(held)), strict=True))
            here = {id_: one for id_, one in entries.items() if one is not None}
            self._shelf.came_upon(list(here))
            return [
                document(held[id_], text, entry.metadata) for id_, (entry, text) in here.items()
            ]

    def similarity_search(
        self, query: str, k: int = 4, filter: Filter = None, **_: Any
    ) -> list[Document]:
        """The `k` documents nearest to a query.

        Parameters
        ----------
        filter : dict or callable, optional
            On metadata: equality, `$in $ne $gt $gte $lt $lte $and $or`; or a function of the document.
        """
        return _alone(self.similarity_search_with_score(query, k, filter))

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter = None, **_: Any
    ) -> list[Scored]:
        """The same, each with its cosine to the query: -1 to 1, higher is nearer."""
        vector = self._embedding.embed_query(query)
        return self.similarity_search_with_score_by_vector(vector, k, filter)

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Filter = None, **_: Any
    ) -> list[Document]:
        """The documents nearest to a vector."""
        return _alone(self.similarity_search_with_score_by_vector(embedding, k, filter))

    def similarity_search_with_score_by_vector(
        self, embedding: list[float], k: int = 4, filter: Filter = None, **_: Any
    ) -> list[Scored]:
        """The same, each with its cosine."""
        with self._shelf.looking():
            hits = self._hits(embedding, k, filter)
            return self._given(hits, embedding, None if filter else k)

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter = None,
        **_: Any,
    ) -> list[Document]:
        """`k` of the `fetch_k` nearest documents, chosen to be near to the query and unlike each other."""
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(
            vector, k, fetch_k, lambda_mult, filter=filter
        )

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter = None,
        **_: Any,
    ) -> list[Document]:
        """The same for a vector. Only what is given out counts as accessed."""
        with self._shelf.looking():
            hits = self._hits(embedding, fetch_k, filter)
            entries = self.store.get([hit.id for _, hit in hits])
            near = [
                (pair, e.vector) for pair, e in zip(hits, entries, strict=True) if e is not None
            ]
            query = np.asarray(embedding, np.float32)
            vectors = [vector for _, vector in near]
            chosen = maximal_marginal_relevance(query, vectors, lambda_mult, k)  # type: ignore[arg-type]
            return _alone(self._given([near[place][0] for place in chosen], embedding))

    async def asimilarity_search(
        self, query: str, k: int = 4, filter: Filter = None, **_: Any
    ) -> list[Document]:
        """As `similarity_search`."""
        return _alone(await self.asimilarity_search_with_score(query, k, filter))

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter = None, **_: Any
    ) -> list[Scored]:
        """As `similarity_search_with_score`."""
        vector = await self._embedding.aembed_query(query)
        search = self.similarity_search_with_score_by_vector
        return await run_in_executor(None, search, vector, k, filter)

    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter = None,
        **_: Any,
    ) -> list[Document]:
        """As `max_marginal_relevance_search`."""
        vector = await self._embedding.aembed_query(query)
        search = self.max_marginal_relevance_search_by_vector
        return await run_in_executor(None, search, vector, k, fetch_k, lambda_mult, filter)

    def _hits(self, embedding: Any, k: int, filter_: Filter) -> list[tuple[Name, Hit]]:
        wanted = checks.integer(k, "k", 1)
        if filter_ is None or isinstance(filter_, dict):
            return self._shelf.nearest(embedding, wanted, None, _all_pass, filter_ or None)
        if not callable(filter_):
            raise InvalidFilter(f"filter must be a dict or a function; got {checks.shown(filter_)}")

        def passes(hits: list[tuple[Name, Hit]]) -> list[bool]:
            texts = self.store.texts.get([hit.id for _, hit in hits])
            pairs = zip(hits, texts, strict=True)
            return [
                bool(filter_(document(name, text, hit.metadata))) for (name, hit), text in pairs
            ]

        return self._shelf.nearest(embedding, wanted, None, passes)

    def _given(
        self, hits: list[tuple[Name, Hit]], embedding: Any, k: int | None = None
    ) -> list[Scored]:
        ids = [hit.id for _, hit in hits]
        self._shelf.came_upon(ids, embedding, k)
        texts = self.store.texts.get(ids)
        return [
            (document(name, text, hit.metadata), hit.score)
            for (name, hit), text in zip(hits, texts, strict=True)
        ]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda cosine: max(0.0, cosine)


def _all_pass(hits: list[tuple[Name, Hit]]) -> list[bool]:
    return [True] * len(hits)


def _alone(scored: list[Scored]) -> list[Document]:
    return [found for found, _ in scored]
