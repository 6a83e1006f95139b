"""Which slot an id lies in, without an index that every addition would have to keep."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.intp]
Ids = npt.NDArray[np.int64]


class IdOrder:
    """Ids ascend in the order of addition, so what was appended since the last sort is a sorted tail.

    Attributes
    ----------
    stale : bool
        A removal has moved entries: the next question sorts anew.
    """

    def __init__(self) -> None:
        self.stale = False
        self._sorted: Rows | None = None  # slots 0.._sorted.size - 1 in the order of their ids

    @property
    def nbytes(self) -> int:
        return 0 if self._sorted is None else self._sorted.nbytes

    def appended(self, ids: Ids) -> None:
        """These ids are the last ones: the one before the new, and the new."""
        self.stale |= bool((ids[1:] <= ids[:-1]).any())

    def slots_of(self, column: Ids, ids: Ids) -> Rows:
        """The place of each of `ids` in `column`, -1 where it is not: (m,) intp. Logarithmic in n."""
        if self.stale:
            self._sort(column)
        head = 0 if self._sorted is None else self._sorted.size
        slots = head + np.searchsorted(column[head:], ids)
        found = _equal_at(column, slots, ids)
        if self._sorted is not None and not found.all():
            places = np.searchsorted(column[:head], ids, sorter=self._sorted)
            older = (
                self._sorted[np.minimum(places, head - 1)] if head else np.zeros(ids.size, np.intp)
            )
            slots = np.where(found, slots, older)
            found = _equal_at(column, slots, ids)
        return np.where(found, slots, -1)

    def _sort(self, column: Ids) -> None:
        self.stale = False
        # Nothing moved (a removal from the end): the ids still ascend and need no order beside them.
        in_order = bool((column[1:] > column[:-1]).all())
        self._sorted = None if in_order else np.argsort(column, kind="stable")


def _equal_at(column: Ids, slots: Rows, ids: Ids) -> npt.NDArray[np.bool_]:
    equal: npt.NDArray[np.bool_] = slots < column.size
    if equal.any():
        equal &= column[np.where(equal, slots, 0)] == ids
    return equal
