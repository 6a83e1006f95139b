"""Vectors as int8, and how much of a cosine is certain from that.

The estimate is that of RaBitQ (Gao and Long, 2024), here for eight bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from memsift.kernels import DECIMALS, NOISE, Float32, Float64

Int8 = npt.NDArray[np.int8]

# How far directions that know nothing of each other may agree by chance: further one time in 16,000.
SIGMAS = 4.0
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


def bounds(
    query: Float32, sketches: Int8, scale: Float32, error: Float32
) -> tuple[Float64, Float64]:
    """Between what the cosines of vectors to a query are, as good as for certain: (m,) and (m,) float64.

    A unit vector is its sketch and a rest of length `error`, perpendicular to it. The part of the query that is the
    vector's own meets the rest as the vector does, which `known` allows for; what is left of the query has any
    direction, and would have to lie `SIGMAS` standard deviations towards the rest. That is 0.0015 at 384 dimensions,
    and next to nothing for a query that repeats the vector. Whatever the directions, no bound is further off than
    `error`.
    """
    dim = sketches.shape[1]
    products = np.dot(sketches.astype(np.float64), query.astype(np.float64)) * scale
    products = products.round(DECIMALS)
    lacking = np.square(error.astype(np.float64))
    known = 1.0 - np.minimum(lacking, 0.5)
    cosines = products / known
    other = np.sqrt(np.maximum(0.0, 1.0 - np.square(cosines)) * lacking / known)
    worst = np.sqrt(np.maximum(0.0, 1.0 - np.square(products) / known) * lacking)
    worst += np.abs(cosines - products)
    slack = np.minimum(SIGMAS * other / np.sqrt(max(1, dim - 1)), worst) + NOISE
    return cosines - slack, cosines + slack
