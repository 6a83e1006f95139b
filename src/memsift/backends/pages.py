"""Vectors that lie elsewhere, read by pages: what a policy looks at is never in memory all at once."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.backends.ids import Id
from memsift.backends.planning import unit_or_zero
from memsift.kernels import Float32

# Rows with vectors at a time: of 1,536 dimensions, as JSON, they take some 8 MB.
PAGE = 256


class PagedVectors:
    """Rows of n vectors as `kernels.Vectors`: each slice or set of rows is asked for anew.

    Parameters
    ----------
    ids : list of int, str or UUID, (n,)
    read : function
        The vectors of up to `page` ids, (m, dim); rows of zeros for those that have none any more.
    dim : int
    """

    def __init__(
        self,
        ids: list[Id],
        read: Callable[[list[Id]], npt.NDArray[Any]],
        dim: int,
        page: int = PAGE,
    ) -> None:
        self._ids, self._read, self._page = ids, read, page
        self.shape = len(ids), dim

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Float32:
        if isinstance(key, slice):
            return self._rows(range(*key.indices(len(self))))
        if isinstance(key, np.ndarray):
            return self._rows((np.flatnonzero(key) if key.dtype == np.bool_ else key).tolist())
        one: Float32 = self._rows([operator.index(key)])[0]
        return one

    def _rows(self, rows: range | list[int]) -> Float32:
        out = np.zeros((len(rows), self.shape[1]), np.float32)
        for start in range(0, len(rows), self._page):
            part = [self._ids[row] for row in rows[start : start + self._page]]
            out[start : start + len(part)] = unit_or_zero(self._read(part))
        return out
