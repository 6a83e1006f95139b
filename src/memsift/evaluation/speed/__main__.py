"""What the measuring process does: one JSON object per line on stdout, and nothing else there."""

import json
import os
import sys
import time
from typing import Any

from memsift.evaluation.speed.engines import PEERS
from memsift.evaluation.speed.machine import bandwidth, machine
from memsift.evaluation.speed.run import Run
from memsift.evaluation.speed.sections import rows

asked = json.loads(sys.argv[1])
# Whatever a library prints goes to stderr, also if it prints from C.
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def say(**what: Any) -> None:
    print(json.dumps(what), file=out, flush=True)


began = time.monotonic()
run = Run(
    sizes=tuple((n, dim) for n, dim in asked["sizes"]),
    repeats=asked["repeats"],
    peers=tuple(p for p in PEERS if p.name in asked["peers"]),
    tell=lambda step: say(step=step),
)
say(about={"machine": machine(), "repeats": run.repeats, "memory": bandwidth(run.repeats)})
for row in rows(run, asked["only"]):
    say(row=row.to_dict())
say(about={"seconds": round(time.monotonic() - began, 1)})
