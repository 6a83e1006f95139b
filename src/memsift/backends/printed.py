"""A source's plan in words, for a terminal of 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memsift.policies.base import policy_name

if TYPE_CHECKING:
    from memsift.backends.base import SourcePlan

WIDTH = 78
MEMORIES = 10


def describe(plan: SourcePlan) -> str:
    """What leaves of which memory, and why the worst and the nearest to the cut do."""
    count, held = len(plan), plan.held
    share = f" ({count / held:.0%})" if held else ""
    lines = [
        f"Plan: let {count:,} of {held:,} entries go{share}, keep {held - count:,}",
        f"  source  {plan.source}"[:WIDTH],
        f"  policy  {policy_name(plan.policy)}"[:WIDTH],
        f"  keep    {plan.keep:,}" if isinstance(plan.keep, int) else f"  keep    {plan.keep:.4g}",
    ]
    if plan.forced:
        lines.append("  note    more than half of a memory would leave in one step")
    if len(plan.shares) > 1 or any(share.tenant is not None for share in plan.shares):
        lines.append("  " + _row(["tenant", "held", "pinned", "leaving", "cut"]))
        largest = sorted(plan.shares, key=lambda s: -s.leaving)
        for s in largest[:MEMORIES]:
            cut = "" if s.cut is None else f"{s.cut:.4f}"
            numbers = [f"{s.held:,}", f"{s.pinned:,}", f"{s.leaving:,}", cut]
            lines.append("  " + _row([safe(s.tenant), *numbers]))
        if len(largest) > MEMORIES:
            lines.append(f"  {'...':>12}  {len(largest) - MEMORIES:,} more")
    return "\n".join(lines + _reasons(plan.reasons))


def _reasons(reasons: list[dict[str, Any]]) -> list[str]:
    told = [reason for reason in reasons if "signals" in reason][:10]
    if not told:
        return []
    names = list(told[0]["signals"])
    lines = ["  " + _row(["id", *names, "score", "to the cut"])]
    for reason in told:
        parts = [f"{reason['signals'][name]['contribution']:.4f}" for name in names]
        margin = "" if reason["margin"] is None else f"{reason['margin']:+.4f}"
        lines.append("  " + _row([safe(reason["id"]), *parts, f"{reason['score']:.4f}", margin]))
    return lines


def _row(cells: list[str]) -> str:
    # As wide as there is room, but no word is cut short or touches its neighbour.
    width = max(8, min(12, (WIDTH - 22) // (len(cells) - 1)) - 1)
    return f"{cells[0]:>20}" + "".join(f" {cell:>{width}}" for cell in cells[1:])


def safe(value: object) -> str:
    """An id or a tenant that a terminal can show: at most 20 characters, none of which steers it."""
    text = value["uuid"] if isinstance(value, dict) and "uuid" in value else value
    words = "(none)" if text is None else str(text)
    words = escaped(words)
    return words if len(words) <= 20 else f"{words[:9]}..{words[-9:]}"


def escaped(text: str) -> str:
    """A text in which no character steers a terminal or ends a line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
