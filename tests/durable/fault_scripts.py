"""Lives of a memory, as lists of steps, and a dumb model that lives them too.

A state is plain data: what every namespace holds, rows, archive and audit trail alike. The model has two of them
after each step: what a handle must say, and what the file must say (touches may still wait in the handle).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from memsift import Budget, CoherencePolicy, LfuPolicy, LruPolicy, MemoryStore
from memsift.errors import BudgetExceeded, UnknownEntry
from memsift.storage.file import translated
from model import (
    LFU,
    LRU,
    Clock,
    Exceeded,
    Model,
    Rule,
    Unknown,
    coherence,
    cosine,
    scaled,
    size_of,
    within,
)

State = dict[str, Any]
Step = tuple[Any, ...]

DIM = 4
ENTRY_BYTES = {
    name: MemoryStore(DIM, policy=policy)._memory.table.entry_bytes()
    for name, policy in (
        ("lru", LruPolicy()),
        ("lfu", LfuPolicy()),
        ("coherence", CoherencePolicy()),
    )
}
POLICIES: dict[str, tuple[Any, Rule]] = {
    "lru": (LruPolicy(), LRU),
    "lfu": (LfuPolicy(), LFU),
    "coherence": (CoherencePolicy(), coherence()),
}


def vector(seed: int) -> list[float]:
    """A unit row that normalising leaves as it is."""
    row = np.random.default_rng(seed).standard_normal(DIM)
    return [float(x) for x in (row / np.linalg.norm(row)).astype(np.float32)]


# ---- the model -----------------------------------------------------------------------------------


class ArchivingModel(Model):
    """The list of dicts, with an archive and an audit trail."""

    def __init__(
        self, limits: dict[str, int], policy: str, clock: Clock, archive: int | None, grace: float
    ) -> None:
        super().__init__(limits, POLICIES[policy][1], 0.97, ENTRY_BYTES[policy], clock)
        self.archive: list[dict[str, Any]] = []
        self.resting = dict(limits) if archive is None else {"entries": archive}
        self.grace = grace
        self.trail: list[tuple[Any, ...]] = []
        self.gone: list[bytes] = []

    def _saved(self) -> dict[str, Any]:
        return super()._saved() | {n: copy.deepcopy(getattr(self, n)) for n in ("archive", "trail")}

    def _hold(self, newcomer: dict[str, Any]) -> None:
        self.hold([newcomer])

    def hold(self, newcomers: list[dict[str, Any]]) -> None:
        locked = [e for e in self.entries if e["pinned"] or any(e is n for n in newcomers)]
        if not within(locked, self.limits):
            raise Exceeded
        if within(self.entries, self.limits):
            return
        n, held = len(self.entries), size_of(locked)
        low = {u: max(v, held[u]) for u, v in scaled(self.limits, self.low).items()}
        stay = self.survivors(low, self.rule, locked, self.queries)
        if 2 * len(stay) < n:
            stay = self.survivors(self.limits, self.rule, locked, self.queries)
            if 2 * len(stay) >= n:
                half = {"entries": max(math.ceil(n / 2), len(locked))}
                stay = self.survivors(half, self.rule, locked, self.queries)
        ids = {e["id"] for e in stay}
        self._drop({e["id"] for e in self.entries if e["id"] not in ids})

    def _drop(self, ids: set[int], spared: int = 0) -> bool:
        before = len(self.entries)
        leaving = [e for e in self.entries if e["id"] in ids]
        forced = super()._drop(ids)
        self.archive += [
            e | {"archived_at": self.clock.now} for e in sorted(leaving, key=lambda e: e["id"])
        ]
        self.archive.sort(key=lambda e: (e["archived_at"], e["id"]))
        self.purge()
        self.trail.append(("compaction", len(ids), spared, forced, before, len(self.entries)))
        return forced

    def purge(self) -> None:
        self.archive = [e for e in self.archive if e["archived_at"] >= self.clock.now - self.grace]
        while not within(self.archive, self.resting):
            self.archive.pop(0)

    def apply(self, plan: dict[str, Any]) -> dict[str, Any]:
        done = super().apply(plan)
        self.trail[-1] = (*self.trail[-1][:2], len(done["spared"]), *self.trail[-1][3:])
        return done

    def restore(self, ids: list[int]) -> None:
        saved = self._saved()
        missing = sorted(set(ids) - {e["id"] for e in self.entries})
        found = [e for e in self.archive if e["id"] in missing]
        if len(found) < len(missing):
            raise Unknown
        if not missing:
            return
        before = len(self.entries)
        self.archive = [e for e in self.archive if e["id"] not in missing]
        back = sorted(found, key=lambda e: e["id"])
        for entry in back:
            del entry["archived_at"]
            entry["accessed_tick"], entry["accessed_at"] = self.tick, self.clock.now
        self.entries += back
        self._mark(back)
        try:
            self.hold(back)
        except Exception:
            self.__dict__.update(saved)
            raise
        self.trail.append(("restore", 0, 0, False, before, len(self.entries)))

    def erase(self, ids: list[int]) -> None:
        before = len(self.entries)
        live = {e["id"] for e in self.entries} & set(ids)
        if set(ids) - live - {e["id"] for e in self.archive}:
            raise Unknown
        gone = [e["row"] for e in self.entries + self.archive if e["id"] in ids]
        self.queries = [q for q in self.queries if all(cosine(q, row) <= 0.999 for row in gone)]
        for e in self.entries + self.archive:
            if e["id"] in ids:
                self.gone.append(np.float32(e["row"]).tobytes())
                self.gone += [str(v).encode() for v in e["metadata"].values() if len(str(v)) > 20]
        self.entries = [e for e in self.entries if e["id"] not in live]
        self.archive = [e for e in self.archive if e["id"] not in ids]
        self.counts["deleted"] += len(live)
        self.trail.append(("erase", len(set(ids)), 0, False, before, len(self.entries)))

    def state(self) -> State:
        return {
            "live": [_row(e) for e in sorted(self.entries, key=lambda e: e["id"])],
            "archive": [
                (*_row(e), e["archived_at"]) for e in sorted(self.archive, key=lambda e: e["id"])
            ],
            "clocks": (self.tick, self.next_id),
            "counts": dict(self.counts),
            "queries": [np.float32(q).tobytes() for q in self.queries],
            "trail": list(self.trail),
        }


def _row(e: dict[str, Any]) -> tuple[Any, ...]:
    names = (
        "id",
        "created_tick",
        "accessed_tick",
        "created_at",
        "accessed_at",
        "access_count",
        "use_count",
    )
    more = (e["cost"], e["importance"], e["pinned"], e["nbytes"], repr(e["metadata"]))
    return (*(e[n] for n in names), *more, np.float32(e["row"]).tobytes())


# ---- what a store says ---------------------------------------------------------------------------


def dump(store: Any) -> State:
    """A store's state in the model's words."""
    view = store.view()
    live = [(e, int(n)) for e, n in zip(store.get(view.ids), view.nbytes, strict=True)]
    with translated():
        resting = store._archive.entries()
    columns, notes = resting.columns, resting.metadata or [None] * len(resting.vectors)
    select = "SELECT archived_at FROM entry WHERE key = ?"
    with translated():
        since = [
            store._db.execute(select, ((store._journal.ns << 40) + id_,)).fetchone()[0]
            for id_ in columns["ids"].tolist()
        ]
    memory = store._memory
    return {
        "live": sorted(_entry_row(e, n) for e, n in live),
        "archive": [
            (*_column_row(columns, i, notes[i] or {}, resting.vectors[i]), since[i])
            for i in range(len(since))
        ],
        "clocks": (memory.tick, memory.next_id),
        "counts": dict(memory.counts),
        "queries": [q.tobytes() for q in memory.context.recent()],
        "trail": [_record_row(body) for body in store.audit.bodies()],
    }


def _entry_row(e: Any, nbytes: int) -> tuple[Any, ...]:
    names = (
        "id",
        "created_tick",
        "accessed_tick",
        "created_at",
        "accessed_at",
        "access_count",
        "use_count",
    )
    more = (e.cost, e.importance, e.pinned, nbytes, repr(e.metadata))
    return (*(getattr(e, n) for n in names), *more, e.vector.tobytes())


def _column_row(columns: Any, i: int, note: Any, row: Any) -> tuple[Any, ...]:
    names = (
        "ids",
        "created_tick",
        "accessed_tick",
        "created_at",
        "accessed_at",
        "access_count",
        "use_count",
    )
    importance = columns["importance"][i].item()
    more = (
        columns["cost"][i].item(),
        None if importance != importance else importance,
        columns["pinned"][i].item(),
        columns["nbytes"][i].item(),
        repr(note),
    )
    return (*(columns[n][i].item() for n in names), *more, row.tobytes())


def _record_row(body: bytes) -> tuple[Any, ...]:
    from memsift.audit import Record

    r = Record.parse(body)
    return (r.kind, r.evicted_count, r.spared, r.forced, r.before.entries, r.after.entries)


def difference(found: State, wanted: State) -> str:
    """The first thing that differs, short enough to read."""
    for part, value in wanted.items():
        if found[part] == value:
            continue
        if isinstance(value, list):
            pairs = enumerate(zip_longest(found[part], value))
            at, (one, other) = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
            return f"{part}[{at}]: {one!s:.150} instead of {other!s:.150}"
        return f"{part}: {found[part]!s:.200} instead of {value!s:.200}"
    return ""


def differences(found: dict[str, State], wanted: dict[str, State]) -> str:
    """The same for all namespaces of a file."""
    if found.keys() != wanted.keys():
        return f"namespaces {sorted(found)} instead of {sorted(wanted)}"
    parts = [f"{name}.{d}" for name in wanted if (d := difference(found[name], wanted[name]))]
    return "; ".join(parts) or "nothing"


def faults_of(store: Any) -> list[str]:
    """What must hold of every store that was opened, whatever happened before."""
    found = []
    verdict = store.audit.verify(head=store.audit.head())
    if verdict.status != "ok":
        found.append(f"chain: {verdict}")
    if not store.budget.fits(store.stats().size):
        found.append(f"budget: {store.stats().size} in {store.budget}")
    ids = [*store.view().ids.tolist(), *store.archived().tolist()]
    if len(ids) != len(set(ids)) or any(i >= store._memory.next_id for i in ids):
        found.append(f"ids: {sorted(ids)}, next {store._memory.next_id}")
    sound = store._db.execute("PRAGMA integrity_check").fetchall()
    if sound != [("ok",)]:
        found.append(f"database: {sound}")
    # No orphans: every vector and note belongs to an entry, every entry has its vector.
    orphans = store._db.execute(
        "SELECT (SELECT count(*) FROM vector WHERE key NOT IN (SELECT key FROM entry)),"
        "(SELECT count(*) FROM note WHERE key NOT IN (SELECT key FROM entry)),"
        "(SELECT count(*) FROM entry WHERE key NOT IN (SELECT key FROM vector))"
    ).fetchone()
    if orphans != (0, 0, 0):
        found.append(f"orphans: {orphans}")
    check = store.verify()
    if not check.ok:
        found.append(f"verify: {check}")
    return found


# ---- steps ---------------------------------------------------------------------------------------


@dataclass
class Space:
    """One namespace in the model: its memory, and what the file knows of it."""

    model: ArchivingModel
    stored: State
    waiting: bool = False
    waiting_in: str = ""


@dataclass
class ModelRun:
    """The script lived by the model alone."""

    clock: Clock = field(default_factory=Clock)
    spaces: dict[str, Space] = field(default_factory=dict)

    def step(self, step: Step) -> Any:
        """Do it; True if it was refused."""
        verb, name, *rest = step
        self.clock.now += 1.0
        if verb == "sleep":
            self.clock.now += rest[0]
            return False
        name = name.split("/")[0]
        if verb == "open":
            space = self.spaces.get(name)
            if space is None:
                options = rest[0]
                model = ArchivingModel(
                    options["budget"],
                    options.get("policy", "coherence"),
                    self.clock,
                    options.get("archive"),
                    options.get("grace", 7 * 86_400.0),
                )
                self.spaces[name] = Space(model, model.state())
            else:
                if rest and "budget" in rest[0]:
                    space.model.limits = rest[0]["budget"]
                space.model.hold([])
                space.model.purge()
                space.stored = space.model.state()
            return False
        space = self.spaces[name]
        model = space.model
        if verb in ("checkpoint", "len", "export"):
            return False
        if verb == "search":
            model.search(vector(rest[0]), rest[1], None, True)
            space.waiting, space.waiting_in = True, step[1]
            return False
        if verb in ("flush", "close", "plan"):
            space.stored, space.waiting = model.state(), False
            return False
        try:
            self._change(model, verb, rest)
        except (Exceeded, Unknown):
            return True
        space.stored, space.waiting = model.state(), False
        return False

    def _change(self, model: ArchivingModel, verb: str, rest: list[Any]) -> None:
        if verb == "add":
            model.add_many(rest[0])
        elif verb in ("pin", "unpin"):
            model.pin(rest[0], verb == "pin")
        elif verb == "feedback":
            model.feedback(rest[0], True)
        elif verb == "update":
            changes = dict(rest[1])
            if "vector" in changes:
                changes["vector"] = vector(changes["vector"])
            model.update(rest[0], changes)
        elif verb == "delete":
            model.delete(rest[0])
        elif verb == "compact":
            model.apply(model.plan(rest[0], None, None, False))
        elif verb == "restore":
            model.restore(rest[0])
        elif verb == "erase":
            model.erase(rest[0])
        else:
            raise AssertionError(verb)

    def handle_state(self, name: str) -> State:
        space = self.spaces[name.split("/")[0]]
        # Touches wait in the handle that made them; others do not see them yet.
        return space.stored if space.waiting and space.waiting_in != name else space.model.state()

    def erased(self) -> list[bytes]:
        """Bytes that no file may hold any more, once the file is opened again."""
        return [what for space in self.spaces.values() for what in space.model.gone]

    def stored(self) -> dict[str, State]:
        """What the file must say: every namespace that was made."""
        return {name: copy.deepcopy(space.stored) for name, space in self.spaces.items()}


def _item(seed: int, **options: Any) -> dict[str, Any]:
    plain = {"metadata": None, "cost": 1, "importance": None, "pinned": False, "created_at": None}
    return plain | {"vector": vector(seed)} | options


class StoreRun:
    """The script lived by real stores in a file."""

    def __init__(self, path: Path, durability: str, clock: Clock) -> None:
        self.path, self.durability, self.clock = path, durability, clock
        self.stores: dict[str, Any] = {}

    def step(self, step: Step) -> bool:
        """Do it; True if it was refused with the error that the model knows."""
        verb, name, *rest = step
        if verb == "sleep":
            return False
        if verb == "open":
            self._open(name, rest[0] if rest else {})
            return False
        store = self.stores[name]
        try:
            self._do(store, name, verb, rest)
        except (BudgetExceeded, UnknownEntry):
            return True
        return False

    def _open(self, name: str, options: dict[str, Any]) -> None:
        chosen: dict[str, Any] = {}
        if "budget" in options:
            chosen["budget"] = Budget(**options["budget"])
        if options.keys() & {"policy", "budget"} or not self.path.exists():
            chosen["policy"] = POLICIES[options.get("policy", "coherence")][0]
        if "archive" in options:
            chosen["archive"] = options["archive"]
        if "grace" in options:
            chosen["grace_seconds"] = options["grace"]
        store = MemoryStore.open(
            self.path,
            DIM,
            name.split("/")[0],
            durability=self.durability,
            touch_flush_seconds=1e6,
            busy_timeout=1.0,
            clock=self.clock,
            **chosen,
        )
        if "autocheckpoint" in options:
            store._db.execute(f"PRAGMA wal_autocheckpoint = {options['autocheckpoint']}")
        if "cache" in options:
            store._db.execute(f"PRAGMA cache_size = {options['cache']}")
        self.stores[name] = store

    def _do(self, store: Any, name: str, verb: str, rest: list[Any]) -> None:
        if verb == "add":
            items = rest[0]
            store.add_many(
                [i["vector"] for i in items],
                metadata=[i["metadata"] for i in items],
                cost=[i["cost"] for i in items],
                importance=[i["importance"] for i in items],
                pinned=[i["pinned"] for i in items],
            )
        elif verb == "search":
            store.search(vector(rest[0]), rest[1])
        elif verb in ("pin", "unpin", "feedback", "delete", "restore", "erase"):
            getattr(store, verb)(rest[0])
        elif verb == "update":
            changes = dict(rest[1])
            if "vector" in changes:
                changes["vector"] = vector(changes["vector"])
            store.update(rest[0], **changes)
        elif verb == "compact":
            store.compact(rest[0])
        elif verb == "plan":
            store.plan(rest[0])
        elif verb == "len":
            len(store)
        elif verb == "flush":
            store.flush()
        elif verb == "checkpoint":
            with translated():
                store._db.execute(f"PRAGMA wal_checkpoint({rest[0]})").fetchone()
        elif verb == "close":
            del self.stores[name]
            store.close()
        else:
            raise AssertionError(verb)

    def close(self) -> None:
        for name in list(self.stores):
            self.stores.pop(name).close()


# ---- the scripts ---------------------------------------------------------------------------------


def rows(*seeds: int, **options: Any) -> list[dict[str, Any]]:
    return [_item(seed, **options) for seed in seeds]


def fat(*seeds: int) -> list[dict[str, Any]]:
    """Rows whose metadata fills a page of the file each."""
    return [_item(seed, metadata={"n": seed, "text": f"{seed:04} " * 2400}) for seed in seeds]


def noted(*seeds: int) -> list[dict[str, Any]]:
    """Rows with something in every column."""
    options = {"importance": 0.5}
    return [_item(1000 + s, metadata={"n": s}, cost=s, pinned=s % 4 == 0, **options) for s in seeds]


SMALL = {"budget": {"entries": 6}, "policy": "coherence"}
OPEN: Step = ("open", "a", SMALL)
AGAIN: Step = ("open", "a")
CLOSE: Step = ("close", "a")

SCRIPTS: dict[str, list[Step]] = {
    "adds one by one": [OPEN, *(("add", "a", rows(n)) for n in range(5)), ("add", "a", noted(5))],
    "batches beyond the budget": [
        OPEN,
        ("add", "a", rows(*range(4))),
        ("add", "a", noted(*range(10, 25))),
        ("add", "a", fat(*range(30, 37))),
    ],
    "touches and flush": [
        ("open", "a", SMALL | {"policy": "coherence"}),
        ("add", "a", rows(*range(6))),
        ("search", "a", 0, 2),
        ("search", "a", 7, 1),
        ("flush", "a"),
        ("search", "a", 3, 3),
        ("feedback", "a", [1, 2]),
        ("search", "a", 9, 1),
        ("add", "a", rows(20)),
        ("search", "a", 4, 2),
        CLOSE,
    ],
    "pin, update, delete": [
        OPEN,
        ("add", "a", noted(*range(1, 7))),
        ("pin", "a", [0, 1]),
        ("update", "a", 1, {"vector": 40, "cost": 7}),
        ("update", "a", 2, {"metadata": {"a": [1, 2]}, "importance": None}),
        ("unpin", "a", [0]),
        ("delete", "a", [0, 3]),
        ("add", "a", rows(50, 51, 52)),
    ],
    "compact": [
        ("open", "a", SMALL | {"policy": "lru"}),
        ("add", "a", fat(*range(6))),
        ("search", "a", 1, 3),
        ("compact", "a", 4),
        ("add", "a", rows(10, 11)),
        ("search", "a", 11, 1),
        ("plan", "a", 0.5),
        ("compact", "a", 0.5),
        ("compact", "a", 3),
    ],
    "restore": [
        ("open", "a", SMALL | {"policy": "lfu"}),
        ("add", "a", noted(*range(1, 13))),
        ("restore", "a", [0, 1]),
        ("search", "a", 2, 2),
        ("restore", "a", [2, 4]),
        ("restore", "a", [0]),
        ("delete", "a", [4]),
    ],
    "erase": [
        OPEN,
        ("add", "a", fat(*range(6))),
        ("search", "a", 2, 2),
        ("compact", "a", 4),
        ("erase", "a", [0, 2]),
        ("add", "a", rows(10)),
        ("erase", "a", [3]),
    ],
    "close and reopen": [
        OPEN,
        ("add", "a", rows(1, 2)),
        CLOSE,
        AGAIN,
        ("add", "a", rows(3)),
        ("search", "a", 3, 1),
        CLOSE,
        AGAIN,
        ("delete", "a", [2]),
        CLOSE,
        AGAIN,
        ("add", "a", rows(4)),
        ("compact", "a", 1),
    ],
    "checkpoint in the middle": [
        OPEN,
        ("add", "a", fat(*range(4))),
        ("checkpoint", "a", "PASSIVE"),
        ("add", "a", rows(10, 11)),
        ("checkpoint", "a", "RESTART"),
        ("delete", "a", [1]),
        ("add", "a", fat(12)),
        ("checkpoint", "a", "TRUNCATE"),
        ("compact", "a", 3),
    ],
    "a log that is emptied all the time": [
        ("open", "a", SMALL | {"autocheckpoint": 6}),
        *(("add", "a", rows(n, n + 1)) for n in range(0, 16, 2)),
        ("compact", "a", 3),
    ],
    "two namespaces": [
        OPEN,
        ("open", "b", {"budget": {"cost": 9}, "policy": "lfu"}),
        ("add", "a", rows(1, 2, 3)),
        ("add", "b", noted(*range(1, 5))),
        ("search", "a", 2, 1),
        ("search", "b", 2, 1),
        ("delete", "a", [1]),
        ("compact", "b", 1),
        ("erase", "a", [0]),
        ("close", "b"),
        ("add", "a", rows(5)),
    ],
    "a smaller budget at opening": [
        OPEN,
        ("add", "a", rows(*range(6))),
        ("search", "a", 1, 2),
        CLOSE,
        ("open", "a", {"budget": {"entries": 3}}),
        ("add", "a", rows(8)),
    ],
    "a short archive": [
        ("open", "a", SMALL | {"archive": 2, "grace": 50.0}),
        ("add", "a", rows(*range(9))),
        ("compact", "a", 3),
        ("sleep", "a", 100.0),
        ("add", "a", rows(*range(10, 16))),
        ("restore", "a", [0]),
    ],
    "no archive": [
        ("open", "a", {"budget": {"entries": 4, "cost": 40}, "archive": 0}),
        ("add", "a", noted(*range(1, 9))),
        ("compact", "a", 2),
    ],
    "refusals": [
        ("open", "a", {"budget": {"entries": 3}, "policy": "coherence"}),
        ("add", "a", rows(1, 2, pinned=True)),
        ("search", "a", 1, 2),
        ("add", "a", rows(3, 4, pinned=True)),
        ("delete", "a", [0, 77]),
        ("restore", "a", [5]),
        ("search", "a", 2, 1),
        ("add", "a", rows(6, 7, 8)),
        ("erase", "a", [99]),
    ],
    "a transaction larger than the cache": [
        ("open", "a", {"budget": {"entries": 20}, "cache": 4}),
        ("add", "a", fat(*range(12))),
        ("search", "a", 1, 8),
        ("add", "a", fat(*range(20, 32))),
        ("delete", "a", [8, 9, 10, 11]),
    ],
    "two handles": [
        OPEN,
        ("open", "a/2"),
        ("add", "a", rows(1, 2)),
        ("len", "a/2"),
        ("add", "a/2", rows(3, 4)),
        ("search", "a/2", 3, 2),
        ("flush", "a/2"),
        ("compact", "a", 2),
        ("len", "a/2"),
        ("restore", "a/2", [0]),
        ("len", "a"),
    ],
    "opened again and written to": [OPEN, CLOSE, AGAIN, ("add", "a", rows(1))],
    "nothing but opening": [OPEN, CLOSE, AGAIN, CLOSE, AGAIN],
}
