"""Our store, as its users have it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from memsift.evaluation.speed.data import Float32, Ids
from memsift.evaluation.speed.engines.base import Absent, Engine
from memsift.evaluation.speed.limits import FAST
from memsift.planes.integers import numkong
from memsift.policies.base import CompactionPolicy
from memsift.policies.reference import CoherencePolicy, LruPolicy
from memsift.store import MemoryStore
from memsift.types import Hit


class Store(Engine):
    """With the policy that a store has by default."""

    name: ClassVar[str] = "memsift"
    churns: ClassVar[int] = 1_000_000
    policy: ClassVar[CompactionPolicy | None] = None
    held: ClassVar[str] = "float32"

    def __init__(self, dim: int, capacity: int) -> None:
        super().__init__(dim, capacity)
        self.store = MemoryStore(dim, capacity, self.policy, vectors=self.held)

    def add(self, vectors: Float32) -> None:
        self.store.add_many(vectors)

    def search(self, query: Float32, k: int) -> list[Hit]:
        return self.store.search(query, k)

    def search_many(self, queries: Float32, k: int) -> list[list[Hit]]:
        return self.store.search_many(queries, k)

    def ids(self, found: list[Hit]) -> Ids:
        return np.array([hit.id for hit in found], np.int64)

    def delete(self, ids: Ids) -> None:
        self.store.delete(ids)


class CoherenceStore(Store):
    """With the policy whose window the searches feed."""

    name: ClassVar[str] = "memsift coherence"
    policy: ClassVar[CompactionPolicy | None] = CoherencePolicy()
    # One copy of a million rows more would be for nothing: it is the same search.
    largest: ClassVar[int] = 100_000


class LruStore(Store):
    """With a policy that looks at no query."""

    name: ClassVar[str] = "memsift lru"
    policy: ClassVar[CompactionPolicy | None] = LruPolicy()
    largest: ClassVar[int] = 100_000


class FastStore(Store):
    """Tiered, with the extra `fast`: int8 is scanned, float32 decides. The answers are those of the others."""

    name: ClassVar[str] = FAST
    policy: ClassVar[CompactionPolicy | None] = CoherencePolicy()
    held: ClassVar[str] = "tiered"

    def __init__(self, dim: int, capacity: int) -> None:
        if numkong() is None:
            raise Absent("not installed: pip install 'memsift[fast]'")
        super().__init__(dim, capacity)


class HalfStore(Store):
    """Held as float16: what it finds is exact for the rounded vectors."""

    name: ClassVar[str] = "memsift float16"
    exact: ClassVar[bool] = False
    held: ClassVar[str] = "float16"


class Int8Store(Store):
    """Held as int8, with numkong where that is installed."""

    name: ClassVar[str] = "memsift int8"
    exact: ClassVar[bool] = False
    held: ClassVar[str] = "int8"
