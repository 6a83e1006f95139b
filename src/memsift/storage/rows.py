"""Entries as rows of the file and back, with a sum over each so that a flipped bit is noticed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.checks import Metadata
from memsift.errors import CorruptStore
from memsift.view import COLUMNS

# Ids of a namespace fit below its part of the key.
ID_BITS = 40
STORED = [name for name in COLUMNS if name != "revision"]
PACKED = np.dtype(
    [(name, np.dtype(COLUMNS[name][0]).newbyteorder("<")) for name in STORED]
    + [("vector", "<u4"), ("note", "<u4"), ("sum", "<u4")]
)

Sums = npt.NDArray[np.uint32]


def keys(ns: int, ids: npt.NDArray[np.int64]) -> list[int]:
    """Keys of ids in a namespace."""
    found: list[int] = (ids + (ns << ID_BITS)).tolist()
    return found


def slices(raw: memoryview, size: int) -> Iterator[memoryview]:
    """Equal pieces of a buffer."""
    return (raw[start : start + size] for start in range(0, len(raw), size))


def packed(
    columns: dict[str, npt.NDArray[Any]],
    sums: Sums,
    notes: Sequence[Metadata | None],
) -> Iterator[memoryview]:
    """Each entry's columns as one small blob, with the `sums` of its vector, its metadata's, and one over itself."""
    rows = np.zeros(len(columns["created_tick"]), PACKED)
    for name in STORED:
        rows[name] = columns[name]
    rows["vector"] = sums
    rows["note"] = [note_sum(note_text(note)) if note else 0 for note in notes]
    rows["sum"] = row_sums(rows)
    return slices(rows.data.cast("B"), PACKED.itemsize)


def joined(blobs: Iterable[bytes]) -> bytes:
    """Packed rows, end to end."""
    try:
        return b"".join(blobs)
    except TypeError as error:
        raise CorruptStore("entry", f"rows must be bytes; {error}") from None


def unpacked(raw: bytes, sums: Sums | None = None) -> dict[str, npt.NDArray[Any]]:
    """Columns of blobs that `packed` made, joined; the `sums` of their vectors must be those that they name.

    Raises
    ------
    CorruptStore
        A blob of another size, a sum that does not fit, or a value outside its bounds.
    """
    if len(raw) % PACKED.itemsize:
        raise CorruptStore(
            "entry", f"rows must be {PACKED.itemsize} bytes each; got {len(raw)} in all"
        )
    rows = np.frombuffer(raw, PACKED)
    ids = rows["ids"]
    wrong = np.flatnonzero(row_sums(rows) != rows["sum"])
    if wrong.size:
        raise CorruptStore("entry", f"sum must fit the row; it does not for id {ids[wrong[0]]}")
    if sums is not None:
        wrong = np.flatnonzero(sums != rows["vector"])
        if wrong.size:
            raise CorruptStore(
                "vector", f"sum must fit the row; it does not for id {ids[wrong[0]]}"
            )
    for name in STORED:
        if rows[name].dtype.kind == "i" and (rows[name] < 0).any():
            raise CorruptStore(
                "entry", f"{name} must be at least 0; it is not for id {ids[np.argmin(rows[name])]}"
            )
    if (ids[1:] <= ids[:-1]).any():
        raise CorruptStore("entry", "rows must ascend by id; they do not")
    return {name: rows[name].astype(COLUMNS[name][0]) for name in STORED}


def row_sums(rows: npt.NDArray[Any]) -> Sums:
    """A sum over each packed row but its own last four bytes: (n,) uint32."""
    body = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), rows.itemsize)[:, :-4]
    odd = (np.arange(body.shape[1], dtype=np.uint32) * np.uint32(0x9E3779B1)) | np.uint32(1)
    sums: Sums = np.vecdot(body.astype(np.uint32), odd)
    return sums


def note_rows(keys: list[int], notes: Sequence[Metadata | None]) -> Iterator[tuple[int, str]]:
    """Rows of the `note` table for entries that have metadata."""
    pairs = zip(keys, notes, strict=True)
    return ((key, note_text(note)) for key, note in pairs if note)


def note_text(note: Metadata) -> str:
    """Metadata as the file holds it."""
    return json.dumps(note, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def note_sum(text: str) -> int:
    """CRC-32 of it, kept in the entry's own row, so that a note that is gone is noticed too."""
    return zlib.crc32(text.encode())


def note_sums(raw: bytes) -> Sums:
    """What the notes of packed rows must sum to, 0 where there is none: (n,) uint32."""
    sums: Sums = np.frombuffer(raw, PACKED)["note"].astype(np.uint32)
    return sums


def note(text: Any) -> Metadata:
    """Metadata from a row of the `note` table: strict JSON, within its bounds."""
    if not isinstance(text, str) or len(text) > checks.METADATA_BYTES:
        raise CorruptStore("note", "must be text within its bounds; it is not")
    found = strict_json(text, "note")
    if not isinstance(found, dict):
        raise CorruptStore("note", "metadata must be an object; it is not")
    return found


def strict_json(text: str, section: str) -> Any:
    """JSON without NaN and without a key twice."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a key stands twice")
        return dict(pairs)

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise CorruptStore(section, f"must be strict JSON; {error}") from None


def state_sum(identity: tuple[Any, ...], state: tuple[Any, ...]) -> int:
    """CRC-32 of a namespace's row: who it is, and its generation, config, state and context."""
    if not isinstance(state[-1], bytes):
        raise CorruptStore("namespace", "context must be bytes; it is not")
    return zlib.crc32(state[-1], zlib.crc32(repr((identity, state[:-1])).encode()))
