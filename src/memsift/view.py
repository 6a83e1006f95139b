"""What a policy sees: the columns of a memory, read-only, frozen at one tick."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.errors import InvalidType, InvalidValue
from memsift.neighbours import Others, Sample, sample_for, sampled
from memsift.similarity import (
    Cosines,
    Found,
    LiveSimilarity,
    largest,
    scanned,
    scanned_largest,
    stacked,
    still,
)
from memsift.vectors import as_unit_rows

Float32 = npt.NDArray[np.float32]
# Of something computed with cosines of n entries: values, and how far each may be off, None if right to float32.
Rough = tuple[Float32, Float32 | None]

# What is left of attention and heat after one tick: half of it after 138.
FADE = 0.995
# Every column of the slot axis, with its dtype and the value of an entry that says nothing.
COLUMNS: dict[str, tuple[type[np.generic], Any]] = {
    "ids": (np.int64, 0),
    "created_tick": (np.int64, 0),
    "accessed_tick": (np.int64, 0),
    "created_at": (np.float64, 0.0),
    "accessed_at": (np.float64, 0.0),
    "access_count": (np.int64, 0),
    "use_count": (np.int64, 0),
    "cost": (np.int64, 1),
    "importance": (np.float32, np.nan),
    "nearest": (np.float32, np.nan),
    "typicality": (np.float32, np.nan),
    "adjacency": (np.float32, np.nan),
    "cluster": (np.int64, 0),
    "attention": (np.float32, 0.0),
    "heat": (np.float32, 0.0),
    "pinned": (np.bool_, False),
    "nbytes": (np.int64, 0),
    "revision": (np.int64, 0),
}


class Closeness(NamedTuple):
    """How close entries are to their nearest others, (n,) float64, and whether all was measured on this very memory."""

    values: kernels.Float64
    current: bool


class Remembered(Protocol):
    """What a large store knows of its entries' neighbours, as of one moment."""

    def closeness(self, view: MemoryView, neighbours: int) -> Closeness: ...


class MemoryView:
    """A read-only view of n entries, aligned on one axis.

    Attributes
    ----------
    ids, created_tick, accessed_tick, access_count, use_count, cost, nbytes, revision : (n,) int64
    created_at, accessed_at : (n,) float64
        Unix seconds.
    importance : (n,) float32
        NaN where the caller gave none.
    nearest, typicality, adjacency : (n,) float32, in [-1, 1]
        What an entry was like when it was added: its largest cosine to an entry that was there, its product with the
        mean of all before it, its mean cosine to the three before it. NaN where unknown.
    cluster : (n,) int64
        Number of the cluster that it joined then, from 1; 0 where unknown.
    attention, heat : (n,) float32, at least 0
        Attention mass and decayed frequency as of accessed_tick; they fade from then on, see `memsift.signals`.
    pinned : (n,) bool
    vectors : (n, dim) float32
        Unit rows. Those of a live store can be read until it moves them; then `StaleView` is raised. A store that holds
        them otherwise than as float32 makes a copy of all: `take(rows).vectors` has some.
    context : (w, dim) float32
        The window's queries, oldest first; w may be 0.
    tick : int
        The store's logical time.
    now : float
        Unix seconds; time stands still inside a view.
    """

    ids: npt.NDArray[np.int64]
    created_tick: npt.NDArray[np.int64]
    accessed_tick: npt.NDArray[np.int64]
    created_at: npt.NDArray[np.float64]
    accessed_at: npt.NDArray[np.float64]
    access_count: npt.NDArray[np.int64]
    use_count: npt.NDArray[np.int64]
    cost: npt.NDArray[np.int64]
    importance: npt.NDArray[np.float32]
    nearest: npt.NDArray[np.float32]
    typicality: npt.NDArray[np.float32]
    adjacency: npt.NDArray[np.float32]
    cluster: npt.NDArray[np.int64]
    attention: npt.NDArray[np.float32]
    heat: npt.NDArray[np.float32]
    pinned: npt.NDArray[np.bool_]
    nbytes: npt.NDArray[np.int64]
    revision: npt.NDArray[np.int64]
    context: Float32
    tick: int
    now: float
    _vectors: Callable[[], Any]
    _similarity: LiveSimilarity | None
    place: object
    remembered: Remembered | None

    __slots__ = (
        *COLUMNS,
        "_similarity",
        "_vectors",
        "context",
        "now",
        "place",
        "remembered",
        "tick",
    )

    def __init__(
        self,
        columns: dict[str, npt.NDArray[Any]],
        vectors: Callable[[], Any],
        context: Float32,
        tick: int,
        now: float,
        similarity: LiveSimilarity | None = None,
        place: object = None,
        remembered: Remembered | None = None,
    ) -> None:
        for name in COLUMNS:
            object.__setattr__(self, name, columns[name])
        object.__setattr__(self, "_vectors", vectors)
        object.__setattr__(self, "_similarity", similarity)
        object.__setattr__(self, "context", context)
        object.__setattr__(self, "tick", tick)
        object.__setattr__(self, "now", now)
        object.__setattr__(self, "place", place)
        object.__setattr__(self, "remembered", remembered)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a MemoryView is read-only; {name} cannot be set")

    @classmethod
    def from_arrays(
        cls,
        vectors: npt.ArrayLike,
        *,
        context: npt.ArrayLike | None = None,
        now: float = 0.0,
        **columns: npt.ArrayLike,
    ) -> MemoryView:
        """A view of plain arrays, for research and tests.

        Parameters
        ----------
        vectors : (n, dim) array-like
            Checked, cast to float32 and normalised.
        context : (w, dim) array-like, optional
            The window's queries.
        **columns : (n,) array-like
            Any of the view's columns by name; the others default (ids 0 to n - 1, cost 1, nothing pinned).

        >>> MemoryView.from_arrays([[1.0, 0.0], [0.0, 1.0]], accessed_tick=[5, 9]).tick
        9
        """
        rows = as_unit_rows(vectors)
        n, dim = rows.shape
        unknown = sorted(columns.keys() - COLUMNS.keys())
        if unknown:
            raise InvalidValue(
                f"columns must be among {', '.join(COLUMNS)}; got {', '.join(unknown)}"
            )
        arrays = {
            name: _frozen(
                _column(name, columns[name], n)
                if name in columns
                else (np.arange(n) if name == "ids" else np.full(n, default)).astype(dtype)
            )
            for name, (dtype, default) in COLUMNS.items()
        }
        window = (
            np.empty((0, dim), np.float32)
            if context is None
            else as_unit_rows(context, dim, "context")
        )
        tick = max(
            (int(arrays[c].max()) for c in ("created_tick", "accessed_tick") if n), default=0
        )
        return cls(arrays, lambda: rows, _frozen(window), tick, now)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def vectors(self) -> Float32:
        """Unit rows, (n, dim) float32, read-only."""
        found = self._vectors()
        if isinstance(found, np.ndarray):
            return _frozen(found.view())
        return _frozen(self._read(lambda rows: rows[:]))

    def with_context(self, context: npt.ArrayLike) -> MemoryView:
        """The same entries before another window of queries, (w, dim)."""
        dim = self.context.shape[1]
        if isinstance(context, np.ndarray):
            nothing = context.shape[:1] == (0,)
        else:
            nothing = isinstance(context, (list, tuple)) and not context
        rows = np.empty((0, dim), np.float32) if nothing else as_unit_rows(context, dim, "context")
        about = self._columns(), self._vectors, _frozen(rows), self.tick, self.now, None
        return MemoryView(*about, self.place, self.remembered)

    def take(self, rows: npt.NDArray[np.intp]) -> MemoryView:
        """A view of some rows only; their vectors are gathered when they are asked for."""
        columns = {name: _frozen(column[rows]) for name, column in self._columns().items()}
        source = self._vectors

        def gathered() -> Float32:
            return still(source, lambda vectors: vectors[rows])

        return MemoryView(columns, gathered, self.context, self.tick, self.now)

    def cosine_max(self, window: int) -> Float32:
        """The largest cosine of each entry to the last `window` queries of the context: (n,) float32.

        The context must not be empty. A live store reads this from what its searches computed already.
        """
        if self._similarity is None:
            return self._read(lambda rows: kernels.cosine_max(rows, self.context[-window:]))
        return self._similarity.exact(window, largest, ordered=False)

    def over_cosines(self, window: int, reduce: Callable[[Cosines], Float32]) -> Float32:
        """What `reduce` makes of the cosines of all entries to each of the last `window` queries.

        It gets them oldest first, (n,) each, and must not change them. The context must not be empty. A live store
        reads them from what its searches computed already.
        """
        if self._similarity is not None:
            return self._similarity.exact(window, reduce)
        return self._read(lambda rows: reduce(kernels.products(rows, self.context[-window:])))

    def cosines(self, window: int) -> Float32:
        """Cosines of all entries to each of the last `window` queries, oldest first: (w, n) float32, a copy."""
        return self.over_cosines(window, stacked)

    def rough_cosine_max(self, window: int) -> Rough:
        """`cosine_max` as near as the store has it without reading vectors, and how far it may be off: (n,) each.

        The second is None where it is right to float32. `near_cosine_max` makes it so for some rows.
        """
        if self._similarity is not None:
            return self._similarity.largest(window)
        return self._read(lambda rows: scanned_largest(rows, self.context[-window:]))

    def rough_cosines(self, window: int) -> Rough:
        """`cosines` as near as the store has them without reading vectors, and how far they are off: (w, n), (n,)."""
        if self._similarity is not None:
            return self._similarity.each(window)
        return self._read(lambda rows: scanned(rows, self.context[-window:]))

    def near_cosine_max(self, window: int, rows: kernels.Rows) -> Float32:
        """`cosine_max` of the given rows, right to float32: (rows,) float32."""
        return self._read(lambda v: kernels.cosine_max_of(v, rows, self.context[-window:]))

    def exact_cosine_max(self, window: int, rows: kernels.Rows) -> kernels.Float64:
        """`cosine_max` of the given rows, computed again in float64."""
        return self._read(
            lambda vectors: kernels.exact_cosine_max(vectors, rows, self.context[-window:])
        )

    def exact_cosines(self, rows: kernels.Rows, query: Float32) -> kernels.Float64:
        """Cosines of the given rows to a unit query, in float64, rounded to 9 decimals."""
        return self._read(lambda vectors: kernels.exact_cosines(vectors, rows, query))

    def _read(self, use: Callable[[Any], Found]) -> Found:
        return still(self._vectors, use)

    def closeness(self, neighbours: int) -> Closeness:
        """The mean cosine of each entry to its `neighbours` nearest others, rounded to 9 decimals; 0 if there is none.

        Beyond 10,000 entries the others are an evenly spread sample, with their due share of neighbours. A live store
        whose policy looks at this, and which is large, says what was measured lately, and measures only newcomers.
        """
        if self.remembered is not None:
            return self.remembered.closeness(self, neighbours)
        rows = np.arange(len(self))
        return Closeness(self.compared(rows, sample_for(len(self), neighbours)), True)

    def exact_closeness(self, neighbours: int, rows: kernels.Rows) -> kernels.Float64:
        """`closeness` of some rows only: (rows,) float64."""
        if self.remembered is not None:
            return self.closeness(neighbours).values[rows]
        return self.compared(rows, sample_for(len(self), neighbours))

    def compared(self, rows: kernels.Rows, sample: Sample) -> kernels.Float64:
        """The mean cosine of some rows to their nearest among a sample of the entries: (rows,) float64."""
        out = np.zeros(rows.size)
        if rows.size:
            chosen = sampled(self.ids, sample.size)
            own = np.full(len(self), -1)
            own[chosen] = np.arange(chosen.size)
            others = Others(self.take(chosen).vectors, sample.nearest)
            for start in range(0, rows.size, others.block):
                part = rows[start : start + others.block]
                out[start : start + part.size] = others.closeness(
                    self.take(part).vectors, own[part]
                )
        return out

    def digest(self) -> str:
        """SHA-256 over every column in the order of ids, and the tick: what the memory was when a plan was made.

        Where entries lie, and how often a process looked at them, does not show.
        """
        state = hashlib.sha256(f"{self.tick}:{len(self)}".encode())
        order = np.argsort(self.ids, kind="stable")
        for name, column in self._columns().items():
            if name != "revision":
                state.update(name.encode())
                state.update(column[order].data)
        return state.hexdigest()

    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        return {name: getattr(self, name) for name in COLUMNS}

    def __repr__(self) -> str:
        return f"MemoryView({len(self)} entries, {len(self.context)} queries, tick {self.tick})"


def _column(name: str, values: npt.ArrayLike, n: int) -> npt.NDArray[Any]:
    """A caller's column as a checked copy of the right dtype: (n,)."""
    dtype, given = np.dtype(COLUMNS[name][0]), np.asarray(values)
    if given.shape != (n,):
        raise InvalidValue(
            f"{name} must have shape ({n},), one value per vector; got {given.shape}"
        )
    if n and not np.can_cast(given.dtype, dtype, "same_kind"):
        raise InvalidType(f"{name} must be of dtype {dtype}; got {given.dtype}")
    column = given.astype(dtype)
    if dtype.kind == "i" and n and column.min() < 0:
        raise InvalidValue(f"{name} must be from 0 to {2**63 - 1}; got {given[column.argmin()]}")
    if name == "ids" and np.unique(column).size < n:
        raise InvalidValue("ids must differ from each other; got one twice")
    return column


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array
