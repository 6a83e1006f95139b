"""Chroma: a database for embeddings, within this process and in memory."""

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

COLLECTION = "memsift-bench"


class Chroma(Engine):
    """An `EphemeralClient` with the graph settings of the others; it tells nobody that it was used."""

    name: ClassVar[str] = "chroma"
    pip: ClassVar[str] = "chromadb"
    exact: ClassVar[bool] = False
    largest: ClassVar[int] = 20_000
    churns: ClassVar[int] = 2_000

    def __init__(self, dim: int, capacity: int) -> None:
        super().__init__(dim, capacity)
        with needed(self.pip):
            import chromadb
            from chromadb.config import Settings
        self.client: Any = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
        # Clients of one process share their collections.
        if any(c.name == COLLECTION for c in self.client.list_collections()):
            self.client.delete_collection(COLLECTION)
        graph = {
            "space": "ip",
            "max_neighbors": CONNECTIVITY,
            "ef_construction": EXPANSION_ADD,
            "ef_search": EXPANSION_SEARCH,
            "num_threads": 1,
        }
        self.rows = self.client.create_collection(
            COLLECTION, configuration={"hnsw": graph}, embedding_function=None
        )
        self.most = int(self.client.get_max_batch_size())
        self.added = 0

    def add(self, vectors: Float32) -> None:
        names = [str(i) for i in counted(self.added, vectors).tolist()]
        for start in range(0, len(names), self.most):
            part = slice(start, start + self.most)
            self.rows.add(ids=names[part], embeddings=vectors[part])
        self.added += len(vectors)

    def search(self, query: Float32, k: int) -> Any:
        return self.search_many(query[None, :], k)

    def search_many(self, queries: Float32, k: int) -> Any:
        return self.rows.query(query_embeddings=queries, n_results=k, include=["distances"])

    def ids(self, found: Any) -> Ids:
        return np.array(found["ids"][0], np.int64)

    def delete(self, ids: Ids) -> None:
        names = [str(i) for i in ids.tolist()]
        for start in range(0, len(names), self.most):
            self.rows.delete(ids=names[start : start + self.most])

    def close(self) -> None:
        self.client.delete_collection(COLLECTION)
