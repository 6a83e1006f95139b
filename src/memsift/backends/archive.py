"""Where victims are put before they leave a source: a .memsift file, or an .rvf made of one at the end."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.backends.base import Applied, Scanned
from memsift.backends.ids import Id, from_json, to_json
from memsift.backends.planning import unit_or_zero
from memsift.durable import DurableStore
from memsift.errors import InvalidValue
from memsift.policies import FifoPolicy
from memsift.store import MemoryStore

TOLD = ("created_tick", "accessed_tick", "access_count")


class ArchiveFile:
    """Victims as entries of a store, each with its id, its tenant and the plan in its metadata.

    An entry that has no vector gets the first axis, and says `no_vector`.
    """

    def __init__(self, path: str | os.PathLike[str], plan_id: str) -> None:
        self.path = checks.path(path)
        if self.path.suffix not in (".memsift", ".rvf"):
            raise InvalidValue(f"archive must end in .memsift or .rvf; got {self.path.name!r:.60}")
        self._plan, self._batch = plan_id[:32], 0
        self._store: DurableStore | None = None

    @property
    def file(self) -> Path:
        """The .memsift file that is written."""
        is_rvf = self.path.suffix == ".rvf"
        return self.path.with_name(f"{self.path.name}.memsift") if is_rvf else self.path

    def of(self, batch: int) -> ArchiveFile:
        """The same, for the victims of one batch: pass it to `Source.apply`."""
        self._batch = batch
        return self

    def __call__(self, leaving: Scanned) -> None:
        """Take in what is about to leave: durable when this returns."""
        vectors = unit_or_zero(leaving.columns["vectors"])
        store = self._open(vectors.shape[1])
        empty: npt.NDArray[np.bool_] = np.logical_not(vectors.any(1))
        vectors[empty, 0] = 1.0
        store.add_many(
            vectors,
            metadata=[self._note(leaving, row, bool(empty[row])) for row in range(len(leaving))],
            cost=leaving.columns.get("cost"),
        )

    def settle(self, batch: int, done: Applied) -> None:
        """Put right what a kill may have left of a batch: who was spared is not archived, and nobody is twice."""
        if not self.file.exists():
            return
        store = self._open(None)
        axis = np.zeros(store.dim, np.float32)
        axis[0] = 1.0
        where = {"sift": self._plan, "batch": batch}
        hits = (
            store.search(axis, max(1, len(store)), where=where, touch=False) if len(store) else []
        )
        alive, seen, surplus = set(done.spared), set[Id](), list[int]()
        for hit in sorted(hits, key=lambda hit: -hit.id):
            id_ = from_json(hit.metadata["id"])
            if id_ in alive or id_ in seen:
                surplus.append(hit.id)
            seen.add(id_)
        if surplus:
            store.delete(surplus)

    def finish(self) -> None:
        """All victims are in: make the .rvf, if that was asked for."""
        if self.path.suffix == ".rvf" and self.file.exists():
            store = self._open(None)
            if not self.path.exists():  # a kill may have come after it
                store.save_rvf(self.path)
            self.close()
            for ending in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    os.unlink(f"{self.file}{ending}")
        self.close()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def _open(self, dim: int | None) -> DurableStore:
        if self._store is None:
            self._store = MemoryStore.open(
                self.file, dim=dim, policy=FifoPolicy(), durability="full"
            )
        return self._store

    def _note(self, leaving: Scanned, row: int, empty: bool) -> dict[str, Any]:
        note: dict[str, Any] = {"id": to_json(leaving.ids[row]), "sift": self._plan}
        note |= {"batch": self._batch, "tenant": leaving.tenants[row]}
        note |= {name: int(leaving.columns[name][row]) for name in TOLD if name in leaving.columns}
        if leaving.notes and leaving.notes[row]:
            note["row"] = leaving.notes[row]
        return note | ({"no_vector": True} if empty else {})
