"""LangChain's `VectorStore` on memsift: documents by id, found by meaning, forgotten by a budget."""

from __future__ import annotations

import os
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from langchain_core.embeddings import Embeddings
from langchain_core.runnables.config import run_in_executor

from memsift.adapters.keys import Name, checked_key
from memsift.adapters.langchain.documents import named, things
from memsift.adapters.langchain.search import Search
from memsift.adapters.shelf import Shelf
from memsift.budget import Budget
from memsift.durable import DurableStore
from memsift.errors import InvalidValue
from memsift.policies.base import CompactionPolicy
from memsift.store import MemoryStore


class MemsiftVectorStore(Search):
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
        As for `MemoryStore.open`. `dim` is found by embedding a word, unless it is given.

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
        self._clock, self._folder = clock, None
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
        super().__init__(Shelf(MemoryStore.open(path, **options)), embedding)
        if self._folder is not None:
            # The folder goes first otherwise, and the store would be closed without it.
            weakref.finalize(self, _leave, self.store, self._folder)

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


def _leave(store: DurableStore, folder: tempfile.TemporaryDirectory[str]) -> None:
    store.close()
    folder.cleanup()
