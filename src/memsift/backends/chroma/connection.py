"""The way to Chroma: clients made of URLs, without telemetry, and its errors as ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import chromadb
import httpx
from chromadb.config import Settings
from chromadb.errors import ChromaError

from memsift import checks
from memsift.backends.places import Place
from memsift.errors import InvalidValue, SourceTrouble

if TYPE_CHECKING:
    from memsift.backends.chroma.source import ChromaSource

KEY = "CHROMA_API_KEY"
PORT = 8000
USUAL = ("default_tenant", "default_database")


def source_of_url(
    url: str, collection: str | None = None, *, timeout_seconds: float = 60.0, **options: Any
) -> ChromaSource:
    """The source behind `chroma://HOST:PORT/COLLECTION`, `chroma+https://...` or `chroma+path://FOLDER#COLLECTION`.

    The API key is taken from the environment variable CHROMA_API_KEY, the server's own tenant and database from
    CHROMA_TENANT and CHROMA_DATABASE.

    Parameters
    ----------
    collection : str, optional
        For URLs that name none.
    timeout_seconds : float
        How long to wait for an answer.
    **options
        The parameters of `ChromaSource`.

    Raises
    ------
    InvalidValue
        Another form, a password in it, a folder without Chroma's files, or no such collection.
    SourceTrouble
        The server cannot be reached, or refuses.
    """
    from memsift.backends.chroma.source import ChromaSource

    place = Place.of(url, "chroma", collection, PORT, KEY)
    client = _server(place, timeout_seconds) if place.folder is None else _local(place.folder)
    try:
        return ChromaSource(client, place.collection, **options)
    except BaseException:
        close(client)
        raise


def name_of(client: Any, collection: str) -> str:
    """Where a collection lies, for people: the same in every process, without keys."""
    known = client.get_settings()
    if not _servers(client) and known.is_persistent:
        where = Place(collection, Path(known.persist_directory)).named("chroma")
    elif _servers(client):
        at = known.chroma_server_host, known.chroma_server_http_port or PORT
        secure = bool(known.chroma_server_ssl_enabled)
        where = Place(collection, None, *at, secure).named("chroma")
    else:
        return "Chroma in RAM"
    home = client.tenant, client.database
    within = "/".join(quote(part, safe="") for part in home)
    return where if home == USUAL else f"{where} in {within}"


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


def _server(place: Place, timeout_seconds: float) -> Any:
    limit = checks.real(timeout_seconds, "timeout_seconds", "above 0")
    key = os.environ.get(KEY)
    with translated():
        made = chromadb.HttpClient(
            host=place.host,
            port=place.port,
            ssl=place.secure,
            headers={"x-chroma-token": key} if key else None,
            settings=Settings(anonymized_telemetry=False),
            **_home(),
        )
    for server in _servers(made):
        # The client would wait for an answer for ever.
        server._session.timeout = httpx.Timeout(limit)
    return made


def _local(folder: Path) -> Any:
    # The client would make a folder that is not there.
    if not (folder / "chroma.sqlite3").is_file():
        raise InvalidValue(f"url must name a folder of Chroma's; {folder.name!r} is none")
    with translated():
        quiet = Settings(anonymized_telemetry=False)
        return chromadb.PersistentClient(path=folder, settings=quiet, **_home())


def _home() -> dict[str, str]:
    """Which of the server's own tenants and databases the collection belongs to."""
    return {
        "tenant": os.environ.get("CHROMA_TENANT") or USUAL[0],
        "database": os.environ.get("CHROMA_DATABASE") or USUAL[1],
    }


def _servers(client: Any) -> list[Any]:
    """Whatever a client talks through over HTTP, one for itself and one for its administration."""
    owners = client, getattr(client, "_admin_client", None)
    found = [getattr(owner, "_server", None) for owner in owners]
    return [server for server in found if hasattr(server, "_session")]
