"""The three numeric loops that everything else waits for: scan, top k, coherence.

All of them work in float32 as fast as memory allows, and say by how much they may be off; whoever must
decide something computes the few rows that matter again in float64, in `exact_cosines`, rounded so that
neither the BLAS in use nor its thread count shows.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


class Vectors(Protocol):
    """Unit rows (n, dim): an array, or a plane's rows, of which slices and rows are float32 arrays."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...


# Score buffers are padded to this multiple and with this value: below every cosine, so never among the best.
LANES = 64
ABSENT = np.float32(-2.0)
# Float32 cosines of unit rows differ from exact ones by less than half of this. Rows of equal elements (signs,
# one-bit embeddings) are the worst, as every rounding goes the same way: 3e-6 at dim 384, 8e-6 at 40,000.
NOISE = 2e-5
# Decimals that survive every summation order of a float64 dot product.
DECIMALS = 9
# Products of finite numbers: `np.dot`, not `@`, which reports the floating-point flags that some BLAS kernels raise
# over the padding of their own buffers.
# gemv wins while the matrix is in cache; beyond it one dot product per row reads memory twice as fast.
GEMV_LIMIT = 2_500_000
BLOCK = 8192
# Rows at a time where they are copied.
COPIED = 1024


def padded(n: int) -> int:
    """`n` rounded up to whole lanes, at least one."""
    return max(LANES, -(-n // LANES) * LANES)


def scan(vectors: Float32, query: Float32, out: Float32) -> None:
    """Cosines of all `vectors` (n, dim) to `query` (dim,), written to `out` (n,)."""
    if vectors.size < GEMV_LIMIT and vectors.flags.c_contiguous:
        np.dot(vectors, query, out=out)
    else:
        np.vecdot(vectors, query, out=out)


def candidates(scores: Float32, n: int, k: int, off: float = 0.0) -> Rows:
    """Rows that hold the best `k` of `scores[:n]`, with all that float32 noise could confuse with them.

    Parameters
    ----------
    scores : (padded(n),) float32
        `ABSENT` from n on.
    k : int, 1 to n
    off : float
        How far the scores may be off beyond that noise.

    Notes
    -----
    The k-th best of group maxima is a lower bound of the k-th best score, and group maxima cost one pass at
    the speed of memory where a partial sort of all n costs ten.
    """
    if n >= LANES * k:
        # Groups of any shape give the bound; strided ones are the faster shape once rows are many.
        shape, axis = ((LANES, -1), 0) if n > 4000 else ((-1, LANES), 1)
        groups = np.maximum.reduce(scores.reshape(shape), axis)
        groups.partition(groups.size - k)
        bound = groups[groups.size - k]
    elif k < n:
        bound = np.partition(scores[:n], n - k)[n - k]
    else:
        return np.arange(n)
    margin = np.float32(2 * (NOISE + off))
    rows = (scores >= bound - margin).nonzero()[0]
    if rows.size > 2 * k:
        found = scores[rows]
        rows = rows[found >= np.partition(found, found.size - k)[found.size - k] - margin]
    found_rows: Rows = rows
    return found_rows


def exact_cosines(vectors: Vectors, rows: Rows, query: Float32) -> Float64:
    """Cosines of `vectors[rows]` to `query`, in float64, rounded to 9 decimals, within [-1, 1]."""
    wide = query.astype(np.float64)
    out: Float64
    if rows.size <= COPIED:
        out = np.dot(vectors[rows].astype(np.float64), wide)
    else:
        out = np.empty(rows.size)
        for start in range(0, rows.size, COPIED):
            part = rows[start : start + COPIED]
            np.dot(vectors[part].astype(np.float64), wide, out=out[start : start + COPIED])
    out.round(DECIMALS, out=out)
    return np.minimum(np.maximum(out, -1.0, out=out), 1.0, out=out)


def cosine_max(vectors: Vectors, queries: Float32) -> Float32:
    """The largest cosine of each of `vectors` (n, dim) to any of `queries` (w, dim), w >= 1; (n,) float32.

    Nothing of size n × w is kept: blocks of rows are multiplied, turned over (a maximum across long rows is
    vectorised, one across w short columns is not) and reduced.
    """
    out = np.empty(len(vectors), dtype=np.float32)
    size = BLOCK if isinstance(vectors, np.ndarray) else COPIED
    for start in range(0, len(vectors), size):
        block = np.dot(vectors[start : start + size], queries.T)
        np.ascontiguousarray(block.T).max(0, out=out[start : start + size])
    return out


def cosine_max_of(vectors: Vectors, rows: Rows, queries: Float32) -> Float32:
    """`cosine_max` of the given rows: (rows,) float32."""
    out = np.empty(rows.size, np.float32)
    for start in range(0, rows.size, COPIED):
        part = slice(start, start + COPIED)
        out[part] = cosine_max(vectors[rows[part]], queries)
    return out


def products(vectors: Vectors, queries: Float32) -> Float32:
    """Cosines of `vectors` (n, dim) to each of `queries` (w, dim): (w, n) float32."""
    if isinstance(vectors, np.ndarray):
        found: Float32 = np.dot(queries, vectors.T)
        return found
    out = np.empty((len(queries), len(vectors)), np.float32)
    for start in range(0, len(vectors), COPIED):
        out[:, start : start + COPIED] = np.dot(queries, vectors[start : start + COPIED].T)
    return out


def exact_cosine_max(vectors: Vectors, rows: Rows, queries: Float32) -> Float64:
    """`cosine_max` of the given rows in float64; (rows,) float64, not rounded."""
    wide = queries.astype(np.float64)
    out = np.empty(rows.size)
    for start in range(0, rows.size, COPIED):
        block = np.dot(vectors[rows[start : start + COPIED]].astype(np.float64), wide.T)
        block.max(1, out=out[start : start + COPIED])
    return out


def ascending(ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Distinct ids in ascending order: (n,) int64."""
    if not ids.size:
        return ids
    low, high = int(ids.min()), int(ids.max())
    if high - low > 8 * ids.size:
        return np.sort(ids)
    # Ids are given by a counter, so they lie close together: marking them is ten times faster than sorting.
    seen = np.zeros(high - low + 1, np.bool_)
    seen[ids - low] = True
    return np.flatnonzero(seen) + low


def places(some: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]) -> Rows:
    """Where in distinct `ids` each of `some` of them is: (m,) intp."""
    if not some.size:
        return np.empty(0, np.intp)
    low, high = int(ids.min()), int(ids.max())
    if high - low > 8 * ids.size:
        order = np.argsort(ids)
        found: Rows = order[np.searchsorted(ids, some, sorter=order)]
        return found
    place = np.empty(high - low + 1, np.intp)
    place[ids - low] = np.arange(ids.size)
    found = place[some - low]
    return found


def word_sums(vectors: Float32) -> npt.NDArray[np.uint32]:
    """A sum per row, (n,) uint32: odd multiples of its words, modulo 2**32.

    Odd numbers have inverses there, so a change of one word always changes the sum; of several, all but one time in
    four billion. Not against an attacker, who may write any sum.
    """
    words = np.ascontiguousarray(vectors, dtype="<f4").view("<u4")
    odd = (np.arange(words.shape[1], dtype=np.uint64) * 0x9E3779B97F4A7C15 >> 31).astype(
        np.uint32
    ) | 1
    sums: npt.NDArray[np.uint32] = np.vecdot(words, odd)
    return sums


def spread(ids: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.uint64]:
    """A number for each id that looks like chance, the same ones for the same seed, 0 to 2**64 - 1: (n,) uint64.

    The finaliser of splitmix64 (Steele, Lea, Flood 2014): near inputs give unrelated outputs.
    """
    x = ids.astype(np.uint64) + np.uint64(seed % 2**64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def fill_holes(vectors: npt.NDArray[Any], holes: Rows, movers: Rows) -> None:
    """Move rows `movers` of C-ordered `vectors` into `holes`, a row at a time as one item."""
    # As void items each row is one memcpy; a fancy index over two axes moves element by element.
    items = vectors.view(np.dtype((np.void, vectors.shape[1] * vectors.itemsize))).ravel()
    size = max(64, 2**19 // items.itemsize)  # what is under way fits into a core's cache
    for start in range(0, holes.size, size):
        part = slice(start, start + size)
        items.put(holes[part], items.take(movers[part]), mode="clip")
