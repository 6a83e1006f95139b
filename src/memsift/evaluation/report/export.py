"""Cells for other programs: CSV and strict JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable
from dataclasses import fields
from numbers import Integral
from typing import Any

from memsift.evaluation.cell import Cell, Parts
from memsift.evaluation.report.files import write_whole

SCHEMA_VERSION = 1
"""Raised when a field of a cell changes its meaning or goes; a new field does not raise it."""

COLUMNS = tuple(field.name for field in fields(Cell) if field.name != "parts")


def to_csv(cells: Iterable[Cell], path: str | os.PathLike[str]) -> None:
    """Write one line per cell in UTF-8 under a header; a figure that does not exist is empty.

    Floats are written so that reading them back gives the same float.
    """
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(_values, cells))
    write_whole(path, text.getvalue().encode())


def to_json(cells: Iterable[Cell]) -> dict[str, Any]:
    """`{"schema_version": 1, "cells": [...]}`, ready for strict JSON: NaN and infinity are None.

    Cells with parts carry their means as `recall_by` and `fidelity_by`; the numbers of queries behind them, which
    many cells share, stand once in `parts`, and a cell names its own by the place in that list.
    """
    layouts: dict[tuple[tuple[int, ...], ...], int] = {}
    rows = []
    for cell in cells:
        row = _values(cell)
        if cell.parts.stream:
            parts = cell.parts
            layout = parts.stream, parts.scored, parts.compared
            row["parts"] = layouts.setdefault(layout, len(layouts))
            row["recall_by"] = list(parts.recall) if any(parts.scored) else None
            row["fidelity_by"] = list(parts.fidelity) if any(parts.compared) else None
        rows.append(row)
    data: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "cells": rows}
    if layouts:
        names = ("stream", "scored", "compared")
        data["parts"] = [dict(zip(names, map(list, one), strict=True)) for one in layouts]
    return data


def from_json(data: dict[str, Any]) -> list[Cell]:
    """The cells that `to_json` gave."""
    layouts = data.get("parts", [])
    return [_cell(dict(row), layouts) for row in data["cells"]]


def _cell(row: dict[str, Any], layouts: list[dict[str, list[int]]]) -> Cell:
    place, recall, fidelity = (row.pop(n, None) for n in ("parts", "recall_by", "fidelity_by"))
    values: dict[str, Any] = {
        name: math.nan if value is None else value for name, value in row.items()
    }
    if place is None:
        return Cell(**values)
    layout = layouts[place]
    nothing = [0.0] * len(layout["stream"])
    parts = Parts(
        tuple(layout["stream"]),
        tuple(layout["scored"]),
        tuple(nothing if recall is None else recall),
        tuple(layout["compared"]),
        tuple(nothing if fidelity is None else fidelity),
    )
    return Cell(**values, parts=parts)


def write_json(cells: Iterable[Cell], path: str | os.PathLike[str]) -> None:
    """Write `to_json(cells)` to `path` in UTF-8, a cell a line."""
    write_whole(path, f"{compact(to_json(cells))}\n".encode())


def compact(data: dict[str, Any]) -> str:
    """Strict JSON with a line for each item of each list at the top."""
    lines = []
    for name, value in data.items():
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(_text(item) for item in value) + "\n]"
        else:
            text = _text(value)
        lines.append(f"{_text(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}"


def _text(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _values(cell: Cell) -> dict[str, Any]:
    return {name: _plain(value) for name, value in cell.to_dict().items()}


def _plain(value: Any) -> str | int | float | None:
    # numpy's scalars pass for numbers in a cell, but `json` refuses most of them.
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Integral):
        return int(value)
    number = float(value)
    return number if math.isfinite(number) else None
