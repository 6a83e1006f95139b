"""faiss: its exact index and its graph."""

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


class FaissFlat(Engine):
    """`IndexFlatIP`; where entries leave, with ids beside it."""

    name: ClassVar[str] = "faiss Flat"
    pip: ClassVar[str] = "faiss-cpu"
    churns: ClassVar[int] = 1_000_000

    def __init__(self, dim: int, capacity: int) -> None:
        super().__init__(dim, capacity)
        with needed(self.pip):
            import faiss
        self.library: Any = faiss
        self.library.omp_set_num_threads(1)
        self.index = self.made()
        self.added = 0

    def made(self) -> Any:
        return self.library.IndexIDMap(self.library.IndexFlatIP(self.dim))

    def build(self, vectors: Float32) -> None:
        # Without the map of ids: its search is then as bare as it can be.
        self.index = self.library.IndexFlatIP(self.dim)
        self.index.add(vectors)

    def add(self, vectors: Float32) -> None:
        self.index.add_with_ids(vectors, counted(self.added, vectors))
        self.added += len(vectors)

    def search(self, query: Float32, k: int) -> Any:
        return self.index.search(query[None, :], k)

    def search_many(self, queries: Float32, k: int) -> Any:
        return self.index.search(queries, k)

    def ids(self, found: Any) -> Ids:
        return np.asarray(found[1][0])

    def delete(self, ids: Ids) -> None:
        self.index.remove_ids(ids)


class FaissGraph(FaissFlat):
    """`IndexHNSWFlat`. It cannot delete."""

    name: ClassVar[str] = "faiss HNSW"
    exact: ClassVar[bool] = False
    largest: ClassVar[int] = 100_000
    churns: ClassVar[int] = 0

    def made(self) -> Any:
        index = self.library.IndexHNSWFlat(
            self.dim, CONNECTIVITY, self.library.METRIC_INNER_PRODUCT
        )
        index.hnsw.efConstruction, index.hnsw.efSearch = EXPANSION_ADD, EXPANSION_SEARCH
        return index

    def build(self, vectors: Float32) -> None:
        self.add(vectors)

    def add(self, vectors: Float32) -> None:
        self.index.add(vectors)
