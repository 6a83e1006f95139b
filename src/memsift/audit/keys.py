"""Ed25519 keys: made and kept in files outside the store. The one room that knows `cryptography`."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memsift.audit.fields import InvalidKey
from memsift.errors import MissingExtra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_FILE_BYTES = 4_096


@dataclass(frozen=True)
class KeyHistory:
    """Which public key signs heads from which record on: pairs (seq, 32 bytes), ascending."""

    epochs: tuple[tuple[int, bytes], ...]

    def at(self, seq: int) -> bytes:
        """The public key in force at record `seq`."""
        keys = [key for start, key in self.epochs if start <= seq]
        if not keys:
            raise InvalidKey(f"no trusted key was in force at record {seq}")
        return keys[-1]


def key_id(public_key: bytes) -> str:
    """The first 16 hex characters of the SHA-256 of a public key."""
    return hashlib.sha256(_checked(public_key)).hexdigest()[:16]


def public_key(private_key: Ed25519PrivateKey) -> bytes:
    """The 32 bytes that may be handed out."""
    if not isinstance(private_key, _ed25519().Ed25519PrivateKey):
        raise InvalidKey(f"key must be an Ed25519 private key; got {type(private_key).__name__}")
    raw: bytes = private_key.public_key().public_bytes_raw()
    return raw


def generate_key(
    path: str | os.PathLike[str],
    *,
    store: str | os.PathLike[str] | None = None,
    beside_store: bool = False,
) -> bytes:
    """Make a key and write it to a new file (PEM, mode 0600). Returns the public key.

    Parameters
    ----------
    path : path
        Must not exist: a key is never overwritten.
    store : path or None
        The store that the key is for. Who can rewrite the store must not find the key beside it, so a path in
        the store's directory, or below it, is refused.
    beside_store : bool
        Take it all the same.
    """
    path = Path(path)
    if store is not None and not beside_store:
        store = Path(store).resolve()
        home, place = store if store.is_dir() else store.parent, path.parent.resolve()
        if place == home or home in place.parents:
            raise InvalidKey(
                f"the key's path must lie outside the store's directory {home}, or beside_store "
                f"be True; got {path}"
            )
    private_key = _ed25519().Ed25519PrivateKey.generate()
    _write(path, _pem(private_key))
    return public_key(private_key)


def load_key(path: str | os.PathLike[str]) -> Ed25519PrivateKey:
    """The private key of a file.

    Raises
    ------
    InvalidKey
        The file cannot be read, can be read by others, or holds no unencrypted Ed25519 key in PEM.
    """
    ed25519 = _ed25519()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    text = _read(Path(path))
    try:
        private_key = load_pem_private_key(text, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Without the cause: what a parser says of a key's bytes belongs in no log.
        raise InvalidKey(f"{path} must hold an unencrypted Ed25519 key in PEM") from None
    if not isinstance(private_key, ed25519.Ed25519PrivateKey):
        raise InvalidKey(f"{path} must hold an Ed25519 key; got another kind")
    loaded: Ed25519PrivateKey = private_key
    return loaded


def is_signed(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether the key's owner signed the message."""
    key = _ed25519().Ed25519PublicKey.from_public_bytes(_checked(public_key))
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _checked(public_key: bytes) -> bytes:
    if not isinstance(public_key, bytes) or len(public_key) != 32:
        raise InvalidKey(f"a public key must be 32 bytes; got {type(public_key).__name__}")
    return public_key


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtra("signed heads need cryptography: pip install 'memsift[sign]'") from None
    return ed25519


def _pem(private_key: Ed25519PrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization as form

    return private_key.private_bytes(
        form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()
    )


def _write(path: Path, text: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        file = os.open(path, flags, 0o600)
    except FileExistsError:
        raise InvalidKey(
            f"the key's path must be new, a key is never overwritten; {path}"
        ) from None
    except OSError as error:
        raise InvalidKey(f"the key file {path} cannot be made: {error.strerror}") from None
    try:
        with open(file, "wb") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _read(path: Path) -> bytes:
    try:
        file = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
    except OSError as error:
        raise InvalidKey(f"the key file {path} cannot be read: {error.strerror}") from None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > KEY_FILE_BYTES:
            raise InvalidKey(f"{path} must be a regular file of at most {KEY_FILE_BYTES:,} bytes")
        if os.name == "posix" and status.st_mode & 0o077:
            raise InvalidKey(
                f"{path} must be for its owner only (0600); got mode {status.st_mode & 0o777:04o}"
            )
        return os.read(file, KEY_FILE_BYTES)
    finally:
        os.close(file)
