"""The ways to and from the disk: bounded reads of a regular file, and writes that are whole or never were."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO

from memsift.errors import CorruptStore, InvalidValue

Path = str | os.PathLike[str]
Buffer = bytes | bytearray | memoryview

# Not every system has all of them.
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# Without it, opening a pipe would wait for its other end.
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


class Source:
    """A file open for reading, with the size that it had then. Nothing beyond that is ever asked for."""

    def __init__(self, file: FileIO, size: int) -> None:
        self._file = file
        self.size = size

    def read(self, offset: int, length: int, section: str) -> bytearray:
        """Exactly `length` bytes; refused before anything is allocated if they are not there."""
        if not 0 <= offset <= offset + length <= self.size:
            raise CorruptStore(
                section,
                f"{length} bytes at {offset} were expected, the file has {self.size}",
                min(max(offset, 0), self.size),
            )
        data = bytearray(length)
        self._file.seek(offset)
        rest = memoryview(data)
        while rest:
            got = self._file.readinto(rest)
            if not got:
                raise CorruptStore(
                    section, f"{length} bytes were expected, the file shrank meanwhile", offset
                )
            rest = rest[got:]
        return data

    def pieces(self, length: int, section: str) -> Iterator[bytearray]:
        """The first `length` bytes of the file, a MiB at a time."""
        for offset in range(0, length, 1 << 20):
            yield self.read(offset, min(1 << 20, length - offset), section)


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """A regular file, not followed through a symbolic link, read-only."""
    try:
        fd = os.open(path, os.O_RDONLY | _NOFOLLOW | _NONBLOCK)
    except OSError:
        if os.path.islink(path):
            raise CorruptStore(
                "file", "a regular file was expected, a symbolic link came", 0
            ) from None
        raise
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise CorruptStore("file", "a regular file was expected, something else came", 0)
        with FileIO(fd, closefd=False) as file:
            yield Source(file, status.st_size)
    finally:
        os.close(fd)


@contextmanager
def replacing(path: Path, temp: str | None = None) -> Iterator[int]:
    """A descriptor of a new file, mode 0600, that takes the place of `path` if the block ends well.

    It is made beside `path` (as `temp`, if given), synced, renamed, and the folder is synced too. On any error it is
    removed and what was at `path` stays as it was. (A folder that fails to sync says so when the rename has happened.)
    """
    folder, name = os.path.split(os.path.abspath(path))
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise InvalidValue("path must be a regular file or free; something else is there")
    temp = temp or os.path.join(folder, f".memsift-{secrets.token_hex(8)}.tmp")
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW, 0o600)
    try:
        try:
            yield fd
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temp, os.path.join(folder, name))
    except BaseException:
        with suppress(OSError):
            os.unlink(temp)
        raise
    _sync_folder(folder)


def write_all(fd: int, data: Buffer) -> None:
    """`os.write` until everything is written; it may take less at a time."""
    rest = memoryview(data)
    while rest:
        written = os.write(fd, rest)
        if written <= 0:
            raise OSError(f"{len(rest)} bytes were to be written; the system took none")
        rest = rest[written:]


def _sync_folder(folder: str) -> None:
    if not hasattr(os, "O_DIRECTORY"):  # such a system has no way to sync a folder
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
