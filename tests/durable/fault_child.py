"""What runs under the shim: `record` lives a script and logs the disk; `errors` lives many while operations fail.

Cases come as lines of JSON on stdin, answers go as lines of JSON to stdout.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fault_errors import Trial
from fault_plants import PLANTS
from fault_scripts import SCRIPTS, ModelRun, StoreRun, difference, dump
from fault_shim import FAULTS, Shim

from memsift import MemoryStore
from memsift.errors import DiskTrouble, InvalidValue, MemsiftError
from model import Clock


def say(**words: Any) -> None:
    print(json.dumps(words), flush=True)


def record(
    shim: Shim, folder: Path, log: Path, script: str, durability: str, faults: list[Any]
) -> list[str]:
    """Live the script; between the marks `begin k` and `ack k` lies what step k did to the disk.

    `faults` are the steps [k, fault, n] that meet one before they are done again without.
    """
    wrong = []
    shim.record(log)
    model = ModelRun()
    run = StoreRun(folder / "memory.db", durability, model.clock)
    for k, step in enumerate(SCRIPTS[script]):
        shim.mark(f"begin {k}")
        refused = model.step(step)
        for _, fault, n in (f for f in faults if f[0] == k):
            shim.arm(fault, n, False)
            try:
                if not run.step(step):
                    wrong.append(f"step {k} did not notice {fault} {n}")
            except MemsiftError:
                shim.mark(f"failed {k}")
            shim.disarm()
        if run.step(step) != refused:
            wrong.append(f"step {k}, {step[0]}: refused is {not refused} instead of {refused}")
        shim.mark(f"ack {k}")
        if step[1] in run.stores:
            found = difference(dump(run.stores[step[1]]), model.handle_state(step[1]))
            if found:
                wrong.append(f"step {k}, {step[0]}: {found}")
    for file in folder.iterdir():  # what the log must add up to
        shim.mark(f"file {file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}")
    shim.record(None)
    run.close()
    return wrong


def recover(shim: Shim, folder: Path, log: Path, image: str, names: list[str]) -> list[str]:
    """Open what a crash left, and close it again."""
    shutil.copytree(image, folder, dirs_exist_ok=True)
    shim.record(log)
    for name in names:
        with suppress(InvalidValue):  # the namespace was not made yet
            MemoryStore.open(
                folder / "memory.db", namespace=name, durability="full", clock=Clock()
            ).close()
    shim.record(None)
    return []


def recorded(root: Path) -> None:
    shim = Shim()
    for line in sys.stdin:
        case = json.loads(line)
        folder = Path(case.pop("folder"))
        folder.mkdir()
        try:
            live = recover if "image" in case else record
            wrong = live(shim, folder, Path(case.pop("log")), **case)
        except Exception:
            wrong = [traceback.format_exc()[-1500:]]
        shim.disarm()
        shim.record(None)
        shutil.rmtree(folder)
        say(wrong=wrong)


def errors(root: Path) -> None:
    shim = Shim()
    for line in sys.stdin:
        case = json.loads(line)
        folder = Path(tempfile.mkdtemp(dir=root))
        try:
            found = Trial(shim, folder, **case).run()
        except Exception:
            found = {"wrong": [traceback.format_exc()[-1500:]], "fired": 1, "count": 0}
        shim.disarm()
        shutil.rmtree(folder)
        say(**case, **found)


def exports(root: Path) -> None:
    """Every write of an export fails: no part of a file stays, what was there stays, and the next one succeeds."""
    shim = Shim()
    folder = root / "exports"
    folder.mkdir()
    store = MemoryStore.open(folder / "memory.db", dim=4, budget=6)
    store.add_many(np.eye(4), metadata=[{"n": n} for n in range(4)])
    store.compact(2)
    log, rvf = folder / "log.jsonl", folder / "memory.rvf"
    for name, write, path in (("audit", store.audit.export, log), ("rvf", store.save_rvf, rvf)):
        path.unlink(missing_ok=True)
        write(path)
        good = path.read_bytes()
        for fault in FAULTS:
            wrong, n, raised = [], 0, 0
            while True:
                n += 1
                if name == "audit":
                    path.unlink(missing_ok=True)
                before = sorted(f.name for f in folder.iterdir())
                shim.arm(fault, n, False)
                try:
                    write(path)
                    failed = False
                except MemsiftError as error:
                    failed = True
                    if not isinstance(error, DiskTrouble):
                        wrong.append(f"{n}: {error!r}")
                fired = shim.fired()
                shim.disarm()
                raised += failed
                after = sorted(f.name for f in folder.iterdir())
                if failed and after != before:
                    wrong.append(f"{n}: {sorted(set(after) ^ set(before))} after a failure")
                if path.exists() and path.read_bytes() != good:
                    wrong.append(f"{n}: the file is another one")
                if not fired:
                    break
            say(export=name, fault=fault, operations=n - 1, raised=raised, wrong=wrong)
    store.close()


def main() -> None:
    verb, root, plant = sys.argv[1:]
    PLANTS[plant]()
    {"record": recorded, "errors": errors, "exports": exports}[verb](Path(root))


if __name__ == "__main__":
    main()
