"""LangGraph's `BaseStore` on a memsift file: items with names and values, found by meaning, forgotten by a budget."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    ListNamespacesOp,
    Op,
    Result,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
)

from memsift import checks
from memsift.adapters.keys import Name, Space
from memsift.adapters.langgraph.errand import Errand, Put, errand_of
from memsift.adapters.langgraph.items import Found, Items
from memsift.adapters.langgraph.namespaces import listed
from memsift.adapters.langgraph.sweeper import Sweeper
from memsift.adapters.langgraph.vectors import BESIDE, as_row, rows
from memsift.adapters.shelf import Shelf, Thing
from memsift.budget import Budget
from memsift.errors import ClosedStore, UnknownEntry
from memsift.policies.base import CompactionPolicy
from memsift.store import MemoryStore
from memsift.types import Receipt

Vectors = Mapping[str, Sequence[float]]
BYTES_PER_TOKEN = 4


class MemsiftStore(BaseStore):
    """A LangGraph store in a file, inside a hard budget.

    What the budget evicts is not found any more; it rests in the archive, from where `restore` brings it back. Several
    processes may have the file open, several threads and coroutines the store.

    Parameters
    ----------
    path : path
        One SQLite file (0600).
    namespace : str
        One of several memories in the file; LangGraph's namespaces lie within it.
    index : IndexConfig, optional
        `dims`, `embed` and `fields`, as for LangGraph's own stores. Without it, nothing is found by meaning.
    budget : Budget or int (entries), optional
        An item takes one entry, or one for each vector if several of its fields are embedded.
    policy, store_options
        As for `MemoryStore.open`.
    ttl : TTLConfig, optional
        Minutes. Expired items are deleted by `sweep_ttl`; with `omit_expired` they are not found before that either.

    Attributes
    ----------
    store : DurableStore
        What holds the entries.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with folder, MemsiftStore(f"{folder.name}/agent.memsift", budget=1000) as store:
    ...     store.put(("users", "ada"), "diet", {"text": "no nuts"})
    ...     store.get(("users", "ada"), "diet").value
    {'text': 'no nuts'}
    """

    supports_ttl = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        namespace: str = "default",
        *,
        index: IndexConfig | None = None,
        budget: Budget | int | None = None,
        policy: CompactionPolicy | None = None,
        ttl: TTLConfig | None = None,
        clock: Callable[[], float] = time.time,
        **store_options: Any,
    ) -> None:
        self.index_config, self.ttl_config = index, ttl
        self._dims = 0 if index is None else checks.integer(index["dims"], "index['dims']", 1)
        self.embeddings = None if index is None else ensure_embeddings(index["embed"])
        options: dict[str, Any] = {"dim": self._dims + BESIDE, "clock": clock} | store_options
        self.store = MemoryStore.open(
            path, namespace=namespace, budget=budget, policy=policy, **options
        )
        self._shelf, self._clock = Shelf(self.store), clock
        self._items = Items(self._shelf, clock, omit_expired=bool((ttl or {}).get("omit_expired")))
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="memsift-langgraph")
        self._sweeper = Sweeper(self.sweep_ttl)

    # ---- LangGraph's interface -------------------------------------------------------------------

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what these operations say: first all that read, then the puts, in one transaction.

        Raises
        ------
        InvalidNamespaceError, InvalidType, InvalidValue, InvalidFilter, BudgetExceeded, StoreBusy
            Nothing was put.
        """
        errand = errand_of(ops, self.index_config)
        said, asked = errand.said(), errand.asked()
        embeddings = self.embeddings
        if embeddings is None:
            return self._do(errand, {}, {})
        known = dict(zip(said, embeddings.embed_documents(said), strict=True)) if said else {}
        return self._do(errand, known, {query: embeddings.embed_query(query) for query in asked})

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, embedded by the coroutine and done in a thread.

        A call that is cancelled before its turn does nothing; one whose turn has come is done as a whole.
        """
        errand = errand_of(ops, self.index_config)
        said, asked = errand.said(), errand.asked()
        embeddings = self.embeddings
        known: Vectors = {}
        queries: Vectors = {}
        if embeddings is not None and said:
            known = dict(zip(said, await embeddings.aembed_documents(said), strict=True))
        if embeddings is not None and asked:
            made = await asyncio.gather(*map(embeddings.aembed_query, asked))
            queries = dict(zip(asked, made, strict=True))
        try:
            doing = self._thread.submit(self._do, errand, known, queries)
        except RuntimeError:
            raise ClosedStore(f"this store was closed; open {self.store.path.name} again") from None
        return await asyncio.wrap_future(doing)

    def _do(self, errand: Errand, known: Vectors, queries: Vectors) -> list[Result]:
        results: list[Result] = [None] * errand.count
        with self._shelf.looking() as keys:
            expiring: list[Found] = []
            for place, op in errand.reads:
                if isinstance(op, ListNamespacesOp):
                    results[place] = listed(self._items.spaces(keys.under(())), op)
                elif isinstance(op, GetOp):
                    found = self._items.find([Name(tuple(op.namespace), op.key)])
                    self._shelf.came_upon([id_ for one in found for id_ in one.ids])
                    results[place] = found[0].item() if found else None
                    expiring += found if op.refresh_ttl else []
                elif isinstance(op, SearchOp):
                    query = queries.get(op.query) if op.query else None
                    found = self._search(op, query)
                    results[place] = [one.search_item() for one in found]
                    expiring += found if op.refresh_ttl else []
        self._refresh([one for one in expiring if one.ttl is not None])
        if errand.puts:
            self._write(list(errand.puts.values()), known)
        return results

    def _search(self, op: SearchOp, query: Sequence[float] | None) -> list[Found]:
        prefix: Space = tuple(op.namespace_prefix)
        stop = op.offset + op.limit
        if query is None:
            found = self._items.latest(prefix, op.filter, stop)[op.offset :]
            self._shelf.came_upon([id_ for one in found for id_ in one.ids])
            return found
        row = rows(Name((), ""), [as_row(query, self._dims)], self._dims)[0]
        found = self._items.nearest(row, prefix, op.filter, stop)
        found = found[op.offset :]
        self._shelf.came_upon([id_ for one in found for id_ in one.ids], row)
        return found

    def _write(self, puts: list[Put], known: Vectors) -> None:
        things = [self._thing(put, known) for put in puts if put.text is not None]
        with self._shelf.writing():
            self._shelf.remove([put.name for put in puts if put.text is None])
            self._shelf.put(things)

    def _thing(self, put: Put, known: Vectors) -> Thing:
        embedded = [known[text] for text in put.said if text in known]
        note = self._items.note(plain=not embedded, ttl=put.ttl)
        cost = -(-len((put.text or "").encode()) // BYTES_PER_TOKEN)
        made = rows(put.name, embedded, self._dims)
        return Thing(put.name, made, self._clock(), note, put.text, cost)

    def _refresh(self, found: list[Found]) -> None:
        """These items were used: their time to live begins anew."""
        if not found:
            return
        with self._shelf.writing() as keys:
            for one in found:
                ids = keys.find(one.name) or ()
                for id_, note in zip(ids, self.store.metadata(ids), strict=True):
                    self.store.update(id_, metadata=self._items.renewed(note or {}))

    # ---- what LangGraph does not ask for ---------------------------------------------------------

    def sweep_ttl(self) -> int:
        """Delete what has expired, and say how many items that were."""
        with self._shelf.writing():
            return self._shelf.remove(self._items.expired())

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> None:
        """Sweep in a thread, every so many minutes (`ttl['sweep_interval_minutes']`, or 5, by default)."""
        minutes = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes")
        self._sweeper.start(60.0 * checks.at_least_zero(minutes or 5, "sweep_interval_minutes"))

    def stop_ttl_sweeper(self) -> None:
        """End that thread."""
        self._sweeper.stop()

    def pin(self, namespace: tuple[str, ...], key: str) -> None:
        """Keep an item whatever the budget says. Only `delete` and its time to live remove it then."""
        self.store.pin(self._held(namespace, key))

    def unpin(self, namespace: tuple[str, ...], key: str) -> None:
        """Let the policy judge an item again."""
        self.store.unpin(self._held(namespace, key))

    def feedback(self, namespace: tuple[str, ...], key: str) -> None:
        """Say that an item helped. To be found is not to be used; only this counts as use."""
        self.store.feedback(self._held(namespace, key))

    def _held(self, namespace: tuple[str, ...], key: str) -> tuple[int, ...]:
        with self._shelf.looking() as keys:
            ids = keys.find(Name(tuple(namespace), key))
        if ids is None:
            raise UnknownEntry("namespace and key must be those of an item in the store")
        return ids

    def archived(self) -> list[tuple[tuple[str, ...], str]]:
        """Namespaces and keys of what the budget evicted and `restore` can bring back."""
        return sorted((name.space, name.key) for name in self._shelf.resting())

    def restore(self, namespace: tuple[str, ...], key: str) -> bool:
        """Bring an evicted item back; False if none rests in the archive, or there is a newer one by now."""
        return self._shelf.restore(Name(tuple(namespace), key))

    def erase(self, namespace: tuple[str, ...], key: str) -> Receipt:
        """Remove an item for good, and evicted ones of its name, from every place within reach."""
        return self._shelf.erase(Name(tuple(namespace), key))

    def close(self) -> None:
        """Let calls that wait come to their end, write what waits and let the file go. Twice is no error."""
        self._sweeper.stop()
        self._thread.shutdown(wait=True)
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
