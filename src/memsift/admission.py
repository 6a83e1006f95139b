"""A batch at the door: every value of it checked before the first is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.checks import Metadata
from memsift.errors import InvalidType, InvalidValue

if TYPE_CHECKING:
    from memsift.table import EntryTable


@dataclass(frozen=True)
class Batch:
    """n checked newcomers: their bytes, their columns (n,) by name, and metadata unless none has any."""

    nbytes: npt.NDArray[np.int64]
    columns: dict[str, npt.NDArray[Any]]
    metadata: list[Metadata | None] | None

    def __len__(self) -> int:
        return self.nbytes.size

    def weight(self, unit: str) -> npt.NDArray[np.int64]:
        """What each takes of a budget's `bytes` or `cost`: (n,) int64."""
        return self.nbytes if unit == "bytes" else self.columns["cost"]


def admit(
    n: int,
    metadata: Sequence[Metadata | None] | None,
    cost: Any,
    importance: Any,
    pinned: Any,
    created_at: Any,
    table: EntryTable,
) -> Batch:
    """Check what comes with n vectors; each value may be one for all or one for each.

    Raises
    ------
    InvalidType, InvalidValue, InvalidMetadata
        Naming the parameter and, within a batch, the place.
    """
    notes, sizes = _metadata(metadata, n)
    columns = columns_of(n, cost, importance, pinned, created_at)
    return Batch(sizes + table.entry_bytes(), columns, notes)


def check(n: int, metadata: Any, importance: Any, pinned: Any, created_at: Any) -> None:
    """Check what will come with n vectors before there are any, with the errors of `admit`."""
    _metadata(metadata, n)
    columns_of(n, 1, importance, pinned, created_at)


def columns_of(
    n: int, cost: Any, importance: Any, pinned: Any, created_at: Any
) -> dict[str, npt.NDArray[Any]]:
    """Checked columns (n,) by name; each value may be one for all or one for each."""
    return {
        "cost": _each(
            cost,
            n,
            "cost",
            np.int64,
            lambda v, name: checks.integer(v, name, 0, checks.LARGEST_COST),
        ),
        "importance": _each(importance, n, "importance", np.float32, _importance),
        "pinned": _each(pinned, n, "pinned", np.bool_, checks.flag),
        "created_at": _each(created_at, n, "created_at", np.float64, checks.timestamp),
    }


def _metadata(
    given: Sequence[Metadata | None] | None, n: int
) -> tuple[list[Metadata | None] | None, npt.NDArray[np.int64]]:
    if given is None:
        return None, np.zeros(n, np.int64)
    if isinstance(given, (dict, str, bytes)) or not isinstance(given, Sequence):
        raise InvalidType(
            f"metadata must be a list with one dict or None per vector; got {checks.shown(given)}"
        )
    if len(given) != n:
        raise InvalidValue(
            f"metadata must have one dict or None per vector ({n}); got {len(given)}"
        )
    if n == 1:
        note, size = checks.metadata(given[0])
        return ([note] if note else None), np.array([size], np.int64)
    pairs = [checks.metadata(note, f"metadata[{i}]") for i, note in enumerate(given)]
    return [note for note, _ in pairs], np.array([size for _, size in pairs], np.int64)


def _each(
    value: Any, n: int, name: str, dtype: type[np.generic], check: Callable[[Any, str], Any]
) -> npt.NDArray[Any]:
    """`value` for each of n entries, every element checked."""
    if not isinstance(value, (list, tuple, np.ndarray)):
        return np.full(n, check(value, name), dtype)
    if np.ndim(value) != 1 or len(value) != n:
        raise InvalidValue(
            f"{name} must be one value or one per vector ({n}); got shape {np.shape(value)}"
        )
    # Plain numbers where that loses nothing: `tolist` would turn nanoseconds into integers.
    items = (
        value.tolist()
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufO"
        else list(value)
    )
    return np.array([check(item, f"{name}[{i}]") for i, item in enumerate(items)], dtype)


def _importance(value: Any, name: str) -> float:
    if value is None or (isinstance(value, (float, np.floating)) and value != value):
        return float("nan")
    return checks.fraction(value, name)
