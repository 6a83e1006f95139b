"""Replay: a real store lives through a trace, and what it still finds is counted.

The store under test is the one that users run; only its clock is the trace's. Additions, searches, feedback and
compactions happen in the trace's order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from memsift import checks
from memsift.errors import InvalidValue
from memsift.evaluation.cell import Cell
from memsift.evaluation.oracle import Future, OraclePolicy
from memsift.evaluation.trace import Stream, Trace
from memsift.policies import CompactionPolicy, RandomPolicy, to_text
from memsift.store import MemoryStore

K = 10
ORACLE = "oracle"
EVERYTHING = "keep everything"


@dataclass(frozen=True)
class Drive:
    """How a stream is driven.

    Parameters
    ----------
    probe : bool
        Before a memory is stored, the agent searches for it.
    counts : bool
        Queries touch what they return; otherwise they leave no trace.
    confirm : bool
        Hits that a query needed are confirmed by `feedback`.
    touch : int
        A search touches this many of its best hits.
    """

    probe: bool = False
    counts: bool = True
    confirm: bool = False
    touch: int = 5


VARIANTS = {
    "end": Drive(counts=False),
    "end-traffic": Drive(probe=True, counts=False),
    "interleaved": Drive(),
    "log": Drive(),
    "used": Drive(confirm=True),
}


@dataclass
class Tally:
    """Sums over the scored queries of one stream."""

    recall: float = 0.0
    kept: float = 0.0
    scored: int = 0
    fidelity: float = 0.0
    compared: int = 0
    stored: int = 0
    looked: int = 0
    evicted: int = 0


def replay(
    stream: Stream,
    policy: CompactionPolicy | None,
    cap: int | None,
    drive: Drive,
    *,
    watermark: float = 0.97,
    score_from: float = 0.0,
    coverage: bool = False,
    future: Future | None = None,
) -> Tally:
    """Drive one store through one stream.

    Parameters
    ----------
    policy : CompactionPolicy or None
        None with `future` means the oracle.
    cap : int or None
        Budget in entries; None keeps everything.
    coverage : bool
        Count groups of needed memories instead of single ones.

    Returns
    -------
    Tally
    """
    clock = Clock(stream)
    chosen = OraclePolicy(future) if policy is None and future is not None else policy
    store = MemoryStore(
        stream.vectors.shape[1], cap, chosen, low_watermark=watermark, clock=lambda: clock.now
    )
    tally, first = Tally(), score_from * len(stream)
    for kind, row in stream.events():
        if kind == "add":
            clock.at(row)
            if drive.probe:
                store.search(stream.vectors[row], K, touch=drive.touch)
            store.add(stream.vectors[row], cost=1 if stream.cost is None else int(stream.cost[row]))
            continue
        if kind == "use" and stream.used is not None:
            said = np.unique(stream.used.of(row))
            store.feedback(said[store.holds(said)])
            continue
        hits = store.search(stream.queries[row], K, touch=drive.touch if drive.counts else False)
        found = [hit.id for hit in hits]
        if stream.asked[row] >= first:
            _score(stream, row, found, store, coverage, tally)
        if drive.confirm:
            helped = np.intersect1d(stream.need.of(row), found)
            store.feedback(helped)
        if future is not None:
            future.asked(row)
    tally.evicted = store.stats().evicted
    return tally


def _score(
    stream: Stream, query: int, found: list[int], store: MemoryStore, coverage: bool, tally: Tally
) -> None:
    tally.stored += len(store)
    tally.looked += 1
    needed = stream.need.of(query)
    if needed.size:
        hit = np.isin(needed, found)
        held = store.holds(needed)
        if coverage:
            groups = stream.need.groups_of(query)
            whole = np.unique(groups).size
            tally.recall += np.unique(groups[hit]).size / whole
            tally.kept += np.unique(groups[held]).size / whole
        else:
            tally.recall += float(hit.mean())
            tally.kept += float(held.mean())
        tally.scored += 1
    if stream.exact is not None and stream.exact.of(query).size:
        nearest = stream.exact.of(query)
        said = nearest if stream.meaning is None else stream.meaning[nearest]
        heard = np.array(found, np.int64) if stream.meaning is None else stream.meaning[found]
        tally.fidelity += float(np.isin(said, heard).mean())
        tally.compared += 1


def grid(
    trace: Trace,
    policies: Sequence[CompactionPolicy],
    budgets: Sequence[float],
    *,
    variant: str,
    watermark: float = 0.97,
    seeds: Sequence[int] = (0,),
    progress: Callable[[str], None] | None = None,
) -> Iterator[Cell]:
    """Every policy at every budget, with keep-everything and the oracle as ceilings.

    Parameters
    ----------
    budgets : shares in (0, 1]
        The cap of each stream's store, as a share of the stream's memories.
    seeds : ints
        A `RandomPolicy` is replayed once with each; the others leave nothing to chance.
    progress : callable
        Told what is about to run.
    """
    if variant not in VARIANTS:
        raise InvalidValue(f"variant must be one of {', '.join(VARIANTS)}; got {variant[:40]!r}")
    shares = [checks.fraction(b, "budgets", zero=False) for b in budgets]
    futures = [Future(stream) for stream in trace.streams]
    tell = progress or (lambda _: None)

    def cell(
        label: str, policy: CompactionPolicy | None, share: float, seed: int = seeds[0]
    ) -> Cell:
        tell(f"{label} at {share:.0%}")
        started = time.process_time()
        tallies, caps = [], []
        for stream, future in zip(trace.streams, futures, strict=True):
            cap = None if label == EVERYTHING else max(1, int(share * len(stream) + 1e-9))
            caps.append(cap or len(stream))
            tallies.append(
                replay(
                    stream,
                    policy,
                    cap,
                    VARIANTS[variant],
                    watermark=watermark,
                    score_from=trace.score_from,
                    coverage=trace.need == "coverage",
                    future=future.copy() if label == ORACLE else None,
                )
            )
        return _cell(
            trace,
            variant,
            label,
            share,
            watermark,
            seed,
            tallies,
            caps,
            time.process_time() - started,
        )

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


def _cell(
    trace: Trace,
    variant: str,
    label: str,
    share: float,
    watermark: float,
    seed: int,
    tallies: list[Tally],
    caps: list[int],
    seconds: float,
) -> Cell:
    def mean(values: list[float]) -> float:
        return float(np.mean(values)) if values else float("nan")

    scored = [t for t in tallies if t.scored]
    return Cell(
        workload=trace.name,
        variant=variant,
        policy=label,
        budget=share,
        watermark=watermark,
        seed=seed,
        need=trace.need,
        recall=mean([t.recall / t.scored for t in scored]),
        kept=mean([t.kept / t.scored for t in scored]),
        fidelity=mean([t.fidelity / t.compared for t in tallies if t.compared]),
        occupancy=mean(
            [t.stored / t.looked / cap for t, cap in zip(tallies, caps, strict=True) if t.looked]
        ),
        queries=sum(t.scored for t in tallies),
        evicted=sum(t.evicted for t in tallies),
        seconds=seconds,
    )


class Clock:
    """A trace's time: its timestamps where it has them, one second a memory where it has not."""

    def __init__(self, stream: Stream) -> None:
        self._times = stream.created_at
        self.now = 0.0

    def at(self, row: int) -> None:
        stamp = float("nan") if self._times is None else float(self._times[row])
        self.now = stamp if stamp == stamp else self.now + 1.0
