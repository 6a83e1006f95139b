"""A plan in words, for a terminal of 80 columns."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from memsift.errors import StaleView
from memsift.policies.base import policy_name

if TYPE_CHECKING:
    from memsift.plan import Plan

WIDTH = 78
SHOWN = 5
COLUMNS = 3  # beside the id, the score and the distance to the cut


def describe(plan: Plan) -> str:
    """What leaves, what it frees, and the reasons of the worst and of the closest victims."""
    before, after, count = plan.before, plan.after, len(plan)
    share = f" ({count / before.entries:.0%})" if before.entries else ""
    lines = [
        f"Plan: evict {count:,} of {before.entries:,} entries{share}, keep {after.entries:,}",
        f"  policy  {policy_name(plan.policy)}"[:WIDTH],
        f"  target  {plan.target}"[:WIDTH],
        f"  frees   {_size(before.bytes - after.bytes)}, cost {before.cost - after.cost:,}",
    ]
    if plan.forced:
        lines.append("  note    more than half of the store would leave in one step")
    if count:
        with suppress(StaleView):  # once applied, nobody can tell any more
            window, history = plan.expected.lines()
            lines += [f"  regret  {window}"[:WIDTH], f"          {history}"[:WIDTH]]
    if count == 0 or plan.scores is None:
        return "\n".join(lines)
    worst = plan.worst()
    shown = (
        list(worst[:SHOWN]) + ([None] if count > 2 * SHOWN else []) + list(worst[SHOWN:][-SHOWN:])
    )
    parts = _parts(plan, [row for row in shown if row is not None])
    lines.append(_row(["id", *parts, "score", "to the cut"]))
    for row in shown:
        if row is None:
            lines.append(f"  {'...':>12}  {count - 2 * SHOWN:,} more")
            continue
        score = float(plan.scores[row])
        margin = "" if plan.cut is None else _figure(score - plan.cut, "+")
        told = [_figure(part[row]) for part in parts.values()]
        lines.append(_row([f"{plan.view.ids[row]}", *told, _figure(score), margin]))
    return "\n".join(lines)


def _parts(plan: Plan, rows: list[int]) -> dict[str, dict[int, float]]:
    """What makes up the scores of these rows, in as many columns as fit; of more terms, those that set rows apart."""
    parts = {
        name: {row: term.weight * float(term.values[row]) for row in rows}
        for name, term in plan.named_terms.items()
    }
    if len(parts) <= COLUMNS:
        return parts
    spread = {name: max(part.values()) - min(part.values()) for name, part in parts.items()}
    telling = sorted(parts, key=lambda name: -spread[name])[: COLUMNS - 1]
    rest = [part for name, part in parts.items() if name not in telling]
    others = {row: sum(part[row] for part in rest) for row in rows}
    return {name: part for name, part in parts.items() if name in telling} | {"others": others}


def _row(cells: list[str]) -> str:
    short = (cell if len(cell) <= 11 else f"{cell[:10]}…" for cell in cells[1:])
    return f"{cells[0]:>14}" + "".join(f" {cell:>11}" for cell in short)


def _figure(value: float, sign: str = "") -> str:
    return f"{value:{sign}.4f}" if abs(value) < 1e5 else f"{value:{sign}.3e}"


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
