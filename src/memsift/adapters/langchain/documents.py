"""Documents on their way in and out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
from langchain_core.documents import Document

from memsift import checks
from memsift.adapters.keys import RESERVED, Name, checked_key, noted
from memsift.adapters.shelf import Thing
from memsift.errors import InvalidMetadata, InvalidValue

Filter = dict[str, Any] | Callable[[Document], bool] | None

BYTES_PER_TOKEN = 4


def named(
    texts: Sequence[str],
    metadatas: Sequence[dict[str, Any] | None] | None,
    ids: Sequence[str | None] | None,
) -> dict[str, tuple[str, dict[str, Any]]]:
    """Texts with their metadata by id, one that is given twice as it was given last; new ids for those without.

    Raises
    ------
    InvalidType, InvalidValue, InvalidMetadata
        Lists of different lengths, ids that are no text, a text with NUL characters or of more than 65,536 bytes,
        metadata that is no strict JSON.
    """
    for name, given in (("metadatas", metadatas), ("ids", ids)):
        if given is not None and len(given) != len(texts):
            raise InvalidValue(f"{name} must be one per text ({len(texts)}); got {len(given)}")
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for place, text in enumerate(texts):
        if text:
            checks.text(text, f"texts[{place}]")
        id_ = None if ids is None else ids[place]
        key = str(uuid4()) if id_ is None else checked_key(id_, f"ids[{place}]")
        note = {} if metadatas is None else metadatas[place] or {}
        checks.metadata(note, f"metadatas[{place}]")
        if taken := RESERVED & note.keys():
            raise InvalidMetadata(
                f"metadatas[{place}] must leave {min(taken)} to the store; it does not"
            )
        found[key] = (text, note)
    return found


def things(
    wanted: dict[str, tuple[str, dict[str, Any]]], vectors: Sequence[Sequence[float]], now: float
) -> list[Thing]:
    """What the store keeps of documents."""
    pairs = zip(wanted.items(), vectors, strict=True)
    return [
        Thing(
            Name((), key),
            np.asarray([vector], np.float32),
            now,
            note,
            text or None,
            max(1, -(-len(text.encode()) // BYTES_PER_TOKEN)),
        )
        for (key, (text, note)), vector in pairs
    ]


def document(name: Name, text: str | None, note: dict[str, Any]) -> Document:
    """A document as it was given."""
    return Document(id=name.key, page_content=text or "", metadata=noted(note))
