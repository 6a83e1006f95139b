"""One trial: a script lived on a disk whose n-th operation fails, once or from then on, and what must hold of it.

Runs in the child, under the shim.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from fault_scripts import (
    SCRIPTS,
    ModelRun,
    Step,
    StoreRun,
    difference,
    differences,
    dump,
    faults_of,
)
from fault_shim import Shim

from memsift import MemoryStore
from memsift.errors import CorruptStore, DiskTrouble, MemsiftError
from model import Clock


class Trial:
    """`fault` at operation `n` of those that it may hit, once or for ever."""

    def __init__(
        self,
        shim: Shim,
        folder: Path,
        *,
        script: str,
        durability: str,
        fault: str,
        n: int,
        forever: bool,
    ) -> None:
        self.shim, self.folder, self.steps = shim, folder, SCRIPTS[script]
        self.fault, self.n, self.forever = fault, n, forever
        self.model = ModelRun()
        self.run_ = StoreRun(folder / "memory.db", durability, self.model.clock)
        self.wrong: list[str] = []
        self.raised: list[str] = []
        self.in_doubt = 0  # a commit failed, and a crash right then would find it made
        self.ended = False  # by a close that failed
        self.readable = not (fault == "read" and forever)

    def run(self) -> dict[str, Any]:
        self.shim.arm(self.fault, self.n, self.forever)
        for k, step in enumerate(self.steps):
            if not self._step(k, step):
                break
        count, fired = self.shim.count(), self.shim.fired()
        self.shim.disarm()
        try:
            self.run_.close()
            self._reopened()
        except Exception as error:
            self.wrong.append(f"afterwards: {error!r}")
        return {
            "wrong": self.wrong,
            "fired": fired,
            "count": count,
            "raised": self.raised,
            "in_doubt": self.in_doubt,
        }

    def _step(self, k: int, step: Step) -> bool:
        """Do a step, and if it fails, look and do it again on a sound disk. False ends the script."""
        verb, name, *_ = step
        label = f"step {k}, {verb}"
        before = self._expected()
        stored = self.model.stored()
        last = self._last(name)
        refused = self.model.step(step)
        try:
            if self.run_.step(step) != refused:
                self.wrong.append(f"{label}: refused is {not refused} instead of {refused}")
        except Exception as error:
            self._typed(label, error)
            self.raised.append(f"{verb}: {type(error).__name__}")
            if verb == "close":
                self._closed(stored)
                return False
            if self.readable:
                self._unchanged(label, name, before, last)
            self.shim.disarm()
            self.readable = True
            self._crash(label, stored)
            self._unchanged(f"{label}, disk sound again", name, before, last)
            try:
                if self.run_.step(step) != refused:
                    self.wrong.append(
                        f"{label}, again: refused is {not refused} instead of {refused}"
                    )
            except Exception as error:
                self.wrong.append(f"{label}: fails again on a sound disk: {error!r}")
                return False
        if self.readable:
            self._same(label, self._expected())
        return True

    def _typed(self, label: str, error: Exception) -> None:
        """What may be raised: ours, and for trouble of the disk the one that says so."""
        # SQLite calls a page that the disk does not give back a damaged one, and cannot be asked which it was.
        known = (DiskTrouble, CorruptStore) if self.fault == "read" else DiskTrouble
        if not isinstance(error, known):
            self.wrong.append(f"{label}: {error!r} instead of DiskTrouble")

    def _expected(self) -> dict[str, Any]:
        return {name: self.model.handle_state(name) for name in self.run_.stores}

    def _last(self, name: str) -> Any:
        store = self.run_.stores.get(name)
        return None if store is None else store.last_compaction

    def _same(self, label: str, states: dict[str, Any]) -> None:
        for name, state in states.items():
            store = self.run_.stores.get(name)
            if store is None:
                continue
            try:
                try:
                    found = difference(dump(store), state)
                except CorruptStore:
                    if self.fault != "read":
                        raise
                    found = difference(dump(store), state)  # the look itself met the one fault
            except Exception as error:
                found = f"reading fails: {error!r}"
            if found:
                self.wrong.append(f"{label}: handle {name}: {found}")

    def _unchanged(self, label: str, name: str, before: dict[str, Any], last: Any) -> None:
        """Reads go on and say what they said; nothing is held that the next call needs."""
        self._same(label, before)
        store = self.run_.stores.get(name)
        if store is None:
            return
        if store.last_compaction is not last:
            self.wrong.append(f"{label}: last_compaction is one that was taken back")
        if store._lock._is_owned() or store._depth or store._db.in_transaction:
            self.wrong.append(f"{label}: still in a transaction, or the lock is held")

    def _crash(self, label: str, stored: dict[str, Any]) -> None:
        """Should the process die right here, it leaves the state before, or the whole of the failed call."""
        copy = self.folder / "crashed"
        copy.mkdir()
        for file in self.folder.glob("memory.db*"):
            if not file.name.endswith("-shm"):
                shutil.copy(file, copy / file.name)
        found = self._read(copy / "memory.db", f"{label}, crash")
        if found is not None and found not in (stored, self.model.stored()):
            self.wrong.append(f"{label}: a crash now leaves {differences(found, stored)}")
        self.in_doubt += found is not None and found != stored
        shutil.rmtree(copy)

    def _closed(self, stored: dict[str, Any]) -> None:
        """A close that fails lets go of everything all the same; touches that waited may be lost."""
        self.ended = True
        self.shim.disarm()
        self.run_.close()
        after = {n: s.model.state() for n, s in self.model.spaces.items()}
        found = self._read(self.folder / "memory.db", "after a close that failed")
        if found is not None and found not in (stored, after):
            self.wrong.append(f"after a close that failed: {differences(found, stored)}")

    def _reopened(self) -> None:
        """Everything was closed on a sound disk, so touches that waited are there too."""
        if self.ended:
            return
        wanted = {name: space.model.state() for name, space in self.model.spaces.items()}
        found = self._read(self.folder / "memory.db", "reopened")
        if found is not None and found != wanted:
            self.wrong.append(f"reopened: {differences(found, wanted)}")

    def _read(self, path: Path, label: str) -> dict[str, Any] | None:
        """What a file holds, namespace by namespace; None if it does not open, which is noted."""
        found = {}
        for name in self.model.spaces:
            try:
                store = MemoryStore.open(
                    path, namespace=name, touch_flush_seconds=1e6, clock=Clock()
                )
            except MemsiftError as error:
                unmade = ("is not in this store", "an existing store")
                if not any(words in str(error) for words in unmade):
                    self.wrong.append(f"{label}: does not open: {error!r}")
                    return None
                continue
            try:
                found[name] = dump(store)
                self.wrong += [f"{label}: {what}" for what in faults_of(store)]
                pending = store._db.execute("SELECT what FROM pending").fetchall()
                if pending:
                    self.wrong.append(f"{label}: still to be cleaned: {pending}")
            finally:
                store.close()
        return found
