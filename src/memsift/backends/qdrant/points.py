"""Points: any id as one of Qdrant's and back, names of fields as paths into a payload, digests.

Qdrant takes unsigned integers of 64 bits and UUIDs as ids. A text becomes a UUIDv5, and the payload keeps the text.
"""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID, uuid5

import numpy as np
import numpy.typing as npt
from qdrant_client import models

from memsift import checks
from memsift.backends.fields import digest
from memsift.backends.ids import Id
from memsift.errors import InvalidType, InvalidValue

# Where the payload keeps an id that is a text.
ID_FIELD = "memsift_id"
NAMESPACE = UUID("c53cade4-a5c5-5de5-89b9-7423677bf4f0")
LARGEST = 2**64 - 1
Path = tuple[str, ...]


def point_id(id_: Id) -> int | str:
    """The id by which Qdrant knows an entry: itself if it is an integer or a UUID, else a UUIDv5 of the text.

    Raises
    ------
    InvalidType, InvalidValue
        Something else, a negative integer or one of more than 64 bits, or a text with a lone surrogate.

    >>> point_id("tea with milk")
    '2eec2c34-86b9-589e-9bb5-b4117bb8673c'
    """
    if isinstance(id_, UUID):
        return str(id_)
    if isinstance(id_, str):
        try:
            return str(uuid5(NAMESPACE, id_))
        except UnicodeEncodeError:
            raise InvalidValue("id must be valid Unicode; got a lone surrogate") from None
    if isinstance(id_, int):
        return checks.integer(id_, "id", 0, LARGEST)
    raise InvalidType(f"id must be an integer, a text or a UUID; got {checks.shown(id_)}")


def id_of(point: Any) -> Id:
    """The id of a record or of a hit that was read with its payload: the text that it was written with, if any."""
    return as_id(point.id, point.payload)


def to_point(id_: Id, vector: Any, payload: dict[str, Any] | None = None) -> models.PointStruct:
    """A point to upsert whose id comes back from `id_of`, whatever text it is.

    Parameters
    ----------
    vector : list of float, dict by name, or what else the collection takes
    payload : dict, optional
        JSON-ready; `memsift_id` is ours.
    """
    body = dict(payload or {})
    body.pop(ID_FIELD, None)
    if isinstance(id_, str):
        body[ID_FIELD] = id_
    plain = vector.tolist() if isinstance(vector, np.ndarray) else vector
    return models.PointStruct(id=point_id(id_), vector=plain, payload=body)


def as_id(raw: object, payload: dict[str, Any] | None) -> Id:
    """What `id_of` says, of the two parts of a point."""
    text = (payload or {}).get(ID_FIELD)
    if isinstance(raw, int):
        return raw
    known = UUID(str(raw))
    # A payload that was copied to another point does not make that point another.
    return text if isinstance(text, str) and uuid5(NAMESPACE, text) == known else known


def path_of(name: str) -> Path:
    """A field's name as keys from the outside in: `metadata.user` is `user` in `metadata`, `"a.b"` one key.

    Raises
    ------
    InvalidValue
        Keys that Qdrant cannot be asked for.
    """
    pieces = re.findall(r'"([^"]+)"|([^."]+)|(.)', name)
    # Every second piece is a dot, and nothing else is left over.
    keys = [quoted or plain for quoted, plain, _ in pieces[::2]]
    if not all(keys) or any(rest != "." for *_, rest in pieces[1::2]) or len(pieces) % 2 == 0:
        raise InvalidValue(
            'a field must be a key such as pinned, metadata.user or "a.b", without further quotes; '
            f"got {checks.shown(name)}"
        )
    return tuple(keys)


def written(path: Path) -> str:
    """A path as Qdrant reads it."""
    return ".".join(key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'"{key}"' for key in path)


def value_at(payload: dict[str, Any] | None, path: Path) -> Any:
    """What lies there; None if nothing does."""
    found: Any = payload
    for key in path:
        if not isinstance(found, dict):
            return None
        found = found.get(key)
    return found


def digest_of(record: Any) -> str:
    """A digest of a record's payload and of all its vectors."""
    return digest([record.payload or {}, _plain(record.vector)])


def vector_of(record: Any, name: str | None) -> npt.NDArray[np.float32] | None:
    """A record's vector, (dim,) float32; None if it has none."""
    found = record.vector
    if isinstance(found, dict):
        found = found.get(name or "")
    return None if not found else np.asarray(found, np.float32)


def _plain(vector: Any) -> Any:
    """Vectors as JSON in which each float32 has one form, whether it came by HTTP or by gRPC."""
    if isinstance(vector, dict):
        return {name: _plain(some) for name, some in vector.items()}
    if isinstance(vector, list):
        return np.asarray(vector, "<f4").tobytes().hex()
    return vector.model_dump() if hasattr(vector, "model_dump") else vector
