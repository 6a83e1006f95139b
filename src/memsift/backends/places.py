"""URLs of collections: a server's, `SCHEME://HOST:PORT/COLLECTION`, or a folder's, `SCHEME+path://FOLDER#COLLECTION`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from memsift import checks
from memsift.errors import InvalidType, InvalidValue


class Place(NamedTuple):
    """Where a collection lies: in a folder, or on a server."""

    collection: str
    folder: Path | None
    host: str = ""
    port: int = 0
    secure: bool = False

    @classmethod
    def of(cls, url: object, scheme: str, collection: str | None, port: int, key: str) -> Place:
        """Read a URL.

        Parameters
        ----------
        scheme : str
            The system's name; `+https` and `+path` may follow it in the URL.
        collection : str or None
            For URLs that name none.
        port : int
            Where the system listens by default.
        key : str
            The environment variable that a key is read from, for the message to who puts one into the URL.

        Raises
        ------
        InvalidType, InvalidValue
            Nothing of the URL is in the message: it may hold a password.
        """
        if not isinstance(url, str):
            raise InvalidType(f"url must be text; got {type(url).__name__}")
        found, _, rest = url.partition("://")
        if found == f"{scheme}+path":
            folder, _, named = rest.partition("#")
            server = None
        else:
            folder, server = "", _server(url, key)
            named = server.path.removeprefix("/")
        known = server is None or (found in (scheme, f"{scheme}+https") and server.hostname)
        name = unquote(named) or collection
        if not known or not name or (server is None and not folder):
            raise InvalidValue(
                f"url must be {scheme}://HOST:PORT/COLLECTION, {scheme}+https://HOST:PORT/COLLECTION "
                f"or {scheme}+path://FOLDER#COLLECTION"
            )
        if server is None:
            return cls(name, checks.path(unquote(folder), "url"))
        try:
            return cls(
                name, None, server.hostname or "", server.port or port, found.endswith("+https")
            )
        except ValueError:
            raise InvalidValue("url must have a port from 1 to 65535") from None

    def named(self, scheme: str) -> str:
        """The URL, for people: the same in every process."""
        tail = quote(self.collection, safe="")
        if self.folder is not None:
            return f"{scheme}+path://{quote(str(self.folder.absolute()))}#{tail}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}{'+https' if self.secure else ''}://{host}:{self.port}/{tail}"


def _server(url: str, key: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidValue("url must be one that can be read") from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidValue(f"url must hold no password and no options: the key is read from {key}")
    return parts
