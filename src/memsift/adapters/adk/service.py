"""ADK's `BaseMemoryService` on a memsift file: what was said in sessions, found by meaning, forgotten by a budget."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse

from memsift import checks
from memsift.adapters.adk.memories import Said, as_memory, of_events, of_memories
from memsift.adapters.keys import Name, checked_key
from memsift.adapters.shelf import Shelf, Thing
from memsift.agent import embedders
from memsift.agent.embedding import counted, embedded
from memsift.budget import Budget
from memsift.policies.base import CompactionPolicy
from memsift.store import MemoryStore

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.session import Session


class MemsiftMemoryService(BaseMemoryService):
    """What users and agents said, found by meaning, inside a hard budget over all apps and users of the file.

    A session may be added as often as it grows: what is known already stays as it is, what the budget evicted stays
    away while it rests in the archive, and what was deleted through this service is not taken in again by it.

    Parameters
    ----------
    path : path
        One SQLite file (0600), which several processes may have open.
    namespace : str
        One of several memories in the file.
    embedder : Embedder, str, callable or None
        As for `AgentMemory.open`; the default works offline.
    budget : Budget or int (entries), optional
        A memory is one entry; `Budget(cost=n)` counts tokens.
    top_k : int, at least 1
        Memories that a search gives at most.
    min_similarity : float in [-1, 1]
        Cosine below which they are left out.
    policy, store_options
        As for `MemoryStore.open`.

    Attributes
    ----------
    store : DurableStore
        What holds the entries.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        namespace: str = "default",
        *,
        embedder: Any = None,
        budget: Budget | int | None = None,
        policy: CompactionPolicy | None = None,
        top_k: int = 10,
        min_similarity: float = 0.0,
        clock: Callable[[], float] = time.time,
        **store_options: Any,
    ) -> None:
        self._top_k = checks.integer(top_k, "top_k", 1)
        self._least = checks.real(min_similarity, "min_similarity", "from -1 to 1")
        self._embedder, self._clock = embedders.chosen(embedder), clock
        options: dict[str, Any] = {
            "dim": int(self._embedder.dim),
            "embedder": str(self._embedder.fingerprint),
            "clock": clock,
        }
        options |= {"namespace": namespace, "budget": budget, "policy": policy} | store_options
        self.store = MemoryStore.open(path, **options)
        self._shelf = Shelf(self.store)
        self._deleted: set[Name] = set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="memsift-adk")

    async def _do(self, work: Callable[[], Any]) -> Any:
        return await asyncio.wrap_future(self._thread.submit(work))

    # ---- ADK's interface -------------------------------------------------------------------------

    async def add_session_to_memory(self, session: Session) -> None:
        """Take in what was said in a session and is not known yet."""
        said = of_events(session.events, session.app_name, session.user_id, session.id, {})
        await self._do(lambda: self._take_in(said))

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Take in what these events say and is not known yet. `custom_metadata` (strict JSON) is kept with it."""
        said = of_events(events, app_name, user_id, session_id, custom_metadata or {})
        await self._do(lambda: self._take_in(said))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep memories as they are worded, each in place of the one of its id."""
        said = of_memories(memories, app_name, user_id, custom_metadata or {})
        await self._do(lambda: self._put(said))

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """The memories of this user that are nearest to a query, the nearest first. They count as accessed."""
        space = checked_key(app_name, "app_name"), checked_key(user_id, "user_id")
        asked = checks.text(query, "query")
        found = await self._do(lambda: self._search(space, asked))
        return SearchMemoryResponse(memories=found)

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete one memory; one that is not there is no error."""
        if memory_id:
            name = Name((app_name, user_id), memory_id)
            await self._do(lambda: self._delete(name))

    # ---- in the thread ---------------------------------------------------------------------------

    def _take_in(self, said: list[Said]) -> None:
        with self._shelf.looking() as keys:
            away = self._shelf.resting().keys() | self._deleted
            new = [one for one in said if not keys.find(one.name) and one.name not in away]
        self._put(new)

    def _put(self, said: list[Said]) -> None:
        last = {one.name: one for one in said}
        rows, costs = counted(self._embedder, [one.text for one in last.values()])
        now = self._clock()
        things = [
            Thing(name, row[None, :], now if one.at is None else one.at, one.note, one.text, cost)
            for (name, one), row, cost in zip(last.items(), rows, costs, strict=True)
        ]
        if things:
            with self._shelf.writing():
                self._shelf.put(things)

    def _search(self, space: tuple[str, str], query: str) -> list[MemoryEntry]:
        row = embedded(self._embedder, [query])[0]
        with self._shelf.looking():
            found = self._shelf.nearest(
                row, self._top_k, [space], lambda hits: [h.score >= self._least for _, h in hits]
            )
            entries = self._shelf.entries([hit.id for _, hit in found])
            self._shelf.came_upon([hit.id for _, hit in found], row)
            return [
                as_memory(name, one[1], one[0].metadata)
                for (name, _), one in zip(found, entries, strict=True)
                if one is not None and one[1] is not None
            ]

    def _delete(self, name: Name) -> None:
        with self._shelf.writing():
            self._shelf.remove([name])
        self._deleted.add(name)

    # ---- life ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let calls that wait come to their end, write what waits and let the file go. Twice is no error."""
        self._thread.shutdown(wait=True)
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
