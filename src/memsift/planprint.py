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
    names = list(plan.named_terms)
    lines.append("  " + "".join(f"{h:>12}" for h in ["id", *names, "score", "to the cut"])[:WIDTH])
    shown = (
        list(worst[:SHOWN]) + ([None] if count > 2 * SHOWN else []) + list(worst[SHOWN:][-SHOWN:])
    )
    for row in shown:
        if row is None:
            lines.append(f"  {'...':>12}  {count - 2 * SHOWN:,} more")
            continue
        score = float(plan.scores[row])
        parts = [t.weight * float(t.values[row]) for t in plan.terms]
        margin = "" if plan.cut is None else f"{score - plan.cut:+.4f}"
        cells = [f"{plan.view.ids[row]}", *(f"{p:.4f}" for p in parts), f"{score:.4f}", margin]
        lines.append("  " + "".join(f"{c:>12}" for c in cells)[:WIDTH])
    return "\n".join(lines)


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
