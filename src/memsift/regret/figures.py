"""What came of forgetting, in figures and in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

# Ghosts are counted by age in queries: up to 10, to 100, to 1,000, to 10,000, and above.
EDGES = (10, 100, 1_000, 10_000)
SHOWN = 10


class Age(NamedTuple):
    """Of the `watched` ghosts that had not been wanted at the last age, those first `wanted` up to this one.

    `queries` is the age in queries since the eviction; None is the last row's, without an end.
    """

    queries: int | None
    watched: int
    wanted: int


@dataclass(frozen=True)
class Wanted:
    """A ghost that queries would have returned.

    Parameters
    ----------
    id : int
    score : float or None
        At eviction; None if the policy gives none.
    policy : str
        Label of the policy that let it go.
    evicted_at, wanted_at : float
        When it left and when it was last wanted, in unix seconds.
    times : int
        Queries that would have returned it.
    """

    id: int
    score: float | None
    policy: str
    evicted_at: float
    wanted_at: float
    times: int


@dataclass(frozen=True)
class Regret:
    """What came of forgetting so far. A lower bound: only what is certain is counted.

    Parameters
    ----------
    evicted : int
        Entries that ever left by a policy's choice.
    watched : int
        Ghosts that are watched now; the others are not, and may be wanted unnoticed.
    wanted : int
        Evictions that turned out to be wanted again.
    times : int
        Queries that would have returned at least one ghost.
    queries : int
        Queries that were asked. Those with a filter, and silent ones, do not count.
    by_policy : dict
        Each policy's label with how many it evicted, and how many of those were wanted.
    by_age : tuple of Age
        When ghosts were first wanted.
    recent : list of Wanted
        Those wanted last that are not back yet, at most ten.
    restorable : list of int or None
        Ids of all wanted ghosts that the archive still holds, those wanted last first; None without an archive.
    """

    evicted: int
    watched: int
    wanted: int
    times: int
    queries: int
    by_policy: dict[str, tuple[int, int]]
    by_age: tuple[Age, ...]
    recent: list[Wanted]
    restorable: list[int] | None

    @property
    def exposed(self) -> tuple[int, int]:
        """Ghosts that were watched through at least one query, and how many of them were wanted."""
        first = self.by_age[0].watched if self.by_age else 0
        return first, sum(age.wanted for age in self.by_age)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            **asdict(self),
            "by_policy": {label: list(pair) for label, pair in self.by_policy.items()},
            "by_age": [age._asdict() for age in self.by_age],
        }

    def __str__(self) -> str:
        words = f"evicted {self.evicted:,}, later wanted {self.wanted:,}"
        guilty = [(count, label) for label, (_, count) in self.by_policy.items() if count]
        if guilty:
            parts = (f"{count:,} by {label}" for count, label in sorted(guilty, reverse=True))
            words += f" ({', '.join(parts)})"
        if self.recent:
            words += f": ids {', '.join(str(ghost.id) for ghost in self.recent)}"
        if self.restorable:
            few = sorted(self.restorable[:SHOWN])
            words += f"; restore({few}) brings {'it' if len(few) == 1 else 'them'} back"
        return words
