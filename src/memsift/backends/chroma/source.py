"""A collection of Chroma as a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
from chromadb.errors import NotFoundError

from memsift import checks
from memsift.backends.chroma.connection import close, name_of, translated
from memsift.backends.documents import Document, DocumentSource
from memsift.backends.fields import Fields, digest, instant, is_number
from memsift.backends.ids import Id
from memsift.errors import InvalidType, InvalidValue, SourceTrouble

Where = dict[str, Any]
# Beginnings that Chroma keeps for itself.
RESERVED = ("$", "#", "chroma:")


class ChromaSource(DocumentSource):
    """A collection of Chroma as a `Source`.

    Parameters
    ----------
    client : chromadb.api.ClientAPI
        From `chromadb.HttpClient` or `chromadb.PersistentClient`. `close` closes it.
    collection : str
    fields : Fields
        Names in the metadata.
    batch : int
        Entries of a request, 1 to 10,000.

    Raises
    ------
    InvalidValue
        No such collection, or a field whose name Chroma does not allow.
    SourceTrouble
        The server cannot be reached, or refuses.
    """

    def __init__(
        self,
        client: Any,
        collection: str,
        fields: Fields | None = None,
        *,
        batch: int = 1000,
    ) -> None:
        if not hasattr(client, "get_collection"):
            raise InvalidType(f"client must be a client of chromadb; got {type(client).__name__}")
        if not isinstance(collection, str) or not collection:
            raise InvalidValue(f"collection must be its name; got {checks.shown(collection)}")
        super().__init__(name_of(client, collection), fields or Fields(), batch)
        for role, name in self.fields.names.items():
            if name.startswith(RESERVED):
                raise InvalidValue(
                    f"Fields.{role} must not begin with {', '.join(RESERVED)}; got {name!r:.60}"
                )
        self.client = client
        try:
            with translated():
                # Without a function of its own: Chroma's default one would load a model.
                self.collection = client.get_collection(collection, embedding_function=None)
        except SourceTrouble as error:
            if isinstance(error.__context__, NotFoundError):
                raise InvalidValue(
                    f"collection must be one that exists; got {collection!r:.60}"
                ) from None
            raise
        self._dim = 0

    @property
    def dim(self) -> int:
        if not self._dim:
            with translated():
                first = self.collection.get(limit=1, include=["embeddings"])["embeddings"]
            self._dim = 1 if first is None or not len(first) else len(first[0])
        return self._dim

    def close(self) -> None:
        with translated():
            close(self.client)

    def _pages(self, vectors: bool) -> Iterator[list[Document]]:
        # All ids at once, then by id: an offset would skip entries while others are deleted.
        with translated():
            ids = list(dict.fromkeys(self.collection.get(include=[])["ids"]))
        for start in range(0, len(ids), self._batch):
            yield self._read(ids[start : start + self._batch], vectors=vectors)

    def _read(self, ids: list[Id], *, whole: bool = False, vectors: bool = False) -> list[Document]:
        texts = [id_ for id_ in ids if isinstance(id_, str) and _is_unicode(id_)]
        if not texts:
            return []
        asked = ["metadatas", *(["embeddings"] if vectors or whole else [])]
        with translated():
            found = self.collection.get(
                ids=texts, include=[*asked, "documents", "uris"] if whole else asked
            )
        return [self._document(found, row, whole) for row in range(len(found["ids"]))]

    def _delete(self, leaving: list[Document]) -> None:
        for ids, guard in self._guarded(leaving):
            with translated():
                self.collection.delete(ids=ids, where=guard)

    def _guarded(self, leaving: list[Document]) -> Iterator[tuple[list[Id], Where | None]]:
        """Ids to delete, and what must still hold of them: the last access as it was, and no pin."""
        key, values = self.fields.time, [document.values.get("time") for document in leaving]
        numbers = [value for value in values if is_number(value)]
        texts = sorted({str(value) for value in values if instant(value) is not None})
        # Chroma cannot ask for a field that is missing: of entries that were never used only the pin is asked.
        times: dict[str, Where | None] = {
            "number": {key: {"$lte": max(numbers, default=0)}},
            "text": {key: {"$in": texts}},
            "none": None,
        }
        pin = None if self.fields.pin is None else {self.fields.pin: {"$ne": True}}
        kinds = [
            "number" if is_number(value) else "text" if instant(value) is not None else "none"
            for value in values
        ]
        for kind, time in times.items():
            ids = [d.id for d, of in zip(leaving, kinds, strict=True) if of == kind]
            guards = [guard for guard in (time, pin) if guard is not None]
            if ids:
                yield ids, {"$and": guards} if len(guards) > 1 else next(iter(guards), None)

    def _write(self, changes: dict[Id, dict[str, Any]]) -> None:
        names = self.fields.names
        with translated():
            self.collection.update(
                ids=list(changes),
                metadatas=[
                    {names[role]: value for role, value in values.items()}
                    for values in changes.values()
                ],
            )

    def _document(self, found: Mapping[str, Any], row: int, whole: bool) -> Document:
        metadata = _column(found, "metadatas", row) or {}
        embedding = _column(found, "embeddings", row)
        vector = None if embedding is None else np.asarray(embedding, np.float32)
        body = {
            "metadata": {name: _plain(value) for name, value in metadata.items()},
            "document": _column(found, "documents", row),
            "uri": _column(found, "uris", row),
        }
        bits = None if vector is None else vector.astype("<f4").tobytes().hex()
        return Document(
            found["ids"][row],
            {role: metadata.get(name) for role, name in self.fields.names.items()},
            {name: value for name, value in body.items() if value} if whole else {},
            vector,
            digest([body, bits]) if whole else "",
        )


def _column(found: Mapping[str, Any], name: str, row: int) -> Any:
    column = found.get(name)
    return None if column is None else column[row]


def _plain(value: Any) -> Any:
    """A sparse vector as JSON; everything else is that already."""
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _is_unicode(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False
