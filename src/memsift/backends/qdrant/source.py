"""A collection of Qdrant as a source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from qdrant_client import QdrantClient, models

from memsift import checks
from memsift.backends.documents import Document, DocumentSource
from memsift.backends.fields import Fields, instant, is_number
from memsift.backends.ids import Id
from memsift.backends.qdrant.connection import name_of, translated
from memsift.backends.qdrant.points import (
    ID_FIELD,
    Path,
    as_id,
    digest_of,
    path_of,
    point_id,
    value_at,
    vector_of,
    written,
)
from memsift.errors import InvalidType, InvalidValue

BEGINNING = datetime(1, 1, 2, tzinfo=UTC)


class QdrantSource(DocumentSource):
    """A collection of Qdrant as a `Source`.

    Parameters
    ----------
    client : qdrant_client.QdrantClient
        For a server, a cluster, or in local mode. `close` closes it.
    collection : str
    fields : Fields
        Names in the payload. `metadata.user` is `user` in `metadata`; a key with a dot in it is quoted: `"a.b"`.
    vector : str or None
        The name of the vector that policies look at, if the collection has several.
    batch : int
        Points of a request, 1 to 10,000.

    Raises
    ------
    InvalidValue
        No such collection or vector.
    SourceTrouble
        The server cannot be reached, or refuses.
    """

    def __init__(
        self,
        client: QdrantClient,
        collection: str,
        fields: Fields | None = None,
        *,
        vector: str | None = None,
        batch: int = 1000,
    ) -> None:
        if not isinstance(client, QdrantClient):
            raise InvalidType(f"client must be a QdrantClient; got {type(client).__name__}")
        if not isinstance(collection, str) or not collection:
            raise InvalidValue(f"collection must be its name; got {checks.shown(collection)}")
        super().__init__(name_of(client, collection), fields or Fields(), batch)
        self.client, self.collection = client, collection
        self._paths = {role: path_of(name) for role, name in self.fields.names.items()}
        wanted = [ID_FIELD, *(written(path) for path in self._paths.values())]
        # Local mode of some versions finds no quoted keys.
        self._mapped: Any = True if any('"' in path for path in wanted) else wanted
        self._vector, self._dim = _vector_of_collection(client, collection, vector)

    @property
    def dim(self) -> int:
        return self._dim

    def record_access(self, ids: Sequence[Id]) -> int:
        """See `Source.record_access`. An id may also be what the client calls it: a UUID as text."""
        forms = [form for id_ in ids for form in (id_, _as_uuid(id_)) if form is not None]
        return super().record_access(forms)

    def close(self) -> None:
        self.client.close()

    def _pages(self, vectors: bool) -> Iterator[list[Document]]:
        offset: Any = None
        while True:
            # The offset is the next point's id: whoever comes or goes meanwhile moves nobody else.
            with translated():
                found, offset = self.client.scroll(
                    self.collection,
                    limit=self._batch,
                    offset=offset,
                    with_payload=self._mapped,
                    with_vectors=self._asked(vectors),
                )
            yield [self._document(record) for record in found]
            if offset is None:
                return

    def _read(self, ids: list[Id], *, whole: bool = False, vectors: bool = False) -> list[Document]:
        points = [point for point in map(_point_or_none, ids) if point is not None]
        if not points:
            return []
        with translated():
            found = self.client.retrieve(
                self.collection,
                points,
                with_payload=True if whole else self._mapped,
                with_vectors=True if whole else self._asked(vectors),
                # Replicas that lag behind must not say that an entry is as it was.
                consistency=models.ReadConsistencyType.MAJORITY,
            )
        return [self._document(record, whole) for record in found]

    def _delete(self, leaving: list[Document]) -> None:
        selector = models.FilterSelector(
            filter=models.Filter(
                must=[_has_id([document.id for document in leaving])],
                must_not=self._touched_or_pinned(leaving),
            )
        )
        with translated():
            self.client.delete(self.collection, selector, wait=True)

    def _touched_or_pinned(self, leaving: list[Document]) -> list[models.Condition]:
        """Conditions that hold of a point that was used after these were read, or is pinned by now."""
        times = [document.values.get("time") for document in leaving]
        numbers = [value for value in times if is_number(value)]
        texts = [moment for moment in map(instant, times) if moment is not None]
        key = written(self._paths["time"])
        later = models.Range(gt=max(numbers, default=-1.0))
        out: list[models.Condition] = [
            models.FieldCondition(key=key, range=later),
            models.FieldCondition(
                key=key, range=models.DatetimeRange(gt=max(texts, default=BEGINNING))
            ),
        ]
        if "pin" in self._paths:
            pin = written(self._paths["pin"])
            out += [
                models.FieldCondition(key=pin, match=models.MatchValue(value=True)),
                models.FieldCondition(key=pin, range=models.Range(gt=0.0)),
            ]
        return out

    def _write(self, changes: dict[Id, dict[str, Any]]) -> None:
        # Whoever gets the same values gets them in one operation; of one that left meanwhile no error comes, as a
        # filter selects them.
        alike: dict[tuple[Path, tuple[tuple[str, Any], ...]], list[Id]] = defaultdict(list)
        for id_, values in changes.items():
            below: dict[Path, dict[str, Any]] = defaultdict(dict)
            for role, value in values.items():
                *parents, key = self._paths[role]
                below[tuple(parents)][key] = value
            for parent, payload in below.items():
                alike[parent, tuple(payload.items())].append(id_)
        operations = [
            models.SetPayloadOperation(
                set_payload=models.SetPayload(
                    payload=dict(payload),
                    filter=models.Filter(must=[_has_id(ids)]),
                    key=written(parent) or None,
                )
            )
            for (parent, payload), ids in alike.items()
        ]
        with translated():
            self.client.batch_update_points(self.collection, operations, wait=True)

    def _asked(self, vectors: bool) -> Any:
        """What to ask for: the vector that policies look at, or none."""
        return vectors if self._vector is None or not vectors else [self._vector]

    def _document(self, record: Any, whole: bool = False) -> Document:
        payload = record.payload or {}
        return Document(
            as_id(record.id, payload),
            {role: value_at(payload, path) for role, path in self._paths.items()},
            payload if whole else {},
            vector_of(record, self._vector),
            digest_of(record) if whole else "",
        )


def _has_id(ids: list[Id]) -> models.HasIdCondition:
    return models.HasIdCondition(has_id=[point_id(id_) for id_ in ids])


def _point_or_none(id_: Id) -> int | str | None:
    """The point's id; None of what cannot be one."""
    try:
        return point_id(id_)
    except InvalidValue:
        return None


def _as_uuid(id_: Id) -> UUID | None:
    try:
        return UUID(id_) if isinstance(id_, str) else None
    except ValueError:
        return None


def _vector_of_collection(
    client: QdrantClient, collection: str, wanted: str | None
) -> tuple[str | None, int]:
    """The name, None if it has none, and the length of the vector to look at."""
    with translated():
        if not client.collection_exists(collection):
            raise InvalidValue(f"collection must be one that exists; got {collection!r:.60}")
        known = client.get_collection(collection).config.params.vectors
    named = known if isinstance(known, dict) else {"": known} if known is not None else {}
    dense = {name: p for name, p in named.items() if p.multivector_config is None}
    chosen = wanted if wanted is not None else next(iter(dense), "") if len(dense) == 1 else ""
    if chosen not in dense:
        raise InvalidValue(
            f"vector must name one dense vector of the collection, of {sorted(dense)!r:.100}; "
            f"got {wanted!r:.60}"
        )
    return chosen or None, dense[chosen].size
