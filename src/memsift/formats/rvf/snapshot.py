"""What an .rvf file of memsift holds, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.errors import InvalidType, InvalidValue
from memsift.formats.rvf import chain, columns, documents
from memsift.formats.rvf.documents import Notes

LARGEST_DIM = 65535


@dataclass(frozen=True, eq=False)
class RvfSnapshot:
    """Entries on one axis, and what a store knows beside them. Whatever a file does not carry is None.

    Parameters
    ----------
    ids : (n,) int64
        Unique, 0 to 2^63 - 1.
    vectors : (n, dim) float32
        Finite; dim from 1 to 65535. Those of a store are unit rows, those of other tools need not be.
    columns : dict of (n,) arrays
        The columns of `memsift.view.COLUMNS` but ids, nbytes and revision, with their dtypes.
    metadata : list of n dicts or None
        Strict JSON as the store takes it; an empty dict counts as None.
    state : dict
        Strict JSON: budget, policy, tick, next id, counts and so on. At most 1 MiB, 32 deep.
    context : (w, dim) float32
        The window's queries, oldest first.
    chain : list of bytes
        The audit records' bodies, oldest first: each one JSON object on one line, at most 1 MiB.
    """

    ids: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.float32]
    columns: dict[str, npt.NDArray[Any]] | None = None
    metadata: Notes | None = None
    state: dict[str, Any] | None = None
    context: npt.NDArray[np.float32] | None = None
    chain: list[bytes] | None = None

    @property
    def dim(self) -> int:
        return int(self.vectors.shape[1])


def check(snapshot: RvfSnapshot) -> None:
    """That a snapshot can be written and will come back the same.

    Raises
    ------
    InvalidType, InvalidValue, InvalidMetadata
    """
    ids, vectors, n = snapshot.ids, snapshot.vectors, len(snapshot.ids)
    _array("ids", ids, np.int64, (n,))
    if n and ids.min() < 0:
        raise InvalidValue(f"ids must be at least 0; got {ids.min()}")
    if np.unique(ids).size < n:
        raise InvalidValue("ids must be unique; got one twice")
    if vectors.ndim != 2 or not 1 <= vectors.shape[1] <= LARGEST_DIM:
        raise InvalidValue(
            f"vectors must have shape ({n}, 1 to {LARGEST_DIM}); got {vectors.shape}"
        )
    _finite("vectors", vectors, (n, snapshot.dim))
    if snapshot.context is not None:
        _finite("context", snapshot.context, (len(snapshot.context), snapshot.dim))
    if snapshot.columns is not None:
        _check_columns(snapshot.columns, n)
    if snapshot.metadata is not None:
        if len(snapshot.metadata) != n:
            raise InvalidValue(
                f"metadata must have {n} items, as ids have; got {len(snapshot.metadata)}"
            )
        for row, note in enumerate(snapshot.metadata):
            checks.metadata(note, f"metadata[{row}]")
    try:
        if snapshot.state is not None:
            documents.encode_state(snapshot.state)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidValue(f"state must be strict JSON; {error}") from None
    try:
        chain.of_bodies(snapshot.chain or [])
    except (ValueError, TypeError) as error:
        raise InvalidValue(f"chain must be audit records; {error}") from None


def _check_columns(given: columns.Columns, n: int) -> None:
    if given.keys() != columns.CARRIED.keys():
        raise InvalidValue(
            f"columns must be {', '.join(columns.CARRIED)}; got {', '.join(sorted(given))}"
        )
    for name, (dtype, _) in columns.CARRIED.items():
        _array(f"columns[{name!r}]", given[name], dtype, (n,))
        if wrong := columns.problem(name, given[name]):
            raise InvalidValue(f"columns[{name!r}] {wrong}")


def _array(name: str, array: object, dtype: type[np.generic], shape: tuple[int, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        got = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise InvalidType(f"{name} must be an array of {np.dtype(dtype)}; got {got}")
    if array.shape != shape:
        raise InvalidValue(f"{name} must have shape {shape}; got {array.shape}")


def _finite(name: str, array: npt.NDArray[np.float32], shape: tuple[int, ...]) -> None:
    _array(name, array, np.float32, shape)
    if not np.isfinite(array).all():
        raise InvalidValue(f"{name} must be finite; got NaN or infinity")
