"""hnswlib: the graph of the paper's authors. It comes as source and needs a C++ compiler."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from memsift.evaluation.speed.data import Float32, Ids
from memsift.evaluation.speed.engines.base import (
    CONNECTIVITY,
    EXPANSION_ADD,
    EXPANSION_SEARCH,
    Engine,
    counted,
    needed,
)


class Hnswlib(Engine):
    """Places of deleted elements are used again, as its documentation offers."""

    name: ClassVar[str] = "hnswlib"
    pip: ClassVar[str] = "hnswlib (needs a C++ compiler)"
    exact: ClassVar[bool] = False
    largest: ClassVar[int] = 100_000
    churns: ClassVar[int] = 2_000

    def __init__(self, dim: int, capacity: int) -> None:
        super().__init__(dim, capacity)
        with needed(self.pip):
            import hnswlib
        self.index: Any = hnswlib.Index(space="ip", dim=dim)
        self.index.init_index(
            max_elements=capacity,
            ef_construction=EXPANSION_ADD,
            M=CONNECTIVITY,
            allow_replace_deleted=True,
        )
        self.index.set_ef(EXPANSION_SEARCH)
        self.index.set_num_threads(1)
        self.added = self.deleted = 0

    def add(self, vectors: Float32) -> None:
        ids = counted(self.added, vectors)
        replace = self.deleted >= len(vectors)
        self.index.add_items(vectors, ids, num_threads=1, replace_deleted=replace)
        self.deleted -= len(vectors) if replace else 0
        self.added += len(vectors)

    def search(self, query: Float32, k: int) -> Any:
        return self.index.knn_query(query, k=k, num_threads=1)

    def search_many(self, queries: Float32, k: int) -> Any:
        return self.search(queries, k)

    def ids(self, found: Any) -> Ids:
        return np.asarray(found[0][0]).astype(np.int64)

    def delete(self, ids: Ids) -> None:
        for id_ in ids.tolist():
            self.index.mark_deleted(id_)
        self.deleted += len(ids)
