"""A plan carried out: its victims leave, all at once or a part at a time."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.kernels import Rows
from memsift.plan import Plan
from memsift.policies.base import policy_name
from memsift.types import Compaction, Ids

if TYPE_CHECKING:
    from memsift.memory import Memory
    from memsift.table import EntryTable

Part = Rows | slice


def leaving(
    memory: Memory, plan: Plan, most: int | None = None
) -> Generator[None, None, Compaction]:
    """Evict a plan's victims but those that changed since, or are pinned; all at once, or at most so many at a time.

    Wherever it yields the memory is whole, only smaller, and others may read and change it: whoever is touched, used,
    changed or pinned meanwhile is spared as well. The caller holds the lock when it goes on.
    """
    table = memory.table
    before = after = table.size
    rows = slots = np.flatnonzero(~plan.keep)
    if not table.holds_still(plan.view):
        rows, slots = _found(table, plan.view.ids[rows], rows)
    names = table.column("ids")[slots]
    state = None if memory.sink is None else memory.view().digest()
    spared = []
    changed = _changed(table, slots, plan)
    if changed.any():
        spared.append(names[changed])
        rows, slots, names = rows[~changed], slots[~changed], names[~changed]
    scores = None if plan.scores is None else plan.scores[rows]
    remains = memory.ghosts.remains(names, table.vectors, slots, scores)
    place, revision = table.place, memory.revision
    dropped: list[npt.NDArray[np.int64]] = []
    while slots.size:
        if most is not None:
            try:
                yield
            except (
                GeneratorExit
            ):  # whoever drives this was interrupted: who has left is counted all the same
                if not dropped:
                    raise
                break
        if table.place is not place:
            names, slots = _found(table, names, names)
        now, later = _last(slots, len(table), most)
        going, leaves = names[now], slots[now]
        if memory.revision != revision:
            changed = _changed(table, leaves, plan)
            spared.append(going[changed])
            going, leaves = going[~changed], leaves[~changed]
        size = table.size
        table.leave(leaves, shrink=most is None)
        after -= size - table.size
        dropped.append(going)
        names, slots, place = names[later], slots[later], table.place
    if sum(map(len, dropped)) < remains.ids.size:
        remains = remains.of(_ascending(dropped))
    gone, stayed = remains.ids, _ascending(spared)
    if gone.size:
        memory.ghosts.left(remains, policy_name(plan.policy), memory.tick, memory.clock())
        memory.impressions.clusters.keep(table.column("cluster"))
        memory.revision += 1
    forced = 2 * gone.size > before.entries
    memory.counts["evicted"] += gone.size
    memory.counts["compactions"] += 1
    memory.counts["forced_compactions"] += forced
    done = Compaction(gone, stayed, None, before, after, policy_name(plan.policy), forced)
    if memory.sink is not None and state is not None:
        done = replace(done, audit_head=memory.sink.compacted(memory, plan, done, state))
    memory.last_compaction = done
    return done


def give_back(table: EntryTable, lock: AbstractContextManager[object]) -> None:
    """Give back room that nobody needs without holding others up: rows are copied while they read and add.

    `lock`, which the caller does not hold, keeps others from changing anything.
    """
    with lock:
        if not table.roomy:
            return
        place, plane, rows = table.place, table.plane, table.vectors
    # A little more than is needed, for those who come meanwhile.
    capacity = kernels.padded(len(rows) + len(rows) // 8)
    smaller = plane.roomy(capacity, rows)
    with lock:
        if smaller is None or table.place is not place or len(table) > capacity:
            table.shrink()
            return
        smaller.append(len(rows), plane.span(len(rows), len(table)))
        table.fit(smaller)


def _ascending(parts: list[Ids]) -> Ids:
    return kernels.ascending(np.concatenate(parts)) if parts else np.empty(0, np.int64)


def _found(table: EntryTable, ids: Ids, beside: Rows) -> tuple[Rows, Rows]:
    """Of entries that may have moved: what stands `beside` those that are here, and their slots, ascending."""
    slots = table.slots_of(ids)
    order = np.argsort(slots)[np.count_nonzero(slots < 0) :]
    return beside[order], slots[order]


def _changed(table: EntryTable, slots: Rows, plan: Plan) -> npt.NDArray[np.bool_]:
    """Who was touched, used or changed since the plan was made, or is pinned."""
    changed: npt.NDArray[np.bool_] = table.column("revision")[slots] > plan.revision
    changed |= table.column("pinned")[slots]
    return changed


def _last(slots: Rows, n: int, most: int | None) -> tuple[Part, Part]:
    """Places among the victims' `slots`, ascending, of those that leave next, and of the others.

    The last `most` of n slots are to become free: the victims there leave, and for each survivor there a victim from
    the hole that it would fill were all to leave at once. So nobody moves twice, and all end up where they would then.
    """
    if most is None or slots.size <= most:
        return slice(None), slice(0)
    holes = int(np.searchsorted(slots, n - slots.size))
    tail = max(holes, int(np.searchsorted(slots, n - most)))
    filled = holes - (most - (slots.size - tail))
    every = np.arange(slots.size)
    return (
        np.concatenate([every[filled:holes], every[tail:]]),
        np.concatenate([every[:filled], every[holes:tail]]),
    )
