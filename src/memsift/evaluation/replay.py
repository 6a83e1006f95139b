"""Replay: every policy at every budget on a trace, between floor and ceilings, as cells of a table.

A replay that cannot differ from another is not run twice. What a policy does not read (`needs`) cannot change what it
does: whether hits were confirmed for one that reads no `use_count`, costs for one that reads no `cost`, any query for
one that looks at order alone. Chance and the oracle do not look at queries either.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from memsift import checks
from memsift.evaluation.cell import Cell
from memsift.evaluation.drive import COSTLESS, VARIANTS, Drive, costless, drive_of
from memsift.evaluation.life import Clock, K, replay
from memsift.evaluation.oracle import Future, OraclePolicy
from memsift.evaluation.tally import Marks, Tally, parts_of
from memsift.evaluation.trace import Trace
from memsift.policies import (
    CoherencePolicy,
    CompactionPolicy,
    FifoPolicy,
    LfuPolicy,
    LruPolicy,
    RandomPolicy,
    to_text,
)
from memsift.policies.plain import LongestPolicy, OldestPolicy, ShortestPolicy

__all__ = [
    "EVERYTHING",
    "ORACLE",
    "VARIANTS",
    "Clock",
    "Drive",
    "K",
    "Lives",
    "grid",
    "replay",
    "steps",
]

ORACLE = "oracle"
EVERYTHING = "keep everything"
CEILINGS = (EVERYTHING, ORACLE)


class Lives:
    """The lives of a trace's streams, each lived once: what one replay has shown is shown to every cell that asks.

    One serves all variants of a workload whose queries come at the same times.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.ran = 0
        self._costless = costless(trace)
        self._costs = any(stream.cost is not None for stream in trace.streams)
        self._marks = [Marks(s, trace.need == "coverage") for s in trace.streams]
        self._futures: list[Future] | None = None
        self._known: dict[tuple[Any, ...], tuple[list[Tally], list[int], float]] = {}

    def cell(
        self,
        policy: CompactionPolicy | None,
        budget: float,
        variant: str,
        watermark: float,
        *,
        label: str = "",
        seed: int = 0,
    ) -> Cell:
        """What a policy finds at one budget; None stands for the ceiling that `label` names."""
        label = label or to_text(policy)
        tallies, caps, seconds = self._of(label, policy, budget, variant, watermark)
        trace = self.trace
        place = trace.name, variant, label, budget, watermark, seed, trace.need
        return Cell(*place, **_figures(tallies, caps), seconds=seconds, parts=parts_of(tallies))

    def _of(
        self,
        label: str,
        policy: CompactionPolicy | None,
        share: float,
        variant: str,
        watermark: float,
    ) -> tuple[list[Tally], list[int], float]:
        """Tallies and caps, one per stream, and the CPU time that they took."""
        drive, free = drive_of(variant), variant.endswith(COSTLESS)
        if label == EVERYTHING:
            # Nothing leaves, so no touch, cost or policy shows.
            policy, drive, free = FifoPolicy(), Drive(counts=False), False
        elif label == ORACLE or blind(policy):
            drive, free = Drive(counts=False), False
        elif reads(policy, "use_count") is False:
            drive = replace(drive, confirm=False)
        if reads(policy, "cost") is False:
            free = False
        if isinstance(policy, (LongestPolicy, ShortestPolicy)) and (free or not self._costs):
            # All cost the same, and among equals the later accessed stays.
            policy, free = LruPolicy(), False
        if drive == Drive(counts=False) and type(policy) in (LruPolicy, LfuPolicy, CoherencePolicy):
            # Nobody ever asked: the last accessed are the newest, and there is no window.
            policy, free = FifoPolicy(), False
        key = label == EVERYTHING, policy, share, drive, free, watermark
        if key not in self._known:
            self._known[key] = self._live(label, policy, share, drive, free, watermark)
        return self._known[key]

    def _live(
        self,
        label: str,
        policy: CompactionPolicy | None,
        share: float,
        drive: Drive,
        free: bool,
        watermark: float,
    ) -> tuple[list[Tally], list[int], float]:
        started = time.process_time()
        tallies, caps = [], []
        for number, stream in enumerate((self._costless if free else self.trace).streams):
            cap = None if label == EVERYTHING else max(1, int(share * len(stream) + 1e-9))
            caps.append(cap or len(stream))
            tallies.append(
                replay(
                    stream,
                    policy,
                    cap,
                    drive,
                    watermark=watermark,
                    score_from=self.trace.score_from,
                    future=self._future(number) if label == ORACLE else None,
                    marks=self._marks[number],
                )
            )
        self.ran += 1
        return tallies, caps, time.process_time() - started

    def _future(self, number: int) -> Future:
        if self._futures is None:
            self._futures = [Future(stream) for stream in self.trace.streams]
        return self._futures[number].copy()


def blind(policy: CompactionPolicy | None) -> bool:
    """Whether nothing that a query does can change what a policy keeps, but for the dice of one that throws dice."""
    if isinstance(policy, RandomPolicy):
        return True
    # No two entries are equally old, so no rule for ties looks at accesses.
    return isinstance(policy, (FifoPolicy, OldestPolicy))


def reads(policy: CompactionPolicy | None, column: str) -> bool | None:
    """Whether a policy reads a column of the view; None for one that does not say."""
    if isinstance(policy, (RandomPolicy, OraclePolicy)):
        return False
    needs: frozenset[str] = getattr(policy, "needs", frozenset())
    return column in needs if needs else None


def grid(
    trace: Trace,
    policies: Sequence[CompactionPolicy],
    budgets: Sequence[float],
    *,
    variant: str,
    watermark: float = 0.97,
    seeds: Sequence[int] = (0,),
    progress: Callable[[str], None] | None = None,
    lives: Lives | None = None,
) -> Iterator[Cell]:
    """Every policy at every budget, with keep-everything and the oracle as ceilings.

    Parameters
    ----------
    budgets : shares in (0, 1]
        The cap of each stream's store, as a share of the stream's memories.
    variant : str
        One of `VARIANTS`, or one with `-costless` behind it: the store is told no costs.
    seeds : ints
        A `RandomPolicy` is replayed once with each; the others leave nothing to chance.
    progress : callable
        Told what is about to run.
    lives : Lives, optional
        Of the same trace, from a grid before: what cannot differ between two variants is then replayed once.
    """
    drive_of(variant)
    shares = [checks.fraction(b, "budgets", zero=False) for b in budgets]
    shared = Lives(trace) if lives is None else lives
    tell = progress or (lambda _: None)

    def cell(
        label: str, policy: CompactionPolicy | None, share: float, seed: int = seeds[0]
    ) -> Cell:
        tell(f"{label} at {share:.0%}")
        return shared.cell(policy, share, variant, watermark, label=label, seed=seed)

    yield cell(EVERYTHING, None, 1.0)
    for share in shares:
        yield cell(ORACLE, None, share)
    for policy in policies:
        for share in shares:
            if isinstance(policy, RandomPolicy):
                for seed in seeds:
                    yield cell("random", RandomPolicy(seed), share, seed)
            else:
                yield cell(to_text(policy), policy, share)


def steps(
    policies: Sequence[CompactionPolicy], budgets: Sequence[float], seeds: Sequence[int] = (0,)
) -> int:
    """How many cells `grid` makes."""
    runs = sum(len(seeds) if isinstance(policy, RandomPolicy) else 1 for policy in policies)
    return 1 + (1 + runs) * len(budgets)


def _figures(tallies: list[Tally], caps: list[int]) -> dict[str, Any]:
    def mean(values: list[float]) -> float:
        return float(np.mean(values)) if values else float("nan")

    scored = [t for t in tallies if t.scored]
    held = [t.stored / t.looked / c for t, c in zip(tallies, caps, strict=True) if t.looked]
    return {
        "recall": mean([t.recall / t.scored for t in scored]),
        "kept": mean([t.kept / t.scored for t in scored]),
        "fidelity": mean([t.fidelity / t.compared for t in tallies if t.compared]),
        "occupancy": mean(held),
        "queries": sum(t.scored for t in tallies),
        "evicted": sum(t.evicted for t in tallies),
    }
