"""What newcomers are compared with, beside the entries: the mean of all that came, and the clusters' leaders.

The mean and the clusters' numbers are in the namespace's state; a leader's vector is a row of its own, since leaders
rarely change.
"""

from __future__ import annotations

import base64
import sqlite3
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.clusters import LEADERS, Clusters
from memsift.errors import CorruptStore
from memsift.impressions import Impressions, Mean
from memsift.kernels import word_sums
from memsift.storage import rows


class ImpressionRows:
    """Reads and writes the impressions of namespace number `ns`."""

    def __init__(self, db: sqlite3.Connection, ns: int, dim: int) -> None:
        self._db, self._ns, self._dim = db, ns, dim
        self._there: npt.NDArray[np.int64] | None = (
            None  # numbers of the rows as last read or written
        )

    def written(self, impressions: Impressions) -> dict[str, Any]:
        """The part of the state that says it all but the leaders' vectors, whose rows are brought up to date."""
        clusters = impressions.clusters
        if self._there is not clusters.numbers:
            self._write_leaders(clusters)
            self._there = clusters.numbers
        total = base64.b64encode(impressions.mean.total.astype("<f8").tobytes()).decode()
        return {
            "total": total if impressions.mean.seen else "",
            "count": impressions.mean.seen,
            "clusters": clusters.numbers.tolist(),
            "born": clusters.born,
        }

    def read(self, state: Any, impressions: Impressions) -> None:
        """Make `impressions` what `written` said; a file of before has none.

        Raises
        ------
        CorruptStore
        """
        if state is None:
            return
        try:
            count, born = int(state["count"]), int(state["born"])
            total = np.frombuffer(base64.b64decode(state["total"], validate=True), "<f8")
            numbers = np.array(state["clusters"], np.int64)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CorruptStore("namespace", f"impressions must be whole; {error!r:.80}") from None
        total = total.astype(np.float64) if count else np.zeros(self._dim)
        ascending = numbers.ndim == 1 and bool((np.diff(numbers, prepend=0) > 0).all())
        if total.shape != (self._dim,) or not np.isfinite(total).all() or count < 0:
            raise CorruptStore(
                "namespace", "the mean must be finite and of dim elements; it is not"
            )
        if not ascending or numbers.size > LEADERS or numbers.max(initial=0) > born:
            raise CorruptStore("namespace", "clusters must ascend and be few; they do not")
        impressions.mean = Mean(total, count)
        if not np.array_equal(numbers, impressions.clusters.numbers):
            impressions.clusters.restore(self._leaders(numbers), numbers, born)
        impressions.clusters.born = born
        self._there = impressions.clusters.numbers

    def _write_leaders(self, clusters: Clusters) -> None:
        span = self._ns << rows.ID_BITS, (self._ns + 1) << rows.ID_BITS
        found = self._db.execute("SELECT key FROM leader WHERE key >= ? AND key < ?", span)
        there = {key for (key,) in found}
        keys = rows.keys(self._ns, clusters.numbers)
        gone = ((key,) for key in there.difference(keys))
        self._db.executemany("DELETE FROM leader WHERE key = ?", gone)
        sums = word_sums(clusters.leaders).astype("<u4")
        fresh = (
            (key, row.astype("<f4").tobytes() + total.tobytes())
            for key, row, total in zip(keys, clusters.leaders, sums, strict=True)
            if key not in there
        )
        self._db.executemany("INSERT INTO leader VALUES (?, ?)", fresh)

    def _leaders(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        marks = ",".join("?" * numbers.size)
        select = f"SELECT row FROM leader WHERE key IN ({marks}) ORDER BY key"
        found = [row for (row,) in self._db.execute(select, rows.keys(self._ns, numbers))]
        size = 4 * self._dim
        if len(found) != numbers.size or any(
            not isinstance(row, bytes) or len(row) != size + 4 for row in found
        ):
            raise CorruptStore(
                "leader", "rows must be those that the namespace names; they are not"
            )
        vectors = np.frombuffer(b"".join(row[:size] for row in found), "<f4")
        vectors = vectors.reshape(-1, self._dim).astype(np.float32)
        sums = np.frombuffer(b"".join(row[size:] for row in found), "<u4")
        if not np.array_equal(word_sums(vectors), sums):
            raise CorruptStore("leader", "sum must fit the row; it does not")
        return vectors
