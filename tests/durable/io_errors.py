"""I/O errors: every operation of every script fails, each in every way, once and for ever.

Each trial lives a script under the shim (`fault_errors.Trial`), all in one child.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import fault_shim
from fault_scripts import SCRIPTS
from fault_shim import FAULTS
from power import fast_folder

Case = dict[str, Any]
# SQLite asks again after EINTR, for ever if it must: only a signal that comes once is a test.
ONCE_ONLY = {"EINTR"}
FOR_EVER_ONLY = {"filling"}


@dataclass
class Outcome:
    """Figures of a campaign."""

    trials: int = 0
    hit: int = 0
    raised: Counter[str] = field(default_factory=Counter)
    in_doubt: int = 0
    wrong: list[str] = field(default_factory=list)

    def take(self, answer: Case) -> None:
        self.trials += 1
        self.hit += answer["fired"] > 0
        self.raised.update(word.split(": ")[1] for word in answer["raised"])
        self.in_doubt += answer.get("in_doubt", 0)
        ways = "for ever" if answer["forever"] else "once"
        where = (
            f"{answer['script']!r} ({answer['durability']}), {answer['fault']} {answer['n']} {ways}"
        )
        self.wrong += [f"{where}: {what}" for what in answer["wrong"]]

    @property
    def failures(self) -> list[str]:
        return self.wrong

    def summary(self) -> dict[str, int]:
        raised = {f"raised {name}": count for name, count in sorted(self.raised.items())}
        return {
            "trials": self.trials,
            "met a fault": self.hit,
            "wrong": len(self.wrong),
            **raised,
            "failed commits that a crash right then would find made": self.in_doubt,
        }

    def __str__(self) -> str:
        return "; ".join([f"{name}: {n:,}" for name, n in self.summary().items()] + self.wrong[:3])


class Child:
    """A child that answers one case after the other; one that hangs is replaced, and that is a failure."""

    def __init__(self, shim: Path, folder: Path, plant: str = "none") -> None:
        self._start = lambda: fault_shim.child(
            shim, folder, ["errors", str(folder), plant], bufsize=1
        )
        self._process: subprocess.Popen[str] | None = None

    def ask(self, case: Case) -> Case:
        process = self._process or self._start()
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        alarm = threading.Timer(30.0, process.kill)
        alarm.start()
        try:
            process.stdin.write(json.dumps(case) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        finally:
            alarm.cancel()
        if line:
            return dict(json.loads(line))
        process.kill()
        last = process.stderr.read()[-600:] if process.stderr else ""
        self.close()
        wrong = [f"it hangs, or the interpreter died: {last}"]
        return case | {"fired": 1, "count": 0, "raised": [], "wrong": wrong}

    def close(self) -> None:
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                if pipe is not None:
                    pipe.close()
            self._process.kill()
            self._process.wait()
            self._process = None


def lines(script: str, durability: str) -> Iterator[Case]:
    """Every kind of trouble, once and for ever."""
    for fault in FAULTS:
        for forever in (False, True):
            if fault not in (ONCE_ONLY if forever else FOR_EVER_ONLY):
                yield {
                    "script": script,
                    "durability": durability,
                    "fault": fault,
                    "forever": forever,
                }


def every_operation(
    child: Child, out: Outcome, case: Case, start: int = 1, stride: int = 1
) -> None:
    """n = 1, 2, 3, ... until the script runs through without meeting the fault."""
    n = start
    while True:
        answer = child.ask(case | {"n": n})
        out.take(answer)
        if not answer["fired"]:
            break
        n += stride


def sample(child: Child, out: Outcome, wanted: int, seed: int) -> None:
    """`wanted` trials by lot, an equal share of each script and kind of trouble."""
    lot = random.Random(seed)
    cases = [case for script in SCRIPTS for d in ("full", "normal") for case in lines(script, d)]
    lot.shuffle(cases)
    # A fault that never comes says how many operations there are.
    counts: dict[tuple[str, str, str], int] = {}
    for i in range(wanted):
        case = cases[i % len(cases)]
        key = case["script"], case["durability"], case["fault"]
        if key not in counts:
            counts[key] = child.ask(case | {"n": 10**9})["count"]
        answer = child.ask(case | {"n": lot.randint(1, max(1, counts[key]))})
        out.take(answer)


def torture(stride: int, *, seed: int, progress: Callable[[Outcome], None]) -> Outcome:
    """Every `stride`-th operation of every script, in both modes; 1 takes half an hour."""
    folder = fast_folder()
    out = Outcome()
    child = Child(fault_shim.build(folder), folder)
    try:
        for script in SCRIPTS:
            for i, case in enumerate([*lines(script, "full"), *lines(script, "normal")]):
                every_operation(child, out, case, 1 + (seed + i) % stride, stride)
            progress(out)
        return out
    finally:
        child.close()
        shutil.rmtree(folder)
