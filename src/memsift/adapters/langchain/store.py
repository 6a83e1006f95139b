"""LangChain's `VectorStore` on memsift: documents by id, found by meaning, forgotten by a budget."""

from __future__ import annotations

import os
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from memsift import checks
from memsift.adapters.keys import Name, checked_key
from memsift.adapters.langchain.documents import Filter, document, named, things
from memsift.adapters.shelf import Shelf
from memsift.budget import Budget
from memsift.durable import DurableStore
from memsift.errors import InvalidFilter, InvalidValue
from memsift.policies.base import CompactionPolicy
from memsift.store import MemoryStore
from memsift.types import Hit

Scored = tuple[Document, float]


class MemsiftVectorStore(VectorStore):
    """A LangChain vector store inside a hard budget, in a file or for as long as the process lives.

    Parameters
    ----------
    embedding : Embeddings
    path : path, optional
        One SQLite file (0600), which several processes may have open. Without it, a temporary file that leaves with the
        store.
    namespace : str
        One of several memories in the file.
    budget : Budget or int (entries), optional
        A document is one entry; `Budget(cost=n)` counts tokens, four bytes each.
    policy, store_options
        As for `MemoryStore.open`. `dim` is found by embedding a word, if it is not given and the file is new.

    Attributes
    ----------
    store : DurableStore
        What holds the entries: `explain`, `restore`, `stats` and the rest of memsift are there.

    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> store = MemsiftVectorStore(DeterministicFakeEmbedding(size=8), budget=1000)
    >>> store.add_texts(["no nuts", "likes tea"], ids=["diet", "drink"])
    ['diet', 'drink']
    >>> store.similarity_search("no nuts", k=1)[0].id
    'diet'
    >>> store.close()
    """

    def __init__(
        self,
        embedding: Embeddings,
        path: str | os.PathLike[str] | None = None,
        namespace: str = "default",
        *,
        budget: Budget | int | None = None,
        policy: CompactionPolicy | None = None,
        clock: Callable[[], float] = time.time,
        **store_options: Any,
    ) -> None:
        self._embedding, self._clock = embedding, clock
        self._folder = None
        if path is None:
            self._folder = tempfile.TemporaryDirectory(prefix="memsift-")
            path = os.path.join(self._folder.name, "ram.memsift")
        options: dict[str, Any] = {
            "namespace": namespace,
            "budget": budget,
            "policy": policy,
            "clock": clock,
        }
        options |= {"dim": None} | store_options
        if options["dim"] is None:
            options["dim"] = len(embedding.embed_query("dim"))
        self.store: DurableStore = MemoryStore.open(path, **options)
        self._shelf = Shelf(self.store)
        if self._folder is not None:
            # The folder goes first otherwise, and the store would be closed without it.
            weakref.finalize(self, _leave, self.store, self._folder)

    @property
    def embeddings(self) -> Embeddings:
        """What makes the vectors."""
        return self._embedding

    # ---- in --------------------------------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **_: Any,
    ) -> list[str]:
        """Keep texts, each in place of the one of its id, and return their ids.

        Parameters
        ----------
        texts : list of str
            At most 65,536 bytes of UTF-8 each.
        metadatas : list of dict, optional
            Strict JSON, at most 16 KiB with the id.
        ids : list of str or None, optional
            Any text; None, and where they are left out, makes new ones.

        Raises
        ------
        InvalidType, InvalidValue, InvalidMetadata, BudgetExceeded
            Nothing was kept.
        """
        wanted = named(list(texts), metadatas, ids)
        vectors = self._embedding.embed_documents([text for text, _ in wanted.values()])
        return self._put(wanted, vectors)

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **_: Any,
    ) -> list[str]:
        """As `add_texts`, embedded by the coroutine and kept in a thread."""
        wanted = named(list(texts), metadatas, ids)
        vectors = await self._embedding.aembed_documents([text for text, _ in wanted.values()])
        return await run_in_executor(None, self._put, wanted, vectors)

    def add_vectors(
        self,
        texts: Iterable[str],
        vectors: Iterable[Sequence[float]],
        metadatas: Sequence[dict[str, Any] | None] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
    ) -> list[str]:
        """As `add_texts`, with vectors of these texts that are there already: nothing is embedded.

        Raises
        ------
        InvalidValue
            They are not as many as the texts, or an id comes twice; nothing was kept.
        """
        said, rows = list(texts), list(vectors)
        wanted = named(said, metadatas, ids)
        if not len(rows) == len(said) == len(wanted):
            raise InvalidValue(
                f"vectors must be one per text, and ids distinct; got {len(rows)} for {len(said)}, {len(wanted)} ids"
            )
        return self._put(wanted, rows)

    def _put(self, wanted: Any, vectors: Sequence[Sequence[float]]) -> list[str]:
        made = things(wanted, vectors, self._clock())
        with self._shelf.writing():
            self._shelf.put(made)
        return list(wanted)

    def delete(self, ids: list[str] | None = None, **_: Any) -> bool:
        """Delete documents; those that are not there are no error. None deletes all, as LangChain's interface says."""
        with self._shelf.writing() as keys:
            if ids is None:
                names = [name for name, _ in keys.within(())]
            else:
                names = [Name((), checked_key(id_, "ids")) for id_ in dict.fromkeys(ids)]
            self._shelf.remove(names)
        return True

    # ---- out -------------------------------------------------------------------------------------

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
            return self._given(hits, embedding)

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

    def _given(self, hits: list[tuple[Name, Hit]], embedding: Any) -> list[Scored]:
        ids = [hit.id for _, hit in hits]
        self._shelf.came_upon(ids, embedding)
        texts = self.store.texts.get(ids)
        return [
            (document(name, text, hit.metadata), hit.score)
            for (name, hit), text in zip(hits, texts, strict=True)
        ]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda cosine: max(0.0, cosine)

    # ---- life ------------------------------------------------------------------------------------

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **options: Any,
    ) -> Self:
        """A store with these texts; `options` are the constructor's."""
        store = cls(embedding, **options)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **options: Any,
    ) -> Self:
        """As `from_texts`."""
        store = await run_in_executor(None, lambda: cls(embedding, **options))
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    def archived(self) -> list[str]:
        """Ids of documents that the budget evicted and `restore` can bring back."""
        return sorted(name.key for name in self._shelf.resting())

    def restore(self, id_: str) -> bool:
        """Bring an evicted document back; False if none rests in the archive, or there is a newer one by now."""
        return self._shelf.restore(Name((), checked_key(id_, "id_")))

    def close(self) -> None:
        """Write what waits and let the file go. Twice is no error."""
        self.store.close()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _all_pass(hits: list[tuple[Name, Hit]]) -> list[bool]:
    return [True] * len(hits)


def _alone(scored: list[Scored]) -> list[Document]:
    return [found for found, _ in scored]


def _leave(store: DurableStore, folder: tempfile.TemporaryDirectory[str]) -> None:
    store.close()
    folder.cleanup()
