"""What runs under the shim: `record` lives a script and logs the disk; `errors` lives many while operations fail.

Cases come as lines of JSON on stdin, answers go as lines of JSON to stdout.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from fault_errors import Trial
from fault_plants import PLANTS
from fault_scripts import SCRIPTS, ModelRun, StoreRun, difference, dump
from fault_shim import Shim

from memsift.errors import MemsiftError


def say(**words: Any) -> None:
    print(json.dumps(words), flush=True)


def record(shim: Shim, folder: Path, log: Path, script: str, durability: str, faults: list[Any]) -> list[str]:
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
                run.step(step)
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
    shim.record(None)
    run.close()
    return wrong


def recorded(root: Path) -> None:
    shim = Shim()
    for line in sys.stdin:
        case = json.loads(line)
        folder = Path(case.pop("folder"))
        folder.mkdir()
        try:
            wrong = record(shim, folder, Path(case.pop("log")), **case)
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


def main() -> None:
    verb, root, plant = sys.argv[1:]
    PLANTS[plant]()
    {"record": recorded, "errors": errors}[verb](Path(root))


if __name__ == "__main__":
    main()
