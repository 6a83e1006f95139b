"""Writes `memory.rvf` and `memory.json` beside itself, as memsift 0.1.0 did. See readme.md."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from memsift.formats.rvf import RvfSnapshot, write_rvf

HERE = Path(__file__).parent


def snapshot() -> RvfSnapshot:
    """Twenty entries of dim 8, a window of three queries, two audit records."""
    n, dim = 20, 8
    rows = np.sin(np.arange(1.0, (n + 3) * dim + 1)).reshape(n + 3, dim)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    steps = np.arange(n)
    records = [
        {"seq": seq, "kind": "compaction", "time": 1_767_225_600_000_000_000 + seq, "evicted": 3}
        for seq in range(2)
    ]
    return RvfSnapshot(
        ids=steps * 2 + 1,
        vectors=rows[:n].astype(np.float32),
        columns={
            "created_tick": steps + 1,
            "accessed_tick": steps * 3 % 47 + 1,
            "created_at": 1_767_225_600.0 + steps * 0.125,
            "accessed_at": 1_767_312_000.0 + steps * 0.25,
            "access_count": steps * 7 % 11,
            "use_count": steps * 5 % 3,
            "cost": steps * 13 % 29 + 1,
            "importance": np.where(steps % 4, np.float32(np.nan), steps / np.float32(32)).astype(
                np.float32
            ),
            "pinned": steps % 6 == 0,
        },
        metadata=[{"kind": "fact", "row": i, "word": "größe"} if i % 3 else None for i in range(n)],
        state={"namespace": "default", "tick": 63, "next_id": 41, "budget": {"entries": 20}},
        context=rows[n:].astype(np.float32),
        chain=[
            json.dumps(record, sort_keys=True, separators=(",", ":")).encode() for record in records
        ],
    )


def as_json(value: RvfSnapshot) -> dict[str, object]:
    """Every value of a snapshot; float32 and float64 come back from JSON bit for bit, NaN is null."""
    columns = {name: column.tolist() for name, column in (value.columns or {}).items()}
    columns["importance"] = [None if x != x else x for x in columns["importance"]]
    return {
        "ids": value.ids.tolist(),
        "vectors": value.vectors.tolist(),
        "columns": columns,
        "metadata": value.metadata,
        "state": value.state,
        "context": None if value.context is None else value.context.tolist(),
        "chain": [body.decode() for body in value.chain or []],
    }


if __name__ == "__main__":
    write_rvf(HERE / "memory.rvf", snapshot())
    text = json.dumps(as_json(snapshot()), ensure_ascii=False, indent=1)
    (HERE / "memory.json").write_text(text + "\n", encoding="utf-8")
