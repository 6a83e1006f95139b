"""The JSON in a file: each entry's metadata as a line, and the store's state as one object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.checks import METADATA_BYTES, METADATA_DEPTH, Metadata
from memsift.errors import CorruptStore, InvalidValue
from memsift.formats.rvf import strict
from memsift.formats.rvf.private import Part

Notes = list[Metadata | None]

METADATA, STATE = "metadata", "state"
LARGEST_STATE = 1024 * 1024
STATE_DEPTH = 32
CHUNK = 64 * 1024 * 1024
# The metadata itself, and what its line says around it.
_LONGEST_LINE = METADATA_BYTES + 64


def encode_metadata(ids: npt.NDArray[np.int64], notes: Notes) -> Iterator[bytes]:
    """Bodies of checked metadata; one at least."""
    part: list[bytes] = []
    size = 0
    for id_, note in zip(ids.tolist(), notes, strict=True):
        if note is None:
            continue
        text = json.dumps({"id": id_, "metadata": note}, ensure_ascii=False, separators=(",", ":"))
        line = text.encode() + b"\n"
        if part and size + len(line) > CHUNK:
            yield b"".join(part)
            part, size = [], 0
        part.append(line)
        size += len(line)
    yield b"".join(part)


def decode_metadata(parts: list[Part], ids: npt.NDArray[np.int64]) -> Notes:
    """The metadata of these ids, in their order; None where no line says anything."""
    rows = {id_: row for row, id_ in enumerate(ids.tolist())}
    notes: Notes = [None] * len(rows)
    seen: set[int] = set()
    for line, offset in strict.lines(parts, METADATA, _LONGEST_LINE):
        record = strict.loaded_object(line, METADATA_DEPTH + 1, METADATA, offset)
        id_, note = record.get("id"), record.get("metadata")
        if record.keys() != {"id", "metadata"} or type(id_) is not int or type(note) is not dict:
            raise CorruptStore(METADATA, "an id and its metadata were expected", offset)
        if id_ in seen:
            raise CorruptStore(METADATA, f"each id once was expected, {id_} came again", offset)
        seen.add(id_)
        if id_ in rows:
            try:
                notes[rows[id_]], _ = checks.metadata(note, f"that of id {id_}")
            except InvalidValue as error:
                raise CorruptStore(METADATA, str(error)[:200], offset) from None
    return notes


def encode_state(state: dict[str, Any]) -> bytes:
    """One line of strict JSON; ValueError or TypeError if it is not."""
    data = strict.dumped(state)
    if len(data) > LARGEST_STATE:
        raise ValueError(f"{len(data)} bytes, more than {LARGEST_STATE}")
    strict.loaded(data, STATE_DEPTH)
    return data


def decode_state(part: Part) -> dict[str, Any]:
    if len(part.body) > LARGEST_STATE:
        raise CorruptStore(
            STATE,
            f"at most {LARGEST_STATE} bytes were expected, {len(part.body)} came",
            part.offset,
        )
    return strict.loaded_object(part.body, STATE_DEPTH, STATE, part.offset)
