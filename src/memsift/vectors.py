"""Vectors at the door: checked, cast and normalised once, whole, before anything is changed.

The stored row is a unit float32 vector. Rows that already have length one (to float32 precision) are
kept bit for bit, so that storing what was read gives the same bytes again.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from memsift.errors import DimensionMismatch, InvalidType, InvalidValue, NotFinite, ZeroVector

Rows = npt.NDArray[np.float32]

# Below float32's smallest normal number a vector's direction is rounding noise.
SMALLEST_NORM = float(np.finfo(np.float32).tiny)
# A few float32 ulps: rows this close to length one pass unchanged.
UNIT_TOLERANCE = 5e-7
# Rows per block of the float64 pass over a batch: its scratch stays in a core's cache.
BLOCK = 256


def as_unit_rows(vectors: npt.ArrayLike, dim: int | None = None, name: str = "vectors") -> Rows:
    """Unit rows of a batch.

    Parameters
    ----------
    vectors : array-like, (n, dim), any real integer or floating dtype and layout
    dim : int or None
        The length that each row must have; None accepts any length of at least 1.
    name : str
        The parameter's name, for messages.

    Returns
    -------
    (n, dim) float32, C order, unit rows; never memory of the caller's

    Raises
    ------
    InvalidType
        Not numbers (bool, complex, text, objects).
    InvalidValue, DimensionMismatch
        Not a rectangle of rows of length `dim`.
    NotFinite
        NaN or infinity, also after the cast to float32; names row and element.
    ZeroVector
        A row whose length is below float32's smallest normal number.
    """
    array = _real_array(vectors, name)
    if array.shape == (0,) and dim is not None:
        array = array.reshape(0, dim)  # an empty list is a batch of none
    if array.ndim != 2:
        raise InvalidValue(f"{name} must have shape (n, {dim or 'dim'}); got shape {array.shape}")
    _check_length(array.shape[1], dim, name)
    rows = _cast(array)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        wide = block.astype(np.float64)
        squares = np.vecdot(wide, wide)
        if not np.isfinite(squares).all():
            bad, element = np.argwhere(~np.isfinite(block))[0]
            raise NotFinite(
                _not_finite(f"{name}[{start + bad}, {element}]", array[start + bad, element])
            )
        lengths = np.sqrt(squares)
        if (lengths < SMALLEST_NORM).any():
            bad = int(np.flatnonzero(lengths < SMALLEST_NORM)[0])
            raise ZeroVector(
                f"{name}[{start + bad}] must have a direction; got a vector of length zero"
            )
        off = np.flatnonzero(np.abs(lengths - 1.0) > UNIT_TOLERANCE)
        if off.size:
            block[off] = wide[off] / lengths[off, None]
    return rows


def as_unit_row(vector: npt.ArrayLike, dim: int, name: str = "vector") -> Rows:
    """One unit row, (dim,) float32. Errors as in `as_unit_rows`; this is the search's short way in."""
    array = _real_array(vector, name)
    if array.shape != (dim,):
        if array.ndim != 1:
            raise InvalidValue(f"{name} must have shape ({dim},); got shape {array.shape}")
        _check_length(array.shape[0], dim, name)
    row = array.astype(np.float32) if array.dtype == np.float32 else _cast(array)
    wide = row.astype(np.float64)
    square = float(wide.dot(wide))
    # Squares of finite float32 numbers cannot overflow float64, so this one test covers every element.
    if not math.isfinite(square):
        element = int(np.flatnonzero(~np.isfinite(row))[0])
        raise NotFinite(_not_finite(f"{name}[{element}]", array[element]))
    length = math.sqrt(square)
    if length < SMALLEST_NORM:
        raise ZeroVector(f"{name} must have a direction; got a vector of length zero")
    if abs(length - 1.0) > UNIT_TOLERANCE:
        wide /= length
        return wide.astype(np.float32)
    return row


def _real_array(value: npt.ArrayLike, name: str) -> npt.NDArray[np.generic]:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidValue(
            f"{name} must be numbers in equally long rows; got {_kind(value)}"
        ) from error
    if array.dtype.kind not in "fiu":
        raise InvalidType(
            f"{name} must be real numbers (integer or floating); got {_kind(value)} of dtype {array.dtype}"
        )
    return array


def _cast(array: npt.NDArray[np.generic]) -> Rows:
    # A number too large for float32 becomes infinite here, and the caller's check names it.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array(array, dtype=np.float32, order="C")


def _check_length(got: int, dim: int | None, name: str) -> None:
    if dim is not None and got != dim:
        raise DimensionMismatch(f"{name} must have {dim} dimensions, as the store has; got {got}")
    if got == 0:
        raise InvalidValue(f"{name} must have at least 1 dimension; got 0")


def _not_finite(where: str, value: object) -> str:
    return f"{where} must be finite and within float32's range (below 3.4e38); got {value}"


def _kind(value: object) -> str:
    return type(value).__name__
