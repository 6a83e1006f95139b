"""How the figures read: amounts, groups, verdicts; the same words in the terminal, on the page and in the README."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memsift.evaluation.speed.additions import ALONE, CHURN
from memsift.evaluation.speed.compactions import DEFAULT, GIVEN
from memsift.evaluation.speed.engines import PEERS
from memsift.evaluation.speed.limits import ADD, BATCH, BESIDE, MEMORY, Verdict, is_factor
from memsift.evaluation.speed.online import FEEDS, READ
from memsift.evaluation.speed.planes import LOSS
from memsift.evaluation.speed.row import BARE, OURS, SpeedRow, Time, from_dict

# A table each; what belongs to none has one of its own.
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Search: one query, the best ten", ("search",)),
    ("Search: a hundred queries in one call", (BATCH,)),
    ("Search where vectors are held with loss", (LOSS,)),
    ("Compaction to half", ("compact", GIVEN, DEFAULT)),
    ("Online coherence", (FEEDS, READ)),
    ("Adding, per entry", (ADD, ALONE, CHURN)),
    (
        "Adding while another thread compacts: 99th percentile, on the wall",
        (BESIDE, f"{BESIDE} (coherence)"),
    ),
    ("In a file", ("file: add", "file: reopen", "file: compact")),
    ("Memory, resident: bytes per entry", (MEMORY,)),
    (
        "Growth: time per 1,000 entries",
        ("growth: search, per 1,000 entries", "growth: compact, per 1,000 entries"),
    ),
)


@dataclass(frozen=True)
class Group:
    """Rows that share a table, and the contenders that have a figure in one of them."""

    title: str
    rows: tuple[SpeedRow, ...]

    @property
    def approximate(self) -> set[str]:
        """Contenders that search a graph: their times are worth what their recall is."""
        graphs = {peer.name for peer in PEERS if not peer.exact}
        return graphs | {t.name for row in self.rows for t in row.contenders if t.recall}

    @property
    def contenders(self) -> list[str]:
        """In the order of their first appearance."""
        times = (t for row in self.rows for t in row.contenders)
        names = [t.name for t in times if figure(t) is not None]
        return list(dict.fromkeys(names))

    @property
    def absent(self) -> dict[str, list[str]]:
        """Why others have none, and whom that concerns."""
        reasons: dict[str, list[str]] = {}
        for row in self.rows:
            for t in row.contenders:
                if figure(t) is None and t.name not in reasons.setdefault(t.note, []):
                    reasons[t.note].append(t.name)
        return reasons

    def parts(self) -> list[tuple[str, tuple[SpeedRow, ...], list[str]]]:
        """Title, rows and contenders of each table: exact ones apart from graphs, beside which ours stands again."""
        exact = [name for name in self.contenders if name not in self.approximate]
        graphs = [name for name in self.contenders if name in self.approximate]
        again = [name for name in exact if name == OURS]
        found = [
            (self.title, exact),
            (f"{self.title}; graphs", [*again, *graphs] if graphs else []),
        ]
        return [(title, self._with(names), names) for title, names in found if names]

    def _with(self, names: Sequence[str]) -> tuple[SpeedRow, ...]:
        """Rows in which one of them has a figure, another than ours if there are others."""
        others = [name for name in names if name != OURS] or names
        return tuple(
            row
            for row in self.rows
            if any(t.name in others and figure(t) is not None for t in row.contenders)
            or len(row.contenders) == 1
        )

    def label(self, row: SpeedRow) -> str:
        """What a row is called within the group."""
        size = f"{row.n:,} × {row.dim}"
        several = len({r.operation for r in self.rows}) > 1
        return f"{row.operation}, {size}" if several else size


def rows_of(data: dict[str, Any]) -> list[SpeedRow]:
    """The rows of a run."""
    return [_whole(from_dict(row)) for row in data["rows"]]


def _whole(row: SpeedRow) -> SpeedRow:
    """A row that tells its two times and its one limit only, told like the others."""
    contenders, verdicts = row.contenders, row.verdicts
    if not contenders:
        ours = Time(OURS, row.ours_us, row.low_us, row.high_us, repeats=row.repeats)
        bare = Time(BARE, row.primitives_us, repeats=row.repeats)
        contenders = (ours,) if row.primitives_us is None else (ours, bare)
    if not verdicts and row.limit:
        beside = row.ratio is not None and "×" in row.limit
        against, value = (BARE, row.ratio) if beside else (None, row.ours_us)
        verdicts = (Verdict(row.operation, row.limit, OURS, against, value, 1.0, row.holds),)
    return replace(row, contenders=contenders, verdicts=verdicts)


def groups(rows: Iterable[SpeedRow]) -> Iterator[Group]:
    """Rows by table, in the order of GROUPS, then the others by operation."""
    left = list(rows)
    for title, operations in GROUPS:
        found = tuple(r for name in operations for r in left if r.operation == name)
        if found:
            yield Group(title, found)
        left = [r for r in left if r.operation not in operations]
    for operation in dict.fromkeys(r.operation for r in left):
        yield Group(operation, tuple(r for r in left if r.operation == operation))


def figure(time: Time) -> float | None:
    """What a contender is shown with: its median, or what the wall says where only that was taken."""
    return time.median if time.median is not None else time.wall


def amount(value: float | None, unit: str = "µs") -> str:
    """As people write it: 43 µs, 2.83 ms, 1.2 s; 0.985 or 1,650 for anything but time."""
    if value is None:
        return "–"
    if unit != "µs":
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    for factor, name in ((1.0, "µs"), (1e3, "ms"), (1e6, "s")):
        scaled = value / factor
        if scaled < 999.5 or name == "s":
            return f"{scaled:,.{0 if scaled >= 99.5 else 1 if scaled >= 9.95 else 2}f} {name}"
    raise AssertionError("unreachable")


def spread(time: Time, unit: str = "µs") -> str:
    """From the lowest to the highest: `1.05–1.31 ms`; nothing where there was one measurement."""
    low, high = (
        (time.low, time.high) if time.median is not None else (time.wall_low, time.wall_high)
    )
    if time.repeats < 2 or low is None or high is None:
        return ""
    first, last = amount(low, unit), amount(high, unit)
    same = first.rpartition(" ")[2] == last.rpartition(" ")[2] and " " in first
    return f"{first.rpartition(' ')[0] if same else first}–{last}"


def times(value: float) -> str:
    """A ratio: 0.0058, 0.38, 2.51, 34."""
    if value < 0.095:
        return f"{value:.2g}"
    return f"{value:.2f}" if value < 9.95 else f"{value:,.0f}"


def beside_ours(time: Time, row: SpeedRow) -> str:
    """A contender's ratio to ours, as `× 2.5`; nothing for ours itself."""
    ours = next((figure(t) for t in row.contenders if t.name == OURS), None)
    mine = figure(time)
    return "" if not ours or mine is None or time.name == OURS else f"× {times(mine / ours)}"


def wall(row: SpeedRow) -> str:
    """What the clock on the wall said of ours, where CPU time is what is shown."""
    ours = row.contenders[0] if row.contenders else None
    return "" if ours is None or ours.median is None or ours.wall is None else amount(ours.wall)


def outcome(verdict: Verdict) -> str:
    return {True: "holds", False: "MISSED", None: "not measured"}[verdict.holds] + (
        " (a goal)" if verdict.goal and verdict.holds is not None else ""
    )


def found(verdict: Verdict, row: SpeedRow) -> str:
    """What was measured, in the words of its limit."""
    if verdict.figure is None:
        return "–"
    if verdict.against is None:
        return f"{amount(verdict.figure, row.unit)}{'' if row.unit == 'µs' else f' {row.unit}'}"
    if is_factor(verdict.most):
        return f"{times(1 / verdict.figure)} × as fast"
    return f"{times(verdict.figure)} ×"


def judged(rows: Sequence[SpeedRow]) -> list[tuple[SpeedRow, Verdict]]:
    """Every limit with the row that answers it, in the order of the tables."""
    return [(r, v) for g in groups(rows) for r in g.rows for v in r.verdicts]
