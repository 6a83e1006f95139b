"""Ghosts: small sketches of what was forgotten, by which a memory notices that it is wanted again.

A ghost is counted only if it is as good as certain that the search would have returned it: what int8 and float32 may
have rounded away speaks against the ghost. So regret is a lower bound, and its figures are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.kernels import NOISE, Float32, Float64, Rows, Vectors
from memsift.planes import stored
from memsift.regret.figures import EDGES, SHOWN, Age, Regret, Wanted
from memsift.regret.sketch import bounds
from memsift.regret.watch import GHOST, Ids, Watch, ages, nothing
from memsift.sketch import Int8, sketched

Mask = npt.NDArray[np.bool_]

# What happens waits until there are so many queries, or evictions, and is settled together: neither a search nor a
# compaction is held up by ghosts.
WAITING, LEAVING = 64, 2
BLOCK = 1024
# Policies that are counted one by one; further ones are counted together.
LABELS = 32
LABEL_LENGTH = 200
OTHERS = "other policies"


class Question(NamedTuple):
    """A query that waits: its number, the cosines of its hits, best first, the hits asked for, and when."""

    number: int
    scores: Float64
    k: int
    tick: int
    at: float


class Remains(NamedTuple):
    """What is kept of victims: all ids, ascending, and an even spread of them with scores.

    With it their vectors, or their sketches, where a plane has those at hand.
    """

    ids: Ids
    some: Ids
    vectors: Float32 | None
    made: tuple[Int8, Float32, Float32] | None
    scores: Float32 | None

    def of(self, ids: Ids) -> Remains:
        """Only what is of these ids, ascending."""
        kept = np.isin(self.some, ids, assume_unique=True)
        parts = self.made and tuple(part[kept] for part in self.made)
        scores = None if self.scores is None else self.scores[kept]
        vectors = None if self.vectors is None else self.vectors[kept]
        return Remains(ids, self.some[kept], vectors, cast(Any, parts), scores)


class Eviction(NamedTuple):
    """Victims that wait to become ghosts."""

    remains: Remains
    label: str
    tick: int
    at: float
    queries: int


def limit_for(entries: int | None) -> int:
    """How many ghosts a memory of so many entries watches: an eighth, 64 to 1,024."""
    return 1024 if entries is None else max(64, min(1024, entries // 8))


class Ghosts:
    """Watches at most `limit` of the entries that left, and counts the queries that would have returned them.

    Parameters
    ----------
    dim : int
    limit : int, at least 0
    """

    def __init__(self, dim: int, limit: int) -> None:
        self.limit = limit
        self.watch = nothing(dim)
        self._waiting: list[Question | Eviction] = []  # in the order in which it happened
        self._asked = self._left = 0  # how many of them are questions, and evictions
        self._queries = np.zeros((WAITING, dim), np.float32)

    def __len__(self) -> int:
        self.settle()
        return len(self.watch.held)

    @property
    def ids(self) -> Ids:
        """Of the ghosts, ascending: (n,) int64."""
        self.settle()
        return self.watch.held["id"].copy()

    @property
    def nbytes(self) -> int:
        self.settle()
        return self.watch.held.nbytes + self.watch.sketches.nbytes + self._queries.nbytes

    # ---- leaving and coming back -----------------------------------------------------------------

    def evicted(
        self,
        ids: Ids,
        vectors: Vectors,
        rows: Rows,
        scores: Float32 | None,
        label: str,
        tick: int,
        at: float,
    ) -> None:
        """Entries left by a policy's choice: `remains`, and `left` at once."""
        self.left(self.remains(ids, vectors, rows, scores), label, tick, at)

    def remains(self, ids: Ids, vectors: Vectors, rows: Rows, scores: Float32 | None) -> Remains:
        """What will be needed of entries that are about to leave.

        Of more victims than there are places, an even spread by id is watched.

        Parameters
        ----------
        ids : (m,) int64
        vectors : (n, dim) float32
            Unit rows, those of the entries at `rows` (m,).
        scores : (m,) float32 or None
            By which the policy chose.
        """
        every = kernels.ascending(ids)
        some = kernels.places(_spread(every, self.limit), ids)
        chosen = None if scores is None else scores[some]
        about = every, ids[some]
        if isinstance(vectors, np.ndarray):
            return Remains(*about, vectors[rows[some]], None, chosen)
        return Remains(*about, None, stored(vectors).sketched(rows[some]), chosen)

    def left(self, remains: Remains, label: str, tick: int, at: float) -> None:
        """The entries of which these are the remains have left.

        The ghosts that were wanted again stay longest, in half of the places at most; of the others the oldest leave.
        """
        self._waiting.append(Eviction(remains, label, tick, at, self.watch.queries))
        self._left += 1
        if self._left >= LEAVING:
            self.settle()

    def _become(self, left: Eviction) -> None:
        """Victims that waited become ghosts, as far as there is room."""
        remains = left.remains
        back = np.isin(self.watch.held["id"], remains.ids)  # it came back and nobody said so
        self._leave(back, left.queries)
        policy = self._policy(left.label)
        counts = self.watch.counts.copy()
        counts[policy, 0] += remains.ids.size
        self.watch = self.watch._replace(counts=counts)
        safe = self._safe()
        room = self.limit - int(np.count_nonzero(safe))
        some = _spread(np.arange(remains.some.size), room)
        if some.size:
            others = np.flatnonzero(~safe)
            age = np.lexsort((self.watch.held["id"][others], self.watch.held["tick"][others]))
            leaves = np.zeros(len(safe), np.bool_)
            leaves[others[age[: max(0, others.size - (room - some.size))]]] = True
            self._leave(leaves, left.queries)

            new = np.zeros(some.size, GHOST)
            new["id"], new["policy"], new["tick"] = remains.some[some], policy, left.tick
            new["at"], new["queries"], new["waited"] = left.at, left.queries, -1
            new["score"] = np.nan if remains.scores is None else remains.scores[some]
            if remains.vectors is not None:
                sketches, new["scale"], new["error"] = sketched(remains.vectors[some])
            elif remains.made is not None:
                codes, scale, error = remains.made
                sketches, new["scale"], new["error"] = codes[some], scale[some], error[some]
            held = np.concatenate([self.watch.held, new])
            by_id = np.argsort(held["id"])
            sketches = np.concatenate([self.watch.sketches, sketches])[by_id]
            self.watch = self.watch._replace(held=held[by_id], sketches=sketches)
        # No vector is kept.
        if remains.vectors is not None:
            remains.vectors[:] = 0.0
        elif remains.made is not None:
            remains.made[0][:] = 0

    def returned(self, ids: Ids, *, scrub: bool = False) -> None:
        """Entries of these ids are watched no longer: restored, or erased. What was counted stays.

        `scrub` overwrites their sketches in memory; whoever saved the state before must not restore it then.
        """
        self.settle()
        gone = np.isin(self.watch.held["id"], ids)
        if scrub:
            self.watch.sketches[gone] = 0
        self._leave(gone, self.watch.queries)

    def saved(self) -> Watch:
        """The state, to be put back by `restore` should a call fail."""
        self.settle()
        return self.watch

    def restore(self, watch: Watch) -> None:
        self.watch = watch
        self._waiting, self._asked, self._left = [], 0, 0

    def _safe(self) -> Mask:
        """Ghosts that newcomers do not push out: those wanted last, in half of the places."""
        held = self.watch.held
        last = np.lexsort((held["id"], held["wanted_tick"], held["wanted"] > 0))[::-1]
        safe = np.zeros(len(held), np.bool_)
        safe[last[: self.limit // 2]] = True
        return safe & (held["wanted"] > 0)

    def _leave(self, gone: Mask, queries: int) -> None:
        """These are watched no longer, as of so many queries."""
        if gone.any():
            held, sketches = self.watch.held[~gone], self.watch.sketches[~gone]
            past = self.watch.past + ages(self.watch.held[gone], queries)
            self.watch = self.watch._replace(held=held, sketches=sketches, past=past)

    def _policy(self, label: str) -> int:
        """The number of a policy, a new one if it is new."""
        labels = self.watch.labels
        label = label[:LABEL_LENGTH] or OTHERS
        if label not in labels and len(labels) >= LABELS:
            label = OTHERS
        if label not in labels:
            labels = (*labels, label)
            counts = np.concatenate([self.watch.counts, np.zeros((1, 2), np.int64)])
            self.watch = self.watch._replace(labels=labels, counts=counts)
        return labels.index(label)

    # ---- being wanted ----------------------------------------------------------------------------

    def asked(self, unit: Float32, scores: Float64, k: int, tick: int, at: float) -> None:
        """A search without a filter counted. It costs nothing now: it waits for others.

        Parameters
        ----------
        unit : (dim,) float32
        scores : (hits,) float64
            Cosines of its hits, best first.
        k : int
            How many hits were asked for; fewer hits mean that a ghost would have had a place.
        """
        watch = self.watch
        self.watch = watch._replace(queries=watch.queries + 1)
        if len(watch.held) or self._left:
            self._queries[self._asked] = unit
            self._waiting.append(Question(watch.queries + 1, scores, k, tick, at))
            self._asked += 1
            if self._asked == WAITING:
                self.settle()

    def settle(self) -> None:
        """Let happen what waits: victims become ghosts, and queries find out which ghosts they would have returned."""
        waiting, self._waiting, self._asked, self._left = self._waiting, [], 0, 0
        start = 0
        for kind, group in groupby(waiting, type):
            if kind is Eviction:
                for left in group:
                    self._become(cast(Eviction, left))
            else:
                questions = cast(list[Question], list(group))
                self._settle(questions, self._queries[start : start + len(questions)])
                start += len(questions)

    def _settle(self, waiting: list[Question], queries: Float32) -> None:
        if not len(self.watch.held):
            queries[:] = 0.0
            return
        held, counts, times = self.watch.held.copy(), self.watch.counts.copy(), self.watch.times
        cosines = self._cosines(queries)
        slack = held["error"].max(initial=0.0) + 2 * NOISE
        best = cosines.max(1)
        for i, question in enumerate(waiting):
            full = question.scores.size >= question.k
            bar = question.scores[question.k - 1] if full else -2.0
            if best[i] <= bar - 2 * NOISE:
                continue
            near = np.flatnonzero(cosines[i] > bar - slack)
            found = near[self._would_return(queries[i], near, question)]
            if found.size:
                first = found[held["wanted"][found] == 0]
                held["waited"][first] = question.number - held["queries"][first]
                np.add.at(counts[:, 1], held["policy"][first], 1)
                held["wanted"][found] += 1
                held["wanted_tick"][found], held["wanted_at"][found] = question.tick, question.at
                times += 1
        queries[:] = 0.0  # no query is kept
        if times > self.watch.times:
            self.watch = self.watch._replace(held=held, counts=counts, times=times)

    def _cosines(self, queries: Float32) -> Float32:
        """Of all sketches to each query: (queries, n) float32."""
        ghosts = len(self.watch.held)
        out = np.empty((len(queries), ghosts), np.float32)
        for start in range(0, ghosts, BLOCK):
            block = self.watch.sketches[start : start + BLOCK].astype(np.float32)
            out[:, start : start + BLOCK] = np.dot(queries, block.T)
        out *= self.watch.held["scale"]
        return out

    def _would_return(self, query: Float32, rows: Rows, question: Question) -> Mask:
        """Which of these ghosts are without a doubt among the best k of all hits and ghosts: (rows,) bool."""
        held = self.watch.held[rows]
        low, high = bounds(query, self.watch.sketches[rows], held["scale"], held["error"])
        hits = np.searchsorted(-question.scores, -low, side="right")
        others = rows.size - np.searchsorted(np.sort(high), low, side="right") - 1
        certain: Mask = hits + others < question.k
        return certain

    # ---- what came of it -------------------------------------------------------------------------

    def regret(self, archived: Callable[[], Ids] | None = None) -> Regret:
        """The figures of this moment.

        Parameters
        ----------
        archived : function, optional
            Ids that can be restored; it is asked only if a ghost was wanted. None if there is no archive.
        """
        self.settle()
        held, labels = self.watch.held, self.watch.labels
        wanted = held[held["wanted"] > 0]
        last = wanted[np.lexsort((wanted["id"], wanted["wanted_tick"]))[::-1]]
        resting: set[int] = set(archived().tolist()) if archived and wanted.size else set()
        counts = {
            label: tuple(pair)
            for label, pair in zip(labels, self.watch.counts.tolist(), strict=True)
        }
        first, unwanted = self.watch.past + ages(held, self.watch.queries)
        watched = np.cumsum((first + unwanted)[::-1])[::-1]
        table = zip((*EDGES, None), watched.tolist(), first.tolist(), strict=True)
        return Regret(
            evicted=sum(evicted for evicted, _ in counts.values()),
            watched=len(held),
            wanted=sum(wanted for _, wanted in counts.values()),
            times=self.watch.times,
            queries=self.watch.queries,
            by_policy={label: (pair[0], pair[1]) for label, pair in counts.items()},
            by_age=tuple(Age(*row) for row in table),
            recent=[
                Wanted(
                    id=int(ghost["id"]),
                    score=None if np.isnan(ghost["score"]) else float(ghost["score"]),
                    policy=labels[ghost["policy"]],
                    evicted_at=float(ghost["at"]),
                    wanted_at=float(ghost["wanted_at"]),
                    times=int(ghost["wanted"]),
                )
                for ghost in last[:SHOWN]
            ],
            restorable=None
            if archived is None
            else [i for i in last["id"].tolist() if i in resting],
        )


def _spread(rows: Rows, count: int) -> Rows:
    """At most `count` of some rows, evenly spread."""
    count = max(0, count)
    return rows if rows.size <= count else rows[np.arange(count) * rows.size // max(1, count)]
