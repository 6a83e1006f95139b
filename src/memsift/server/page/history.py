"""What the audit chain tells of the past: its last records, and how much left and came back over time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from memsift.errors import CorruptStore
from memsift.server.page.projection import spread_evenly

if TYPE_CHECKING:
    from memsift.storage.ledger import Ledger

STEPS = 240


def records(ledger: Ledger, before: int, limit: int) -> dict[str, Any]:
    """At most `limit` records below seq `before`, newest first. What cannot be read is left to `verify` to name."""
    found = [record for record in _read(ledger.bodies()) if record["seq"] < before]
    return {
        "records": [_row(record) for record in reversed(found[-limit:])],
        "older": max(0, len(found) - limit),
        "count": len(ledger),
        "head": _head(ledger),
    }


def _head(ledger: Ledger) -> dict[str, Any] | None:
    """Where the chain ends; None if its last record cannot be read."""
    try:
        head = ledger.head()
    except CorruptStore:
        return None
    return {"seq": head.seq, "hash": head.hash, "note": head.text()}


def series(bodies: Iterable[bytes]) -> dict[str, Any]:
    """Evicted and restored entries, added up over the records that the chain still holds.

    Returns
    -------
    dict
        `times` (unix seconds), `evicted`, `restored`: at most 240 of each, the last one always among them. `pruned`:
        how many older records the chain no longer holds. `readable`: whether all records could be read.
    """
    count, times, evicted, restored, first = 0, [], [], [], 1
    gone, back = 0, 0
    for count, record in enumerate(_read(kept := list(bodies)), 1):
        first = record["seq"] if count == 1 else first
        if record["kind"] == "compaction":
            gone += record["evicted_count"]
        elif record["kind"] == "restore":
            back += record["note"].get("restored", 0)
        times.append(record["time"] / 1e9)
        evicted.append(gone)
        restored.append(back)
    chosen = spread_evenly(len(times), STEPS)
    return {
        **{
            name: np.asarray(values)[chosen].tolist()
            for name, values in (("times", times), ("evicted", evicted), ("restored", restored))
        },
        "records": len(times),
        "pruned": first - 1,
        "readable": count == len(kept),
    }


def _read(bodies: Iterable[bytes]) -> Iterable[dict[str, Any]]:
    """Records up to the first that is none. Light reading, for drawing: only `verify` judges."""
    for body in bodies:
        try:
            record = json.loads(body)
            usable = all(type(record[name]) is int for name in ("seq", "time", "evicted_count"))
            usable = usable and all(isinstance(record[name], dict) for name in ("note", "after"))
        except (ValueError, KeyError, TypeError, RecursionError):
            return
        if not usable:
            return
        yield record


def _row(record: dict[str, Any]) -> dict[str, Any]:
    policy = record.get("policy")
    return {
        "seq": record["seq"],
        "time": record["time"] / 1e9,
        "kind": str(record["kind"]),
        "policy": policy.get("name") if isinstance(policy, dict) else None,
        "evicted": record["evicted_count"],
        "restored": record["note"].get("restored", 0),
        "spared": record.get("spared", 0),
        "forced": bool(record.get("forced")),
        "entries": record["after"].get("entries"),
    }
