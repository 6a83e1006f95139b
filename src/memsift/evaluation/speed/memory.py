"""What an entry takes in memory, as the system counts it: a process of its own for each engine."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from memsift.evaluation.speed.data import K, clustered
from memsift.evaluation.speed.engines import ALWAYS, LOSSY, OURS, PEERS, Absent, Bare, Engine
from memsift.evaluation.speed.engines.ours import Store
from memsift.evaluation.speed.limits import MEMORY
from memsift.evaluation.speed.row import SpeedRow, Time, row_of
from memsift.evaluation.speed.run import Run, Size, named

# Vectors come in batches, so that what they are made from does not count.
BATCH, LARGE = 2048, 100_000
STATM = Path("/proc/self/statm")
UNIT = "bytes per entry"
# glibc raises its threshold with the first large array that is freed, and keeps the next ones: fixed, it gives them
# back, and what is left is what the entries hold.
RETURNED = {"MALLOC_MMAP_THRESHOLD_": str(2**17)}


def memory(run: Run) -> Iterator[SpeedRow]:
    """Resident memory per entry, at the middle size and at the larger ones."""
    for size in (run.middle, run.large, *run.beyond):
        run.tell(f"{MEMORY} {named(*size)}")
        n = size[0]
        peers = [p for p in run.peers if p.grows and (p.exact or n <= run.middle[0])]
        every: list[type[Engine]] = [*OURS, *LOSSY, Bare, *peers]
        times = [_apart(made, size) for made in every if n <= made.largest]
        yield row_of(MEMORY, *size, times, unit=UNIT)


def _apart(made: type[Engine], size: Size) -> Time:
    command = [sys.executable, "-m", "memsift.evaluation.speed.memory", made.name, *map(str, size)]
    environment = {**os.environ, **RETURNED}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return Time(made.name, note=last[:160])
    found = json.loads(done.stdout.splitlines()[-1])
    return Time(made.name, median=found["bytes"], repeats=1, note=found["note"])


def _resident() -> int:
    """Bytes of this process in memory."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _measured(made: type[Engine], n: int, dim: int) -> dict[str, object]:
    # Once in small: what the library, its first call and the first batch leave behind is not of the entries.
    _held(made, min(n, BATCH), dim).close()
    gc.collect()
    before = _resident()
    engine = _held(made, n, dim)
    gc.collect()
    note = ""
    if isinstance(engine, Store):
        allocated = sum(engine.store.stats().bytes.values())
        note = f"by its own count {allocated / n:,.0f}"
    return {"bytes": round((_resident() - before) / n, 1), "note": note}


def _held(made: type[Engine], n: int, dim: int) -> Engine:
    engine = made(dim, n)
    # The default policy compares those who come in larger batches with fewer others: a million take half a minute.
    batch = BATCH if n <= LARGE else 8 * BATCH
    for start in range(0, n, batch):
        engine.add(clustered(min(batch, n - start), dim, seed=start))
    engine.search(clustered(1, dim, seed=1)[0], K)
    return engine


if __name__ == "__main__":
    by_name = {made.name: made for made in (*ALWAYS, *PEERS)}
    if not STATM.exists():
        sys.exit("this system has no /proc to read resident memory from")
    try:
        result = _measured(by_name[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3]))
    except Absent as error:
        sys.exit(str(error))
    print(json.dumps(result))
