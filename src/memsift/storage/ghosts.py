"""Ghosts as rows of the file and back; figures of all of them are part of the namespace's state.

Queries are asked between transactions: what they found out waits in RAM until the next one, and is added to what
other processes have written meanwhile.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.errors import CorruptStore
from memsift.ghosts import LABEL_LENGTH, LABELS, Ghosts
from memsift.regret.watch import AGES, GHOST, Ids, Watch, nothing
from memsift.storage import rows
from memsift.storage.fetch import CHUNK

Mask = npt.NDArray[np.bool_]
# Figures beyond this are damage: nothing was ever counted so often, and one more must fit into 64 bits.
LARGEST = 1 << 62
# How many ghosts a namespace may have, whatever limit its writers kept to.
MOST = 1 << 20


class GhostRows:
    """Reads and writes the ghosts of namespace number `ns`, whose vectors have `dim` elements."""

    def __init__(self, db: sqlite3.Connection, ns: int, dim: int) -> None:
        self._db, self._ns, self._dim = db, ns, dim
        self._there = nothing(dim)  # as last read or committed
        self._next = self._there

    # ---- writing ---------------------------------------------------------------------------------

    def written(self, ghosts: Ghosts) -> tuple[dict[str, Any], Ids]:
        """Bring the rows up to date, as part of the open transaction.

        Returns
        -------
        state : dict
            JSON-ready: what the namespace's row must say.
        ids : (m,) int64
            Of ghosts that came, changed or went, for other processes to read again.
        """
        now, there = ghosts.saved(), self._there
        self._next = now
        if now.held is there.held:
            return state_of(now), np.empty(0, np.int64)
        at = _positions(there.held["id"], now.held["id"])
        fresh = at < 0
        fresh[~fresh] = (_raw(now.held[~fresh]) != _raw(there.held[at[~fresh]])).any(1)
        changed: Ids = now.held["id"][fresh]
        gone = np.setdiff1d(there.held["id"], now.held["id"])
        self.delete(gone)
        blobs = packed(now.held[fresh], now.sketches[fresh])
        pairs = zip(rows.keys(self._ns, changed), blobs, strict=True)
        self._db.executemany("INSERT OR REPLACE INTO ghost VALUES (?, ?)", pairs)
        return state_of(now), np.concatenate([changed, gone])

    def committed(self) -> None:
        """The transaction of the last `written` is true."""
        self._there = self._next

    def delete(self, ids: Ids) -> None:
        """Remove the rows of these ids, if they are there."""
        keys = ((key,) for key in rows.keys(self._ns, ids))
        self._db.executemany("DELETE FROM ghost WHERE key = ?", keys)

    # ---- reading ---------------------------------------------------------------------------------

    def read(self, state: Any, ghosts: Ghosts, ids: Ids | None = None) -> None:
        """Make `ghosts` what the file says, and what its own queries have found out since.

        Parameters
        ----------
        state : dict or None
            As of `written`; a file of before has none.
        ids : (m,) int64, optional
            Only these can have changed since the last time.

        Raises
        ------
        CorruptStore
        """
        ours, there = ghosts.saved(), self._there
        figures, count = figures_of(state, self._dim)
        held, sketches = self._all() if ids is None else self._again(there, ids)
        if len(held) != count:
            raise CorruptStore(
                "ghost", "rows must be those that the namespace counts; they are not"
            )
        if (held["policy"] >= len(figures.labels)).any() or (
            held["queries"] > figures.queries
        ).any():
            raise CorruptStore("ghost", "rows must be no newer than the namespace; one is")
        theirs = figures._replace(held=held, sketches=sketches)
        ghosts.restore(merged(there, ours, theirs))
        self._there = theirs

    def same(self, ghosts: Ghosts) -> bool:
        """Whether the file's rows are what was last read or written; `ghosts` may know more of their wants.

        Raises
        ------
        CorruptStore
            A row is not sound.
        """
        held, sketches = self._all()
        ours = ghosts.saved()
        return (
            np.array_equal(_raw(held), _raw(self._there.held))
            and np.array_equal(held["id"], ours.held["id"])
            and np.array_equal(sketches, ours.sketches)
        )

    def _all(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int8]]:
        span = self._ns << rows.ID_BITS, (self._ns + 1) << rows.ID_BITS
        select = "SELECT key, row FROM ghost WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"
        found = self._db.execute(select, (*span, MOST + 1)).fetchall()
        if len(found) > MOST:
            raise CorruptStore("ghost", f"must have at most {MOST:,} rows; it has more")
        return unpacked(found, self._ns, self._dim)

    def _again(self, there: Watch, ids: Ids) -> tuple[npt.NDArray[Any], npt.NDArray[np.int8]]:
        """All ghosts as of `there`, those of these ids as the file has them now."""
        found: list[Any] = []
        keys = rows.keys(self._ns, np.unique(ids))
        for start in range(0, len(keys), CHUNK):
            part = keys[start : start + CHUNK]
            marks = ",".join("?" * len(part))
            select = f"SELECT key, row FROM ghost WHERE key IN ({marks}) ORDER BY key"
            found += self._db.execute(select, part)
        held, sketches = unpacked(found, self._ns, self._dim)
        stays = ~np.isin(there.held["id"], ids)
        held = np.concatenate([there.held[stays], held])
        order = np.argsort(held["id"])
        return held[order], np.concatenate([there.sketches[stays], sketches])[order]


def merged(there: Watch, ours: Watch, theirs: Watch) -> Watch:
    """What the file says (`theirs`), with what we found out since we last knew it (`ours`, then as `there`).

    A want of a ghost that left the file meanwhile is dropped; the query that wanted it still counts.
    """
    held, counts = theirs.held.copy(), theirs.counts.copy()
    mine, old = (_positions(watch.held["id"], held["id"]) for watch in (ours, there))
    # The same eviction, to all three.
    rows_ = np.flatnonzero((mine >= 0) & (old >= 0))
    same = held["tick"][rows_] == ours.held["tick"][mine[rows_]]
    same &= held["tick"][rows_] == there.held["tick"][old[rows_]]
    rows_ = rows_[same]
    more = ours.held["wanted"][mine[rows_]] - there.held["wanted"][old[rows_]]
    rows_, more = rows_[more > 0], more[more > 0]
    known = ours.held[mine[rows_]]
    first = held["wanted"][rows_] == 0
    held["waited"][rows_[first]] = known["waited"][first]
    np.add.at(counts[:, 1], held["policy"][rows_[first]], 1)
    held["wanted"][rows_] += more
    for name in ("wanted_tick", "wanted_at"):
        held[name][rows_] = np.maximum(held[name][rows_], known[name])
    return theirs._replace(
        held=held,
        counts=counts,
        queries=theirs.queries + max(0, ours.queries - there.queries),
        times=theirs.times + max(0, ours.times - there.times),
    )


# ---- bytes ---------------------------------------------------------------------------------------


def packed(held: npt.NDArray[Any], sketches: npt.NDArray[np.int8]) -> list[bytes]:
    """Each ghost as one blob: its columns, its sketch, and a sum over both."""
    out = np.zeros(len(held), _blob(sketches.shape[1]))
    out["body"][:, : GHOST.itemsize] = _raw(held)
    out["body"][:, GHOST.itemsize :] = sketches.view(np.uint8)
    out["sum"] = rows.row_sums(out)
    return [row.tobytes() for row in out]


def unpacked(found: list[Any], ns: int, dim: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int8]]:
    """Ghosts and sketches of keys and blobs that `packed` made, ascending by id.

    Raises
    ------
    CorruptStore
        A blob of another size, a sum that does not fit, or a value outside its bounds.
    """
    dtype = _blob(dim)
    if not all(isinstance(row, bytes) and len(row) == dtype.itemsize for _, row in found):
        raise CorruptStore("ghost", f"rows must be {dtype.itemsize} bytes each; one is not")
    raw = np.frombuffer(b"".join(row for _, row in found), dtype)
    body = np.ascontiguousarray(raw["body"])
    held = np.ascontiguousarray(body[:, : GHOST.itemsize]).view(GHOST).reshape(-1)
    ids = held["id"]
    wrong = rows.row_sums(raw) != raw["sum"]
    if wrong.any():
        raise CorruptStore("ghost", f"sum must fit the row; it does not for id {ids[wrong][0]}")
    if rows.keys(ns, ids) != [key for key, _ in found] or (ids[1:] <= ids[:-1]).any():
        raise CorruptStore("ghost", "rows must ascend by their own ids; they do not")
    sketches = np.ascontiguousarray(body[:, GHOST.itemsize :]).view(np.int8)
    for name, sound in _sound(held, sketches):
        if not sound.all():
            raise CorruptStore(
                "ghost", f"{name} must be within its bounds; it is not for id {ids[~sound][0]}"
            )
    return held.copy(), sketches.copy()


def _sound(held: npt.NDArray[Any], sketches: npt.NDArray[np.int8]) -> list[tuple[str, Mask]]:
    """Each demand on the columns, with the rows that meet it."""
    unwanted = held["wanted"] == 0
    with np.errstate(invalid="ignore"):
        return [
            *((name, held[name] >= 0) for name in ("id", "policy", "tick", "queries", "wanted")),
            ("id", held["id"] < 1 << rows.ID_BITS),
            *((name, np.isfinite(held[name])) for name in ("at", "wanted_at")),
            ("score", ~np.isinf(held["score"])),
            # That of a unit vector: its largest element over 127.
            ("scale", (held["scale"] > 0) & (held["scale"] <= 0.01)),
            ("error", (held["error"] >= 0) & (held["error"] <= 1)),
            ("waited", np.where(unwanted, held["waited"] == -1, held["waited"] >= 0)),
            ("wanted_tick", held["wanted_tick"] >= 0),
            *((name, held[name] <= LARGEST) for name in ("tick", "queries", "waited", "wanted")),
            ("sketch", (sketches > -128).all(1) & sketches.any(1)),
        ]


def state_of(watch: Watch) -> dict[str, Any]:
    """All but the ghosts themselves, JSON-ready."""
    return {
        "held": len(watch.held),
        "queries": watch.queries,
        "times": watch.times,
        "policies": [
            [label, *pair] for label, pair in zip(watch.labels, watch.counts.tolist(), strict=True)
        ],
        "past": watch.past.tolist(),
    }


def figures_of(state: Any, dim: int) -> tuple[Watch, int]:
    """What `state_of` said, without any ghost, and how many there must be.

    Raises
    ------
    CorruptStore
    """
    if state is None:
        return nothing(dim), 0
    try:
        held, queries, times = (_count(state[name]) for name in ("held", "queries", "times"))
        labels = [label for label, _, _ in state["policies"]]
        counts = [[_count(number) for number in pair] for _, *pair in state["policies"]]
        past = [[_count(number) for number in row] for row in state["past"]]
        whole = [len(row) for row in past] == [AGES, AGES]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptStore("namespace", f"ghosts must be whole; {error!r:.80}") from None
    texts = all(isinstance(label, str) and 1 <= len(label) <= LABEL_LENGTH for label in labels)
    if not whole or not texts or len(set(labels)) != len(labels) or len(labels) > LABELS + 1:
        raise CorruptStore("namespace", "ghosts must have few policies and all ages; they do not")
    figures = nothing(dim)._replace(labels=tuple(labels), queries=queries, times=times)
    table = np.array(counts, np.int64).reshape(-1, 2)
    return figures._replace(counts=table, past=np.array(past, np.int64)), held


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= LARGEST:
        raise ValueError(f"must be a number of at least 0; got {value!r:.40}")
    return value


def _blob(dim: int) -> np.dtype[np.void]:
    return np.dtype([("body", "u1", (GHOST.itemsize + dim,)), ("sum", "<u4")])


def _raw(held: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Bytes of packed rows: (n, bytes)."""
    return np.ascontiguousarray(held).view(np.uint8).reshape(len(held), GHOST.itemsize)


def _positions(known: Ids, wanted: Ids) -> npt.NDArray[np.intp]:
    """Where each of `wanted` is in `known`, which ascends; -1 where it is not: (m,)."""
    if not known.size:
        return np.full(wanted.size, -1)
    at = np.minimum(np.searchsorted(known, wanted), known.size - 1)
    return np.where(known[at] == wanted, at, -1)
