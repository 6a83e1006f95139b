"""Vectors from files, a batch at a time: `.npy`, `.npz` and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from memsift.checks import shown
from memsift.errors import InvalidType, InvalidValue

ROWS = 1000
LINE_BYTES = 4 * 1024 * 1024
# What a line or an archive may say of an entry beside its vector, as `add_many` takes it.
FIELDS = ("cost", "importance", "pinned", "created_at")


@dataclass
class Batch:
    """Rows for one `add_many`, and where they came from, for messages."""

    vectors: Any
    values: dict[str, Any] = field(default_factory=dict)
    first: int = 0

    def __len__(self) -> int:
        return len(self.vectors)


def read_batches(path: Path) -> tuple[Iterator[Batch], int | None]:
    """Batches of a `.npy` or `.npz` file or of JSON lines (any other ending), and how many rows there are, if known.

    A `.npz` holds `vectors` (n, dim) and may hold `cost`, `importance`, `pinned` and `created_at` (n,).

    Raises
    ------
    InvalidValue
        The file cannot be read as what its ending says.
    """
    try:
        if path.suffix == ".npy":
            vectors = np.load(path, mmap_mode="r", allow_pickle=False)
            return _slices({"vectors": vectors}, path), len(vectors) if vectors.ndim else 0
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            if "vectors" not in arrays:
                raise InvalidValue(
                    f"{path.name} must hold an array named vectors; it holds {', '.join(arrays)[:80]}"
                )
            rows = len(arrays["vectors"])
            return _slices(arrays, path), rows
        return _lines_of(path.open("rb"), path.name), None
    except InvalidValue:
        raise
    except (OSError, ValueError, EOFError) as error:
        raise InvalidValue(
            f"{path.name} must be a readable {path.suffix or 'file'}; {error}"
        ) from None


def read_lines(stream: BinaryIO, name: str) -> Iterator[Batch]:
    """Batches of JSON lines: `{"vector": [...], "metadata": {...}, "cost": 12, "pinned": false}`.

    Blank lines are skipped.

    Raises
    ------
    InvalidValue, InvalidType
        Naming the line.
    """
    batch, number = _Lines(1), 0
    while line := stream.readline(LINE_BYTES + 1):
        number += 1
        if len(line) > LINE_BYTES:
            raise InvalidValue(f"{name}, line {number}: must be at most {LINE_BYTES} bytes")
        if line.strip():
            batch.add(line, f"{name}, line {number}")
        if len(batch.vectors) == ROWS:
            yield batch.done()
            batch = _Lines(number + 1)
    if batch.vectors:
        yield batch.done()


def _lines_of(stream: BinaryIO, name: str) -> Iterator[Batch]:
    with stream:
        yield from read_lines(stream, name)


class _Lines:
    def __init__(self, first: int) -> None:
        self.first, self.vectors = first, list[Any]()
        self.values: dict[str, list[Any]] = {"metadata": [], **{name: [] for name in FIELDS}}
        self.given: set[str] = set()

    def add(self, line: bytes, where: str) -> None:
        def refuse(word: str) -> None:
            raise ValueError(f"{word} is not JSON")

        try:
            found = json.loads(line, parse_constant=refuse)
        except (ValueError, RecursionError) as error:
            raise InvalidValue(f"{where}: must be JSON; {error}") from None
        if not isinstance(found, dict) or "vector" not in found:
            raise InvalidType(f'{where}: must be an object with a "vector"; got {shown(found)}')
        unknown = sorted(found.keys() - {"vector", *self.values})
        if unknown:
            raise InvalidValue(
                f"{where}: may hold vector, {', '.join(self.values)}; got {', '.join(unknown)[:80]}"
            )
        vector = found["vector"]
        if not isinstance(vector, list):
            raise InvalidType(f"{where}: vector must be a list of numbers; got {shown(vector)}")
        if self.vectors and len(vector) != len(self.vectors[0]):
            before = len(self.vectors[0])
            raise InvalidValue(
                f"{where}: vector must have {before} numbers, as those before; got {len(vector)}"
            )
        self.vectors.append(vector)
        for name, column in self.values.items():
            column.append(found.get(name, _NOTHING[name]))
            if name in found:
                self.given.add(name)

    def done(self) -> Batch:
        values = {name: column for name, column in self.values.items() if name in self.given}
        return Batch(self.vectors, values, self.first)


_NOTHING: dict[str, Any] = {
    "metadata": None,
    "cost": 1,
    "importance": None,
    "pinned": False,
    "created_at": None,
}


def _slices(arrays: dict[str, Any], path: Path) -> Iterator[Batch]:
    vectors = arrays.pop("vectors")
    unknown = sorted(arrays.keys() - set(FIELDS))
    if unknown:
        raise InvalidValue(
            f"{path.name} may hold vectors, {', '.join(FIELDS)}; got {', '.join(unknown)[:80]}"
        )
    if vectors.ndim != 2:
        raise InvalidValue(f"{path.name}: vectors must have shape (n, dim); got {vectors.shape}")

    def pieces() -> Iterator[Batch]:
        for start in range(0, len(vectors), ROWS):
            span = slice(start, start + ROWS)
            yield Batch(
                vectors[span], {name: column[span] for name, column in arrays.items()}, start
            )

    return pieces()
