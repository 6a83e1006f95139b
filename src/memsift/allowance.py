"""What the budget allows: how many newcomers go in, whether they can stay at all, and what must leave for them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.admission import Batch
from memsift.budget import Budget, Size
from memsift.errors import BudgetExceeded, InvalidValue
from memsift.plan import Plan, make_plan
from memsift.policies.base import CompactionPolicy
from memsift.view import MemoryView

if TYPE_CHECKING:
    from memsift.table import EntryTable


def target_of(target: Any, held: int, budget: Budget, watermark: float, force: bool) -> Budget:
    """The budget that a `target` means for a memory of `held` entries: entries, a share of them, a Budget or None."""
    if target is None:
        if not budget.limits:
            raise InvalidValue("target must be given for a store without a budget; got None")
        return budget.scaled(watermark)
    nothing = Budget(bytes=0)
    if isinstance(target, Budget):
        wanted = target
    elif isinstance(target, (float, np.floating)):
        share = checks.fraction(target, "target as a share of the entries")
        # Rounded up: half of three entries keeps two, and never evicts more than was asked.
        wanted = Budget(entries=max(1, math.ceil(share * held - 1e-9))) if share else nothing
    else:
        entries = checks.integer(target, "target as a number of entries", 0)
        wanted = Budget(entries=entries) if entries else nothing
    if held and not force and wanted.limits.get("bytes") == 0:
        raise InvalidValue("target must leave at least one entry, unless force=True; got 0")
    return wanted


def fitting(budget: Budget, size: Size, batch: Batch, start: int) -> int:
    """How many entries of `batch` from `start` on go in before the budget must be looked at.

    Those that fit, and the first that does not: the same moments as if they came one by one.
    """
    left = len(batch) - start
    over = left
    for unit, limit in budget.limits.items():
        if unit == "entries":
            over = min(over, max(0, limit - size.entries))
        else:
            sums = np.cumsum(batch.weight(unit)[start:]) + getattr(size, unit)
            over = min(over, int(np.searchsorted(sums, limit, side="right")))
    return min(left, over + 1)


def check_room(
    budget: Budget, table: EntryTable, batch: Batch, replacing: int | None = None
) -> None:
    """Refuse newcomers of which one could not stay even if all that may leave left.

    Raises
    ------
    BudgetExceeded
        Naming the unit, its limit, and what pins and newcomer take together.
    """
    if not budget.limits or not len(batch):
        return
    held = table.column("pinned").copy()
    if replacing is not None:
        held[replacing] = False
    pinned = batch.columns["pinned"]
    for unit, limit in budget.limits.items():
        if unit == "entries":
            pins = int(np.count_nonzero(held)) + int(np.count_nonzero(pinned))
            widest = int(not pinned.all())
        else:
            column, weight = table.column("nbytes" if unit == "bytes" else unit), batch.weight(unit)
            pins = int(column[held].sum()) + int(weight[pinned].sum())
            widest = int(weight[~pinned].max(initial=0))
        if pins + widest > limit:
            raise BudgetExceeded(
                f"pinned entries and the newcomer must fit into the budget of {limit:,} {unit}; "
                f"they take {pins + widest:,}. Nothing was changed"
            )


def automatic_plan(
    view: MemoryView,
    policy: CompactionPolicy,
    budget: Budget,
    watermark: float,
    newcomer: int,
    revision: int,
) -> Plan:
    """What leaves when the budget is exceeded: down to the watermark, but not the newcomer, and half at most.

    Parameters
    ----------
    newcomer : int
        The row that tipped the budget over; it is no candidate.
    """
    locked: npt.NDArray[np.bool_] = view.pinned.copy()
    locked[newcomer] = True
    held = Size(
        int(np.count_nonzero(locked)), int(view.nbytes[locked].sum()), int(view.cost[locked].sum())
    )
    # What cannot leave may take more than the watermark, though never more than the budget.
    low = {u: max(limit, getattr(held, u)) for u, limit in budget.scaled(watermark).limits.items()}
    plan = make_plan(view, policy, Budget(**low), locked, revision)
    if not plan.forced:
        return plan
    plan = make_plan(view, policy, budget, locked, revision)
    if plan.forced:
        return plan  # the budget itself demands more than half
    half = Budget(entries=max(len(view) - len(view) // 2, held.entries))
    return make_plan(view, policy, half, locked, revision)
