"""int8 products at the speed of memory, by numkong where it is installed (the extra `fast`)."""

from __future__ import annotations

from functools import cache
from types import ModuleType

import numpy as np
import numpy.typing as npt

from memsift.kernels import Float32


@cache
def numkong() -> ModuleType | None:
    """The package, if it is there."""
    try:
        import numkong
    except ImportError:
        return None
    return numkong


def scan(codes: npt.NDArray[np.int8], query: Float32, out: Float32) -> float | None:
    """Products of `codes` (n, dim) with `query`: into `out` (n,).

    The query is rounded to int8 too. Returns the length of what that drops, by which a product with a row of length
    one may be off; None, and nothing written, without numkong.
    """
    fast = numkong()
    if fast is None or not len(codes):
        return None
    step = float(np.abs(query).max()) / 127.0
    rounded = np.rint(query / np.float32(step))
    fast.dot(codes, rounded.astype(np.int8), out=out, out_dtype="float32")
    out *= np.float32(step)
    dropped = query.astype(np.float64) - step * rounded.astype(np.float64)
    return float(np.sqrt(np.dot(dropped, dropped)))
