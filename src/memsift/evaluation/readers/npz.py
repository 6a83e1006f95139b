"""Workload files: vectors and the order of events, without text, in numpy's `.npz`."""

from __future__ import annotations

import os
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from memsift.errors import InvalidValue, NotFinite, ZeroVector
from memsift.evaluation.trace import Labels, Stream, Trace

Ints = npt.NDArray[np.int64]

# The default comes first. How a variant is driven (traffic, feedback) is the replay's business;
# here a variant only chooses the array with the times of the questions.
_QUESTION_SET = {
    "end-traffic": "query_time",
    "end": "query_time",
    "interleaved": "query_time_alt",
    "used": "query_time_alt",
}
_AGENT_LOG = {"log": "query_time", "used": "query_time"}

# What a damaged archive makes zipfile and numpy raise; numpy parses headers as Python literals.
_UNREADABLE = (
    OSError, ValueError, KeyError, EOFError, RuntimeError, OverflowError, MemoryError, SyntaxError,
    tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def variants_of(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The variants that `read_npz` knows for this file; the first is its default."""
    return tuple(_variants(_File(path)))


def read_npz(path: str | os.PathLike[str], variant: str | None = None) -> Trace:
    """A workload file as a trace: one stream per value of `conv`.

    Files with annotated questions need their evidence. Agent logs (files with `prov_indptr`) need
    one memory of each provenance group, carry the exact ten nearest as `exact`, and count from 30 %
    of the stream on. A query sees the memories of its stream with `mem_time < query_time`.

    Parameters
    ----------
    path : path of a `.npz` file
        Treated as a stranger's: nothing is unpickled, and each array is checked before use.
    variant : str, optional
        One of `variants_of(path)`, the first by default.
    """
    file = _File(path)
    variants = _variants(file)
    chosen = next(iter(variants)) if variant is None else variant
    if chosen not in variants:
        raise InvalidValue(
            f"variant of {file.name} must be one of {', '.join(variants)}; got {chosen!r}"
        )
    is_log = variants is _AGENT_LOG

    vectors = file.vectors("mem_vec", None)
    n, dim = vectors.shape
    if n == 0 or dim == 0:
        file.refuse("mem_vec", "at least one memory and one dimension", f"shape {vectors.shape}")
    queries = file.vectors("query_vec", dim)
    q = len(queries)
    conv, query_conv = file.integers("conv", n), file.integers("query_conv", q)
    time, query_time = file.integers("mem_time", n), file.integers(variants[chosen], q)
    cost, created_at = file.integers("mem_cost", n), file.floats("mem_ts", n)
    if np.any(cost < 0):
        file.refuse("mem_cost", "0 or more words", str(cost.min()))
    if stray := set(query_conv.tolist()) - set(conv.tolist()):
        file.refuse("query_conv", "values that occur in conv", str(min(stray)))

    relevant = _labels(file, "rel", conv, query_conv, grouped=False)
    needed = _labels(file, "prov", conv, query_conv, grouped=True) if is_log else relevant
    meaning = _meaning(file, conv) if is_log else None

    place = np.empty(n, np.int64)  # global row -> row in its stream
    streams = []
    for number in np.unique(conv):
        rows = np.flatnonzero(conv == number)
        rows = rows[np.argsort(time[rows], kind="stable")]
        place[rows] = np.arange(len(rows))
        asking = np.flatnonzero(query_conv == number)
        asking = asking[np.argsort(query_time[asking], kind="stable")]
        streams.append(
            Stream(
                vectors=vectors[rows],
                queries=queries[asking],
                asked=np.searchsorted(time[rows], query_time[asking], "left").astype(np.int64),
                need=_taken(needed, asking, place),
                exact=_taken(relevant, asking, place) if is_log else None,
                meaning=None if meaning is None else place[meaning[rows]],
                cost=cost[rows],
                created_at=created_at[rows],
            )
        )
    name = Path(path).stem
    if is_log:
        return Trace(name, streams, need="coverage", score_from=0.3)
    return Trace(name, streams, need="evidence")


class _File:
    """An archive of arrays whose every fault is reported by file, array, expected and found."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        try:
            with zipfile.ZipFile(self.name) as archive:
                self.arrays = {member.removesuffix(".npy") for member in archive.namelist()}
        except _UNREADABLE as error:
            raise InvalidValue(
                f"{self.name} must be a readable .npz file; {_told(error)}"
            ) from error

    def _get(self, array: str) -> npt.NDArray[Any]:
        if array not in self.arrays:
            self.refuse(array, "an array of the file", "nothing of that name")
        try:
            with np.load(self.name, allow_pickle=False) as archive:
                found = archive[array]
        except _UNREADABLE as error:
            raise InvalidValue(f"{self.name}: {array} must be readable; {_told(error)}") from error
        # numpy hands out the raw bytes of a member that does not start like an array.
        if not isinstance(found, np.ndarray):
            self.refuse(array, "an array", "other bytes")
        return found

    def _column(self, array: str, length: int | None, kinds: str, what: str) -> npt.NDArray[Any]:
        found = self._get(array)
        if found.dtype.kind not in kinds:
            self.refuse(array, what, f"dtype {found.dtype}")
        if found.ndim != 1 or length not in (None, len(found)):
            self.refuse(
                array, f"of shape ({'any' if length is None else length},)", f"shape {found.shape}"
            )
        return found

    def refuse(self, array: str, expected: str, got: str) -> NoReturn:
        raise InvalidValue(f"{self.name}: {array} must be {expected}; got {got}")

    def integers(self, array: str, length: int | None) -> Ints:
        """(length,) int64; any length when None."""
        return self._column(array, length, "iu", "integers").astype(np.int64)

    def floats(self, array: str, length: int) -> npt.NDArray[np.float64]:
        """(length,) float64, NaN allowed."""
        return self._column(array, length, "iuf", "numbers").astype(np.float64)

    def vectors(self, array: str, dim: int | None) -> npt.NDArray[np.float32]:
        """(any, dim) float32, finite, none of them zero."""
        found = self._get(array)
        if found.dtype.kind != "f":
            self.refuse(array, "floats", f"dtype {found.dtype}")
        if found.ndim != 2 or (dim is not None and found.shape[1] != dim):
            self.refuse(
                array, f"of shape (any, {'any' if dim is None else dim})", f"shape {found.shape}"
            )
        with np.errstate(over="ignore"):
            rows = found.astype(np.float32)
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise NotFinite(f"{self.name}: {array} must be finite in float32; row {bad[0]} is not")
        bad = np.flatnonzero(~rows.any(axis=1))
        if len(bad) and rows.shape[1]:
            raise ZeroVector(f"{self.name}: {array} must hold no zero vector; row {bad[0]} is one")
        return rows


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _variants(file: _File) -> dict[str, str]:
    return _AGENT_LOG if "prov_indptr" in file.arrays else _QUESTION_SET


def _labels(file: _File, prefix: str, conv: Ints, query_conv: Ints, *, grouped: bool) -> Labels:
    """The labels of all queries, in global rows."""
    q = len(query_conv)
    indptr = file.integers(f"{prefix}_indptr", q + 1)
    indices = file.integers(f"{prefix}_indices", None)
    if indptr[0] != 0 or indptr[-1] != len(indices) or np.any(np.diff(indptr) < 0):
        expected = f"ascending from 0 to {len(indices)}, the length of {prefix}_indices"
        file.refuse(f"{prefix}_indptr", expected, f"{indptr[0]} to {indptr[-1]}, or a descent")
    _check_rows(file, f"{prefix}_indices", indices, len(conv))
    if np.any(conv[indices] != np.repeat(query_conv, np.diff(indptr))):
        expected = "memories of the query's own stream"
        file.refuse(f"{prefix}_indices", expected, "a memory of another stream")
    group = file.integers(f"{prefix}_group", len(indices)) if grouped else None
    return Labels(indptr, indices, group)


def _meaning(file: _File, conv: Ints) -> Ints:
    """(n,) global rows of the earliest memory that says the same."""
    meaning = file.integers("mem_rep", len(conv))
    _check_rows(file, "mem_rep", meaning, len(conv))
    if np.any(conv[meaning] != conv):
        file.refuse("mem_rep", "memories of the same stream", "a memory of another stream")
    return meaning


def _check_rows(file: _File, array: str, rows: Ints, n: int) -> None:
    wrong = rows[(rows < 0) | (rows >= n)]
    if len(wrong):
        file.refuse(array, f"rows in 0..{n - 1}", str(wrong[0]))


def _taken(labels: Labels, queries: Ints, place: Ints) -> Labels:
    """The labels of some queries, in their order, with memories renumbered by `place`."""
    counts = np.diff(labels.indptr)[queries]
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    picked = np.repeat(labels.indptr[queries] - indptr[:-1], counts) + np.arange(indptr[-1])
    group = None if labels.group is None else labels.group[picked]
    return Labels(indptr, place[labels.indices[picked]], group)
