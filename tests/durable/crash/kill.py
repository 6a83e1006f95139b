"""SIGKILL of a writer, at named points and at any moment; then what must be true is checked.

Parent and child live through the same story (`story`), the parent on a copy of the file. After a kill the file must
hold, value for value and record for record, the copy's state after the last acknowledged call, or after the one that
was under way. Touches may lag: a state before unwritten searches is right too.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import stat
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from crash import story
from crash.points import MANY, POINTS, Kill, arm
from crash.state import differences, dump

ROUNDS = 12  # kills that one file lives through
CALLS = 40  # calls of a child that nobody kills in time
SLACK = 60  # seconds until a child counts as hanging


@dataclass
class Figures:
    kills: int = 0
    finished: int = 0
    acknowledged: int = 0
    after: int = 0
    before: int = 0
    lagging: int = 0
    recoveries_killed: int = 0
    slowest_open: float = 0.0
    failures: list[str] = field(default_factory=list)
    points: Counter[str] = field(default_factory=Counter)

    def summary(self) -> dict[str, Any]:
        return {
            "kills": self.kills,
            "kills at named points": sum(self.points.values()),
            "named points": len(self.points),
            "kills during recovery": self.recoveries_killed,
            "children that finished first": self.finished,
            "calls acknowledged": self.acknowledged,
            "call under way took effect": self.after,
            "call under way left no trace": self.before,
            "touches lagged": self.lagging,
            "slowest open, seconds": round(self.slowest_open, 3),
            "failures": len(self.failures),
        }


def _live(path: Path, start: float, seed: int, out: int, kill: Kill | None) -> None:
    """The child: open, say so, live, acknowledge each call that returned."""
    clock = story.Clock(start)
    if kill:
        arm(kill)
    rng = np.random.default_rng(seed)
    store = story.opened(path, clock)
    os.write(out, b"o")
    for _ in range(CALLS):
        story.step(rng, store, clock)
        os.write(out, b"a")
    store.close()
    os.write(out, b"c")


def _forked(work: Any, *args: Any) -> tuple[int, int]:
    """Run `work(*args, pipe)` in a child; its pid and the pipe's end."""
    ours, theirs = os.pipe()
    gc.collect()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        code = 1
        try:
            work(*args, theirs)
            code = 0
        except BaseException as error:
            os.write(theirs, f"!{type(error).__name__}: {error}".encode()[:500])
        os._exit(code)
    os.close(theirs)
    return pid, ours


def _reap(pid: int, pipe: int, after: float | None) -> tuple[int, bytes]:
    """Kill the child `after` seconds of life (None: it kills itself), and read what it said."""
    said = b""
    if after is not None:
        said = os.read(pipe, 1)  # it has opened the store, or is dead
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
    signal.alarm(SLACK)  # a child that hangs ends the campaign
    while more := os.read(pipe, 4096):
        said += more
    _, status = os.waitpid(pid, 0)
    signal.alarm(0)
    os.close(pipe)
    return status, said


def _states(path: Path, start: float, seed: int, calls: int) -> list[dict[str, Any]]:
    """What the file may hold after `calls` acknowledged calls and perhaps one more: the copy's states."""
    clock = story.Clock(start)
    rng = np.random.default_rng(seed)
    store = story.opened(path, clock)
    written = dump(store)
    for _ in range(calls):
        story.step(rng, store, clock)
        if not store._journal.pending:  # a call that changed nothing leaves the touches waiting
            written = dump(store)
    store.flush()
    flushed = dump(store)
    if calls < CALLS:
        story.step(rng, store, clock)
    after = dump(store)
    store.close()
    return [written, flushed, after]


def _look(path: Path, start: float, figures: Figures) -> dict[str, Any]:
    """Open, check everything, close; twice, and both must see the same."""
    dumps = []
    for _ in range(2):
        began = time.perf_counter()
        store = story.opened(path, story.Clock(start))
        figures.slowest_open = max(figures.slowest_open, time.perf_counter() - began)
        dumps.append(dump(store))
        found = store.verify()
        assert found.ok, str(found)
        assert store.budget.fits(store.stats().size)
        for name in ("", "-wal", "-shm"):
            mode = stat.S_IMODE(Path(f"{path}{name}").stat().st_mode)
            assert mode == 0o600, f"{name} has mode {mode:o}"
        store.close()
    assert dumps[0] == dumps[1], f"opening changed {differences(*dumps)}"
    names = sorted(child.name for child in path.parent.iterdir())
    assert names == [path.name], f"left behind: {names}"
    return dumps[0]


def _kill_for(rng: random.Random, trial: int) -> tuple[Kill | None, float | None]:
    """Every third kill comes from outside."""
    if trial % 3 == 0:
        return None, rng.uniform(0, 0.12)
    point = list(POINTS)[(trial - trial // 3) % len(POINTS)]
    whens = ["before", "after"] + (["amid"] if point in MANY else [])
    nth = rng.choice([1, 1, 2, 3, 5, 8])
    return Kill(point, rng.choice(whens), nth), None


def campaign(kills: int, seed: int = 0, progress: Any = None, seconds: float = 1e9) -> Figures:
    """Kill `kills` writers, one after the other."""
    rng, figures = random.Random(seed), Figures()
    root = Path(tempfile.mkdtemp(prefix="memsift-kill-"))
    until = time.monotonic() + seconds
    trial = 0
    try:
        while figures.kills < kills and time.monotonic() < until:
            path = root / f"{trial}" / "store.memsift"
            copy = root / f"{trial}-copy" / "store.memsift"
            path.parent.mkdir()
            copy.parent.mkdir()
            story.opened(path, story.Clock()).close()
            start = 1_700_000_000.0
            for _ in range(ROUNDS):
                start += 1000.0
                shutil.copy(path, copy)
                sound = _round(path, copy, start, trial, rng, figures)
                trial += 1
                if progress and trial % 50 == 0:
                    progress(figures)
                if figures.kills >= kills or not sound:
                    break
            shutil.rmtree(path.parent)
            shutil.rmtree(copy.parent)
            if len(figures.failures) > 5:
                break
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return figures


def _round(
    path: Path, copy: Path, start: float, trial: int, rng: random.Random, figures: Figures
) -> bool:
    seed = rng.getrandbits(32)
    kill, after = _kill_for(rng, trial)
    what = f"seed {seed}, {kill or f'killed after {after:.4f} s'}"
    pid, pipe = _forked(
        lambda path, start, seed, kill, out: _live(path, start, seed, out, kill),
        path, start, seed, kill,
    )  # fmt: skip
    status, said = _reap(pid, pipe, after)
    try:
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        assert b"!" not in said, f"the child raised {said[said.index(b'!') :].decode()}"
        figures.kills += killed
        figures.finished += not killed
        if kill and killed:
            figures.points[kill.point] += 1
        calls = said.count(b"a")
        figures.acknowledged += calls
        if killed and rng.random() < 0.3:
            _recover_and_die(path, start, rng, figures)
        found = _look(path, start, figures)
        written, flushed, done = _states(copy, start, seed, calls)
        if b"c" in said:
            assert found == done, f"after close: {differences(found, done)}"
        elif found == done and done != flushed:
            figures.after += 1
        elif found == flushed:
            figures.before += 1
        elif found == written:
            figures.lagging += 1
        else:
            raise AssertionError(
                f"{calls} calls acknowledged; differs from written at {differences(found, written)}, "
                f"from flushed at {differences(found, flushed)}, from done at {differences(found, done)}"
            )
    except Exception as error:
        figures.failures.append(f"{what}: {type(error).__name__}: {error}")
        return False
    return True


def _recover_and_die(path: Path, start: float, rng: random.Random, figures: Figures) -> None:
    """A second crash while the first one is being recovered from."""
    point = rng.choice(["begin", "vacuum", "checkpoint", "pending done", "rollback", "close"])
    kill = Kill(point, rng.choice(["before", "after"]), 1)

    def recover(out: int) -> None:
        arm(kill)
        story.opened(path, story.Clock(start)).close()

    status, said = _reap(*_forked(recover), None)
    assert b"!" not in said, f"recovery raised {said.decode()}"
    figures.recoveries_killed += os.WIFSIGNALED(status)
