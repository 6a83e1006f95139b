"""A process that carries out a sift and kills itself at its n-th step. Arguments: the setting's module, folder, n."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from pathlib import Path

from memsift.backends import Sift, planfile
from memsift.backends.archive import ArchiveFile
from memsift.backends.chain import Chain

STEPS = [
    (planfile, "write"),
    (planfile, "remove"),
    (Chain, "append"),
    (ArchiveFile, "__call__"),
    (ArchiveFile, "finish"),
]


def main(setting: str, folder: str, last: int) -> None:
    """Begin a sift or go on with it; before and after each step, count, and die at number `last`."""
    made = importlib.import_module(setting)
    source, plan = made.source(Path(folder))
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)

    for owner, name in [*STEPS, (type(source), "apply")]:
        setattr(owner, name, stepping(getattr(owner, name), step))
    chain, archive = made.files(Path(folder))
    sift = (
        Sift.begin(source, plan(), chain, archive=archive, batch=made.BATCH)
        if not (chain.with_name(f"{chain.name}.plan")).exists()
        else Sift.resume(source, chain)
    )
    print(sift.run(), count)


def stepping(method, step):
    def wrapped(*arguments, **options):
        step()
        done = method(*arguments, **options)
        step()
        return done

    return wrapped


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
