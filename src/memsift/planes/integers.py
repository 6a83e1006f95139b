"""int8 products at the speed of memory, by numkong where it is installed (the extra `fast`)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import ModuleType

import numpy as np
import numpy.typing as npt

from memsift.kernels import Float32

Int8s = npt.NDArray[np.int8]
# Rows at a time of a product with several queries.
BLOCK = 4096


@cache
def numkong() -> ModuleType | None:
    """The package, if it is there."""
    try:
        import numkong
    except ImportError:
        return None
    return numkong


def rounded(queries: Float32) -> tuple[Int8s, Float32]:
    """Queries (m, dim) as int8, and the step of each: (m, dim) and (m,) float32."""
    steps = np.abs(queries).max(1) / np.float32(127.0)
    return np.rint(queries / steps[:, None]).astype(np.int8), steps


def dropped(queries: Float32, codes: Int8s, steps: Float32) -> float:
    """The longest rest that rounding leaves of a query: so far may a product with a row of length one be off."""
    rest = queries.astype(np.float64) - codes.astype(np.float64) * steps[:, None]
    return float(np.sqrt(np.vecdot(rest, rest).max(initial=0.0)))


def scan(codes: Int8s, query: Float32, out: Float32) -> float | None:
    """Products of `codes` (n, dim) with a rounded query (dim,), into `out` (n,): how far they are off by rounding.

    None, and nothing is written, without numkong.
    """
    fast = numkong()
    if fast is None or not len(codes):
        return None
    small, steps = rounded(query[None])
    fast.dot(codes, small[0], out=out, out_dtype="float32")
    out *= steps[0]
    return dropped(query[None], small, steps)


def blocks(codes: Int8s, queries: Float32) -> Iterator[Float32]:
    """Products with each of some rounded queries (m, dim), by blocks: (m, rows) each. Needs numkong."""
    fast = numkong()
    assert fast is not None
    small, steps = rounded(queries)
    packed = fast.dots_pack(small)
    for at in range(0, len(codes), BLOCK):
        products = np.asarray(fast.dots_packed(codes[at : at + BLOCK], packed)).T.astype(np.float32)
        products *= steps[:, None]
        yield products
