"""What a plan would cost: by the queries of late, and by what became of earlier victims."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.regret.figures import Regret

Mask = npt.NDArray[np.bool_]


class Seen(Protocol):
    """What is read of a `MemoryView`."""

    ids: npt.NDArray[np.int64]
    context: kernels.Float32

    def rough_cosines(self, window: int) -> tuple[kernels.Float32, kernels.Float32 | None]: ...
    def exact_cosines(self, rows: kernels.Rows, query: kernels.Float32) -> kernels.Float64: ...
    def __len__(self) -> int: ...


class Choice(Protocol):
    """What is read of a `Plan`: the view it is about, and which rows stay."""

    @property
    def view(self) -> Any: ...
    @property
    def keep(self) -> Mask: ...


@dataclass(frozen=True)
class Expected:
    """What is to be expected of a plan, by what is known now.

    The window's queries have been answered already, and a policy that looks at them keeps what they returned: what
    they would have missed is the least that the next ones will miss.

    Parameters
    ----------
    victims, kept : int
        Entries that leave and that stay.
    queries : int
        Of the context window.
    missed : int
        Those of them that would have missed at least one of their best `k` hits.
    lost : int
        Victims among those hits.
    watched, wanted : int
        Earlier victims that were watched through at least one query, and those that were wanted again.
    """

    victims: int
    kept: int
    k: int
    queries: int
    missed: int
    lost: int
    watched: int
    wanted: int

    @property
    def share(self) -> float | None:
        """The chance that a victim is wanted again, by history (Laplace's rule); None if nothing was watched."""
        return (self.wanted + 1) / (self.watched + 2) if self.watched else None

    @property
    def returning(self) -> float | None:
        """How many of the victims will be wanted again, by history."""
        return None if self.share is None else self.share * self.victims

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {**asdict(self), "share": self.share, "returning": self.returning}

    def lines(self) -> list[str]:
        """In words: what the window says, and what history says."""
        window = "unknown by the window, which holds no query"
        if self.queries:
            window = f"of the last {self.queries:,} queries {self.missed:,} would have missed a hit"
            window += f" ({_count(self.lost, 'victim')})" if self.missed else ""
        history = "unknown by history: no victim has been watched yet"
        if self.returning is not None:
            history = f"of {self.watched:,} watched victims {self.wanted:,} were wanted again"
            about = max(1, round(self.returning)) if self.victims else 0
            history += f": about {about:,} of these {self.victims:,}"
        return [window, history]

    def __str__(self) -> str:
        return "expected regret: " + "; ".join(self.lines())


def expected(plan: Choice, regret: Regret | None = None, k: int = 10) -> Expected:
    """The regret to be expected of a plan.

    Parameters
    ----------
    plan : Plan
    regret : Regret, optional
        What came of forgetting so far.
    k : int, at least 1
        Hits that a query of the window is taken to have asked for.

    Raises
    ------
    StaleView
        The store has moved its vectors since the plan was made.
    """
    return _judged(plan, best_rows(plan.view, k), regret, k)


def regret_curve(
    plans: Iterable[Choice], regret: Regret | None = None, k: int = 10
) -> list[Expected]:
    """`expected` for each of several plans, as for budgets of several sizes."""
    out: list[Expected] = []
    seen: Seen | None = None
    best: list[kernels.Rows] = []
    for plan in plans:
        if plan.view is not seen:
            seen = plan.view
            best = best_rows(plan.view, k)
        out.append(_judged(plan, best, regret, k))
    return out


def best_rows(view: Seen, k: int) -> list[kernels.Rows]:
    """The rows of a view that each query of its window finds first, oldest query first: w of (min(k, n),).

    As a search finds them: by cosines in float64, rounded, equal ones by ascending id.
    """
    n, queries = len(view), view.context
    if not n or not len(queries):
        return []
    scores = np.full(kernels.padded(n), kernels.ABSENT, np.float32)
    out = []
    cosines, off = view.rough_cosines(len(queries))
    reach = 0.0 if off is None else float(off.max())
    for query, row in zip(queries, cosines, strict=True):
        scores[:n] = row
        rows = kernels.candidates(scores, n, min(k, n), reach)
        exact = view.exact_cosines(rows, query)
        out.append(rows[np.lexsort((view.ids[rows], -exact))[:k]])
    return out


def _judged(plan: Choice, best: list[kernels.Rows], regret: Regret | None, k: int) -> Expected:
    misses = [rows[~plan.keep[rows]] for rows in best]
    lost = np.unique(np.concatenate([*misses, np.empty(0, np.intp)]))
    watched, wanted = (0, 0) if regret is None else regret.exposed
    kept = int(np.count_nonzero(plan.keep))
    missed = sum(bool(rows.size) for rows in misses)
    return Expected(len(plan.keep) - kept, kept, k, len(best), missed, lost.size, watched, wanted)


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
