"""A durable store seen whole, by value."""

from __future__ import annotations

from typing import Any

import numpy as np

from memsift.durable import DurableStore
from memsift.storage.file import translated
from memsift.view import COLUMNS

STORED = [name for name in COLUMNS if name != "revision"]


def dump(store: DurableStore) -> dict[str, Any]:
    """Everything that must survive: two equal dumps are two equal memories."""
    return {**live(store), **resting(store), "audit": list(store.audit.bodies())}


def live(store: Any) -> dict[str, Any]:
    """What a store in RAM has as well."""
    view, memory = store.view(), store._memory
    order = np.argsort(view.ids)
    return {
        **{name: getattr(view, name)[order].tobytes() for name in STORED},
        "vectors": view.vectors[order].tobytes(),
        "context": view.context.tobytes(),
        "seen": memory.context.seen,
        "metadata": [entry and entry.metadata for entry in store.get(view.ids[order])],
        "tick": view.tick,
        "next_id": memory.next_id,
        "counts": dict(memory.counts),
        "budget": str(store.budget),
    }


def resting(store: DurableStore) -> dict[str, Any]:
    """The archive, with the time at which each of its entries came."""
    span = store._journal.ns << 40, (store._journal.ns + 1) << 40
    query = (
        "SELECT key, archived_at FROM entry WHERE archived_at IS NOT NULL AND key >= ? AND key < ?"
    )
    with store._reading, translated():
        found = store._archive.entries()
        times = store._db.execute(f"{query} ORDER BY key", span).fetchall()
    return {
        **{f"archived {name}": found.columns[name].tobytes() for name in STORED},
        "archived vectors": found.vectors.tobytes(),
        "archived metadata": [note or {} for note in found.metadata or []],
        "archived at": times,
        "texts": store.texts.all(),
    }


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [name for name in one if one[name] != other.get(name)]
