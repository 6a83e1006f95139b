"""The cold half of a tiered plane: exact rows in a file that nobody else can open."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.errors import DiskTrouble, ForkedStore, MissingExtra
from memsift.kernels import Float32

Places = npt.NDArray[np.int32]
# Of a larger file the process holds no pages beyond a call: the system keeps them while it has room.
RESIDENT = 256 * 2**20
# Up to so many rows of it are read by a call each, since a page of a map brings its neighbours into the process.
FEW = 256
FEWEST = 4096


class ColdFile:
    """Rows of float32 in places of a temporary file (0600), gone from its folder at once where the system allows it.

    Rows are written by calls, so that a full disk is an error, and read through a map.

    Parameters
    ----------
    dim : int
    folder : Path, optional
        The system's temporary one by default.
    """

    def __init__(self, dim: int, folder: Path | None) -> None:
        try:
            import mmap
            import tempfile
        except ImportError as error:  # as under wasm
            raise MissingExtra(
                f"tiered vectors need {error.name}, which this Python lacks; take float16 or int8"
            ) from error
        self._maps = mmap
        self._width = 4 * dim
        self._dim, self._pid = dim, os.getpid()
        try:
            made = tempfile.TemporaryFile(prefix=".memsift-cold-", dir=folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise DiskTrouble(f"no file for cold vectors could be made: {error}") from error
        self._file: Any = made
        weakref.finalize(self, made.close)
        self._map: Any = None
        self._rows: Float32 = np.empty((0, dim), np.float32)
        self._free = np.empty(0, np.int32)  # a stack
        self._top = 0

    def __len__(self) -> int:
        """Places that the file has room for."""
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """What the file takes on disk at most."""
        return len(self) * self._width

    @property
    def overhead(self) -> int:
        """What it takes in RAM."""
        return self._free.nbytes

    def add(self, vectors: Float32) -> Places:
        """Write rows (m, dim) to free places: (m,) int32."""
        self._check_process()
        count = len(vectors)
        again = min(count, self._free.size)
        fresh = count - again
        places = np.concatenate(
            [
                np.sort(self._free[self._free.size - again :]),
                np.arange(self._top, self._top + fresh, dtype=np.int32),
            ]
        )
        if self._top + fresh > len(self):
            self._grow(self._top + fresh)
        self.write(places, vectors)
        self._free = self._free[: self._free.size - again]
        self._top += fresh
        return places

    def write(self, places: Places, vectors: Float32) -> None:
        """Overwrite rows."""
        self._check_process()
        ends = np.flatnonzero(np.diff(places) != 1) + 1
        raw = np.ascontiguousarray(vectors).data.cast("B")
        start = 0
        try:
            for stop in (*ends.tolist(), len(places)):
                if stop > start:
                    part = raw[start * self._width : stop * self._width]
                    self._write(part, int(places[start]) * self._width)
                start = stop
        except OSError as error:
            raise DiskTrouble(f"cold vectors could not be written: {error}") from error

    def _write(self, raw: memoryview, offset: int) -> None:
        while len(raw):
            if hasattr(os, "pwrite"):
                done = os.pwrite(self._file.fileno(), raw, offset)
            else:
                self._file.seek(offset)
                done = self._file.write(raw)
            raw, offset = raw[done:], offset + done

    def take(self, places: Places) -> Float32:
        """Rows of these places: (m, dim), a copy."""
        self._check_process()
        large = self.nbytes > RESIDENT
        if not large or len(places) > FEW or not hasattr(os, "preadv"):
            found = self._rows[places]
            if large:
                self.let_go()
            return found
        found = np.empty((len(places), self._dim), np.float32)
        file = self._file.fileno()
        for row, place in zip(found, places.tolist(), strict=True):
            if os.preadv(file, [row], place * self._width) != self._width:
                raise DiskTrouble("cold vectors could not be read: the file ends too early")
        return found

    def release(self, places: Places) -> None:
        """These places may be written anew."""
        self._free = np.concatenate([self._free, places])

    def scrub(self) -> None:
        """Overwrite all places that are free."""
        for start in range(0, self._free.size, 1024):
            part = np.sort(self._free[start : start + 1024])
            self.write(part, np.zeros((part.size, self._dim), np.float32))

    def let_go(self) -> None:
        """Hold no page of the file; what is read next comes from the system's cache, or from disk."""
        if self._map is not None and hasattr(self._map, "madvise"):
            self._map.madvise(self._maps.MADV_DONTNEED)

    def _grow(self, places: int) -> None:
        # Beyond what is written, the file takes no room on disk.
        room = max(places, int(1.5 * len(self)), FEWEST)
        try:
            self._file.truncate(room * self._width)
            access = self._maps.ACCESS_READ
            self._map = self._maps.mmap(self._file.fileno(), room * self._width, access=access)
        except (OSError, ValueError) as error:
            raise DiskTrouble(f"the file of cold vectors could not grow: {error}") from error
        if hasattr(self._map, "madvise"):
            self._map.madvise(self._maps.MADV_RANDOM)
        self._rows = np.frombuffer(self._map, np.float32).reshape(room, self._dim)

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise ForkedStore(
                f"this store's cold vectors belong to process {self._pid}; make or open a store in this one "
                f"({os.getpid()})"
            )
