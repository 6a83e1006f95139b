"""A store's access log as a trace, and a stream's life as an access log."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memsift.accesslog import ADD, NEED, QUERY, USE, AccessLog, Event
from memsift.errors import InvalidValue
from memsift.evaluation.replay import VARIANTS, Clock, K
from memsift.evaluation.trace import Labels, Stream, Trace
from memsift.index import ExactIndex
from memsift.policies import FifoPolicy
from memsift.store import MemoryStore

Ints = npt.NDArray[np.int64]
# Of the copies of a needed memory, the oldest and the newest so many are taken for as good.
COPIES = 10


def read_log(log: AccessLog | str | os.PathLike[str], name: str | None = None) -> Trace:
    """One stream: memories and queries in the log's order, and what each query needs.

    Needs are, in this order:

    - what `need` says, if the log has any of it: labels from outside, with their groups; then nothing else is judged,
      and there are no figures of fidelity;
    - else what was used (`feedback`), if anything was: each id with the last query that returned it. What was used is
      also passed on as feedback in a replay, after the query that came before it;
    - else the exact ten nearest of all that had come by then: computed here, over everything in the log, not what a
      smaller store happened to return. Queries with a filter are asked but not scored, since no log knows metadata.

    Memories with the same vector are copies, and any of them will do. Memories that were deleted or updated in life
    stay as they came: no trace knows deletion.

    Parameters
    ----------
    log : AccessLog, or path of a file that one was saved to
    name : str, optional
        The trace's; the file's by default, or `log`.

    Raises
    ------
    InvalidValue
        It holds no memory, or no query.
    CorruptStore
        The file is damaged.
    """
    known = log if isinstance(log, AccessLog) else AccessLog.load(log)
    if name is None:
        name = "log" if isinstance(log, AccessLog) else Path(log).name.removesuffix(".npz")
    events = known.events
    adds = [event for event in events if event.kind == ADD]
    queries = [event for event in events if event.kind == QUERY]
    if not adds or not queries:
        raise InvalidValue(
            f"a log must hold memories and queries to be replayed; got {len(adds)} and {len(queries)}"
        )
    said = _Said(np.array([event.ids[0] for event in adds], np.int64))
    for event in events:
        said.hear(event)
    vectors = np.array([event.vector for event in adds], np.float32)
    asked, units = np.array(said.asked, np.int64), np.array([e.vector for e in queries], np.float32)
    used = Labels.from_lists(said.used) if any(said.used) else None
    meaning, exact = None, None
    if said.annotated:
        need = _numbered(said.needed, said.groups)
    else:
        meaning = _meaning(vectors)
        scored = [i for i, query in enumerate(queries) if not query.flag]
        near = _nearest(vectors, units, asked, scored)
        exact = Labels.from_lists(near)
        need = _with_copies(near if used is None else said.helped, meaning, asked)
    stream = Stream(
        vectors=vectors,
        queries=units,
        asked=asked,
        need=need,
        used=used,
        exact=exact,
        meaning=meaning,
        cost=np.array([event.cost for event in adds], np.int64),
        created_at=np.array([event.at for event in adds]),
    )
    grouped = said.grouped if said.annotated else _repeats(need)
    return Trace(name, [stream], "coverage" if grouped else "evidence", known.score_from)


def record(stream: Stream, *, score_from: float = 0.3) -> AccessLog:
    """The log of a store that keeps everything and lives through a stream, with the stream's labels as `need`.

    What the stream says was used is given as feedback, and stands in the log as such.
    """
    drive, clock = VARIANTS["log"], Clock(stream)
    dim = stream.vectors.shape[1]
    store = MemoryStore(dim, policy=FifoPolicy(), clock=lambda: clock.now)
    log = AccessLog(dim, limit=2**40, score_from=score_from)
    store.record(log)
    for kind, row in stream.events():
        if kind == "add":
            clock.at(row)
            cost = 1 if stream.cost is None else int(stream.cost[row])
            store.add(stream.vectors[row], cost=cost)
        elif kind == "query":
            store.search(stream.queries[row], K, touch=drive.touch)
            if stream.need.of(row).size:
                grouped = stream.need.group is not None
                log.need(stream.need.of(row), stream.need.groups_of(row) if grouped else None)
        elif stream.used is not None:
            helped = np.unique(stream.used.of(row))
            store.feedback(helped[store.holds(helped)])
    return log


@dataclass
class _Said:
    """What the events say of each query, in rows of memories; what is said of memories that the log lost is lost."""

    ids: Ints
    stored: int = 0
    annotated: bool = False
    grouped: bool = False
    asked: list[int] = field(default_factory=list)
    used: list[list[int]] = field(default_factory=list)
    helped: list[list[int]] = field(default_factory=list)
    needed: list[list[int]] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)

    def hear(self, event: Event) -> None:
        if event.kind == ADD:
            self.stored += 1
            return
        rows = np.searchsorted(self.ids[: self.stored], event.ids)
        known = rows < self.stored
        known[known] &= self.ids[rows[known]] == event.ids[known]
        if event.kind == QUERY:
            for column in (self.used, self.helped, self.needed, self.groups):
                column.append([])
            self.last.update(dict.fromkeys(rows[known].tolist(), len(self.asked)))
            self.asked.append(self.stored)
        elif event.kind == NEED:
            self.annotated = True
            self.grouped |= bool(event.groups.max(initial=-1) >= 0)
            if self.asked:
                # What came after the query cannot have been wanted of it.
                known &= rows < self.asked[-1]
                self.needed[-1] += rows[known].tolist()
                self.groups[-1] += event.groups[known].tolist()
        elif event.kind == USE and self.asked:
            for row in rows[known].tolist():
                self.used[-1].append(row)
                query = len(self.asked) - 1 if event.flag else self.last.get(row)
                if query is not None and row < self.asked[query] and row not in self.helped[query]:
                    self.helped[query].append(row)


def _numbered(rows: list[list[int]], groups: list[list[int]]) -> Labels:
    """Labels whose groups are numbered from 0 in each query; each below 0 is one of its own."""
    numbered = []
    for marks in groups:
        seen: dict[int, int] = {}
        numbered.append(
            [seen.setdefault(m if m >= 0 else -1 - i, len(seen)) for i, m in enumerate(marks)]
        )
    return Labels.from_lists(rows, numbered)


def _repeats(labels: Labels) -> bool:
    """Whether any query has two labels of one group."""
    queries = range(len(labels.indptr) - 1)
    return any(np.unique(labels.groups_of(q)).size < labels.of(q).size for q in queries)


def _meaning(vectors: npt.NDArray[np.float32]) -> Ints:
    """(n,) the earliest row with the same vector, byte for byte."""
    rows = np.ascontiguousarray(vectors)
    items = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()
    _, first, which = np.unique(items, return_index=True, return_inverse=True)
    return first[which].astype(np.int64)


@dataclass
class _Prefix:
    """The memories that had come by some moment, as an index sees a table; ids are rows."""

    vectors: npt.NDArray[np.float32]

    def column(self, name: str) -> Ints:
        return np.arange(len(self.vectors), dtype=np.int64)


def _nearest(
    vectors: npt.NDArray[np.float32],
    queries: npt.NDArray[np.float32],
    asked: Ints,
    scored: list[int],
) -> list[list[int]]:
    """For each query of `scored`, the rows that a store with everything in it would return; none for the others."""
    found: list[list[int]] = [[] for _ in range(len(queries))]
    for place, group in groupby(scored, key=asked.__getitem__):
        same = list(group)
        index = ExactIndex(_Prefix(vectors[:place]))
        for query, (rows, _) in zip(same, index.search_many(queries[same], K)[0], strict=True):
            found[query] = rows.tolist()
    return found


def _with_copies(rows: list[list[int]], meaning: Ints, asked: Ints) -> Labels:
    """Each label with its copies that had come by then, as one group."""
    order = np.argsort(meaning, kind="stable")
    starts = np.searchsorted(meaning[order], np.arange(len(meaning) + 1))
    alone = np.bincount(meaning, minlength=len(meaning)) == 1
    labels, groups = [], []
    for query, needed in enumerate(rows):
        members: dict[int, int] = {}  # row -> group
        for row in needed:
            first = int(meaning[row])
            if alone[first]:
                members[row] = first
                continue
            copies = order[starts[first] : starts[first + 1]]
            copies = copies[: np.searchsorted(copies, asked[query])]
            some = [row, *copies[:COPIES].tolist(), *copies[-COPIES:].tolist()]
            members |= dict.fromkeys(some, first)
        labels.append(list(members))
        groups.append(list(members.values()))
    return _numbered(labels, groups)
