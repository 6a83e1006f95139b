"""Vectors as int8: a quarter of the bytes, and how much is lacking."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from memsift.kernels import DECIMALS, Float32

Int8 = npt.NDArray[np.int8]

# Rows at a time: their scratch stays in a core's cache.
BLOCK = 64


def sketched(vectors: Float32) -> tuple[Int8, Float32, Float32]:
    """Unit rows as int8, with the scale of each, and the length of what the sketch lacks.

    The scale is that of least squares, so what is lacking is perpendicular to the sketch: see `bounds`.
    """
    count = len(vectors)
    rows = np.empty(vectors.shape, np.int8)
    scale, error = np.empty(count, np.float32), np.empty(count, np.float32)
    for start in range(0, count, BLOCK):
        part = slice(start, start + BLOCK)
        rows[part], scale[part], error[part] = _sketched(vectors[part])
    return rows, scale, error


def _sketched(vectors: Float32) -> tuple[Float32, Float32, Float32]:
    steps = np.float32(127) / np.maximum(vectors.max(1), -vectors.min(1))
    rows = vectors * steps[:, None]
    np.rint(rows, out=rows)
    wide, whole = vectors.astype(np.float64), rows.astype(np.float64)
    own, shared = np.vecdot(whole, whole), np.vecdot(whole, wide)
    # Rounded, so that the order of a sum does not show; in steps, since a scale is a small number.
    scale = ((shared * steps / own).round(DECIMALS) / steps).astype(np.float32)
    by = scale.astype(np.float64)
    # |x - s r|^2, multiplied out: s r is never written down.
    lacking = np.sqrt(np.maximum(0.0, np.vecdot(wide, wide) - by * (2 * shared - by * own)))
    error = lacking.round(DECIMALS) + 10.0**-DECIMALS
    return rows, scale, np.nextafter(error.astype(np.float32), np.float32(1))
