"""The power goes: whatever disk that leaves opens, and holds what was acknowledged, whole."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fault_shim
import power
import pytest
from fault_scripts import SCRIPTS
from fault_shim import CREATE, SYNC, UNLINK, WRITE, Op

pytestmark = pytest.mark.skipif(bool(fault_shim.why_not()), reason=fault_shim.why_not() or "-")

SEED = 20
WRITES = ("add", "compact", "delete", "erase", "restore", "update", "pin")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    place = power.fast_folder()
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def shim(folder: Path) -> Path:
    return fault_shim.build(folder)


@pytest.fixture(scope="module")
def all_(shim: Path, folder: Path) -> list[power.Recording]:
    return power.record(shim, folder, power.both())


def seen(recording: power.Recording) -> Counter[tuple[str, int]]:
    """Operations by file and kind."""
    names: dict[int, str] = {}
    found: Counter[tuple[str, int]] = Counter()
    for op in recording.ops:
        if op.handle and op.text:
            names[op.handle] = Path(op.text).name
        if op.kind:
            found[names.get(op.handle, Path(op.text).name), op.kind] += 1
    return found


def test_nothing_that_sqlite_writes_escapes_the_log(all_: list[power.Recording]) -> None:
    """Replayed, every log gives the files that the child saw, byte for byte."""
    for recording in all_:
        files = [op.text for op in recording.ops if op.text.startswith("file memory.db")]
        assert files, recording.script
        assert sum(1 for _ in power.moments(recording)) > 10  # which compares them
    found = sum((seen(recording) for recording in all_), Counter())
    for name in ("memory.db", "memory.db-wal", "memory.db-journal"):
        for kind in (CREATE, WRITE, SYNC):
            assert found[name, kind], f"{name}: no operation of kind {kind}"
    assert found["memory.db-wal", UNLINK]


def test_full_syncs_every_commit_and_normal_does_not(all_: list[power.Recording]) -> None:
    syncs = {r.durability: seen(r)["memory.db-wal", SYNC] for r in all_ if "one by one" in r.script}
    assert syncs["full"] >= syncs["normal"] + 6


def test_the_scripts_do_what_the_model_does(all_: list[power.Recording]) -> None:
    assert [f"{r.script}: {wrong}" for r in all_ for wrong in r.wrong] == []


def test_every_disk_opens_and_holds_what_was_acknowledged(all_: list[power.Recording]) -> None:
    out = power.campaign(all_, 400, SEED)
    assert len(out.distinct) >= 400
    assert out.failures == [], f"seed {SEED}: {out}"
    assert out.behind > 0  # `normal` may lack commits, and the disks were such that it did


def test_every_disk_of_a_file_in_the_making(all_: list[power.Recording]) -> None:
    """With one byte of its first page on the disk, and SQLite's journal beside it, the file was refused for ever."""
    (made,) = (r for r in all_ if r.script == "nothing but opening" and r.durability == "full")
    first = [number for number, *_ in power.moments(made)][:24]
    out = power.Outcome()
    folder = power.fast_folder()
    try:
        picks = [(number, way) for number in first for way in power.WAYS if way != "lot"]
        power.judge_some(made, picks, random.Random(SEED), folder, out)
    finally:
        shutil.rmtree(folder)
    assert len(out.distinct) > 40
    assert out.failures == []


def test_a_second_crash_while_the_first_is_mended(
    shim: Path, folder: Path, all_: list[power.Recording]
) -> None:
    out = power.second_crashes(shim, folder, all_, 8, 8, SEED)
    assert len(out.distinct) > 20
    assert out.failures == [], f"seed {SEED}: {out}"


def test_a_sync_that_failed_is_not_taken_for_done_later(shim: Path, folder: Path) -> None:
    """What waited when a sync failed is lost, though the next sync succeeds. The call has failed, and is done again.

    SQLite writes the frames of the failed commit anew, and after a failed sync of a checkpoint the pages, so that
    nothing rests on the sync that succeeds later.
    """
    steps: list[tuple[str, int, Any]] = [
        (name, k, step[0]) for name, script in SCRIPTS.items() for k, step in enumerate(script)
    ]
    commits = [(name, k, 1) for name, k, verb in steps if verb in WRITES][::5]
    checkpoints = [(name, k, n) for name, k, verb in steps if verb == "checkpoint" for n in (1, 2)]
    cases = [
        {"script": name, "durability": "full", "faults": [[k, "fsync", n]]}
        for name, k, n in commits + checkpoints
    ]
    recordings = power.record(shim, folder, cases)
    assert sum(op.error != 0 for r in recordings for op in r.ops) >= len(checkpoints) + 5
    out = power.campaign(recordings, 4 * len(cases), SEED)
    assert out.failures == [], f"seed {SEED}: {out}"


def test_the_disk_forgets_what_was_not_synced() -> None:
    """The builder itself, told as a story: a file is written, synced, written again, and the power goes."""
    root = Path("/disk")
    disk = power.Disk(root)
    everything, nothing = (power.Chooser(way, random.Random(1)) for way in ("all", "none"))
    disk.take(Op(CREATE, 0, 1, 0, "/disk/a", b""))
    disk.take(Op(WRITE, 0, 1, 0, "", b"one"))
    disk.take(Op(SYNC, 0, 1, 0, "", b""))
    assert disk.image(everything) == {"a": b"one"}
    assert disk.image(nothing) == {}  # its name was not synced
    disk.take(Op(fault_shim.OPEN, 0, 2, 0, "/disk", b""))
    disk.take(Op(SYNC, 0, 2, 0, "", b""))
    disk.take(Op(WRITE, 0, 1, 5, "", b"two"))
    assert disk.image(nothing) == {"a": b"one"}
    assert disk.image(everything) == {"a": b"one\0\0two"}
    torn = power.Chooser(power.TEARS.index(1), random.Random(1))
    assert disk.image(torn) == {"a": b"one\0\0t"}
    disk.take(Op(SYNC, 5, 1, 0, "", b""))  # a sync that failed
    disk.take(Op(SYNC, 0, 1, 0, "", b""))
    assert disk.image(everything) == {"a": b"one"}
    disk.take(Op(UNLINK, 0, 0, 0, "/disk/a", b""))
    assert (disk.image(everything), disk.image(nothing)) == ({}, {"a": b"one"})
