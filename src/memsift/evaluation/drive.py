"""How a stream is driven: who searches when, and what the store is told of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from memsift.errors import InvalidValue
from memsift.evaluation.trace import Trace


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

COSTLESS = "-costless"
"""Behind a variant's name: the store is not told what an entry costs."""


def drive_of(variant: str) -> Drive:
    """The drive of a variant's name, with or without `-costless`."""
    name = variant.removesuffix(COSTLESS)
    if name not in VARIANTS:
        raise InvalidValue(f"variant must be one of {', '.join(VARIANTS)}; got {variant[:40]!r}")
    return VARIANTS[name]


def costless(trace: Trace) -> Trace:
    """The same trace without costs: every entry takes the store's default of 1."""
    return replace(trace, streams=[replace(stream, cost=None) for stream in trace.streams])
