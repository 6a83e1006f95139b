"""What comes out of an agent's memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memsift.checks import Metadata
from memsift.types import CompactorState, MemoryEntry, Stats


@dataclass(frozen=True)
class Remembered:
    """What came of one text.

    Parameters
    ----------
    id : int
        Of the entry that holds it now.
    added : bool
        False if an older entry says the same, which was refreshed instead.
    similarity : float or None
        Cosine to the entry that was refreshed.
    evicted : tuple of int
        Ids that left to make room, ascending. Of a batch, all that left stand with its last text.
    """

    id: int
    added: bool
    similarity: float | None = None
    evicted: tuple[int, ...] = ()


@dataclass(frozen=True)
class Recollection:
    """One entry, as it stood when it was asked for.

    Parameters
    ----------
    id : int
    score : float or None
        Cosine to the query; None if there was none.
    text : str or None
        None if the memory keeps no texts, or the entry came without one.
    metadata : dict
    created_at, accessed_at : float
        Unix seconds, UTC.
    access_count, use_count : int
        How often it was recalled, and how often `feedback` said that it helped.
    cost : int
        Tokens of its text.
    pinned : bool
    archived : bool
        It was evicted, and can be restored.
    """

    id: int
    score: float | None
    text: str | None
    metadata: Metadata
    created_at: float
    accessed_at: float
    access_count: int
    use_count: int
    cost: int
    pinned: bool
    archived: bool = False

    @classmethod
    def of(
        cls, entry: MemoryEntry, text: str | None, score: float | None, *, archived: bool
    ) -> Recollection:
        """An entry of the store and its text."""
        named = ("created_at", "accessed_at", "access_count", "use_count", "cost", "pinned")
        values = {name: getattr(entry, name) for name in named}
        return cls(entry.id, score, text, entry.metadata, **values, archived=archived)


@dataclass(frozen=True)
class AgentStats:
    """Figures of this moment: the store's, and what an agent's memory adds to them.

    `embedder` is a fingerprint, `payloads` says whether texts are kept, `text_bytes` counts their UTF-8, archived ones
    included; `compactor` is the state of the one in the background, if there is one.
    """

    store: Stats
    namespace: str
    embedder: str | None
    payloads: bool
    text_bytes: int
    compactor: CompactorState | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        compactor = None if self.compactor is None else self.compactor.to_dict()
        return {**vars(self), "store": self.store.to_dict(), "compactor": compactor}
