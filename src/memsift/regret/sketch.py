"""How much of a cosine is certain from a vector's sketch.

The estimate is that of RaBitQ (Gao and Long, 2024), here for eight bits.
"""

from __future__ import annotations

import numpy as np

from memsift.kernels import DECIMALS, NOISE, Float32, Float64
from memsift.sketch import Int8 as Int8
from memsift.sketch import sketched as sketched

# How far directions that know nothing of each other may agree by chance: further one time in 16,000.
SIGMAS = 4.0


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
