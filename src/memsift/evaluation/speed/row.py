"""One row of the speed table: an operation at a size, everybody's time for it, and what was promised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.evaluation.speed.clock import Sample
from memsift.evaluation.speed.limits import Verdict, verdicts_for

OURS, BARE = "memsift", "numpy"
"""Contenders that most rows have: the store with its default policy, and what numpy alone would do."""


@dataclass(frozen=True)
class Time:
    """One contender's figures, in the unit of its row: medians over `repeats`, the lowest and the highest.

    A time is CPU time of all threads of the process, with the time on the wall beside it. `recall` is recall@10 against
    brute force, None for exact contenders. Without figures, `note` says why.
    """

    name: str
    median: float | None = None
    low: float | None = None
    high: float | None = None
    wall: float | None = None
    wall_low: float | None = None
    wall_high: float | None = None
    repeats: int = 0
    recall: float | None = None
    note: str = ""


@dataclass(frozen=True)
class SpeedRow:
    """One operation at one size: medians in microseconds of CPU time (unless `unit` says otherwise), and their ratio.

    `beyond_us` is what ours takes on top of the primitives; `limit` is what this project promises, in words.
    `low_us` and `high_us` are the fastest and the slowest of ours. `holds` is None if nothing was promised, or if what
    ours is measured by is absent. `clock` is what the verdicts go by: "cpu" or "wall".
    """

    operation: str
    n: int
    dim: int
    ours_us: float | None
    primitives_us: float | None
    ratio: float | None
    beyond_us: float | None
    low_us: float | None
    high_us: float | None
    repeats: int
    limit: str
    holds: bool | None
    unit: str = "µs"
    clock: str = "cpu"
    contenders: tuple[Time, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def time_of(
    name: str,
    samples: Sequence[Sample],
    *,
    per: float = 1.0,
    recall: float | None = None,
    note: str = "",
) -> Time:
    """The figures of a contender's samples, each divided by `per`."""
    cpu, wall = (np.array(values) / per for values in zip(*samples, strict=True))
    return Time(name, *_three(cpu), *_three(wall), len(samples), recall, note)


def _three(values: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    middle, low, high = float(np.median(values)), float(values.min()), float(values.max())
    return _short(middle), _short(low), _short(high)


def _short(value: float) -> float:
    """Five digits, which is more than any clock is worth here."""
    return float(f"{value:.5g}")


def row_of(
    operation: str,
    n: int,
    dim: int,
    contenders: Sequence[Time],
    *,
    unit: str = "µs",
    clock: str = "cpu",
    base: str = BARE,
    note: str = "",
) -> SpeedRow:
    """A row of what was measured: the first contender is ours, `base` is what it is compared with."""
    ours, figures = contenders[0], figures_of(contenders, clock)
    mine, bare = figures.get(ours.name), figures.get(base)
    compared = mine is not None and bare is not None and bare > 0
    verdicts = verdicts_for(operation, n, dim, figures)
    wall = clock == "wall"
    return SpeedRow(
        operation,
        n,
        dim,
        mine,
        bare,
        _short(mine / bare) if compared else None,  # type: ignore[operator]
        _short(mine - bare) if compared else None,  # type: ignore[operator]
        ours.wall_low if wall else ours.low,
        ours.wall_high if wall else ours.high,
        ours.repeats,
        "; ".join(v.limit for v in verdicts if not v.goal),
        held(verdicts),
        unit,
        clock,
        tuple(contenders),
        tuple(verdicts),
        note,
    )


def figures_of(contenders: Sequence[Time], clock: str = "cpu") -> dict[str, float | None]:
    """What the verdicts go by: each contender's median on that clock, None where it has none."""
    return {t.name: t.wall if clock == "wall" else t.median for t in contenders}


def held(verdicts: Sequence[Verdict]) -> bool | None:
    """False if one promise is missed, True if all that could be judged hold, None if none could be; goals aside."""
    known = [v.holds for v in verdicts if not v.goal and v.holds is not None]
    return all(known) if known else None


def measured(
    operation: str,
    n: int,
    dim: int,
    ours: npt.NDArray[np.float64],
    base: npt.NDArray[np.float64],
    limit: str,
    beyond: float | None,
    ratio: float,
) -> SpeedRow:
    """A row of ours beside one base, with a limit of its own: at most `beyond` more, or at most `ratio` times it.

    Parameters
    ----------
    ours, base : (repeats,) float64
        Microseconds of CPU time.
    """
    ours_us, base_us = float(np.median(ours)), float(np.median(base))
    holds = ours_us - base_us <= beyond if beyond is not None else ours_us <= ratio * base_us
    times = [
        Time(OURS, *_three(ours), repeats=len(ours)),
        Time(BARE, *_three(base), repeats=len(base)),
    ]
    row = row_of(operation, n, dim, times)
    by = Verdict(operation, limit, OURS, BARE, _short(ours_us / base_us), ratio, holds)
    return replace(row, limit=limit, holds=holds, verdicts=(by,))


def from_dict(data: Mapping[str, Any]) -> SpeedRow:
    """`SpeedRow.to_dict`, read back."""
    contenders = tuple(Time(**t) for t in data.get("contenders", ()))
    verdicts = tuple(Verdict(**v) for v in data.get("verdicts", ()))
    return SpeedRow(**{**data, "contenders": contenders, "verdicts": verdicts})
