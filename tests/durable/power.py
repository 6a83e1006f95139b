"""Power loss: every disk that may lie there afterwards, opened and compared with what was acknowledged.

A child lives a script under the shim, which logs what reaches the disk. From the log come disks: for a moment of the
log, each file holds all that was synced, and of the writes since then a prefix less up to four of them, the last one
torn. Names of files that were made or removed are as sure as the last sync of the folder.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import fault_shim
from fault_scripts import SCRIPTS, ModelRun, State, differences, dump, faults_of
from fault_shim import CREATE, MARK, OPEN, RENAME, SYNC, TRUNCATE, UNLINK, WRITE, Op

from memsift import MemoryStore
from memsift.errors import MemsiftError
from model import Clock

TEARS = (0, 1, "half", "but one", 512, 4096)
Image = dict[str, bytes]


def fast_folder() -> Path:
    """Where copies are made: in memory, if the machine has such a place."""
    place = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="memsift-", dir=place if place.is_dir() else None))


# ---- the disk ------------------------------------------------------------------------------------


@dataclass
class File:
    """A file's bytes that are safe, and what was done to it since."""

    safe: bytes = b""
    waiting: list[tuple[int, bytes | int]] = field(
        default_factory=list
    )  # (offset, data) or (-1, new length)

    def settle(self) -> None:
        self.safe = applied(self.safe, self.waiting)
        self.waiting = []


def applied(start: bytes, changes: list[tuple[int, bytes | int]]) -> bytes:
    out = bytearray(start)
    for offset, data in changes:
        if isinstance(data, int):
            out = out[:data] + bytes(max(0, data - len(out)))
        else:
            out += bytes(max(0, offset - len(out)))
            out[offset : offset + len(data)] = data
    return bytes(out)


class Disk:
    """What the log did so far: the files, which names are safe, and which name changes wait for a sync of the folder.

    A sync that failed loses what waited: the system drops it, and a later sync that succeeds does not bring it back.
    That is what Linux does.
    """

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.names: dict[str, File] = {}
        self.safe_names: dict[str, File] = {}
        self.moves: list[tuple[str, File | None]] = []  # name, and what it names from then on
        self.handles: dict[int, File | None] = {}

    def _counts(self, path: str) -> bool:
        return not path.endswith("-shm") and "etilqs" not in path

    def take(self, op: Op) -> bool:
        """Do it; whether the disk that a crash leaves may be another one now."""
        if op.kind in (OPEN, CREATE):
            if op.text == self.root:
                self.handles[op.handle] = None
                return False
            if not self._counts(op.text):
                self.handles[op.handle] = File()
                return False
            if op.kind == CREATE or op.text not in self.names:
                self._name(op.text, File())
            self.handles[op.handle] = self.names[op.text]
            if op.offset:  # O_TRUNC
                self.names[op.text].waiting.append((-1, 0))
            return op.kind == CREATE
        if op.kind == UNLINK:
            if self._counts(op.text):
                self._name(op.text, None)
            return self._counts(op.text)
        if op.kind == RENAME:
            self._name(op.data.decode(), self.names[op.text])
            self._name(op.text, None)
            return True
        if op.kind == MARK:
            return False
        file = self.handles[op.handle]
        if op.kind == SYNC:
            if file is None:
                if not op.error:  # names that were not synced wait on: the next sync takes them
                    self.safe_names, self.moves = dict(self.names), []
            elif not op.error:
                file.settle()
            else:
                file.waiting = []
            return True
        if op.error or file is None:
            return False
        if op.kind == WRITE:
            file.waiting.append((op.offset, op.data))
        elif op.kind == TRUNCATE:
            file.waiting.append((-1, op.offset))
        return any(file is named for named in self.names.values())

    def _name(self, path: str, file: File | None) -> None:
        self.moves.append((path, file))
        if file is None:
            self.names.pop(path, None)
        else:
            self.names[path] = file

    def image(self, choose: Chooser) -> Image:
        names = dict(self.safe_names)
        for path, file in choose.moves(self.moves):
            if file is None:
                names.pop(path, None)
            else:
                names[path] = file
        return {
            Path(path).name: applied(file.safe, choose.changes(file.waiting))
            for path, file in sorted(names.items())
        }


class Chooser:
    """Which of the waiting changes made it: everything, nothing, all with the last one torn, or by lot."""

    def __init__(self, way: str | int, lot: random.Random) -> None:
        self.way, self.lot = way, lot

    def moves(self, moves: list[Any]) -> list[Any]:
        if self.way == "all" or isinstance(self.way, int):
            return moves
        if self.way == "none":
            return []
        kept = moves[: self.lot.randint(0, len(moves))] if self.lot.random() < 0.5 else moves
        if kept and self.lot.random() < 0.2:
            kept = [m for m in kept if m is not self.lot.choice(kept)]
        return kept

    def changes(self, waiting: list[tuple[int, bytes | int]]) -> list[tuple[int, bytes | int]]:
        if self.way == "all" or not waiting:
            return waiting
        if self.way == "none":
            return []
        if isinstance(self.way, int):
            return self._torn(waiting, TEARS[self.way])
        kept = list(waiting)
        if self.lot.random() < 0.6:
            kept = kept[: self.lot.randint(0, len(kept))]
        for _ in range(self.lot.choice((0, 1, 1, 2, 3, 4))):
            if kept:
                kept.pop(self.lot.randrange(len(kept)))
        return self._torn(kept, self.lot.choice(TEARS)) if self.lot.random() < 0.4 else kept

    def _torn(
        self, waiting: list[tuple[int, bytes | int]], tear: int | str
    ) -> list[tuple[int, bytes | int]]:
        if not waiting or isinstance(waiting[-1][1], int):
            return waiting
        offset, data = waiting[-1]
        cut = {"half": len(data) // 2, "but one": len(data) - 1}.get(str(tear), tear)
        assert isinstance(cut, int)
        return [*waiting[:-1], (offset, data[:cut])]


WAYS: tuple[str | int, ...] = ("all", "none", *range(len(TEARS)), "lot", "lot", "lot", "lot")


# ---- recording -----------------------------------------------------------------------------------


@dataclass(repr=False)
class Recording:
    """A script's log and what must be true after each of its steps.

    `states[k]` is what the file must say before step k (of 0: there is no file), `gone[k]` what must no longer lie in
    it, `start` what lay on the disk before, all of it safe.
    """

    script: str
    durability: str
    root: Path
    ops: list[Op]
    states: list[dict[str, State]]
    gone: list[list[bytes]]
    wrong: list[str]
    faults: list[Any] = field(default_factory=list)
    start: Image = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return sorted({step[1].split("/")[0] for step in SCRIPTS[self.script]})


@cache
def model_states(script: str) -> tuple[list[dict[str, State]], list[list[bytes]]]:
    model = ModelRun()
    states, gone = [model.stored()], [model.erased()]
    for step in SCRIPTS[script]:
        model.step(step)
        states.append(model.stored())
        gone.append(model.erased())
    return states, gone


def record(
    shim: Path, folder: Path, cases: list[dict[str, Any]], plant: str = "none"
) -> list[Recording]:
    """Live scripts, each `{"script", "durability", "faults"}`, one after the other in one child."""
    cases = [{"faults": []} | case for case in cases]
    found = record_raw(shim, folder, cases, plant)
    return [
        Recording(
            case["script"],
            case["durability"],
            root,
            ops,
            *model_states(case["script"]),
            wrong,
            case["faults"],
        )
        for case, (root, ops, wrong) in zip(cases, found, strict=True)
    ]


def record_raw(
    shim: Path, folder: Path, cases: list[dict[str, Any]], plant: str = "none"
) -> list[tuple[Path, list[Op], list[str]]]:
    """For each case the folder that it had, what was done in it, and what was wrong at once."""
    root = Path(tempfile.mkdtemp(dir=folder))
    asked = [
        {"folder": str(root / f"life{i}"), "log": str(root / f"{i}.log")} | case
        for i, case in enumerate(cases)
    ]
    child = fault_shim.child(shim, root, ["record", str(root), plant])
    try:
        out, err = child.communicate(
            "".join(json.dumps(case) + "\n" for case in asked), timeout=300
        )
    finally:
        child.kill()
        child.wait()
    answers = [json.loads(line)["wrong"] for line in out.splitlines()]
    if child.returncode or len(answers) < len(cases):
        raise RuntimeError(f"the child ended with {child.returncode}: {err[-1500:]}")
    found = [
        (Path(case["folder"]), list(fault_shim.operations(Path(case["log"]))), wrong)
        for case, wrong in zip(asked, answers, strict=True)
    ]
    shutil.rmtree(root)
    return found


# ---- checking ------------------------------------------------------------------------------------


def read(folder: Path, names: list[str]) -> tuple[dict[str, State], list[str], bytes]:
    """What the file holds, what is wrong with it, and all bytes that lie there once it is open."""
    found: dict[str, State] = {}
    wrong: list[str] = []
    path, raw = folder / "memory.db", b""
    if not path.exists():
        return found, wrong, raw
    for name in names:
        try:
            store = MemoryStore.open(path, namespace=name, touch_flush_seconds=1e6, clock=Clock())
        except MemsiftError as error:
            if "is not in this store" in str(error):
                continue
            raise
        try:
            raw += b"".join(file.read_bytes() for file in folder.iterdir())
            found[name] = dump(store)
            wrong += faults_of(store)
        finally:
            store.close()
    return found, wrong, raw


@dataclass
class Outcome:
    """Figures of a campaign."""

    distinct: set[bytes] = field(default_factory=set)
    not_opening: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    behind: int = 0  # `normal`: disks that lack commits, as they may
    again: int = 0  # disks of a second crash, while the first was mended

    def kinds(self) -> tuple[list[str], list[str], list[str]]:
        return self.not_opening, self.lost, self.wrong

    @property
    def failures(self) -> list[str]:
        return [failure for kind in self.kinds() for failure in kind]

    def summary(self) -> dict[str, int]:
        return {
            "different disks": len(self.distinct),
            "of a second crash while opening": self.again,
            "not opening": len(self.not_opening),
            "acknowledged lost": len(self.lost),
            "otherwise wrong": len(self.wrong),
            "normal mode, lacking last commits as it may": self.behind,
        }

    def __str__(self) -> str:
        return "; ".join(
            [f"{name}: {n:,}" for name, n in self.summary().items()] + self.failures[:3]
        )


def judge(
    recording: Recording,
    image: Image,
    acked: int,
    begun: int,
    folder: Path,
    out: Outcome,
    label: str,
) -> None:
    """Open the disk and compare. `acked`: steps that had returned; `begun`: steps that had begun."""
    for name, data in image.items():
        (folder / name).write_bytes(data)
    where = f"{recording.script!r} ({recording.durability}) {label}, {acked} acknowledged"
    try:
        found, wrong, raw = read(folder, recording.names)
    except Exception as error:
        out.not_opening.append(f"{where}: {error!r:.300}")
        return
    finally:
        left = [
            f.name
            for f in folder.iterdir()
            if f.name not in ("memory.db", "memory.db-wal", "memory.db-shm")
        ]
        for file in folder.iterdir():
            file.unlink()
    if wrong:
        out.wrong.append(f"{where}: {'; '.join(wrong)[:600]}")
    stray = [name for name in left if not name.endswith("-journal")]
    if stray:
        out.wrong.append(f"{where}: left behind {stray}")
    states = recording.states
    if found in states[acked:] and any(
        what in raw for what in recording.gone[states.index(found, acked)]
    ):
        out.wrong.append(f"{where}: bytes of an erased entry are still there")
    if found in states[acked : begun + 1]:
        return
    if found in states[:acked]:
        if recording.durability == "normal" and not label.endswith("all"):
            out.behind += 1
        else:
            out.lost.append(f"{where}: the state is that after {states.index(found)} steps")
    else:
        out.wrong.append(f"{where}: {differences(found, states[acked])}")


def moments(recording: Recording) -> Iterator[tuple[int, Disk, int, int]]:
    """After each operation that changes what a crash may leave: its number, the disk, steps acked and begun."""
    disk = Disk(recording.root)
    for name, data in recording.start.items():
        disk.names[f"{recording.root}/{name}"] = File(data)
    disk.safe_names = dict(disk.names)
    acked = begun = 0
    for number, op in enumerate(recording.ops):
        if op.kind == MARK:
            verb, k, *_ = op.text.split()
            if verb == "begin":
                begun = int(k) + 1
            elif verb == "ack":
                acked = int(k) + 1
                yield number, disk, acked, begun
            elif verb == "file" and (path := f"{recording.root}/{k}") in disk.names:
                file = disk.names[path]
                found = hashlib.sha256(applied(file.safe, file.waiting)).hexdigest()
                if found != op.text.split()[-1] and not recording.faults:
                    raise AssertionError(
                        f"{recording.script!r}: something wrote {k} behind the shim's back"
                    )
        elif disk.take(op):
            yield number, disk, acked, begun


def campaign(
    all_: list[Recording],
    wanted: int,
    seed: int,
    progress: Callable[[Outcome], None] = lambda out: None,
) -> Outcome:
    """Judge about `wanted` different disks, an equal share of each recording's, spread over all moments and ways."""
    out = Outcome()
    lot = random.Random(seed)
    folder = fast_folder()
    try:
        for done, recording in enumerate(all_, 1):
            out.wrong += [f"{recording.script!r}: {wrong}" for wrong in recording.wrong]
            picks = [(n, way) for n, *_ in moments(recording) for way in WAYS]
            for _ in range(20):
                missing = wanted * done // len(all_) - len(out.distinct)
                if missing <= 0 or not picks:
                    break
                judge_some(recording, lot.sample(picks, min(len(picks), missing)), lot, folder, out)
            progress(out)
    finally:
        shutil.rmtree(folder)
    return out


def judge_some(
    recording: Recording, picks: list[Any], lot: random.Random, folder: Path, out: Outcome
) -> None:
    ways: dict[int, list[str | int]] = {}
    for number, way in picks:
        ways.setdefault(number, []).append(way)
    for number, disk, acked, begun in moments(recording):
        for way in ways.get(number, []):
            image = disk.image(Chooser(way, lot))
            sums = sorted((name, hashlib.sha256(data).digest()) for name, data in image.items())
            # The same bytes after another acknowledgement are another question.
            asked = repr(
                (recording.root, recording.script, recording.durability, acked, begun, sums)
            )
            print_ = hashlib.sha256(asked.encode()).digest()
            if print_ not in out.distinct:
                out.distinct.add(print_)
                label = f"at operation {number}, {way if isinstance(way, str) else f'torn at {TEARS[way]}'}"
                judge(recording, image, acked, begun, folder, out, label)


def second_crashes(
    shim: Path, folder: Path, all_: list[Recording], wanted: int, each: int, seed: int
) -> Outcome:
    """Crash, and crash again while that is opened: `wanted` first disks, about `each` second ones of every one."""
    lot = random.Random(seed)
    cases, first = [], []
    for i in range(wanted):
        recording = all_[i % len(all_)]
        number = lot.choice([n for n, *_ in moments(recording)])
        disk = next(disk for n, disk, *_ in moments(recording) if n == number)
        image = disk.image(Chooser(lot.choice(WAYS), lot))
        place = Path(tempfile.mkdtemp(dir=folder))
        for name, data in image.items():
            (place / name).write_bytes(data)
        copy = shutil.copytree(place, place.with_suffix(".copy"))
        state, *_ = read(copy, recording.names)
        cases.append({"image": str(place), "names": recording.names})
        first.append((recording, image, state))
    ops = record_raw(shim, folder, cases)
    seconds = [
        Recording(r.script, "full", root, log, [state], [[]], wrong, start=image)
        for (r, image, state), (root, log, wrong) in zip(first, ops, strict=True)
    ]
    return campaign([s for s in seconds if s.ops], wanted * each, seed)


def both(scripts: list[str] | None = None) -> list[dict[str, Any]]:
    """Cases for `record`: these scripts, all by default, in both modes."""
    return [
        {"script": name, "durability": d} for name in scripts or SCRIPTS for d in ("full", "normal")
    ]


def torture(wanted: int, *, seed: int, progress: Callable[[Outcome], None]) -> Outcome:
    """All scripts in both modes: `wanted` disks, and a tenth of them crashed again while they are opened."""
    folder = fast_folder()
    try:
        shim = fault_shim.build(folder)
        all_ = record(shim, folder, both())
        out = campaign(all_, wanted, seed, progress)
        again = second_crashes(shim, folder, all_, max(1, wanted // 100), 10, seed)
        out.again = len(again.distinct)
        for mine, more in zip(out.kinds(), again.kinds(), strict=True):
            mine += more
        return out
    finally:
        shutil.rmtree(folder)
