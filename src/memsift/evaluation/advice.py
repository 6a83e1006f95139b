"""What a table of cells means for whoever must choose: the best policy of each budget, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from memsift.evaluation.cell import Cell, Parts
from memsift.evaluation.hindsight import Entry, Place, places_of
from memsift.evaluation.replay import CEILINGS
from memsift.evaluation.statistics import Interval

FEWEST = 5
"""Parts with something to find, below which no interval means anything."""


@dataclass(frozen=True)
class Against:
    """The best policy against another: by how much it finds more, in shares; no interval if the log is too short."""

    policy: str
    by: float
    interval: Interval | None

    @property
    def real(self) -> bool:
        """Whether the difference is more than chance."""
        return self.interval is not None and self.interval.above

    def __str__(self) -> str:
        if self.interval is None:
            return f"{signed(self.by)} points, but the log is too short to say how sure that is"
        text = f"{signed(self.by)} points {shown(self.interval)}"
        return text if self.real else f"{text}, no difference that this log can show"


@dataclass(frozen=True)
class Advice:
    """What to do at one budget.

    Parameters
    ----------
    budget : float
        Share of all memories.
    policy : str
        The one that finds most.
    recall, kept : float
        What it finds of the needed, and what of it was still stored when asked for.
    queries : int
        Queries that needed something.
    next_best, current : Against or None
        It against the runner-up, and against the policy in use unless that is the best itself.
    oracle : float
        What the clairvoyant policy finds; NaN if it was not replayed.
    """

    budget: float
    policy: str
    recall: float
    kept: float
    queries: int
    next_best: Against | None
    current: Against | None
    oracle: float

    @property
    def change(self) -> bool:
        """Whether the policy in use should go: another finds more, and not by chance."""
        return self.current is not None and self.current.real

    @property
    def gone(self) -> float:
        """Queries whose needs had left the store; one whose needs left in part counts in part."""
        return self.queries * (1.0 - self.kept)

    def __str__(self) -> str:
        head = f"At {100 * self.budget:.4g} %: {self.policy} finds most, {100 * self.recall:.1f} % of what is needed"
        if self.oracle == self.oracle:
            head += f" (knowing the future: {100 * self.oracle:.1f} %)"
        lines = [
            f"{head}.",
            f"  Of {self.queries:,} queries that needed something, {self.gone:,.0f} came too late: it was gone.",
        ]
        if self.next_best is not None:
            lines.append(f"  Over {self.next_best.policy}, the next: {self.next_best}.")
        if self.current is not None:
            lines.append(f"  Over {self.current.policy}, in use: {self.current}.")
            lines.append(
                f"  So {f'change to {self.policy}' if self.change else f'keep {self.current.policy}'}."
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; a figure that does not exist is None."""
        data = asdict(self) | {"gone": self.gone, "change": self.change}
        for name in ("next_best", "current"):
            against: Against | None = getattr(self, name)
            if against is not None:
                data[name]["real"] = against.real
        data["oracle"] = None if self.oracle != self.oracle else self.oracle
        return data


def advise(cells: Sequence[Cell], current: str | None = None) -> list[Advice]:
    """One advice per budget of a trace's cells, largest budget first; none where no query needed anything.

    Parameters
    ----------
    current : str, optional
        The label of the policy in use.
    """
    places = sorted(places_of(cells), key=lambda place: -place.budget)
    return [_advice(place, current) for place in places if place.queries and _contenders(place)]


def _contenders(place: Place) -> list[Entry]:
    found = (e for e in place.entries.values() if e.policy not in CEILINGS)
    # Of equals the one that was named first.
    return sorted(found, key=lambda entry: -entry.recall)


def _advice(place: Place, current: str | None) -> Advice:
    best, *others = _contenders(place)
    oracle = place.entries.get(CEILINGS[1])
    used = place.entries.get(current) if current is not None and current != best.policy else None
    return Advice(
        place.budget,
        best.policy,
        best.recall,
        best.kept,
        place.queries,
        _against(place, best, others[0]) if others else None,
        None if used is None else _against(place, best, used),
        float("nan") if oracle is None else oracle.recall,
    )


def _against(place: Place, best: Entry, other: Entry) -> Against:
    interval = place.against(best.policy, other.policy) if enough(best.parts) else None
    return Against(other.policy, best.recall - other.recall, interval)


def enough(parts: Parts) -> bool:
    """Whether there are parts enough to draw from."""
    return sum(count > 0 for count in parts.scored) >= FEWEST


def signed(share: float) -> str:
    """A difference in points."""
    return f"{100 * share:+.1f}"


def shown(interval: Interval) -> str:
    """An interval in points."""
    return f"[{signed(interval.low)}, {signed(interval.high)}]"
