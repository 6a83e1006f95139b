"""The access log in RAM."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.accesslog.events import (
    ADD,
    ALONE,
    KINDS,
    LIMIT,
    MOST,
    NEED,
    QUERY,
    SMALLEST,
    TOGETHER,
    USE,
    Event,
    Holds,
    Mask,
    added,
    asked,
    kept_within,
    mentions,
    still_held,
    used,
)
from memsift.checks import LARGEST_COST, LARGEST_INT
from memsift.errors import CorruptStore, InvalidType, InvalidValue
from memsift.vectors import as_unit_row, as_unit_rows


@dataclass(eq=False)
class AccessLog:
    """A bounded access log in RAM.

    Parameters
    ----------
    dim : int, at least 1
    limit : int
        Bytes that it may take, at least 1 MiB; 64 MiB by default.
    score_from : float in [0, 1)
        A replay of the log does not score what was asked before this share of its memories had come.
    holds : callable, optional
        Says which ids the store still holds; without it the oldest memories go like everything else.

    >>> log = AccessLog(dim=2)
    >>> log.add([0], [[1, 0]], [7], at=100.0)
    >>> log.query([1, 0.1], [0], k=10, touch=5, at=101.0)
    >>> log.use([0], at=102.0)
    >>> log
    AccessLog(1 memories of dim 2, 1 queries, 1 uses)
    """

    dim: int
    limit: int = LIMIT
    score_from: float = 0.3
    holds: Holds | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.dim = checks.integer(self.dim, "dim", 1, 65_536)
        self.limit = checks.integer(self.limit, "limit", SMALLEST)
        self.score_from = checks.fraction(self.score_from, "score_from")
        if self.score_from == 1.0:
            raise InvalidValue("score_from must be a number from 0 to below 1; got 1.0")
        self._events: list[Event] = []
        self._last, self._asked = -1, False
        self.nbytes = 0

    # ---- writing down ----------------------------------------------------------------------------

    def begin(
        self, ids: npt.ArrayLike, vectors: npt.ArrayLike, cost: npt.ArrayLike, at: npt.ArrayLike
    ) -> None:
        """What the store holds already, when the recording begins: (n,) ids in any order; those known are left out."""
        known, times = checks.ids(ids), np.asarray(at, np.float64)
        rows, costs = as_unit_rows(vectors, self.dim), checks.ids(cost, "cost")
        order = np.argsort(known)
        for row in order[known[order] > self._last].tolist():
            one = slice(row, row + 1)
            self._take(added(known[one], rows[one], costs[one], times[row]))

    def add(
        self, ids: npt.ArrayLike, vectors: npt.ArrayLike, cost: npt.ArrayLike, at: float
    ) -> None:
        """Memories came: (n,) ids that ascend, (n, dim) vectors, (n,) costs."""
        self._take(added(ids, as_unit_rows(vectors, self.dim), cost, at))

    def query(
        self,
        vector: npt.ArrayLike,
        ids: npt.ArrayLike,
        k: int,
        touch: int,
        at: float,
        *,
        filtered: bool = False,
    ) -> None:
        """A search for `k` that counts returned `ids`, best first, and touched the first `touch` of them."""
        self._take([asked(as_unit_row(vector, self.dim), ids, k, touch, at, filtered)])

    def use(self, ids: npt.ArrayLike, at: float, *, direct: bool = False) -> None:
        """These memories helped: with the last query if `direct`, else each with the last one that returned it."""
        self._take(used(ids, at, direct))

    def need(self, ids: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> None:
        """What the last query needed, known from elsewhere: a label to judge by, which no replay passes on as feedback.

        Ids with the same number in `groups` (m,) are interchangeable; without groups each counts for itself.
        """
        if not self._asked:
            raise InvalidValue("need must follow the query that it speaks of; there was none yet")
        known = checks.ids(ids)
        marks = np.full(known.size, ALONE) if groups is None else checks.ids(groups, "groups")
        spans = range(0, known.size, TOGETHER)
        at = self._events[-1].at
        self._take(
            Event(NEED, at, known[i : i + TOGETHER], groups=marks[i : i + TOGETHER]) for i in spans
        )

    def _take(self, events: Iterable[Event]) -> None:
        for event in events:
            self._check(event)
            self._events.append(event)
            self.nbytes += event.nbytes
            if event.kind == ADD:
                self._last = int(event.ids[0])
            self._asked |= event.kind == QUERY
            if self.nbytes > self.limit:
                self._make_room()

    def _check(self, event: Event) -> None:
        if event.kind not in KINDS:
            raise InvalidValue(f"kind must be one of 1 to {len(KINDS)}; got {event.kind}")
        checks.real(event.at, "at")
        if (event.vector is not None) != (event.kind in (ADD, QUERY)):
            raise InvalidValue("vectors must come with memories and queries; one did not")
        if event.ids.size and event.ids.min() < 0:
            raise InvalidValue(f"ids must be at least 0; got {event.ids.min()}")
        if event.kind == ADD:
            if event.ids.size != 1 or event.ids[0] <= self._last:
                raise InvalidValue(f"ids of memories must ascend; got {event.ids[:3].tolist()}")
            checks.integer(event.cost, "cost", 0, LARGEST_COST)
        if event.kind == QUERY:
            checks.integer(event.k, "k", 1, MOST)
            checks.integer(event.touch, "touch", 0, MOST)
        if event.groups.size != (event.ids.size if event.kind == NEED else 0):
            raise InvalidValue("groups must come with each id of a need; they do not")
        if event.groups.size and event.groups.min() < ALONE:
            raise InvalidValue(f"groups must be at least {ALONE}; got {event.groups.min()}")

    def _make_room(self) -> None:
        sizes = np.array([event.nbytes for event in self._events], np.int64)
        held = np.array([event.kind == ADD for event in self._events])
        held[held] &= still_held(self.holds, [e.ids[0] for e in self._events if e.kind == ADD])
        self._keep(kept_within(self.limit, sizes, held))

    def _keep(self, keep: Mask) -> None:
        # A new list: who iterates over the old one goes on undisturbed.
        self._events = [event for event, stays in zip(self._events, keep, strict=True) if stays]
        self.nbytes = sum(event.nbytes for event in self._events)
        self._asked = any(event.kind == QUERY for event in self._events)

    # ---- erasing and reading ---------------------------------------------------------------------

    def erase(self, ids: npt.ArrayLike, vectors: npt.ArrayLike | None = None) -> int:
        """Remove every event that names one of these ids, and every query as good as one of their vectors.

        `vectors` (m, dim) are compared beside those that the log itself has of these ids. Returns how many events went.
        """
        wanted = checks.ids(ids)
        rows = [e.vector for e in self._events if e.kind == ADD and np.isin(e.ids, wanted).all()]
        known = np.array(rows, np.float32).reshape(len(rows), self.dim)
        if vectors is not None:
            known = np.concatenate([known, as_unit_rows(vectors, self.dim)])
        gone = np.fromiter(mentions(self._events, wanted, known), np.bool_, len(self._events))
        self._keep(~gone)
        return int(np.count_nonzero(gone))

    def clear(self) -> None:
        """Hold nothing."""
        self._keep(np.zeros(len(self._events), np.bool_))

    @property
    def events(self) -> list[Event]:
        """Everything in order; the list is a copy."""
        return list(self._events)

    def count(self, kind: int) -> int:
        """How many events of a kind there are."""
        return sum(event.kind == kind for event in self._events)

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return (
            f"AccessLog({self.count(ADD):,} memories of dim {self.dim}, {self.count(QUERY):,} queries, "
            f"{self.count(USE):,} uses)"
        )

    @classmethod
    def of(cls, events: Iterable[Event], dim: int, score_from: float = 0.3) -> AccessLog:
        """A log of events that were checked by nobody yet; it takes what they take.

        Raises
        ------
        InvalidValue
            Naming what is wrong with one of them.
        """
        log = cls(dim, LARGEST_INT, score_from)
        log._take(events)
        vectors = [e.vector for e in log._events if e.vector is not None]
        for start in range(0, len(vectors), 4096):
            block = np.array(vectors[start : start + 4096])
            if block.shape[1:] != (dim,):
                raise InvalidValue(f"vectors must have {dim} dimensions; got shape {block.shape}")
            with np.errstate(over="ignore", invalid="ignore"):
                lengths = np.vecdot(block, block)
                if not (np.abs(lengths - 1.0) < 1e-3).all():
                    raise InvalidValue("vectors must be finite and of length one; one is not")
        log.limit = max(LIMIT, log.nbytes)
        return log

    # ---- as one file -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the log as one `.npz` (0600), whole or not at all; what was there stays until then.

        Vectors can often be turned back into text: such a file is as private as the store.
        """
        from memsift.accesslog import file  # zip files are rarely wanted

        file.write(path, self._events, self.dim, self.score_from)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AccessLog:
        """The log that `save` wrote. Its limit is the default, or what it takes if that is more.

        Raises
        ------
        InvalidValue
            There is no such file.
        CorruptStore
            Naming the array that is not as it should be.
        """
        from memsift.accesslog import file

        events, dim, score_from = file.read(path)
        try:
            return cls.of(events, dim, score_from)
        except (InvalidValue, InvalidType) as error:
            raise CorruptStore("log", str(error)) from None
