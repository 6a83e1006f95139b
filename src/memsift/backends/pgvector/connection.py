"""The way to the server: a connection with limits, errors as ours, and no password in anything that is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import conninfo

from memsift import checks
from memsift.errors import InvalidType, InvalidValue, SourceTrouble


def connect(dsn: object, timeout_seconds: float) -> psycopg.Connection[Any]:
    """A connection in autocommit mode whose statements end after `timeout_seconds`.

    Raises
    ------
    InvalidValue
        Not a `postgresql://` URL or a connection string.
    SourceTrouble
        The server cannot be reached, or refused.
    """
    if not isinstance(dsn, str):
        raise InvalidType(f"dsn must be a postgresql:// URL; got {type(dsn).__name__}")
    limit = checks.real(timeout_seconds, "timeout_seconds", "above 0")
    if not 0 < limit <= 10**6:
        raise InvalidValue(f"timeout_seconds must be above 0, up to 1,000,000; got {limit}")
    try:
        known: dict[str, Any] = dict(conninfo.conninfo_to_dict(dsn))
    except psycopg.Error:
        # Without the cause: it may quote the password.
        raise InvalidValue("dsn must be a URL such as postgresql://user@host/database") from None
    known.setdefault("connect_timeout", "10")
    known.setdefault("application_name", "memsift")
    try:
        made = psycopg.connect(**known, autocommit=True)
    except psycopg.Error as error:
        raise SourceTrouble(f"the server must answer; {redacted(error, dsn)}") from None
    with translated():
        for name, seconds in (
            ("statement_timeout", limit),
            ("lock_timeout", min(limit, 30.0)),
            ("idle_in_transaction_session_timeout", limit),
        ):
            made.execute("SELECT set_config(%s, %s, false)", (name, f"{int(seconds * 1000)}ms"))
    return made


def redacted(error: BaseException, dsn: str) -> str:
    """What the server or its client said, unless it shows any of the password."""
    words = " ".join(str(error).split())[:200]
    secret = re.search(r"//[^/]*?:(.*)@", dsn)
    pieces = re.findall(r"password\s*=\s*('(?:[^'\\]|\\.)*'|\S+)", dsn)
    if secret:
        pieces += [secret[1], *re.split(r"[@:/?#%&=]", secret[1])]
    pieces += re.findall(r"[?&]password=([^&]*)", dsn)
    if any(piece.strip("'") and piece.strip("'") in words for piece in pieces):
        return "it refused the connection"
    return words


@contextmanager
def translated() -> Iterator[None]:
    """The driver's errors as ours, without them: of a server's message the details may quote stored values."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise SourceTrouble(f"the role must be allowed to do this; {_primary(error)}") from None
    except psycopg.errors.QueryCanceled as error:
        words = f"a statement must end within timeout_seconds; {_primary(error)}"
        raise SourceTrouble(words) from None
    except psycopg.Error as error:
        raise SourceTrouble(f"PostgreSQL failed: {_primary(error)}") from None


def _primary(error: Any) -> str:
    words = error.diag.message_primary or str(error).partition("\n")[0]
    code = f" ({error.sqlstate})" if error.sqlstate else ""
    return f"{words[:200]}{code}"
