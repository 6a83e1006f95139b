"""What the budget allows: how many newcomers go in, whether they can stay at all, and what must leave for them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.admission import Batch
from memsift.budget import Budget, Size, share_of
from memsift.errors import BudgetExceeded, InvalidValue
from memsift.kernels import Rows
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
        # Half of three entries keeps two: never more leaves than was asked.
        wanted = Budget(entries=max(1, share_of(held, share))) if share else nothing
    else:
        entries = checks.integer(target, "target as a number of entries", 0, checks.LARGEST_INT)
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
            weight, pins = np.ones(len(batch), np.int64), int(np.count_nonzero(held))
        else:
            column, weight = table.column("nbytes" if unit == "bytes" else unit), batch.weight(unit)
            pins = int(column[held].sum())
        # Each newcomer beside the pinned ones that came before it; the others can make room.
        needed = pins + int((np.cumsum(weight * pinned) + weight * ~pinned).max())
        if needed > limit:
            raise BudgetExceeded(_too_much(unit, limit, needed - limit))


def _too_much(unit: str, limit: int, excess: int) -> str:
    return (
        f"pinned entries and the newcomer must fit into the budget of {limit:,} {unit}; "
        f"they take {limit + excess:,}. Nothing was changed"
    )


def automatic_plan(
    view: MemoryView,
    policy: CompactionPolicy,
    budget: Budget,
    watermark: float,
    newcomers: Rows,
    revision: int,
) -> Plan:
    """What leaves when the budget is exceeded: down to the watermark, but not the newcomers, and half at most.

    Parameters
    ----------
    newcomers : (m,) intp
        Rows for whose sake room is made; they are no candidates.

    Raises
    ------
    BudgetExceeded
        Newcomers and pinned entries do not fit together.
    """
    locked: npt.NDArray[np.bool_] = view.pinned.copy()
    locked[newcomers] = True
    held = Size(
        int(np.count_nonzero(locked)), int(view.nbytes[locked].sum()), int(view.cost[locked].sum())
    )
    for unit, excess in budget.excess(held).items():
        raise BudgetExceeded(_too_much(unit, budget.limits[unit], excess))
    # What cannot leave may take more than the watermark, though never more than the budget.
    low = {u: max(limit, getattr(held, u)) for u, limit in budget.scaled(watermark).limits.items()}
    plan = make_plan(view, policy, Budget(**low), locked, revision)
    if not plan.forced:
        return plan
    plan = make_plan(view, policy, budget, locked, revision)
    if plan.forced:
        return plan  # the budget itself demands more than half
    # The other limits stay, for a policy whose choices for two sizes are not one within the other.
    half = replace(budget, entries=max(len(view) - len(view) // 2, held.entries))
    return make_plan(view, policy, half, locked, revision)
