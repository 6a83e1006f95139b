"""I/O errors: every operation of every script fails, each in every way, once and for ever.

    python tests/durable/io_errors.py [full|normal] [ENOSPC|EIO|...]    all of them, half an hour
    python tests/durable/io_errors.py trials [seed]                     so many by lot

Each trial lives a script under the shim (`fault_errors.Trial`), all in one child.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
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

    def __str__(self) -> str:
        raised = ", ".join(f"{name} {count:,}" for name, count in self.raised.most_common())
        return (
            f"{self.trials:,} trials, a fault met in {self.hit:,}; raised: {raised or 'nothing'}; "
            f"wrong {len(self.wrong)}; "
            f"{self.in_doubt:,} failed commits that a crash right then would find made"
        )


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


def everything(child: Child, out: Outcome, modes: list[str], faults: list[str]) -> None:
    """n = 1, 2, 3, ... until the script runs through without meeting the fault."""
    for script in SCRIPTS:
        print(f"{out.trials:,} trials, {len(out.wrong)} wrong; next {script!r}", flush=True)
        cases = [case for mode in modes for case in lines(script, mode)]
        for case in (case for case in cases if case["fault"] in faults):
            n = 1
            while True:
                answer = child.ask(case | {"n": n})
                out.take(answer)
                if not answer["fired"]:
                    break
                n += 1


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


def main(wanted: int | None, seed: int, modes: list[str], faults: list[str]) -> int:
    reason = fault_shim.why_not()
    if reason:
        print(reason)
        return 2
    folder = fast_folder()
    start = time.perf_counter()
    out = Outcome()
    child = None
    try:
        child = Child(fault_shim.build(folder), folder)
        if wanted is None:
            everything(child, out, modes, faults)
        else:
            sample(child, out, wanted, seed)
    finally:
        if child is not None:
            child.close()
        shutil.rmtree(folder)
    print(out, f"{time.perf_counter() - start:.1f} s; seed {seed}", sep="; ")
    for failure in out.wrong[:40]:
        print(" ", failure)
    return bool(out.wrong)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    modes = [mode for mode in ("full", "normal") if mode in sys.argv[1:]] or ["full", "normal"]
    faults = [fault for fault in FAULTS if fault in sys.argv[1:]] or list(FAULTS)
    wanted, seed = (numbers + [0, 1][len(numbers) :])[:2]
    raise SystemExit(main(wanted or None, seed, modes, faults))
