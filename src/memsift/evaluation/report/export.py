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

from memsift.evaluation.cell import Cell
from memsift.evaluation.report.files import write_whole

SCHEMA_VERSION = 1
"""Raised when a field of a cell changes its meaning or goes; a new field does not raise it."""

COLUMNS = tuple(field.name for field in fields(Cell))


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
    """`{"schema_version": 1, "cells": [...]}`, ready for strict JSON: NaN and infinity are None."""
    return {"schema_version": SCHEMA_VERSION, "cells": [_values(cell) for cell in cells]}


def write_json(cells: Iterable[Cell], path: str | os.PathLike[str]) -> None:
    """Write `to_json(cells)` to `path` in UTF-8."""
    text = json.dumps(to_json(cells), allow_nan=False, ensure_ascii=False, indent=1)
    write_whole(path, f"{text}\n".encode())


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
