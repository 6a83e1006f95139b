"""How figures are spelled and what they say: shared by tables, pictures and the page."""

from __future__ import annotations

from collections.abc import Sequence

from memsift.evaluation.report.panels import KEEP_EVERYTHING, ORACLE, RANDOM, Panel, Row

MISSING = "–"
QUESTION = "How much of what is needed is still found"
BOUNDS = (
    "Random is the floor: it forgets blindly. Keep everything and the oracle are the ceilings: "
    "the one never forgets, the other forgets with the answers in hand."
)


def percent(share: float, digits: int = 1) -> str:
    """A share as per cent without the sign, `61.3`; a dash where there is none."""
    return f"{100 * share:.{digits}f}" if share == share else MISSING


def budget_label(budget: float) -> str:
    return f"{100 * budget:.4g} %"


def printable(text: str) -> str:
    """`text` on one line and without control characters, which could steer a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def measure(panel: Panel) -> str:
    return "coverage@10" if panel.need == "coverage" else "recall@10"


def heading(panel: Panel, among: Sequence[Panel]) -> str:
    """The panel's name; says watermark or measure only where two panels differ in nothing else."""
    name = f"{printable(panel.workload)} · {printable(panel.variant)}"
    twins = [p for p in among if (p.workload, p.variant) == (panel.workload, panel.variant)]
    if len({p.need for p in twins}) > 1:
        name += f" · {measure(panel)}"
    if len({p.watermark for p in twins}) > 1:
        name += f" · watermark {budget_label(panel.watermark)}"
    return name


def circumstances(panel: Panel) -> str:
    """Queries, watermark and mean occupancy: what a reader needs to trust the figures."""
    low, high = panel.queries
    count = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    parts = [
        f"{count} {'query' if high == 1 else 'queries'}",
        f"watermark {budget_label(panel.watermark)}",
        f"mean occupancy {percent(panel.occupancy, 0)} % of the cap",
    ]
    return " · ".join(parts)


def finding(panel: Panel) -> str:
    """The main finding in words, at the tightest budget that says anything."""
    budget = next((b for b in panel.budgets if panel.best(b)), None)
    if budget is None:
        return _ceilings_only(panel)
    best = panel.best(budget)
    at = f"At a budget of {budget_label(budget)}"
    value = f"{percent(best[0].recall(budget))} % of what is needed"
    names = [printable(row.policy) for row in best]
    rivals = [row for row in panel.contenders if row.recall(budget) == row.recall(budget)]
    if names == [RANDOM] and len(rivals) > 1:
        text = f"{at}, no policy does better than random, which finds {value}"
    else:
        verb = "finds" if len(names) == 1 else "find"
        text = f"{at}, {_and(names)} {verb} {value}"
        text += ", more than any other policy" if len(rivals) > len(best) else ""
    others = _bounds(panel, budget, best)
    return f"{text}; {_and(others)}." if others else f"{text}."


def _bounds(panel: Panel, budget: float, told: Sequence[Row]) -> list[str]:
    names = {RANDOM: "random finds", ORACLE: "the oracle", KEEP_EVERYTHING: "keeping everything"}
    parts: list[str] = []
    for policy, name in names.items():
        row = panel.row(policy)
        value = row.recall(budget) if row is not None else float("nan")
        if row not in told and value == value:
            verb = "" if parts or policy == RANDOM else " finds"
            parts.append(f"{name}{verb} {percent(value)} %")
    return parts


def _ceilings_only(panel: Panel) -> str:
    for budget in panel.budgets:
        parts = _bounds(panel, budget, ())
        if parts:
            text = f"At a budget of {budget_label(budget)}, {_and(parts)} of what is needed"
            return f"{text}; no policy was measured."
    return "No query carries a label, so nothing was measured."


def _and(parts: Sequence[str]) -> str:
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
