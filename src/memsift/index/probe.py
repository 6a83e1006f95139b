"""How much of the truth an index finds: its best ten against those of a scan."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from memsift.index.exact import ExactIndex, Found
from memsift.kernels import Float32

K = 10
# Entries that are searched for by their own vectors, spread evenly, if nobody has asked for anything yet.
SAMPLE = 50


class Searching(Protocol):
    """An index."""

    @property
    def exact(self) -> ExactIndex:
        """The exact one over the same entries."""
        ...

    def search(self, query: Float32, k: int) -> Found: ...


def recall(index: Searching, vectors: Float32, queries: Float32) -> float:
    """The share of the true best ten that it finds for some queries (m, dim), in [0, 1]; of entries if there are none.

    An empty memory has nothing to miss: 1.
    """
    if not len(queries):
        chosen = np.linspace(0, len(vectors) - 1, min(SAMPLE, len(vectors))).astype(np.intp)
        queries = vectors[chosen]
    found = wanted = 0
    for query in queries if len(vectors) else ():
        true = index.exact.search(query, K)[0]
        found += np.isin(true, index.search(query, K)[0]).sum()
        wanted += true.size
    return round(float(found / wanted), 6) if wanted else 1.0
