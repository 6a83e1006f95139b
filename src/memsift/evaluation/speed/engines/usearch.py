"""usearch: its exact search over a matrix, and its graph."""

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


class UsearchExact(Engine):
    """`usearch.index.search(matrix, query, exact=True)`."""

    name: ClassVar[str] = "usearch exact"
    pip: ClassVar[str] = "usearch"
    grows: ClassVar[bool] = False

    def __init__(self, dim: int, capacity: int) -> None:
        super().__init__(dim, capacity)
        with needed(self.pip):
            import usearch.index
        self.library: Any = usearch.index

    def build(self, vectors: Float32) -> None:
        self.rows = vectors

    def search(self, query: Float32, k: int) -> Any:
        product = self.library.MetricKind.IP
        return self.library.search(self.rows, query, k, product, exact=True, threads=1)

    def search_many(self, queries: Float32, k: int) -> Any:
        return self.search(queries, k)

    def ids(self, found: Any) -> Ids:
        return np.asarray(found.keys).astype(np.int64)


class UsearchGraph(Engine):
    """Its HNSW over float32."""

    name: ClassVar[str] = "usearch HNSW"
    pip: ClassVar[str] = "usearch"
    exact: ClassVar[bool] = False
    largest: ClassVar[int] = 100_000
    churns: ClassVar[int] = 2_000

    def __init__(self, dim: int, capacity: int) -> None:
        super().__init__(dim, capacity)
        with needed(self.pip):
            from usearch.index import Index
        # Its own default would be bf16.
        self.index: Any = Index(
            ndim=dim,
            metric="ip",
            dtype="f32",
            connectivity=CONNECTIVITY,
            expansion_add=EXPANSION_ADD,
            expansion_search=EXPANSION_SEARCH,
        )
        self.added = 0

    def add(self, vectors: Float32) -> None:
        ids = counted(self.added, vectors)
        self.index.add(ids.astype(np.uint64), vectors, threads=1)
        self.added += len(vectors)

    def search(self, query: Float32, k: int) -> Any:
        return self.index.search(query, k, threads=1)

    def search_many(self, queries: Float32, k: int) -> Any:
        return self.search(queries, k)

    def ids(self, found: Any) -> Ids:
        return np.asarray(found.keys).astype(np.int64)

    def delete(self, ids: Ids) -> None:
        self.index.remove(ids.astype(np.uint64), threads=1)
