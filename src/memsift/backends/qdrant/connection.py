"""The way to Qdrant: clients made of URLs, and its client's errors as ours, without what the server quotes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import grpc
import httpx
from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from memsift import checks
from memsift.backends.places import Place
from memsift.errors import InvalidValue, SourceTrouble

if TYPE_CHECKING:
    from memsift.backends.qdrant.source import QdrantSource

KEY = "QDRANT_API_KEY"
PORT = 6333


def source_of_url(
    url: str, collection: str | None = None, *, timeout_seconds: float = 60.0, **options: Any
) -> QdrantSource:
    """The source behind `qdrant://HOST:PORT/COLLECTION`, `qdrant+https://...` or `qdrant+path://FOLDER#COLLECTION`.

    The API key is taken from the environment variable QDRANT_API_KEY.

    Parameters
    ----------
    collection : str, optional
        For URLs that name none.
    timeout_seconds : float
        How long to wait for an answer.
    **options
        The parameters of `QdrantSource`.

    Raises
    ------
    InvalidValue
        Another form, a password in it, a folder without Qdrant's files, or no such collection.
    SourceTrouble
        The server cannot be reached, or refuses; or the folder is in use.
    """
    from memsift.backends.qdrant.source import QdrantSource

    place = Place.of(url, "qdrant", collection, PORT, KEY)
    client = _server(place, timeout_seconds) if place.folder is None else _local(place.folder)
    try:
        return QdrantSource(client, place.collection, **options)
    except BaseException:
        client.close()
        raise


def name_of(client: QdrantClient, collection: str) -> str:
    """Where a collection lies, for people: the same in every process, without keys."""
    made = client.init_options
    if made.get("path") is not None:
        return Place(collection, Path(made["path"])).named("qdrant")
    where = made.get("url") or made.get("location") or made.get("host") or "localhost"
    if where == ":memory:":
        return "Qdrant in RAM"
    parts = urlsplit(where if "//" in where else f"//{where}")
    secure = parts.scheme == "https" or bool(made.get("https"))
    port = parts.port or made.get("port") or PORT
    return Place(collection, None, parts.hostname or "", port, secure).named("qdrant")


@contextmanager
def translated() -> Iterator[None]:
    """The client's errors as ours. What a server answered may quote what is stored, so only its status is told."""
    try:
        yield
    except UnexpectedResponse as error:
        words = f"Qdrant answered {error.status_code} {error.reason_phrase}".strip()
        raise SourceTrouble(words) from None
    except grpc.RpcError as error:
        code = getattr(error, "code", lambda: None)()
        raise SourceTrouble(f"Qdrant answered {getattr(code, 'name', 'an error')}") from None
    except (ApiException, httpx.HTTPError, ConnectionError, TimeoutError) as error:
        raise SourceTrouble(f"Qdrant must answer; {type(error).__name__}") from None


def _server(place: Place, timeout_seconds: float) -> QdrantClient:
    limit = checks.real(timeout_seconds, "timeout_seconds", "of at least 1")
    if limit < 1:
        raise InvalidValue(f"timeout_seconds must be at least 1; got {limit}")
    return QdrantClient(
        host=place.host,
        port=place.port,
        https=place.secure,
        api_key=os.environ.get(KEY) or None,
        timeout=int(limit),
        check_compatibility=False,
    )


def _local(folder: Path) -> QdrantClient:
    # The client would make a folder that is not there.
    if not (folder / "meta.json").is_file():
        raise InvalidValue(
            f"url must name a folder of Qdrant's local mode; {folder.name!r} is none"
        )
    try:
        return QdrantClient(path=str(folder))
    except RuntimeError:
        raise SourceTrouble(
            f"the folder {folder.name!r} is in use by another process: close its client"
        ) from None
