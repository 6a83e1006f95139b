"""The parts of the table. A module with a `rows(...)` of its own plugs in with one line of SECTIONS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from memsift.evaluation.speed import hnsw
from memsift.evaluation.speed.additions import additions
from memsift.evaluation.speed.background import background
from memsift.evaluation.speed.compactions import compactions
from memsift.evaluation.speed.file import file_rows
from memsift.evaluation.speed.growth import growth
from memsift.evaluation.speed.memory import memory
from memsift.evaluation.speed.online import online
from memsift.evaluation.speed.planes import planes
from memsift.evaluation.speed.row import SpeedRow
from memsift.evaluation.speed.run import Run
from memsift.evaluation.speed.searches import searches


@dataclass(frozen=True)
class Section:
    """A part: how its rows are measured, and how often it tells what comes next (for the progress bar)."""

    rows: Callable[[Run], Iterator[SpeedRow]]
    steps: Callable[[Run], int] = lambda run: 1
    usual: bool = True
    """Whether it is measured unless others are named: it takes seconds, not minutes."""


SECTIONS: dict[str, Section] = {
    "search": Section(searches, lambda run: 2 * len(run.sizes)),
    "planes": Section(planes, lambda run: len(run.sizes)),
    "compact": Section(compactions, lambda run: 3 * len(run.sizes)),
    "online": Section(online, lambda run: 3 + len(run.beyond)),
    "add": Section(additions, lambda run: 4),
    "background": Section(background, lambda run: 2),
    "file": Section(lambda run: file_rows(run.large, run.repeats, run.tell)),
    "hnsw": Section(lambda run: hnsw.rows(*run.large), usual=False),
    "memory": Section(memory, lambda run: 2 + len(run.beyond)),
    # Compares what the others have found: last.
    "growth": Section(growth, lambda run: 0),
}


def rows(run: Run, names: list[str] | None = None) -> Iterator[SpeedRow]:
    """The rows of some sections, all by default, in the order of the table."""
    for name, section in SECTIONS.items():
        if section.usual if names is None else name in names:
            for row in section.rows(run):
                run.seen.append(row)
                yield row


def steps(run: Run, names: list[str] | None = None) -> int:
    """How often `run.tell` will be called."""
    return sum(
        section.steps(run)
        for name, section in SECTIONS.items()
        if (section.usual if names is None else name in names)
    )
