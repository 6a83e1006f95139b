"""One moment of a stream, looked at closely: the plan that a store would make, and why."""

from __future__ import annotations

from memsift.evaluation.replay import Clock
from memsift.evaluation.trace import Stream
from memsift.plan import Plan
from memsift.policies import CompactionPolicy
from memsift.store import MemoryStore


def plan_at(stream: Stream, share: float, policy: CompactionPolicy, target: float = 0.5) -> Plan:
    """The plan to keep `target` of what a store without a budget holds after `share` of a stream."""
    clock = Clock(stream)
    store = MemoryStore(stream.vectors.shape[1], None, policy, clock=lambda: clock.now)
    for kind, row in stream.events():
        if kind == "query":
            store.search(stream.queries[row], touch=5)
        elif kind == "add":
            if row >= share * len(stream):
                break
            clock.at(row)
            store.add(stream.vectors[row])
    return store.plan(target)


def explained(plan: Plan, ids: list[int], titles: list[str] | None) -> str:
    """Why each of these entries stays or leaves, in words."""
    lines = []
    for id_ in ids:
        why = plan.explain(id_)
        title = f' "{titles[id_]}"' if titles else ""
        lines.append(f"entry {id_}{title}: {why['verdict']}")
        for name, part in why["signals"].items():
            lines.append(
                f"  {name:<10} {part['value']:.3f} × {part['weight']:.2f} = {part['contribution']:.4f}"
                f"   {part['share']:>4.0%} of its score"
            )
        lines.append(
            f"  score {why['score']:.4f}, rank {why['rank']:,} of {why['of']:,}, {why['margin']:+.4f} from the cut"
        )
    return "\n".join(lines)
