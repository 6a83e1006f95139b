"""A dumb memory beside the clever one: a list of dicts, full sorts and sums of Python floats.

It follows the documented rules and shares no code with the package. Whatever it says, `MemoryStore` must
say too.
"""

from __future__ import annotations

import copy
import json
import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from memsift import MemoryStore
from memsift.view import COLUMNS

# How many examples the long Hypothesis tests run; `MEMSIFT_EXAMPLES=2000 pytest ...` searches longer.
EXAMPLES = int(os.environ.get("MEMSIFT_EXAMPLES", "60"))


class Exceeded(Exception):
    """The model's word for `BudgetExceeded`."""


class Unknown(Exception):
    """The model's word for `UnknownEntry`."""


class KeepsNothing(Exception):
    """A target that nothing survives, without `force`."""


@dataclass
class Clock:
    """Unix seconds that pass only when a test says so."""

    now: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Rule:
    """A policy in the model's words.

    `parts` are pairs of weight and signal; `integer` is the one column that decides alone, if there is one.
    Coherence is written `("coherence", window)`.
    """

    parts: tuple[tuple[float, Any], ...] = ()
    integer: str | None = None
    lfu_without_queries: bool = False

    @property
    def queries(self) -> int:
        return max((part[1] for _, part in self.parts if part[0] == "coherence"), default=0)


LRU = Rule(integer="accessed_tick")
LFU = Rule(integer="access_count")
FIFO = Rule(integer="created_tick")


def coherence(
    alpha: float = 0.25, beta: float = 0.35, gamma: float = 0.40, window: int = 20
) -> Rule:
    return Rule(
        ((alpha, ("recency",)), (beta, ("frequency",)), (gamma, ("coherence", window))),
        lfu_without_queries=True,
    )


def unit(vector: Any) -> list[float]:
    """The stored row of a vector: cast to float32, length one, as Python floats."""
    cast = [float(np.float32(x)) for x in vector]
    length = math.sqrt(math.fsum(x * x for x in cast))
    if abs(length - 1.0) <= 5e-7:
        return cast
    return [float(np.float32(x / length)) for x in cast]


def cosine(a: list[float], b: list[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def json_bytes(metadata: dict[str, Any] | None) -> int:
    if not metadata:
        return 0
    return len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())


UNITS = ("entries", "bytes", "cost")


def size_of(entries: list[dict[str, Any]]) -> dict[str, int]:
    return {
        "entries": len(entries),
        "bytes": sum(e["nbytes"] for e in entries),
        "cost": sum(e["cost"] for e in entries),
    }


def within(entries: list[dict[str, Any]], limits: dict[str, int]) -> bool:
    size = size_of(entries)
    return all(size[u] <= limit for u, limit in limits.items())


class Model:
    """A memory as a list of dicts.

    Parameters
    ----------
    limits : dict
        The budget, by unit.
    entry_bytes : int
        What an entry without metadata counts in bytes (asked of a store with one entry).
    """

    def __init__(
        self, limits: dict[str, int], rule: Rule, low: float, entry_bytes: int, clock: Clock
    ) -> None:
        self.limits, self.rule, self.low = limits, rule, low
        self.entry_bytes, self.clock = entry_bytes, clock
        self.window = max(20, rule.queries)
        self.entries: list[dict[str, Any]] = []
        self.queries: list[list[float]] = []
        self.tick = self.next_id = self.step = 0
        self.counts = dict.fromkeys(
            ("added", "evicted", "deleted", "searches", "compactions", "forced_compactions"), 0
        )

    # ---- entries in and out ------------------------------------------------------------------

    def add_many(self, batch: list[dict[str, Any]]) -> list[int]:
        """`batch`: dicts with vector, metadata, cost, importance, pinned, created_at. All or nothing."""
        before = self._saved()
        try:
            return [self._add(item) for item in batch]
        except Exceeded:
            self.__dict__.update(before)
            raise

    def _saved(self) -> dict[str, Any]:
        names = ("entries", "tick", "next_id", "step", "counts")
        return {name: copy.deepcopy(getattr(self, name)) for name in names}

    def _add(self, item: dict[str, Any]) -> int:
        self.tick += 1
        entry = {
            "id": self.next_id,
            "row": unit(item["vector"]),
            "created_tick": self.tick,
            "accessed_tick": self.tick,
            "created_at": self.clock.now if item["created_at"] is None else item["created_at"],
            "accessed_at": self.clock.now,
            "access_count": 0,
            "use_count": 0,
            "cost": item["cost"],
            "importance": item["importance"],
            "pinned": item["pinned"],
            "metadata": item["metadata"] or {},
            "nbytes": self.entry_bytes + json_bytes(item["metadata"]),
            "changed": 0,
        }
        self.next_id += 1
        self.entries.append(entry)
        self.counts["added"] += 1
        self._hold(entry)
        return entry["id"]

    def find(self, ids: list[int]) -> list[dict[str, Any]]:
        held = {e["id"]: e for e in self.entries}
        if any(i not in held for i in ids):
            raise Unknown
        return [held[i] for i in ids]

    def delete(self, ids: list[int]) -> None:
        gone = {e["id"] for e in self.find(ids)}
        self.entries = [e for e in self.entries if e["id"] not in gone]
        self.counts["deleted"] += len(gone)

    def _mark(self, entries: list[dict[str, Any]]) -> None:
        self.step += 1
        for entry in entries:
            entry["changed"] = self.step

    def pin(self, ids: list[int], pinned: bool) -> None:
        found = self.find(ids)
        self._mark(found)
        for entry in found:
            entry["pinned"] = pinned

    def feedback(self, ids: list[int], used: bool) -> None:
        found = self.find(ids)
        if used:
            self._mark(found)
            for id_ in set(ids):
                self.find([id_])[0]["use_count"] += 1

    def update(self, id_: int, changes: dict[str, Any]) -> None:
        self.find([id_])
        before = self._saved()
        entry = self.find([id_])[0]
        for name, value in changes.items():
            if name == "vector":
                entry["row"] = unit(value)
            elif name == "metadata":
                entry["metadata"] = value or {}
                entry["nbytes"] = self.entry_bytes + json_bytes(value)
            else:
                entry[name] = value
        self._mark([entry])
        try:
            self._hold(entry)
        except Exceeded:
            self.__dict__.update(before)
            raise

    # ---- searching ---------------------------------------------------------------------------

    def search(self, query: Any, k: int, where: Any, touch: bool | int) -> list[tuple[int, float]]:
        """Pairs of id and score; `where` is a test of one entry's metadata, or None."""
        q = unit(query)
        scored = []
        for entry in self.entries:
            if where is None or where(entry["metadata"]):
                score = min(1.0, max(-1.0, round(cosine(entry["row"], q), 9)))
                scored.append((-score, entry["id"]))
        hits = [(id_, -negative) for negative, id_ in sorted(scored)][:k]
        if touch is not False:
            self.tick += 1
            self.counts["searches"] += 1
            self.queries = [*self.queries, q][-self.window :]
            touched = self.find([id_ for id_, _ in hits[: k if touch is True else touch]])
            self._mark(touched)
            for entry in touched:
                entry["accessed_tick"] = self.tick
                entry["accessed_at"] = self.clock.now
                entry["access_count"] += 1
        return hits

    # ---- forgetting --------------------------------------------------------------------------

    def ranking(self, rule: Rule, queries: list[list[float]]) -> list[dict[str, Any]]:
        """All entries, the one to keep longest first."""
        ticks = [e["accessed_tick"] for e in self.entries]
        low, high = min(ticks, default=0), max(ticks, default=0)
        most = max((e["access_count"] for e in self.entries), default=0)

        def value(entry: dict[str, Any], signal: tuple[Any, ...]) -> float:
            if signal[0] == "recency":
                return (entry["accessed_tick"] - low) / (high - low) if high > low else 0.0
            if signal[0] == "frequency":
                return entry["access_count"] / most if most else 0.0
            near = [cosine(entry["row"], q) for q in queries[-signal[1] :]]
            return max(0.0, max(near, default=0.0))

        def score(entry: dict[str, Any]) -> float:
            if rule.integer:
                return entry[rule.integer]
            if rule.lfu_without_queries and not queries:
                return entry["access_count"]
            return round(sum((w * value(entry, signal) for w, signal in rule.parts), 0.0), 9)

        return sorted(
            self.entries, key=lambda e: (score(e), e["accessed_tick"], e["id"]), reverse=True
        )

    def survivors(
        self,
        limits: dict[str, int],
        rule: Rule,
        locked: list[dict[str, Any]],
        queries: list[list[float]],
    ) -> list[dict[str, Any]]:
        """Locked entries, and the longest prefix of the ranking of the others that fits beside them."""
        if not within(locked, limits):
            raise Exceeded
        stay = list(locked)
        held = {e["id"] for e in locked}
        for entry in self.ranking(rule, queries):
            if entry["id"] not in held:
                if not within([*stay, entry], limits):
                    break
                stay.append(entry)
        return stay

    def _hold(self, newcomer: dict[str, Any]) -> None:
        locked = [e for e in self.entries if e["pinned"] or e is newcomer]
        if not within(locked, self.limits):
            raise Exceeded
        if within(self.entries, self.limits):
            return
        n, held = len(self.entries), size_of(locked)
        watermark = {u: max(v, held[u]) for u, v in scaled(self.limits, self.low).items()}
        stay = self.survivors(watermark, self.rule, locked, self.queries)
        if 2 * len(stay) < n:
            stay = self.survivors(self.limits, self.rule, locked, self.queries)
            if 2 * len(stay) >= n:
                half = {"entries": max(math.ceil(n / 2), len(locked))}
                stay = self.survivors(half, self.rule, locked, self.queries)
        ids = {e["id"] for e in stay}
        self._drop({e["id"] for e in self.entries if e["id"] not in ids})

    def _drop(self, ids: set[int]) -> bool:
        forced = 2 * len(ids) > len(self.entries)
        self.entries = [e for e in self.entries if e["id"] not in ids]
        self.counts["evicted"] += len(ids)
        self.counts["compactions"] += 1
        self.counts["forced_compactions"] += forced
        return forced

    def plan(
        self, target: Any, rule: Rule | None, context: list[Any] | None, force: bool
    ) -> dict[str, Any]:
        """`target`: limits by unit, an int, a float, or None."""
        n = len(self.entries)
        if target is None:
            limits = scaled(self.limits, self.low)
        elif isinstance(target, dict):
            limits = target
        elif target == 0:
            limits = {"bytes": 0}
        elif isinstance(target, float):
            limits = {"entries": max(1, math.ceil(round(target * n, 6)))}
        else:
            limits = {"entries": target}
        if n and not force and limits.get("bytes") == 0:
            raise KeepsNothing
        queries = self.queries if context is None else [unit(q) for q in context]
        pinned = [e for e in self.entries if e["pinned"]]
        if limits.get("bytes") == 0:  # nothing but the pinned ones
            limits = {"bytes": size_of(pinned)["bytes"]}
        stay = {e["id"] for e in self.survivors(limits, rule or self.rule, pinned, queries)}
        if n and not stay and not force:
            raise KeepsNothing
        return {
            "victims": [e["id"] for e in self.entries if e["id"] not in stay],
            "step": self.step,
        }

    def apply(self, plan: dict[str, Any]) -> dict[str, Any]:
        before = size_of(self.entries)
        held = {e["id"]: e for e in self.entries}
        there = [held[i] for i in plan["victims"] if i in held]
        spared = [e["id"] for e in there if e["pinned"] or e["changed"] > plan["step"]]
        dropped = [e["id"] for e in there if e["id"] not in spared]
        forced = self._drop(set(dropped))
        return {
            "dropped": sorted(dropped),
            "spared": sorted(spared),
            "forced": forced,
            "before": before,
            "after": size_of(self.entries),
        }


def scaled(limits: dict[str, int], share: float) -> dict[str, int]:
    return {unit: math.ceil(round(limit * share, 6)) for unit, limit in limits.items()}


# ---- a store seen whole --------------------------------------------------------------------------


def dump(store: MemoryStore) -> dict[str, Any]:
    """Everything that a store holds, by value: two equal dumps are two equal memories."""
    view = store.view()
    order = np.argsort(view.ids)
    stats = store.stats().to_dict()
    # Room for views and scratch, and columns that are made when somebody writes to them, come and go.
    del stats["bytes"], stats["allocated"]
    return {
        **{name: getattr(view, name)[order].tobytes() for name in COLUMNS},
        "vectors": view.vectors[order].tobytes(),
        "context": view.context.tobytes(),
        "metadata": [entry and entry.metadata for entry in store.get(view.ids[order])],
        "tick": view.tick,
        "next_id": store._memory.next_id,
        "queries_seen": store._memory.context.seen,
        "stats": stats,
    }
