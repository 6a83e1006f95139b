"""Events of an access log, and what every log does with them, in RAM or in a store's file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol
from weakref import ref

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.errors import InvalidValue

Ids = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Holds = Callable[[Ids], Mask]

ADD, QUERY, USE, NEED = range(1, 5)
KINDS = {ADD: "add", QUERY: "query", USE: "use", NEED: "need"}
LIMIT = 64 * 1024 * 1024
SMALLEST = 1024 * 1024
# Of a search's hits, the best so many are written down.
RETURNED = 100
# Ids of one event of use.
TOGETHER = 1000
# What an event takes in RAM beside its vector and ids: a tuple, its numbers, the heads of its arrays.
OVERHEAD = 400
# A query nearer to an erased vector than this is that vector in other words.
ALIKE = 0.999
ALONE = -1
NO_IDS: Ids = np.empty(0, np.int64)
# Counts beyond this say no more.
MOST = 2**32 - 1


class Event(NamedTuple):
    """One thing that happened.

    `add`: memory `ids[0]` with its `vector` and `cost` came. `query`: somebody asked for the `k` nearest to `vector`,
    `ids` were returned (best first), the first `touch` were touched; `flag`: among some entries only. `use`: `ids`
    helped; `flag`: with the query before. `need`: what the query before needed, as somebody knew who was not the store;
    ids that share a number in `groups` are interchangeable, and `ALONE` is a group of its own.
    """

    kind: int
    at: float
    ids: Ids = NO_IDS
    vector: Float32 | None = None
    cost: int = 0
    k: int = 0
    touch: int = 0
    flag: bool = False
    groups: Ids = NO_IDS

    @property
    def nbytes(self) -> int:
        vector = 0 if self.vector is None else self.vector.nbytes
        return OVERHEAD + vector + self.ids.nbytes + self.groups.nbytes


class Listener(Protocol):
    """Whom a memory tells what it was told and asked: a log in RAM, or the one in a store's file."""

    def add(self, ids: Ids, vectors: Float32, cost: Ids, at: float) -> None: ...
    def query(
        self, vector: Float32, ids: Ids, k: int, touch: int, at: float, *, filtered: bool
    ) -> None: ...
    def use(self, ids: Ids, at: float) -> None: ...


class Table(Protocol):
    """Who knows where entries are; -1 where they are not."""

    def slots_of(self, ids: Ids) -> npt.NDArray[np.intp]: ...


class Holder(Protocol):
    """Who has such a table: a memory."""

    @property
    def table(self) -> Table: ...


def held_by(holder: Holder) -> Holds:
    """Says which ids a memory holds. It knows the memory weakly: a log must not keep it alive."""
    known = ref(holder)

    def holds(ids: Ids) -> Mask:
        memory = known()
        if memory is None:
            return np.zeros(len(ids), np.bool_)
        held: Mask = memory.table.slots_of(ids) >= 0
        return held

    return holds


def added(ids: npt.ArrayLike, rows: Float32, cost: npt.ArrayLike, at: float) -> Iterator[Event]:
    """Events of memories that came."""
    known, costs = checks.ids(ids), checks.ids(cost, "cost")
    if not len(known) == len(rows) == len(costs):
        raise InvalidValue(
            f"ids, vectors and cost must be equally many; got {len(known)}, {len(rows)}, {len(costs)}"
        )
    for i, worth in enumerate(costs.tolist()):
        # Copies: a view would keep the whole batch alive after most of it has left.
        yield Event(ADD, float(at), known[i : i + 1].copy(), rows[i].copy(), cost=worth)


def asked(
    unit: Float32, ids: npt.ArrayLike, k: int, touch: int, at: float, filtered: bool
) -> Event:
    """The event of a search."""
    found = checks.ids(ids)[:RETURNED].copy()
    return Event(
        QUERY, float(at), found, unit, k=min(k, MOST), touch=min(touch, MOST), flag=bool(filtered)
    )


def used(ids: npt.ArrayLike, at: float, direct: bool = False) -> Iterator[Event]:
    """Events of feedback."""
    known = checks.ids(ids)
    for start in range(0, known.size, TOGETHER):
        yield Event(USE, float(at), known[start : start + TOGETHER].copy(), flag=bool(direct))


def still_held(holds: Holds | None, ids: list[np.int64]) -> Mask:
    """Which memories a store still holds, (n,) bool; none if nobody knows."""
    if holds is None or not ids:
        return np.zeros(len(ids), np.bool_)
    held: Mask = holds(np.array(ids, np.int64))
    return held


def kept_within(limit: int, sizes: Ids, held: Mask) -> Mask:
    """What stays of a full log, so that an eighth of it is free: (n,) bool.

    Parameters
    ----------
    sizes : (n,) int64
        Bytes of each event, oldest first.
    held : (n,) bool
        Memories that the store still holds.
    """
    resident = np.where(held, sizes, 0)
    before = np.concatenate([[0], np.cumsum(resident)])  # of what is held, before each place
    after = sizes.sum() - np.concatenate([[0], np.cumsum(sizes)])
    cut = int(np.argmax(after + np.minimum(before, limit // 2) <= limit - limit // 8))
    keep: Mask = held & (before[cut] - before[:-1] <= limit // 2)
    keep[cut:] = True
    return keep


def mentions(events: Iterable[Event], ids: Ids, vectors: Float32) -> Iterator[bool]:
    """Of each event, whether it must go with these ids and vectors; what is said of a query goes with it."""
    query_goes = False
    for event in events:
        gone = bool(np.isin(event.ids, ids).any())
        if event.kind == QUERY and event.vector is not None:
            gone |= bool(np.dot(vectors, event.vector).max(initial=-1.0) > ALIKE)
            query_goes = gone
        elif event.kind == NEED or (event.kind == USE and event.flag):
            gone |= query_goes
        yield gone
