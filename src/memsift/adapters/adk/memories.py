"""What ADK's events and memories say, as things to be kept, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from google.adk.memory.memory_entry import MemoryEntry
from google.genai.types import Content, Part

from memsift import checks
from memsift.adapters.keys import Name, checked_key
from memsift.checks import Metadata

if TYPE_CHECKING:
    from google.adk.events.event import Event


@dataclass(frozen=True)
class Said:
    """One text, by whom and when it was said, and what the caller says of it."""

    name: Name
    text: str
    note: Metadata
    at: float | None


def of_events(
    events: Iterable[Event], app: str, user: str, session: str | None, custom: Mapping[str, Any]
) -> list[Said]:
    """Events that say something in words, each under its own id."""
    found = []
    for event in events:
        if text := _words(event.content):
            about = {"author": event.author, "session": session, "said": event.timestamp}
            found.append(_said(app, user, event.id, text, event.content, about, custom))
    return found


def of_memories(
    memories: Iterable[MemoryEntry], app: str, user: str, custom: Mapping[str, Any]
) -> list[Said]:
    """Memories as the caller words them; new ids for those without."""
    found = []
    for memory in memories:
        if text := _words(memory.content):
            about = {"author": memory.author, "said": _seconds(memory.timestamp)}
            both = {**custom, **memory.custom_metadata}
            id_ = memory.id or str(uuid4())
            found.append(_said(app, user, id_, text, memory.content, about, both))
    return found


def _said(
    app: str,
    user: str,
    id_: str,
    text: str,
    content: Any,
    about: dict[str, Any],
    custom: Mapping[str, Any],
) -> Said:
    checks.text(text, f"the text of {id_!r:.60}")
    note = {key: value for key, value in about.items() if value is not None}
    note |= {"role": content.role} if content.role else {}
    note |= {"custom": dict(custom)} if custom else {}
    checks.metadata(note, "custom_metadata")
    space = checked_key(app, "app_name"), checked_key(user, "user_id")
    return Said(Name(space, checked_key(id_, "id")), text, note, about["said"])


def as_memory(name: Name, text: str, note: Metadata) -> MemoryEntry:
    """A memory as ADK knows it."""
    said = note.get("said")
    return MemoryEntry(
        id=name.key,
        content=Content(role=note.get("role"), parts=[Part(text=text)]),
        author=note.get("author"),
        timestamp=None if said is None else datetime.fromtimestamp(said, UTC).isoformat(),
        custom_metadata=note.get("custom", {}),
    )


def _words(content: Content | None) -> str:
    """What is said in words; pictures, calls of tools and thoughts are left out."""
    parts = (content.parts or []) if content else []
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def _seconds(timestamp: str | None) -> float | None:
    if timestamp is None:
        return None
    try:
        return checks.timestamp(datetime.fromisoformat(timestamp), "timestamp")
    except ValueError:
        return None  # ADK prefers ISO 8601, and takes any text
