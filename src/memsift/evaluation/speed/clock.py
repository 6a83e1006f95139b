"""Two clocks, and how contenders take turns before them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Work = Callable[[], object]


class Sample(NamedTuple):
    """CPU time of all threads of the process, and time on the wall, in microseconds."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Contender:
    """Who takes part: `turn(r)` prepares repeat `r`, untimed, and gives what is timed; 0 is the warm-up.

    A time is divided by `per`: the calls or the entries of one turn.
    """

    name: str
    turn: Callable[[int], Work]
    per: float = 1.0


def sampled(run: Work) -> Sample:
    """Both times of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return Sample((time.process_time() - cpu) * 1e6, (time.perf_counter() - wall) * 1e6)


def timed(run: Work) -> float:
    """CPU time of one call, in microseconds."""
    return sampled(run).cpu


def in_turn(contenders: Sequence[Contender], repeats: int) -> dict[str, list[Sample]]:
    """Everybody once per repeat, after one turn that does not count: samples by name, divided by `per`.

    What slows the machine down for a while then slows all of them down. Who comes first changes with each repeat, as
    everybody finds the caches as the one before has left them.
    """
    samples: dict[str, list[Sample]] = {c.name: [] for c in contenders}
    order = list(contenders)
    gc.collect()
    gc.freeze()  # a collection before each turn then looks at what the turns have left, not at everything
    try:
        for repeat in range(repeats + 1):
            for contender in order:
                cpu, wall = _undisturbed(contender, repeat)
                if repeat:
                    taken = Sample(cpu / contender.per, wall / contender.per)
                    samples[contender.name].append(taken)
            order = [*order[1:], *order[:1]]
    finally:
        gc.unfreeze()
    return samples


def _undisturbed(contender: Contender, repeat: int) -> Sample:
    work = contender.turn(repeat)
    quiet()
    gc.collect()
    gc.disable()
    try:
        return sampled(work)
    finally:
        gc.enable()


def quiet(seconds: float = 10.0) -> None:
    """Wait until no other thread works: some libraries go on after they have answered, on whoever's time comes next."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        before = time.process_time()
        time.sleep(0.002)
        if time.process_time() - before < 0.0005:
            return
