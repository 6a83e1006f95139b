"""What is searched: unit vectors of a few topics, and the answers that are right."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

WINDOW = 20
K = 10
BLOCK = 8192
CENTRES = 100
# A hit that float32 rounding has put in the place of another is no wrong answer.
ROUNDING = 1e-5


def clustered(n: int, dim: int, seed: int = 0) -> Float32:
    """Unit vectors around 100 centres, as embeddings of a few topics are: (n, dim) float32.

    The centres are the same for every seed: queries of another seed ask about the same topics.
    """
    centres = np.random.default_rng(0).standard_normal((CENTRES, dim), dtype=np.float32)
    chance = np.random.default_rng([seed, n, dim])
    unit = np.empty((n, dim), np.float32)
    # Block by block: a million rows need no second and third array of their size.
    for start in range(0, n, BLOCK):
        rows = unit[start : start + BLOCK]
        chance.standard_normal(out=rows, dtype=np.float32)
        rows += centres[chance.integers(0, CENTRES, len(rows))]
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def nearest(vectors: Float32, queries: Float32, k: int = K) -> Ids:
    """The rows of the best `k` for each query by float64 cosines, best first: (m, k)."""
    found = np.empty((len(queries), k), np.int64)
    for i, query in enumerate(queries):
        scores = vectors @ query
        few = np.argpartition(scores, len(scores) - min(2 * k, len(scores)))[-2 * k :]
        exact = vectors[few].astype(np.float64) @ query.astype(np.float64)
        found[i] = few[np.argsort(-exact)[:k]]
    return found


def recall(found: list[Ids], truth: Ids, vectors: Float32, queries: Float32) -> float:
    """The share of the best k that was found, in [0, 1]; a hit as near as the k-th is as good as it."""
    good = 0
    for ids, right, query in zip(found, truth, queries, strict=True):
        wide = query.astype(np.float64)
        least = float((vectors[right].astype(np.float64) @ wide).min())
        distinct = np.unique(ids[(ids >= 0) & (ids < len(vectors))])
        scores = vectors[distinct].astype(np.float64) @ wide
        good += min(len(right), int(np.count_nonzero(scores >= least - ROUNDING)))
    return good / truth.size
