"""The archive: where victims rest for a grace period, within a budget of its own."""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.budget import Budget
from memsift.errors import CorruptStore
from memsift.storage import rows
from memsift.storage.journal import Journal
from memsift.table import Entries

Ids = npt.NDArray[np.int64]

# The index holds archived entries alone; SQLite's planner would rather walk over all that live.
INDEX = "INDEXED BY archived"


class Archive:
    """Entries of one namespace that were evicted and can be restored.

    They lie where they lay, marked with the time of their eviction: resting and coming back move no vector.
    """

    def __init__(self, db: sqlite3.Connection, journal: Journal) -> None:
        self._db, self._journal = db, journal
        low, high = journal.ns << rows.ID_BITS, (journal.ns + 1) << rows.ID_BITS
        self._where = f"e.key >= {low} AND e.key < {high} AND e.archived_at IS NOT NULL"

    def ids(self) -> Ids:
        """All archived ids, ascending: (n,) int64."""
        found = self._db.execute(
            f"SELECT e.key FROM entry e {INDEX} WHERE {self._where} ORDER BY e.key"
        )
        keys = np.fromiter((key for (key,) in found), np.int64)
        return keys - (self._journal.ns << rows.ID_BITS)

    def entries(self, ids: Ids | None = None) -> Entries:
        """Archived entries, all or those of these ids that are there, ascending by id."""
        if ids is None:
            return self._journal.fetch.entries(self._where)
        return self._journal.fetch.entries("e.key IN ({}) AND e.archived_at IS NOT NULL", ids)

    def search(self, query: npt.NDArray[np.float32], k: int) -> tuple[Entries, kernels.Float64]:
        """The best `k` archived entries for a query, best first, with their cosines."""
        found = self.entries()
        scores = kernels.exact_cosines(found.vectors, np.arange(len(found.vectors)), query)
        order = np.lexsort((found.columns["ids"], -scores))[:k]
        notes = [found.metadata[i] for i in order] if found.metadata else None
        columns = {name: column[order] for name, column in found.columns.items()}
        return Entries(found.vectors[order], columns, notes), scores[order]

    def purge(self, now: float) -> int:
        """Delete for good what rested longer than the grace period, then the longest resting over the budget.

        Returns
        -------
        int
            How many left.
        """
        config = self._journal.config
        query = (
            f"SELECT e.row, e.archived_at FROM entry e {INDEX} WHERE {self._where} ORDER BY e.key"
        )
        found = self._db.execute(query).fetchall()
        if not found:
            return 0
        columns = rows.unpacked(rows.joined(row for row, _ in found))
        if not all(isinstance(at, float) for _, at in found):
            raise CorruptStore("entry", "archived_at must be a number; one is not")
        since = np.array([at for _, at in found], np.float64)
        longest = np.lexsort((columns["ids"], since))
        columns = {name: column[longest] for name, column in columns.items()}
        leaves = since[longest] < now - config.grace_seconds
        leaves |= _over(config.archive, columns)
        if leaves.any():
            self._journal.deleted(columns["ids"][leaves])
        return int(np.count_nonzero(leaves))


def _over(budget: Budget, columns: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    """Which of the entries, longest resting first, must leave so that the rest fit: (n,) bool."""
    n = len(columns["cost"])
    over = np.zeros(n, np.bool_)
    weights = {"entries": np.ones(n, np.int64), "bytes": columns["nbytes"], "cost": columns["cost"]}
    for unit, limit in budget.limits.items():
        # An entry and all that came to rest after it must fit.
        over |= np.cumsum(weights[unit][::-1])[::-1] > limit
    return over
