"""The reference source: rows in a dict. What the others are compared with, and a model of how to write one."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.backends.base import Applied, Archive, Scanned, SourcePlan
from memsift.backends.ids import Id
from memsift.backends.planning import plan_by_scan
from memsift.policies.base import CompactionPolicy

COLUMNS = {
    "accessed_tick": np.int64,
    "created_tick": np.int64,
    "access_count": np.int64,
    "cost": np.int64,
    "pinned": np.bool_,
}


@dataclass(frozen=True)
class Row:
    """One memory of a source as its owner sees it."""

    id: Id
    vector: Sequence[float]
    created_tick: int = 0
    accessed_tick: int = 0
    access_count: int = 0
    cost: int = 1
    pinned: bool = False
    tenant: str | None = None

    @property
    def mark(self) -> str:
        return repr((self.accessed_tick, self.access_count, self.cost, self.pinned, self.vector))


class RamSource:
    """Rows in RAM as a `Source`.

    Parameters
    ----------
    rows : iterable of Row
    batch : int
        Rows that a scan gives at a time.
    """

    name = "rows in RAM"
    provides = frozenset({*COLUMNS, "vectors"})

    def __init__(self, rows: Iterable[Row], batch: int = 1000) -> None:
        self.rows: dict[Id, Row] = {row.id: row for row in rows}
        self._batch, self._lock = batch, threading.Lock()

    def scan(self, needs: frozenset[str]) -> Iterator[Scanned]:
        with self._lock:
            rows = list(self.rows.values())
        for start in range(0, len(rows), self._batch):
            yield _scanned(rows[start : start + self._batch], needs)

    def plan(
        self,
        policy: CompactionPolicy,
        keep: int | float,
        *,
        by_tenant: bool = False,
        context: npt.ArrayLike | None = None,
    ) -> SourcePlan:
        return plan_by_scan(self, policy, keep, by_tenant=by_tenant, context=context)

    def apply(self, plan: SourcePlan, archive: Archive | None = None) -> Applied:
        with self._lock:
            done = Applied([], [], [])
            for id_, mark in zip(plan.ids, plan.marks, strict=True):
                row = self.rows.get(id_)
                same = row is not None and row.mark == mark and not row.pinned
                (done.absent if row is None else done.dropped if same else done.spared).append(id_)
            if archive is not None and done.dropped:
                leaving = [self.rows[id_] for id_ in done.dropped]
                archive(_scanned(leaving, self.provides, notes=True))
            for id_ in done.dropped:
                del self.rows[id_]
            return done

    def record_access(self, ids: Sequence[Id]) -> int:
        with self._lock:
            known = [id_ for id_ in dict.fromkeys(ids) if id_ in self.rows]
            now = 1 + max((row.accessed_tick for row in self.rows.values()), default=0)
            for id_ in known:
                row = self.rows[id_]
                self.rows[id_] = replace(row, accessed_tick=now, access_count=row.access_count + 1)
            return len(known)

    def close(self) -> None:
        """Nothing to let go."""


def _scanned(rows: list[Row], needs: frozenset[str], notes: bool = False) -> Scanned:
    names = [name for name in COLUMNS if name in needs or name == "pinned"]
    columns: dict[str, npt.NDArray[Any]] = {
        name: np.array([getattr(row, name) for row in rows], COLUMNS[name]) for name in names
    }
    if "vectors" in needs:
        columns["vectors"] = np.array([row.vector for row in rows], np.float32)
    return Scanned(
        [row.id for row in rows],
        [row.mark for row in rows],
        columns,
        [row.tenant for row in rows],
        [{} for _ in rows] if notes else [],
    )
