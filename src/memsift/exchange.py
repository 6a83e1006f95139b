"""A store as an .rvf file and back: `save_rvf`, `load_rvf`, and the same for a store with a file."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from memsift import checks
from memsift.budget import Budget
from memsift.errors import DiskTrouble, InvalidValue, MemsiftError
from memsift.formats.rvf import RvfSnapshot, read_rvf, write_rvf
from memsift.policies import AdaptivePolicy, CompactionPolicy, ScoredPolicy, from_dict
from memsift.table import Entries
from memsift.vectors import as_unit_rows
from memsift.view import COLUMNS, MemoryView

if TYPE_CHECKING:
    from memsift.memory import Memory

# Columns that are the table's own business.
OWN = ("ids", "nbytes", "revision")


def save(memory: Memory, path: str | os.PathLike[str], bodies: list[bytes] | None = None) -> None:
    """Write a memory, ascending by id, with its columns, metadata, clocks, window and audit records."""
    view = memory.view()
    order = np.argsort(view.ids, kind="stable")
    notes = memory.table.notes(0, len(view))
    policy = memory.policy
    state: dict[str, Any] = {
        "tick": memory.tick,
        "next_id": memory.next_id,
        "seen": memory.context.seen,
        "counts": memory.counts,
        "budget": memory.budget.limits,
        "low_watermark": memory.low_watermark,
        **memory.lessons.to_state(),
        "policy": policy.to_dict() if isinstance(policy, ScoredPolicy) else {"name": policy.name},
    }
    snapshot = RvfSnapshot(
        ids=view.ids[order],
        vectors=view.vectors[order],
        columns={name: getattr(view, name)[order] for name in COLUMNS if name not in OWN},
        metadata=[notes[slot] for slot in order.tolist()],
        state=state,
        context=view.context,
        chain=bodies,
    )
    at = checks.path(path)
    try:
        write_rvf(at, snapshot)
    except MemsiftError:
        raise
    except OSError as error:
        raise DiskTrouble(f"{at.name} could not be written: {error}") from error


def load(path: str | os.PathLike[str]) -> RvfSnapshot:
    """Read a file, with unit rows and, if other tools wrote it, columns by default."""
    at = checks.path(path)
    try:
        found = read_rvf(at)
    except MemsiftError:
        raise
    except OSError as error:
        raise InvalidValue(f"path must be a readable .rvf; {error}") from None
    order = np.argsort(found.ids, kind="stable")
    ids = found.ids[order]
    given: dict[str, Any] | None = found.columns
    if given is None:
        ticks = np.arange(1, ids.size + 1)
        given = {"created_tick": ticks, "accessed_tick": ticks}
    else:
        given = {name: column[order] for name, column in given.items()}
    rows = as_unit_rows(found.vectors[order], found.dim) if ids.size else found.vectors
    view = MemoryView.from_arrays(rows, ids=ids, **given) if ids.size else None
    columns = {} if view is None else {name: getattr(view, name) for name in COLUMNS}
    notes = None if found.metadata is None else [found.metadata[i] for i in order.tolist()]
    return replace(found, ids=ids, vectors=rows, columns=columns, metadata=notes)


def settings_of(snapshot: RvfSnapshot) -> tuple[Budget, CompactionPolicy, float]:
    """Budget, policy and watermark of the store that wrote the file; defaults where it does not say."""
    state = snapshot.state or {}
    try:
        policy: CompactionPolicy = from_dict(state["policy"])
    except (KeyError, MemsiftError):
        policy = AdaptivePolicy()
    try:
        budget = Budget(**state.get("budget", {}))
        watermark = checks.fraction(state.get("low_watermark", 0.97), "low_watermark", zero=False)
    except (TypeError, MemsiftError) as error:
        raise InvalidValue(f"the file's state must be that of a store; {error}") from None
    return budget, policy, watermark


def fill(memory: Memory, snapshot: RvfSnapshot) -> None:
    """Put what a file holds into an empty memory; the budget holds at the end."""
    if len(memory.table) or memory.next_id:
        raise InvalidValue("a store must be empty to take in a file; this one has had entries")
    state = snapshot.state or {}
    columns, n = dict(snapshot.columns or {}), len(snapshot.ids)
    sizes = [checks.metadata(note)[1] for note in snapshot.metadata or [None] * n]
    columns["nbytes"] = np.array(sizes, np.int64) + memory.table.entry_bytes()
    memory.impressions.clusters.born = int(columns["cluster"].max(initial=0))
    columns["revision"] = np.zeros(n, np.int64)
    last = int(snapshot.ids[-1]) + 1 if n else 0
    ticks = max((int(columns[c].max()) for c in ("created_tick", "accessed_tick") if n), default=0)
    try:
        memory.next_id = max(last, checks.integer(state.get("next_id", 0), "next_id", 0))
        memory.tick = max(ticks, checks.integer(state.get("tick", 0), "tick", 0))
        if snapshot.context is not None and len(snapshot.context):
            seen = checks.integer(state.get("seen", len(snapshot.context)), "seen", 0)
            queries = as_unit_rows(snapshot.context, snapshot.dim, "context")
            memory.context.restore(queries, max(seen, len(queries)))
        memory.lessons.restore(state)
    except (MemsiftError, KeyError, TypeError, ValueError) as error:
        raise InvalidValue(f"the file's state must be that of a store; {error}") from None
    if n:
        memory.table.append(Entries(snapshot.vectors, columns, snapshot.metadata))
        if memory.sink is not None:
            memory.sink.added(memory, 0, snapshot.vectors)
    memory.counts["added"] += n
    memory.hold_budget()
