"""What the page gets to see, as JSON-ready values: plain columns, bounded texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from memsift.server.page.looks import VICTIMS, Look
from memsift.types import Compaction

if TYPE_CHECKING:
    from memsift.agent import AgentMemory, Recollection

# Characters of a text in a list; one entry alone is shown whole.
LINE = 400


def summary(look: Look) -> dict[str, Any]:
    """What a plan would do, in figures and words."""
    plan = look.plan
    values = plan.to_dict(limit=0)
    regret = values["expected_regret"]
    return {
        "look": look.key,
        "policy": values["policy"],
        "target": values["target"],
        "before": values["before"],
        "after": values["after"],
        "victims": len(plan),
        "pinned": int(np.count_nonzero(plan.view.pinned)),
        "forced": plan.forced,
        "cut": plan.cut,
        "expected": None if regret is None else plan.expected.lines(),
    }


def points(look: Look) -> dict[str, Any]:
    """The map, column by column: what is where, and what it looks like."""
    plan, rows = look.plan, look.rows
    view = plan.view
    size = max(float(np.abs(look.places).max(initial=0.0)), 1e-6)
    scores = None if plan.scores is None else plan.scores[rows].round(4).tolist()
    return {
        "id": view.ids[rows].tolist(),
        "x": (look.places[:, 0] / size).round(4).tolist(),
        "y": (look.places[:, 1] / size).round(4).tolist(),
        "score": scores,
        "uses": view.use_count[rows].tolist(),
        "pinned": view.pinned[rows].astype(int).tolist(),
        "victim": (~plan.keep[rows]).astype(int).tolist(),
        "of": len(view),
        "all_victims": len(plan) <= VICTIMS,
        "share": round(look.axes.share, 4),
    }


def entries(memory: AgentMemory, look: Look, rows: Any) -> list[dict[str, Any]]:
    """Some entries of a look, with their texts and why they stay or leave."""
    ids = [int(id_) for id_ in look.plan.view.ids[rows]]
    found = memory.get(ids)
    return [_judged(look, id_, now) for id_, now in zip(ids, found, strict=True)]


def _judged(look: Look, id_: int, now: Recollection | None) -> dict[str, Any]:
    why = look.plan.explain(id_)
    row = int(np.flatnonzero(look.plan.view.ids == id_)[0])
    return {
        **(recollection(now) if now is not None else {"id": id_, "text": None}),
        "gone": now is None or now.archived,
        "verdict": why["verdict"],
        "score": why.get("score"),
        "margin": why.get("margin"),
        "rank": why.get("rank"),
        "of": why.get("of"),
        "signals": _signals(look, row, why.get("signals", {})),
        "uses": int(look.plan.view.use_count[row]),
    }


def _signals(look: Look, row: int, parts: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """Each signal's part of a score, and the shares of all entries for whom it is smaller and larger."""
    out = []
    for name, part in parts.items():
        term = look.plan.named_terms[name]
        all_ = term.values if term.weight >= 0 else -term.values
        below, above = float(np.mean(all_ < all_[row])), float(np.mean(all_ > all_[row]))
        out.append({"name": name, **part, "below": round(below, 4), "above": round(above, 4)})
    return out


def recollection(found: Recollection, longest: int | None = LINE) -> dict[str, Any]:
    """An entry as it is now."""
    text = found.text
    cut = text is not None and longest is not None and len(text) > longest
    return {
        "id": found.id,
        "text": text if text is None else text[:longest],
        "cut": cut,
        "created_at": found.created_at,
        "accessed_at": found.accessed_at,
        "accesses": found.access_count,
        "uses": found.use_count,
        "cost": found.cost,
        "pinned": found.pinned,
        "archived": found.archived,
    }


def hit(found: Recollection) -> dict[str, Any]:
    """What a search found, and how near it is."""
    return {**recollection(found), "score": found.score}


def compaction(done: Compaction | None) -> dict[str, Any]:
    """What left, and what was spared."""
    if done is None:
        return {"evicted": 0, "spared": 0}
    return {"evicted": len(done.dropped), "spared": len(done.spared), "left": done.after.entries}
