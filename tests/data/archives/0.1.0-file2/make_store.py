"""Writes `agent.memsift` and `agent.json` beside itself, as memsift did with files of version 2. See readme.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from memsift import Budget, MemoryStore

HERE = Path(__file__).parent
DAY = 1_767_225_600.0


def live(path: Path) -> None:
    """Twenty-four entries in a budget of twenty, queries, uses, pins, a compaction, a restore, a log, two spaces."""
    rows = np.sin(np.arange(1.0, 27 * 8 + 1)).reshape(27, 8)
    clock = iter(DAY + np.arange(10_000) * 0.5)
    budget, ages = Budget(entries=20, cost=400), 1e10
    with MemoryStore.open(
        path, 8, budget=budget, grace_seconds=ages, clock=lambda: next(clock)
    ) as store:
        store.record()
        for i in range(20):
            note = {"kind": "fact", "row": i, "word": "größe"} if i % 3 else None
            store.add(
                rows[i], note, cost=i % 7, importance=None if i % 4 else i / 32, pinned=i % 9 == 0
            )
        for query in rows[24:]:
            store.feedback([hit.id for hit in store.search(query, 3)][:1])
        store.add_many(rows[20:24])
        done = store.compact(16)
        store.restore(done.dropped[:1])
    with MemoryStore.open(path, 8, "other", 5, clock=lambda: DAY) as store:
        store.add_many(rows[:3])


def dump(path: Path, namespace: str) -> dict[str, Any]:
    """Every value of a namespace; floats come back from JSON bit for bit."""
    with MemoryStore.open(path, namespace=namespace) as store:
        entries = [store.get(i)[0] for i in sorted(store.view().ids.tolist())]
        return {
            "entries": [
                {**vars(entry), "vector": entry.vector.tolist()} for entry in entries if entry
            ],
            "archived": store.archived().tolist(),
            "context": store.view().context.tolist(),
            "tick": store.stats().tick,
            "records": len(store.audit),
            "budget": store.budget.limits,
        }


if __name__ == "__main__":
    (HERE / "agent.memsift").unlink(missing_ok=True)
    live(HERE / "agent.memsift")
    found = {name: dump(HERE / "agent.memsift", name) for name in ("default", "other")}
    (HERE / "agent.json").write_text(
        json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
