"""The tables of docs/forgetting.md: every figure from the cells, none typed by hand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from forgetting_questions import loaded

from memsift.evaluation.cell import Cell
from memsift.evaluation.drive import COSTLESS
from memsift.evaluation.hindsight import Entry, Loss, Place, Regret, is_fixed, places_of
from memsift.evaluation.replay import EVERYTHING, ORACLE
from memsift.evaluation.statistics import Interval, unit_of

OURS = "adaptive"
REFERENCE = "coherence"
NOT_PAIRED = (ORACLE, EVERYTHING)


def name_of(policy: str) -> str:
    """A policy's label as people read it: `adaptive:goal=replay` is `adaptive, goal=replay`."""
    return policy.replace('"', "").replace(":", ", ").replace("_", " ")


def points(share: float, digits: int = 1) -> str:
    # Rounded twice: a tie must fall to the same side on every machine.
    return "–" if math.isnan(share) else f"{round(100 * share, 7):.{digits}f}"


def signed(interval: Interval) -> str:
    """`+3.1 [+1.0, +5.2]`, in points; bold where 0 lies outside."""
    if math.isnan(interval.value):
        return "–"
    value, low, high = (round(100 * x, 7) for x in (interval.value, interval.low, interval.high))
    text = f"{value:+.1f} [{low:+.1f}, {high:+.1f}]"
    return f"**{text}**" if interval.above or interval.below else text


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    marks = [":--" if i < left else "--:" for i in range(len(headings))]
    return [
        f"| {' | '.join(headings)} |",
        f"|{'|'.join(marks)}|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]


def by_variant(cells: Sequence[Cell]) -> dict[tuple[str, str], list[Place]]:
    groups: dict[tuple[str, str], list[Place]] = {}
    for place in places_of(cells):
        groups.setdefault((place.workload, place.variant), []).append(place)
    return {key: sorted(group, key=lambda p: -p.budget) for key, group in groups.items()}


def variant_table(group: Sequence[Place], twin: Sequence[Place] | None) -> list[str]:
    """One variant: found, as a share of keep everything, kept and fidelity, with marks of what is sure.

    `twin` is the same variant with costs: only policies that differ from it are shown.
    """
    first = group[0]
    logs = first.everything is not None and not math.isnan(first.everything.fidelity)
    policies = [p for p in first.entries if twin is None or _differs(p, group, twin)]
    policies.sort(key=lambda p: (p != ORACLE, -sum(g.entries[p].recall for g in group)))
    rows = []
    if first.everything is not None and twin is None:
        rows.append([EVERYTHING, *[_figures(g, g.everything, logs) for g in group]])
    for policy in policies:
        label = name_of(policy)
        label = f"**{label}**" if policy == OURS else label
        rows.append([label, *(_marked(g, policy, logs) for g in group)])
    held = [e.occupancy for g in group for e in g.entries.values() if not math.isnan(e.occupancy)]
    measure = "coverage@10" if first.need == "coverage" else "recall@10"
    own = "; fidelity" if logs else ""
    lines = table(["policy", *(f"{100 * g.budget:.4g} %" for g in group)], rows)
    return [
        *lines,
        f"{measure} in % (of keep everything; kept{own}) · {first.queries:,} queries that need something · "
        f"watermark {100 * first.watermark:.4g} % · mean occupancy {points(sum(held) / len(held), 0)} % of the cap"
        + (f" · drawn by {unit_of(some.parts)}" if (some := first.entries.get(REFERENCE)) else ""),
        "",
    ]


def _differs(policy: str, group: Sequence[Place], twin: Sequence[Place]) -> bool:
    pairs = zip(group, twin, strict=True)
    return any(a.entries[policy].recall != b.entries[policy].recall for a, b in pairs)


def _figures(place: Place, entry: Entry | None, logs: bool) -> str:
    if entry is None:
        return "–"
    whole = place.everything.recall if place.everything else math.nan
    share = entry.recall / whole if whole else math.nan
    more = f"; {points(entry.fidelity, 0)}" if logs else ""
    return f"{points(entry.recall)} ({points(share, 0)}; {points(entry.kept, 0)}{more})"


def _marked(place: Place, policy: str, logs: bool) -> str:
    """The figures, with ▲ ▼ against coherence, ° below random, and bold for the best fixed."""
    text = _figures(place, place.entries.get(policy), logs)
    if policy in NOT_PAIRED:
        return text
    if is_fixed(policy) and place.best().policy == policy:
        text = f"**{text}**"
    if policy != REFERENCE and REFERENCE in place.entries:
        by = place.against(policy, REFERENCE)
        text += " ▲" if by.above else " ▼" if by.below else ""
    if policy != "random" and "random" in place.entries:
        text += " °" if place.against(policy, "random").below else ""
    return text


def against_table(places: Sequence[Place]) -> list[str]:
    """Ours against coherence, random and the best fixed policy of each place."""
    rows = []
    for p in places:
        if OURS in p.entries:
            best = p.best().policy
            rest = (signed(p.against(OURS, other)) for other in (REFERENCE, "random", best))
            rows.append([p.name, *rest, name_of(best)])
    return table(["where", "− coherence", "− random", "− best fixed", "which"], rows)


def regret_table(ranked: Sequence[Regret], fewest: int = 0) -> list[str]:
    rows = [
        [
            f"**{name_of(r.policy)}**" if r.policy == OURS else name_of(r.policy),
            points(r.mean),
            points(r.worst),
            r.where.name,
            f"{100 * r.within:.0f}",
        ]
        for r in ranked
    ]
    return table(["policy", "mean", "worst", "where", "within 1 point, % of cells"], rows)


def loss_table(found: Sequence[Loss]) -> list[str]:
    rows = [
        [
            loss.place.name,
            points(loss.place.entries[OURS].recall),
            name_of(loss.best),
            signed(loss.by),
        ]
        for loss in found
    ]
    return table(["where", "adaptive", "best fixed", "difference"], rows)


def workload_table(cells: Sequence[Cell], figure: str = "recall") -> list[str]:
    """Policies down, workloads across, at one budget; the best of each column bold."""
    columns = list(dict.fromkeys((c.workload, c.variant) for c in cells))
    found = {(c.policy, c.workload, c.variant): getattr(c, figure) for c in cells}
    best = {
        column: max(v for (_, *where), v in found.items() if tuple(where) == column)
        for column in columns
    }
    rows = []
    for policy in dict.fromkeys(c.policy for c in cells):
        row = [name_of(policy)]
        for column in columns:
            value = found.get((policy, *column), math.nan)
            text = points(value)
            row.append(f"**{text}**" if value == best[column] else text)
        rows.append(row)
    return table(["policy", *(f"{w} · {v}" for w, v in columns)], rows)


def spread_of(cells: Sequence[Cell]) -> dict[str, Any]:
    """For a table of policies and workloads: how far each policy is from the best of each column, at most."""
    worst: dict[str, float] = {}
    for column in dict.fromkeys((c.workload, c.variant) for c in cells):
        here = [c for c in cells if (c.workload, c.variant) == column]
        top = max(c.recall for c in here)
        for c in here:
            worst[c.policy] = max(worst.get(c.policy, 0.0), top - c.recall)
    return worst


def online_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        [
            f"{r['workload']} · {r['variant']}",
            f"{r['compactions']:,}",
            f"{r['same']:,}",
            f"{r['apart']:.1e}",
            f"{r['entries']:,}",
            f"{r['kept_us']:,.0f}",
            f"{r['anew_us']:,.0f}",
        ]
        for r in rows
    ]
    heads = (
        "where|compactions|same victims|largest difference|entries|kept up, µs|computed anew, µs"
    )
    return table(heads.split("|"), lines)


def gate_table(gate: dict[str, Any]) -> list[str]:
    """How much queries recur, how far the gate opens there, and what its two ends would have found."""
    found = {(c.workload, c.variant, c.policy): c for c in loaded(gate["ends"])}
    rows = []
    for m in gate["measured"]:
        where = m["workload"], m["variant"]
        ends = [
            found.get((*where, p)) for p in ("adaptive:goal=evidence", OURS, "adaptive:goal=replay")
        ]
        rows.append(
            [
                " · ".join(where),
                f"{m['low']:.2f} / {m['middle']:.2f} / {m['high']:.2f}",
                f"{m['open']:.2f}",
                *("–" if c is None else points(c.recall) for c in ends),
                *("–" if c is None else points(c.fidelity) for c in ends),
            ]
        )
    heads = "where|recurring: least / middle / most|gate|g = 0|auto|g = 1|fidelity g = 0|auto|g = 1"
    return table(heads.split("|"), rows)


def feedback_table(rows: list[dict[str, Any]], budgets: Sequence[float]) -> list[str]:
    """What was found with each kind of caller, and how far that is from a silent one's."""
    silent = {r["workload"]: r["found"] for r in rows if r["caller"] == "silent"}
    lines = []
    for row in rows:
        cells = [row["workload"], row["caller"]]
        for now, before in zip(row["found"], silent[row["workload"]], strict=True):
            apart = "" if row["caller"] == "silent" else f" ({100 * (now - before):+.1f})"
            cells.append(points(now) + apart)
        lines.append(cells)
    return table(["workload", "the caller confirms", *(f"{100 * b:.0f} %" for b in budgets)], lines)


def twin_of(variant: str) -> str | None:
    return variant.removesuffix(COSTLESS) if variant.endswith(COSTLESS) else None
