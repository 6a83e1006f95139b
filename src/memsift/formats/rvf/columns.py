"""The columns segments: what is known of each entry beside its vector, by id.

| at | size   | field                                                                               |
|----|--------|-------------------------------------------------------------------------------------|
| 0  | 4      | length of the table of contents, t                                                  |
| 4  | t      | JSON: `[{"name":"ids","dtype":"<i8","count":20}, …]`, "ids" first, all counts equal |
|    | 0 to 7 | zeros, to a multiple of 8 from the body's start; so after each array too            |
|    |        | the arrays, raw, in the order of the table                                          |

A reader MUST refuse dtypes but `<i8 <f8 <f4 |b1`, MAY skip names that it does not know, MUST fill what is missing with
the column's default, and MUST join by id: a tool that deletes rows leaves this segment as it was.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.errors import CorruptStore
from memsift.formats.rvf import strict
from memsift.formats.rvf.files import Buffer
from memsift.formats.rvf.private import Part
from memsift.view import COLUMNS

Columns = dict[str, npt.NDArray[Any]]

SECTION = "columns"
# All that a file carries: sizes and revisions belong to the store that holds the entries now.
CARRIED = {n: kind for n, kind in COLUMNS.items() if n not in ("ids", "nbytes", "revision")}
CHUNK_ROWS = 500_000
_DTYPES = {"<i8": 8, "<f8": 8, "<f4": 4, "|b1": 1}
_LARGEST_TABLE = 64 * 1024


def problem(name: str, column: npt.NDArray[Any]) -> str | None:
    """What is wrong with the values of a column, in words."""
    if column.dtype.kind == "i":
        return f"must be at least 0; got {column.min()}" if (column < 0).any() else None
    if name == "importance":
        bad = ~np.isnan(column) & ~((column >= 0) & (column <= 1))
        return f"must be within 0 to 1, or NaN; got {column[bad][0]}" if bad.any() else None
    if name in ("nearest", "typicality", "adjacency"):
        bad = np.abs(column) > 1.01
        return f"must be within -1 to 1, or NaN; got {column[bad][0]}" if bad.any() else None
    if name in ("attention", "heat") and (column < 0).any():
        return f"must be at least 0; got {column.min()}"
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        return f"must be finite; got {column[~np.isfinite(column)][0]}"
    return None


def encode(ids: npt.NDArray[np.int64], columns: Columns) -> Iterator[list[Buffer]]:
    """Bodies, each in parts, of at most `CHUNK_ROWS` entries; one at least."""
    for start in range(0, max(1, len(ids)), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        arrays = {"ids": ids[rows]} | {name: columns[name][rows] for name in CARRIED}
        table = [
            {"name": n, "dtype": a.dtype.newbyteorder("<").str, "count": len(a)}
            for n, a in arrays.items()
        ]
        text = json.dumps(table, separators=(",", ":")).encode()
        parts: list[Buffer] = [_padded(struct.pack("<I", len(text)) + text)]
        parts += [_padded(a.astype(a.dtype.newbyteorder("<")).tobytes()) for a in arrays.values()]
        yield parts


def decode(parts: list[Part], ids: npt.NDArray[np.int64]) -> Columns:
    """The carried columns for these ids, (n,) each; what no segment says takes its default."""
    chunks = [_decode(part) for part in parts]
    known = np.concatenate([chunk["ids"] for chunk in chunks])
    order = np.argsort(known, kind="stable")
    ordered = known[order]
    if (ordered[1:] == ordered[:-1]).any():
        raise CorruptStore(SECTION, "each id once was expected, one came again", parts[0].offset)
    places = np.searchsorted(ordered, ids)
    found = np.zeros(len(ids), bool)
    inside = places < len(ordered)
    found[inside] = ordered[places[inside]] == ids[inside]
    rows = order[places[found]]
    columns = {}
    for name, (dtype, default) in CARRIED.items():
        filled = [chunk.get(name, np.full(len(chunk["ids"]), default, dtype)) for chunk in chunks]
        columns[name] = np.full(len(ids), default, dtype)
        columns[name][found] = np.concatenate(filled)[rows]
    return columns


def _decode(part: Part) -> Columns:
    """The arrays of one segment that this version knows, "ids" among them."""
    body, offset = part

    def fail(message: str) -> CorruptStore:
        return CorruptStore(SECTION, message, offset)

    length = struct.unpack_from("<I", body)[0] if len(body) >= 4 else len(body)
    if length > min(len(body) - 4, _LARGEST_TABLE):
        raise fail(f"a table of contents was expected, {length} bytes of {len(body)} came")
    table = _table(body[4 : 4 + length], fail)
    arrays: Columns = {}
    at = 4 + length + -(4 + length) % 8
    count = table[0][2]
    for name, dtype, own in table:
        size = own * _DTYPES[dtype]
        if own != count or at + size > len(body):
            raise fail(
                f"{count} values of {name[:40]!r} were expected, {own} came, or too few bytes"
            )
        column = np.frombuffer(body, np.uint8 if dtype == "|b1" else dtype, own, at)
        at += size + -size % 8
        if dtype == "|b1" and (column > 1).any():
            raise fail(f"0 or 1 was expected in {name[:40]!r}, {column.max()} came")
        if name == "ids" or name in CARRIED:
            wanted = np.dtype(COLUMNS[name][0])
            if wanted.newbyteorder("<").str != dtype or name in arrays:
                raise fail(f"{name!r} once, as {wanted}, was expected, {dtype} came")
            arrays[name] = column.astype(wanted)
            if wrong := problem(name, arrays[name]):
                raise fail(f"{name} {wrong}")
    if at != len(body) or "ids" not in arrays:
        raise fail(f"ids and {at} bytes were expected, {len(body)} came")
    return arrays


def _table(text: memoryview, fail: Callable[[str], CorruptStore]) -> list[tuple[str, str, int]]:
    try:
        table = strict.loaded(text, 2)
        rows = [(row["name"], row["dtype"], row["count"]) for row in table]
        types = {(type(name), dtype in _DTYPES, type(count)) for name, dtype, count in rows}
    except (ValueError, KeyError, TypeError):
        rows, types = [], set()
    if types != {(str, True, int)} or min(count for _, _, count in rows) < 0:
        raise fail("names, dtypes and counts were expected in the table of contents, others came")
    return rows


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)
