"""What the tests of the LangGraph store share: embeddings by a dumb rule, and LangGraph's own store as the model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.memory import InMemoryStore

DIMS = 5
FIELDS = ["text", "more", "tags[*]"]


def embed(texts: Sequence[str]) -> list[list[float]]:
    """A direction of its own for each text: no two cosines are equal."""
    return [_direction(text).tolist() for text in texts]


def _direction(text: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8])
    return np.random.default_rng(seed).standard_normal(DIMS)


def index(fields: list[str] | None = None) -> Any:
    return {"dims": DIMS, "embed": embed, "fields": FIELDS if fields is None else fields}


class Model(InMemoryStore):
    """LangGraph's store, but that a put forgets the vectors of the value before, and one put is applied at a time.

    `InMemoryStore` keeps them, so an item is found by what it no longer says; and it refuses a batch in which two items
    say the same.
    """

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        last = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        reads = iter(super().batch([op for op in ops if not isinstance(op, PutOp)]))
        results = [None if isinstance(op, PutOp) else next(reads) for op in ops]
        for (namespace, key), op in last.items():
            self._vectors[namespace].pop(key, None)
            super().batch([op])
        return results

    def live_namespaces(self) -> set[tuple[str, ...]]:
        """Namespaces that hold something: the original also lists those that were only asked for."""
        return {namespace for namespace, items in self._data.items() if items}
