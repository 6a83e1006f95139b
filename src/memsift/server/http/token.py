"""The bearer token: made once, kept in a file of its own (0600), compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from pathlib import Path

from memsift.errors import InvalidValue

FORM = re.compile(r"[A-Za-z0-9_-]{32,128}")


class Token:
    """A secret that does not show itself."""

    def __init__(self, secret: str) -> None:
        if not FORM.fullmatch(secret):
            raise InvalidValue(
                "the token must be 32 to 128 characters of A-Z a-z 0-9 _ -; it is not"
            )
        self._digest = hashlib.sha256(secret.encode()).digest()

    def accepts(self, authorization: bytes | None) -> bool:
        """Whether a header says `Bearer` and this token. Digests are compared, so the time tells nothing."""
        kind, _, given = (authorization or b"").partition(b" ")
        same = hmac.compare_digest(hashlib.sha256(given.strip(b" ")).digest(), self._digest)
        return same and kind.lower() == b"bearer"


def token_of(path: Path) -> Token:
    """The token in a file, which is made (0600) if it is not there.

    Raises
    ------
    InvalidValue
        It is no regular file, others may read it, or what it holds is no token.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return Token(_read(path))
    except OSError as error:
        raise InvalidValue(
            f"--token-file must be a file that can be made; {error.strerror}"
        ) from None
    secret = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secret + "\n")
    return Token(secret)


def _read(path: Path) -> str:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(256)
    except OSError as error:
        raise InvalidValue(f"--token-file must be readable; {error.strerror}") from None
    if not stat.S_ISREG(mode):
        raise InvalidValue("--token-file must be a regular file")
    if os.name == "posix" and mode & 0o077:
        raise InvalidValue("--token-file must be for its owner only (chmod 600)")
    return content.decode("ascii", "replace").strip()
