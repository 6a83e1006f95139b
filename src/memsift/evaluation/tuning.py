"""Fitting the numbers of a policy to a trace, and finding out whether the gain is real.

A coordinate search on one part of a trace; what it found is checked on queries that it never saw, in two folds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.errors import InvalidValue
from memsift.evaluation.advice import enough, shown, signed
from memsift.evaluation.cell import Parts
from memsift.evaluation.drive import Drive, drive_of
from memsift.evaluation.folds import Span, folds_of
from memsift.evaluation.life import replay
from memsift.evaluation.numbers import chosen, numbers_of, with_number
from memsift.evaluation.statistics import Interval, figure, paired
from memsift.evaluation.tally import Tally, parts_of
from memsift.evaluation.trace import Trace
from memsift.policies import ScoredPolicy, policy_name, to_text

TRIALS = 40
STEPS = (2.0, 1.4, 1.15)
"""Factors by which a number is moved up and down, coarse first."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tuning:
    """What a fit found.

    Parameters
    ----------
    start, fitted : ScoredPolicy
        Before, and as the last fold fitted it.
    each : tuple of ScoredPolicy
        What each fold fitted.
    train, held : Interval
        By how much the fits find more than the start, on the queries that they were fitted to and on those that they
        never saw; shares.
    before, after : float
        Recall on the latter.
    queries : int
        How many the latter are.
    measured : bool
        Whether they are enough for an interval.
    trials : int
        Policies that were tried.
    """

    start: ScoredPolicy
    fitted: ScoredPolicy
    each: tuple[ScoredPolicy, ...]
    train: Interval
    held: Interval
    before: float
    after: float
    queries: int
    measured: bool
    trials: int

    @property
    def real(self) -> bool:
        """Whether the gain holds on queries that the fit never saw, by more than chance."""
        return self.measured and self.held.above

    def __str__(self) -> str:
        kept = to_text(self.start)
        if all(policy_name(policy) == policy_name(self.start) for policy in self.each):
            return f"No other numbers did better where they were fitted: keep {kept}."
        unseen = f"on {self.queries:,} queries that it had not seen"
        gain = f"{signed(self.held.value)} points"
        if not self.measured:
            return f"The gain cannot be told from chance: {gain} {unseen}, and those are too few. Keep {kept}."
        gain = f"{gain} {shown(self.held)} {unseen}"
        if self.real:
            return f"The gain is real on this log: {gain}. Take {to_text(self.fitted)}."
        verdict = "The fit does harm" if self.held.below else "The gain is not real"
        return f"{verdict}: {gain}. Keep {kept}."

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, with policies as text."""

        def interval(found: Interval) -> dict[str, float | None]:
            low, high = (found.low, found.high) if self.measured else (None, None)
            return {"value": found.value, "low": low, "high": high}

        return {
            "start": to_text(self.start),
            "fitted": to_text(self.fitted),
            "folds": [to_text(policy) for policy in self.each],
            "train_gain": interval(self.train),
            "held_out_gain": interval(self.held),
            "held_out_before": self.before,
            "held_out_after": self.after,
            "held_out_queries": self.queries,
            "trials": self.trials,
            "real": self.real,
            "verdict": str(self),
        }


def tune(
    trace: Trace,
    policy: ScoredPolicy,
    budgets: Sequence[float],
    parameters: Sequence[str] | None = None,
    *,
    variant: str = "log",
    watermark: float = 0.97,
    trials: int = TRIALS,
    progress: Callable[[str], None] | None = None,
) -> Tuning:
    """Fit numbers of a policy to a trace, and check them on queries that the fit never saw.

    Parameters
    ----------
    budgets : shares in (0, 1]
        Recall is averaged over them.
    parameters : names, optional
        Which numbers to fit; the weights by default (see `numbers_of`).
    trials : int, at least 1
        Policies that are tried in each fold.
    progress : callable
        Told of every policy that is about to be replayed.

    Raises
    ------
    InvalidValue
        The policy has no such number, or the trace too few queries to cut.
    """
    names = chosen(policy, parameters)
    shares = [checks.fraction(share, "budgets", zero=False) for share in budgets]
    most = checks.integer(trials, "trials", 1)
    lives = _Lives(drive_of(variant), watermark, progress or (lambda _: None))
    each, train, held = [], [], []
    for number, fold in enumerate(folds_of(trace, shares), start=1):
        fitted = _search(policy, names, partial(lives.value, spans=fold.train, fold=number), most)
        each.append(fitted)
        train.append((lives.parts(fitted, fold.train), lives.parts(policy, fold.train)))
        held.append((lives.parts(fitted, fold.held), lives.parts(policy, fold.held)))
    after, before = (_joined(list(parts)) for parts in zip(*held, strict=True))
    fit, start = (_joined(list(parts)) for parts in zip(*train, strict=True))
    return Tuning(
        policy,
        each[-1],
        tuple(each),
        paired(fit, start),
        paired(after, before),
        figure(before, "recall"),
        figure(after, "recall"),
        sum(after.scored),
        enough(after),
        lives.trials,
    )


class _Lives:
    """Lives of spans under policies, each lived once."""

    def __init__(self, drive: Drive, watermark: float, tell: Callable[[str], None]) -> None:
        self._drive, self._watermark, self._tell = drive, watermark, tell
        self._known: dict[tuple[str, int], Floats] = {}
        self.trials = 0

    def value(self, policy: ScoredPolicy, spans: list[Span], fold: int) -> float:
        """Mean recall of the spans."""
        self.trials += 1
        self._tell(f"fold {fold}: {to_text(policy)}")
        return float(np.mean([np.nanmean(self._each(policy, span)) for span in spans]))

    def parts(self, policy: ScoredPolicy, spans: list[Span]) -> Parts:
        """The same in parts, to be drawn from."""
        found = [self._each(policy, span).tolist() for span in spans]
        return parts_of([Tally(each=[(recall, float("nan")) for recall in each]) for each in found])

    def _each(self, policy: ScoredPolicy, span: Span) -> Floats:
        key = policy_name(policy), id(span)
        if key not in self._known:
            lives = [
                replay(
                    span.stream,
                    policy,
                    cap,
                    self._drive,
                    watermark=self._watermark,
                    marks=span.marks,
                ).each
                for cap in span.caps
            ]
            self._known[key] = np.array(lives, np.float64).mean(0)[span.start :, 0]
        return self._known[key]


def _search(
    start: ScoredPolicy, names: list[str], value: Callable[[ScoredPolicy], float], trials: int
) -> ScoredPolicy:
    """The best policy that moving one number at a time has found; of equals the first."""
    best, most, tried = start, value(start), {policy_name(start)}
    for step in STEPS:
        moved = True
        while moved:
            moved = False
            for name in names:
                for candidate in _moves(best, name, names, step):
                    if policy_name(candidate) in tried or len(tried) >= trials:
                        continue
                    tried.add(policy_name(candidate))
                    found = value(candidate)
                    if found > most + 1e-9:
                        best, most, moved = candidate, found, True
    return best


def _moves(
    policy: ScoredPolicy, name: str, names: list[str], step: float
) -> Iterator[ScoredPolicy]:
    known = numbers_of(policy)
    number = known[name]
    wanted = [number * step, number / step]
    if step == STEPS[0]:
        wanted.append(0.0)
    if number == 0:
        size = max((abs(known[other]) for other in names), default=0.0) or 1.0
        wanted = [size / step, -size / step]
    for value in wanted:
        try:
            yield with_number(policy, name, value)
        except InvalidValue:
            continue  # outside what the policy allows


def _joined(folds: list[Parts]) -> Parts:
    """The parts of several folds as those of one trace whose streams are theirs."""
    columns: list[tuple[Any, ...]] = [() for _ in Parts._fields]
    for parts in folds:
        offset = max(columns[0], default=-1) + 1
        moved = parts._replace(stream=tuple(number + offset for number in parts.stream))
        columns = [old + new for old, new in zip(columns, moved, strict=True)]
    return Parts(*columns)


def gain(found: Interval, measured: bool) -> str:
    """A gain in words."""
    return (
        f"{signed(found.value)} points {shown(found) if measured else '(too few to say how sure)'}"
    )
