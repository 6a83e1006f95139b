"""The way to Chroma: clients made of URLs, without telemetry, and its errors as ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

import chromadb
import httpx
from chromadb.config import Settings
from chromadb.errors import ChromaError

from memsift import checks
from memsift.errors import InvalidType, InvalidValue, SourceTrouble

if TYPE_CHECKING:
    from memsift.backends.chroma.source import ChromaSource

KEY = "CHROMA_API_KEY"
FORMS = (
    "chroma://HOST:PORT/COLLECTION, chroma+https://HOST:PORT/COLLECTION "
    "or chroma+path:FOLDER#COLLECTION"
)
TIMEOUT_SECONDS = 60
USUAL = ("default_tenant", "default_database")


def source_of_url(url: str, **options: Any) -> ChromaSource:
    """The source behind a URL: `chroma://HOST:PORT/COLLECTION`, `chroma+https://..` or `chroma+path:FOLDER#COLLECTION`.

    The API key is taken from the environment variable CHROMA_API_KEY, the server's own tenant and database from
    CHROMA_TENANT and CHROMA_DATABASE; `options` go to `ChromaSource`.

    Raises
    ------
    InvalidValue
        Another form, a password in it, a folder without Chroma's files, or no such collection.
    SourceTrouble
        The server cannot be reached, or refuses.
    """
    from memsift.backends.chroma.source import ChromaSource

    client, collection = _client(url)
    try:
        return ChromaSource(client, collection, **options)
    except BaseException:
        close(client)
        raise


def name_of(client: Any, collection: str) -> str:
    """Where a collection lies, for people: the same in every process, without keys."""
    settings, tail = client.get_settings(), quote(collection, safe="")
    if settings.is_persistent:
        return f"chroma+path:{quote(str(Path(settings.persist_directory).absolute()))}#{tail}"
    if not settings.chroma_server_host:
        return f"chroma+path::memory:#{tail}"
    secure = "+https" if settings.chroma_server_ssl_enabled else ""
    where = f"{settings.chroma_server_host}:{settings.chroma_server_http_port}"
    home = (client.tenant, client.database)
    within = "" if home == USUAL else f" in {quote(home[0], safe='')}/{quote(home[1], safe='')}"
    return f"chroma{secure}://{where}/{tail}{within}"


def close(client: Any) -> None:
    """Let a client go, with the sockets that it leaves open when its last user closes it."""
    servers = _servers(client)
    client.close()
    for server in servers:
        if not server._running:
            server._session.close()


@contextmanager
def translated() -> Iterator[None]:
    """The client's errors as ours. What a server answered may quote what is stored, so only the kind is told."""
    try:
        yield
    except ChromaError as error:
        raise SourceTrouble(f"Chroma refused: {type(error).__name__}") from None
    except (httpx.HTTPError, ConnectionError, TimeoutError) as error:
        raise SourceTrouble(f"Chroma must answer; {type(error).__name__}") from None
    except Exception as error:
        # What its client does not know it raises as a bare Exception or a ValueError, with the server's text.
        if type(error) not in (Exception, ValueError, RuntimeError):
            raise
        raise SourceTrouble("Chroma failed, or could not be reached") from None


def _client(url: object) -> tuple[Any, str]:
    if not isinstance(url, str):
        raise InvalidType(f"url must be text; got {type(url).__name__}")
    quiet = Settings(anonymized_telemetry=False)
    scheme, _, rest = url.partition(":")
    home = {
        "tenant": os.environ.get("CHROMA_TENANT") or USUAL[0],
        "database": os.environ.get("CHROMA_DATABASE") or USUAL[1],
    }
    if scheme == "chroma+path":
        folder, mark, collection = rest.partition("#")
        if not folder or not mark or not collection:
            raise InvalidValue(f"url must be {FORMS}")
        at = checks.path(unquote(folder), "url")
        # The client would make a folder that is not there.
        if not (at / "chroma.sqlite3").is_file():
            raise InvalidValue(f"url must name a folder of Chroma's; {at.name!r} is none")
        with translated():
            made = chromadb.PersistentClient(path=at, settings=quiet, **home)
        return made, unquote(collection)
    parts = urlsplit(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidValue(f"url must hold no password and no options: the key is read from {KEY}")
    collection = unquote(parts.path.removeprefix("/"))
    if scheme not in ("chroma", "chroma+https") or not parts.hostname or not collection:
        raise InvalidValue(f"url must be {FORMS}")
    try:
        port = parts.port or 8000
    except ValueError:
        raise InvalidValue("url must have a port from 1 to 65535") from None
    key = os.environ.get(KEY)
    with translated():
        made = chromadb.HttpClient(
            host=parts.hostname,
            port=port,
            ssl=scheme == "chroma+https",
            headers={"x-chroma-token": key} if key else None,
            settings=quiet,
            **home,
        )
    for server in _servers(made):
        # The client would wait for an answer for ever.
        server._session.timeout = httpx.Timeout(TIMEOUT_SECONDS)
    return made, collection


def _servers(client: Any) -> list[Any]:
    """Whatever a client talks through over HTTP, one for itself and one for its administration."""
    owners = client, getattr(client, "_admin_client", None)
    found = [getattr(owner, "_server", None) for owner in owners]
    return [server for server in found if hasattr(server, "_session")]
