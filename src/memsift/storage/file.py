"""The file itself: who may open it, how SQLite is set up, and what its errors mean to a caller."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memsift.errors import (
    CorruptStore,
    DiskTrouble,
    InvalidValue,
    MemsiftError,
    StoreBusy,
)
from memsift.storage import schema

DURABILITY = {"normal": "NORMAL", "full": "FULL"}
PAGE_BYTES = 16_384  # holds ten 384-d rows; measured 1.5 times faster than 4 KB in bulk
MINIMUM = (3, 35, 0)
SMALLEST_PAGE = 512
JOURNAL = bytes.fromhex("d9d505f920a163d7")  # how a rollback journal of SQLite begins


def connect(
    path: Path, durability: str, busy_timeout: float, *, create: bool
) -> sqlite3.Connection:
    """A connection to the file at `path`, made (0600) if it does not exist and `create` is true.

    Raises
    ------
    InvalidValue
        Not a regular file of ours: a symlink, a folder, another user's, or writable for others.
    CorruptStore
        Not a memsift file, or damaged.
    StoreBusy
        Another process held the lock for longer than `busy_timeout`.
    DiskTrouble
        The disk is full, or failed.
    """
    if sqlite3.sqlite_version_info < MINIMUM:
        raise InvalidValue(
            f"SQLite must be {'.'.join(map(str, MINIMUM))} or later for a durable store; got {sqlite3.sqlite_version}"
        )
    if durability not in DURABILITY:
        raise InvalidValue(
            f"durability must be one of {', '.join(DURABILITY)}; got {durability!r:.40}"
        )
    try:
        _claim(path, create)
    except OSError as error:
        raise refusal("path must be a file that can be opened", error) from error
    # In autocommit mode Python opens no transactions of its own; ours are written out.
    # Absolute, or `:memory:` would be no file at all.
    with translated():
        db = sqlite3.connect(
            path.absolute(), timeout=busy_timeout, isolation_level=None, check_same_thread=False
        )
    try:
        with translated():
            _prepare(db, durability, busy_timeout)
            if os.access(path, os.W_OK):
                # A file that it could not open for writing, SQLite opens for reading, for good and without a word.
                db.execute("UPDATE namespace SET dim = dim WHERE 0")
    except BaseException:
        db.close()
        raise
    return db


def _claim(path: Path, create: bool) -> None:
    for _ in range(2):
        try:
            found = path.lstat()
        except FileNotFoundError:
            if not create:
                raise InvalidValue(
                    f"path must be an existing store; got {str(path)[-200:]!r}"
                ) from None
            if not path.parent.is_dir():
                raise InvalidValue(
                    f"path must lie in a folder that exists; got {str(path)[-200:]!r}"
                ) from None
            try:
                os.close(
                    os.open(path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                )
            except FileExistsError:
                continue  # another process was faster: look at what it made
            return
        else:
            break
    if not stat.S_ISREG(found.st_mode):
        raise InvalidValue(
            f"path must be a regular file, no link or folder; got {str(path)[-200:]!r}"
        )
    if found.st_uid != os.geteuid():
        raise InvalidValue(
            f"path must belong to this user; {str(path)[-200:]!r} belongs to user {found.st_uid}"
        )
    if 0 < found.st_size < SMALLEST_PAGE and not _has_journal(path):
        # SQLite would take so short a file for an empty one, and write over it. With a journal beside it, it is
        # what a crash left while the file was made, and SQLite mends it.
        raise CorruptStore("database", f"must be a SQLite database; got {found.st_size} bytes")
    if found.st_mode & 0o022:
        raise InvalidValue(
            f"path must not be writable for others; mode is {stat.S_IMODE(found.st_mode):o}"
        )


def _has_journal(path: Path) -> bool:
    with suppress(FileNotFoundError), open(f"{path}-journal", "rb") as journal:
        return journal.read(len(JOURNAL)) == JOURNAL
    return False


def _prepare(db: sqlite3.Connection, durability: str, busy_timeout: float) -> None:
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    # Deleted rows are overwritten at once, so that an erased vector is not left in a free page.
    db.execute("PRAGMA secure_delete = ON")
    version = schema.check(db)
    if version == 0:
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    mode = _use_wal(db, time.monotonic() + busy_timeout)
    if mode != "wal":
        raise InvalidValue(
            f"path must be on a file system where SQLite can use WAL; got journal mode {mode!r}"
        )
    db.execute(f"PRAGMA synchronous = {DURABILITY[durability]}")
    if version < schema.VERSION:
        db.execute("BEGIN IMMEDIATE")
        try:
            version = schema.check(db)  # another process may have been faster
            if version == 0:
                schema.create(db)
            elif version < schema.VERSION:
                schema.migrate(db, version)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # a failing disk may have ended it
                db.execute("ROLLBACK")
            raise


def _use_wal(db: sqlite3.Connection, until: float) -> str:
    """Switch to WAL, for which SQLite does not always wait its turn, and return the mode that it is in."""
    while True:
        try:
            return str(db.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


def refusal(words: str, error: OSError) -> MemsiftError:
    """The system's error as ours: a path that cannot be used, or a disk in trouble."""
    if isinstance(error, MemsiftError):
        return error
    # What the caller can mend with another path; of the rest the disk is to blame.
    paths = (FileExistsError, FileNotFoundError, NotADirectoryError, PermissionError)
    blamed = isinstance(error, paths) or error.errno in (errno.ENAMETOOLONG, errno.ELOOP)
    return InvalidValue(f"{words}; {error}") if blamed else DiskTrouble(f"{words}; {error}")


@contextmanager
def translated() -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.Error as error:
        # SQLite quotes text that is no UTF-8: what was stored belongs into no message, nor into that of a cause.
        if "decode" in str(error):
            raise CorruptStore("database", "text must be UTF-8; some is not") from None
        raise _translation(error) from error
    except UnicodeDecodeError as error:  # of SQLite's own message about a damaged schema
        raise CorruptStore("database", f"must be a sound SQLite database; {error}") from error


def _translation(error: sqlite3.Error) -> Exception:
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(
            "another process is writing to this store; it did not finish within busy_timeout"
        )
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return CorruptStore("database", f"must be a sound SQLite database; {error}")
    if primary in (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
    ):
        return DiskTrouble(f"the disk refused: {error}. Nothing was changed")
    if isinstance(error, (sqlite3.DataError, sqlite3.InterfaceError)) or primary in (
        sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_CONSTRAINT, None,
    ):  # fmt: skip
        return CorruptStore("database", f"must answer as written; {error}")
    return error
