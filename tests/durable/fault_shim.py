"""Builds the shim, starts children under it, steers it from within, and reads what it recorded."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE / "faults" / "shim.c"

MARK, OPEN, CREATE, WRITE, TRUNCATE, SYNC, UNLINK, RENAME, READ = 0, 1, 2, 4, 8, 16, 32, 64, 128

# What can go wrong: the operations that may fail so, the errno, whether the first write (2) or each (1) is short.
# A full disk refuses what takes room; a dying one refuses everything that changes it.
FAULTS: dict[str, tuple[int, int, int]] = {
    "ENOSPC": (CREATE | WRITE | TRUNCATE, errno.ENOSPC, 0),
    "EIO": (OPEN | CREATE | WRITE | TRUNCATE | SYNC | UNLINK | RENAME, errno.EIO, 0),
    "EINTR": (OPEN | CREATE | WRITE | TRUNCATE | SYNC, errno.EINTR, 0),
    "short": (WRITE, 0, 1),
    "filling": (CREATE | WRITE | TRUNCATE, errno.ENOSPC, 2),
    "fsync": (SYNC, errno.EIO, 0),
    "read": (READ, errno.EIO, 0),
}


@cache
def why_not() -> str:
    """Why no shim can be used here; empty if it can."""
    if sys.platform != "linux":
        return f"the shim is written for Linux; this is {sys.platform}"
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        return "no C compiler (cc or gcc) is here to build the shim"
    return ""


def build(folder: Path) -> Path:
    """The shim, compiled into `folder`."""
    out = folder / "shim.so"
    compiler = shutil.which("cc") or shutil.which("gcc") or "cc"
    options = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"]
    command = [compiler, *options, "-o", str(out), str(SOURCE), "-ldl", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise RuntimeError(f"the shim does not compile: {done.stderr[-2000:]}")
    return out


def child(shim: Path, root: Path, arguments: list[str], **options: object) -> subprocess.Popen[str]:
    """`fault_child.py` under the shim, with the files below `root` in its hands."""
    environment = os.environ | {
        "LD_PRELOAD": str(shim),
        "FAULT_ROOT": str(root),
        "SQLITE_TMPDIR": str(root),  # a vacuum's copy lies on the same bad disk
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, str(HERE / "fault_child.py"), *arguments]
    pipes: dict[str, object] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }
    return subprocess.Popen(command, env=environment, text=True, **(pipes | options))  # type: ignore[call-overload,no-any-return]


class Shim:
    """The shim's switches, from inside of the child."""

    def __init__(self) -> None:
        self._calls = ctypes.CDLL(None)
        for name in ("count", "fired"):
            getattr(self._calls, f"fault_{name}").restype = ctypes.c_long

    def root(self, folder: Path) -> None:
        self._calls.fault_root(os.fsencode(folder))

    def record(self, log: Path | None) -> None:
        self._calls.fault_record(None if log is None else os.fsencode(log))

    def mark(self, text: str) -> None:
        self._calls.fault_mark(text.encode())

    def arm(self, fault: str, at: int, forever: bool) -> None:
        kinds, error, short = FAULTS[fault]
        self._calls.fault_arm(kinds, error, short, ctypes.c_long(at), int(forever))

    def disarm(self) -> None:
        self._calls.fault_disarm()

    def count(self) -> int:
        return int(self._calls.fault_count())

    def fired(self) -> int:
        return int(self._calls.fault_fired())


HEAD = struct.Struct("<iiiiqq")


@dataclass(frozen=True)
class Op:
    """One operation of the log. `offset` of a TRUNCATE is the new length; `data` of a RENAME the new name."""

    kind: int
    error: int
    handle: int
    offset: int
    text: str
    data: bytes


def operations(log: Path) -> Iterator[Op]:
    raw = log.read_bytes()
    place = 0
    while place < len(raw):
        kind, error, handle, text, offset, data = HEAD.unpack_from(raw, place)
        place += HEAD.size
        words = raw[place : place + text].decode()
        place += text
        yield Op(kind, error, handle, offset, words, raw[place : place + data])
        place += data
