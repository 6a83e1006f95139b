"""ADK's memory service on a memsift file: sessions that grow, a budget, users apart, and an agent's own tool."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk.memory", reason="the extra adk is not installed")

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Blob, Content, FunctionCall, Part

from memsift import LruPolicy
from memsift.adapters.adk import MemsiftMemoryService
from memsift.errors import InvalidMetadata, InvalidValue


def done(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def event(id_: str, text: str, author: str = "user", at: float = 1_700_000_000.0) -> Event:
    role = "user" if author == "user" else "model"
    content = Content(role=role, parts=[Part(text=text)])
    return Event(id=id_, author=author, content=content, timestamp=at)


def session(*events: Event, id_: str = "s1", user: str = "ada") -> Session:
    return Session(id=id_, app_name="app", user_id=user, events=list(events))


def asked(service: MemsiftMemoryService, query: str, user: str = "ada") -> list[MemoryEntry]:
    found = done(service.search_memory(app_name="app", user_id=user, query=query))
    memories: list[MemoryEntry] = found.memories
    return memories


def words(memories: list[MemoryEntry]) -> list[str]:
    return [memory.content.parts[0].text for memory in memories]


NUTS = event("1", "I am allergic to nuts")
TEA = event("2", "Green tea is what I drink in the morning")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.memsift"


def test_what_was_said_is_found_again_by_another_process(path: Path) -> None:
    with MemsiftMemoryService(path, embedder="hashed") as service:
        done(service.add_session_to_memory(session(NUTS, TEA)))
    with MemsiftMemoryService(path, embedder="hashed") as service:
        best = asked(service, "allergic to nuts?")[0]
        assert (best.id, best.author, best.content.role) == ("1", "user", "user")
        assert best.timestamp == "2023-11-14T22:13:20+00:00"
        assert words([best]) == ["I am allergic to nuts"]


def test_users_are_apart_and_share_the_budget(path: Path) -> None:
    with MemsiftMemoryService(path, embedder="hashed", budget=3) as service:
        done(service.add_session_to_memory(session(NUTS)))
        done(service.add_session_to_memory(session(event("1", "I love nuts"), user="bob")))
        assert words(asked(service, "nuts", "bob")) == ["I love nuts"]
        assert words(asked(service, "nuts")) == ["I am allergic to nuts"]
        assert asked(service, "nuts", "eve") == []
        many = [event(str(i), f"remark number {i}") for i in range(10, 20)]
        done(service.add_session_to_memory(session(*many)))
        assert len(service.store) <= 3


def test_a_session_that_grows_brings_nothing_back(path: Path) -> None:
    """Two places: the oldest leaves. Added again with one more, the session adds just that; deleted ones stay away."""
    options = {"budget": 2, "policy": LruPolicy(), "low_watermark": 1.0, "min_similarity": -1.0}
    first, second, third = (event(str(i), f"remark number {i}") for i in range(3))
    with MemsiftMemoryService(path, embedder="hashed", **options) as service:
        done(service.add_session_to_memory(session(first, second, third)))
        assert {m.id for m in asked(service, "remark")} == {"1", "2"}
        before = service.store.ids().tolist()
        done(service.add_session_to_memory(session(first, second, third)))
        assert service.store.ids().tolist() == before
        gone = {"app_name": "app", "user_id": "ada", "memory_id": "1"}
        done(service.delete_memory(**gone))
        done(service.delete_memory(**gone))
        done(service.delete_memory(app_name="app", user_id="ada"))
        done(service.add_session_to_memory(session(first, second, third)))
        assert {m.id for m in asked(service, "remark")} == {"2"}


def test_only_words_are_kept(path: Path) -> None:
    mixed = Content(
        role="model",
        parts=[
            Part(text="Here is"),
            Part(inline_data=Blob(data=b"\0", mime_type="image/png")),
            Part(text="a secret plan", thought=True),
            Part(text="your picture"),
        ],
    )
    silent = Content(role="model", parts=[Part(function_call=FunctionCall(name="f", args={}))])
    events = [
        Event(id="1", author="bot", content=mixed),
        Event(id="2", author="bot", content=silent),
    ]
    with MemsiftMemoryService(path, embedder="hashed") as service:
        done(service.add_session_to_memory(session(*events, Event(id="3", author="bot"))))
        assert words(asked(service, "picture")) == ["Here is\nyour picture"]
        assert len(service.store) == 1


def test_deltas_and_memories_of_the_caller_s_own(path: Path) -> None:
    named: Any = {"app_name": "app", "user_id": "ada"}
    content = Content(parts=[Part(text="Ada likes the sea")])
    with MemsiftMemoryService(path, embedder="hashed", top_k=1) as service:
        done(service.add_events_to_memory(**named, events=[NUTS], custom_metadata={"kind": "fact"}))
        done(service.add_events_to_memory(**named, events=[NUTS]))
        assert asked(service, "allergic to nuts")[0].custom_metadata == {"kind": "fact"}
        memory = MemoryEntry(content=content, id="m", timestamp="2026-01-02T03:04:05+00:00")
        done(service.add_memory(**named, memories=[memory, MemoryEntry(content=content)]))
        again = memory.model_copy(
            update={"content": Content(parts=[Part(text="Ada likes the hills")])}
        )
        done(service.add_memory(**named, memories=[again]))
        best = asked(service, "Ada likes the hills")
        assert (words(best), best[0].timestamp) == (["Ada likes the hills"], memory.timestamp)
        assert len(service.store) == 3


def test_what_is_unlike_the_query_is_left_out(path: Path) -> None:
    with MemsiftMemoryService(path, embedder="hashed", min_similarity=0.99) as service:
        done(service.add_session_to_memory(session(NUTS, TEA)))
        assert words(asked(service, "I am allergic to nuts")) == ["I am allergic to nuts"]


def test_what_cannot_be_kept_is_refused_as_a_whole(path: Path) -> None:
    named: Any = {"app_name": "app", "user_id": "ada"}
    with MemsiftMemoryService(path, embedder="hashed") as service:
        with pytest.raises(InvalidValue, match="65,536"):
            done(service.add_session_to_memory(session(NUTS, event("2", "x" * 70_000))))
        with pytest.raises(InvalidMetadata, match="custom_metadata"):
            done(service.add_events_to_memory(**named, events=[NUTS], custom_metadata={"a": {1}}))
        with pytest.raises(InvalidValue, match="query"):
            asked(service, "")
        assert len(service.store) == 0
