"""The way to Qdrant: clients made of URLs, and its client's errors as ours, without what the server quotes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

import grpc
import httpx
from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from memsift import checks
from memsift.errors import InvalidType, InvalidValue, SourceTrouble

if TYPE_CHECKING:
    from memsift.backends.qdrant.source import QdrantSource

KEY = "QDRANT_API_KEY"
FORMS = (
    "qdrant://HOST:PORT/COLLECTION, qdrant+https://HOST:PORT/COLLECTION "
    "or qdrant+path:FOLDER#COLLECTION"
)
TIMEOUT_SECONDS = 60


def source_of_url(url: str, **options: Any) -> QdrantSource:
    """The source behind a URL: `qdrant://HOST:PORT/COLLECTION`, `qdrant+https://..` or `qdrant+path:FOLDER#COLLECTION`.

    The API key is taken from the environment variable QDRANT_API_KEY; `options` go to `QdrantSource`.

    Raises
    ------
    InvalidValue
        Another form, a password in it, a folder without a collection of Qdrant's, or no such collection.
    SourceTrouble
        The server cannot be reached, or refuses.
    """
    from memsift.backends.qdrant.source import QdrantSource

    client, collection = _client(url)
    try:
        return QdrantSource(client, collection, **options)
    except BaseException:
        client.close()
        raise


def name_of(client: QdrantClient, collection: str) -> str:
    """Where a collection lies, for people: the same in every process, without keys."""
    made = client.init_options
    tail = quote(collection, safe="")
    if made.get("path") is not None:
        return f"qdrant+path:{quote(str(Path(made['path']).absolute()))}#{tail}"
    if made.get("location") == ":memory:":
        return f"qdrant+path::memory:#{tail}"
    where = made.get("url") or made.get("location") or made.get("host") or "localhost"
    parts = urlsplit(where if "//" in where else f"//{where}")
    secure = parts.scheme == "https" or made.get("https")
    port = parts.port or made.get("port") or 6333
    return f"qdrant{'+https' if secure else ''}://{parts.hostname}:{port}/{tail}"


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


def _client(url: object) -> tuple[QdrantClient, str]:
    if not isinstance(url, str):
        raise InvalidType(f"url must be text; got {type(url).__name__}")
    scheme, _, rest = url.partition(":")
    if scheme == "qdrant+path":
        folder, mark, collection = rest.partition("#")
        if not folder or not mark or not collection:
            raise InvalidValue(f"url must be {FORMS}")
        return _local(checks.path(unquote(folder), "url")), unquote(collection)
    parts = urlsplit(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidValue(f"url must hold no password and no options: the key is read from {KEY}")
    collection = unquote(parts.path.removeprefix("/"))
    if scheme not in ("qdrant", "qdrant+https") or not parts.hostname or not collection:
        raise InvalidValue(f"url must be {FORMS}")
    try:
        port = parts.port or 6333
    except ValueError:
        raise InvalidValue("url must have a port from 1 to 65535") from None
    made = QdrantClient(
        host=parts.hostname,
        port=port,
        https=scheme == "qdrant+https",
        api_key=os.environ.get(KEY) or None,
        timeout=TIMEOUT_SECONDS,
        check_compatibility=False,
    )
    return made, collection


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
