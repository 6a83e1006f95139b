"""Several processes with two threads each on one file, one of them killed each second; then the books are checked."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from memsift import MemoryStore
from memsift.audit.record import Record
from memsift.durable import DurableStore
from memsift.errors import BudgetExceeded, MemsiftError, UnknownEntry

DIM = 16
BUDGET = 200
PROCESSES, THREADS = 4, 2
BUSY = 20.0


def opened(path: Path) -> DurableStore:
    return MemoryStore.open(
        path, DIM, budget=BUDGET, archive=10_000_000, busy_timeout=BUSY, touch_flush_seconds=0.2
    )


def worker(path: str, out: int, seed: int) -> None:
    """Two threads share one store; each writes down what was acknowledged: `+id` added, `-id` asked to delete."""
    store = opened(Path(path))
    os.write(out, b"ready\n")

    def live(number: int) -> None:
        rng = np.random.default_rng((seed, number))
        try:
            while True:
                _turn(store, rng, out)
        except BaseException as error:
            os.write(out, f"!{type(error).__name__}: {error}\n".encode()[:400])
            os._exit(1)

    for number in range(THREADS):
        threading.Thread(target=live, args=(number,), daemon=True).start()
    threading.Event().wait()


def _turn(store: DurableStore, rng: np.random.Generator, out: int) -> None:
    draw = rng.random()
    if draw < 0.35:
        nonce = int(rng.integers(2**62))
        id_ = store.add(rng.normal(size=DIM), {"nonce": nonce})
        os.write(out, f"+{id_} {nonce}\n".encode())
    elif draw < 0.45:
        nonces = rng.integers(2**62, size=int(rng.integers(1, 12))).tolist()
        rows = rng.normal(size=(len(nonces), DIM))
        ids = store.add_many(rows, [{"nonce": nonce} for nonce in nonces])
        lines = (f"+{id_} {nonce}\n" for id_, nonce in zip(ids.tolist(), nonces, strict=True))
        os.write(out, "".join(lines).encode())
    elif draw < 0.8:
        hits = store.search(rng.normal(size=DIM), 3)
        ids = [hit.id for hit in hits]
        assert len(set(ids)) == len(ids)
        assert all("nonce" in hit.metadata for hit in hits)
        if draw < 0.6 and ids:
            _perhaps(store.feedback, ids[:1])
    elif draw < 0.86:
        if len(store) > BUDGET // 2:
            store.compact(0.8)
    elif draw < 0.93:
        if (ids := store.archived()).size:
            _perhaps(store.restore, rng.choice(ids, min(ids.size, 3), replace=False))
    elif draw < 0.95 and (hits := store.search(rng.normal(size=DIM), 1, touch=False)):
        os.write(out, f"-{hits[0].id}\n".encode())
        _perhaps(store.delete, [hits[0].id])
    stats = store.stats()
    assert stats.entries <= BUDGET, f"{stats.entries} entries in a budget of {BUDGET}"


def _perhaps(call: Any, ids: Any) -> None:
    """Another process may have been faster."""
    try:
        call(ids)
    except (UnknownEntry, BudgetExceeded):
        return


@dataclass
class Figures:
    seconds: float = 0.0
    kills: int = 0
    adds: int = 0
    live: int = 0
    archived: int = 0
    deleted: int = 0
    records: int = 0
    looks: int = 0
    slowest_lock: float = 0.0
    failures: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        return {
            "processes": PROCESSES,
            "threads each": THREADS,
            "seconds": round(self.seconds, 1),
            "kills": self.kills,
            "adds acknowledged": self.adds,
            "live": self.live,
            "archived": self.archived,
            "asked to delete": self.deleted,
            "records": self.records,
            "looks from outside": self.looks,
            "slowest commit after a kill, seconds": round(self.slowest_lock, 3),
            "failures": len(self.failures),
        }


class _Worker:
    def __init__(self, path: Path, seed: int) -> None:
        self.pipe, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            try:
                worker(str(path), theirs, seed)
            finally:
                os._exit(1)
        os.close(theirs)
        self.said = b""
        os.set_blocking(self.pipe, False)

    def listen(self) -> None:
        try:
            while more := os.read(self.pipe, 65536):
                self.said += more
        except BlockingIOError:
            return

    def kill(self) -> bytes:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.listen()
        os.close(self.pipe)
        return self.said


def campaign(seconds: float, seed: int = 0, progress: Any = None) -> Figures:
    figures, rng = Figures(), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="memsift-crowd-") as folder:
        path = Path(folder) / "store.memsift"
        opened(path).close()
        workers = [_Worker(path, seed * 1000 + i) for i in range(PROCESSES)]
        said: list[bytes] = []
        began = time.monotonic()
        next_kill = began + 1.0
        try:
            while time.monotonic() < began + seconds and not figures.failures:
                time.sleep(0.05)
                for one in workers:
                    one.listen()
                if any(b"!" in one.said for one in workers):
                    break
                if time.monotonic() >= next_kill:
                    next_kill += 1.0
                    victim = workers.pop(rng.randrange(len(workers)))
                    said.append(victim.kill())
                    figures.kills += 1
                    figures.looks += 1
                    _look(path, figures)
                    workers.append(_Worker(path, seed * 1000 + 100 + figures.kills))
                    if progress and figures.kills % 10 == 0:
                        progress(figures)
        finally:
            said += [one.kill() for one in workers]
        figures.seconds = time.monotonic() - began
        try:
            _account(path, said, figures)
        except (AssertionError, MemsiftError) as error:
            figures.failures.append(f"{type(error).__name__}: {error}"[:600])
    return figures


def _look(path: Path, figures: Figures) -> None:
    """The budget holds, and somebody commits soon: the kernel gave the dead writer's lock back."""
    db = sqlite3.connect(path, timeout=BUSY, isolation_level=None)
    try:
        began = time.monotonic()
        first = now = _generation(db)
        while now == first and time.monotonic() < began + BUSY:
            time.sleep(0.002)
            now = _generation(db)
        figures.slowest_lock = max(figures.slowest_lock, time.monotonic() - began)
        live = db.execute("SELECT count(*) FROM entry WHERE archived_at IS NULL").fetchone()[0]
    finally:
        db.close()
    if live > BUDGET:
        figures.failures.append(f"{live} live entries in a budget of {BUDGET}")
    if now == first:
        figures.failures.append(f"nobody could write for {BUSY} s after a kill")


def _generation(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT generation FROM namespace").fetchone()[0])


def _account(path: Path, said: list[bytes], figures: Figures) -> None:
    added: dict[int, int] = {}
    deleted: set[int] = set()
    for text in said:
        # A killed process may have written half a line.
        for line in text.decode().split("\n")[:-1]:
            assert not line.startswith("!"), line
            if line.startswith("+"):
                id_, nonce = map(int, line[1:].split())
                assert id_ not in added, f"id {id_} was given twice"
                added[id_] = nonce
            elif line.startswith("-"):
                deleted.add(int(line[1:]))
    figures.adds, figures.deleted = len(added), len(deleted)
    store = opened(path)
    try:
        found = store.verify()
        assert found.ok, str(found)
        assert store.stats().entries <= BUDGET
        live, archived = store.view().ids.tolist(), store.archived().tolist()
        figures.live, figures.archived = len(live), len(archived)
        counts = Counter(live + archived)
        assert max(counts.values(), default=1) == 1, "an id is both live and archived"
        lost = [id_ for id_ in added if id_ not in counts and id_ not in deleted]
        assert not lost, f"lost: {lost[:10]}"
        entries = store.get(live)
        resting = store._archive.entries()
        notes = {entry.id: entry.metadata for entry in entries if entry}
        ids = resting.columns["ids"].tolist()
        notes |= dict(zip(ids, [n or {} for n in resting.metadata or []], strict=True))
        wrong = [id_ for id_, n in added.items() if id_ in notes and notes[id_] != {"nonce": n}]
        assert not wrong, f"other contents: {wrong[:10]}"
        # What nobody acknowledged may be there only if its writer was killed between commit and acknowledgement.
        ghosts = [id_ for id_ in counts if id_ not in added]
        assert len(ghosts) <= 12 * THREADS * len(said), f"{len(ghosts)} ghosts: {ghosts[:10]}"
        records = [Record.parse(body) for body in store.audit.bodies()]
        figures.records = len(records)
        evicted = sum(r.evicted_count for r in records if r.kind == "compaction")
        assert evicted == store.stats().evicted, "the log and the counters tell of other evictions"
        assert [r.seq for r in records] == list(range(1, len(records) + 1))
        assert max(counts, default=-1) < store._memory.next_id
    finally:
        store.close()
