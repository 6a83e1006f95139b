"""A plan by what a scan gives: the way for every source that cannot score by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.allowance import target_of
from memsift.backends.base import Scanned, Share, Source, SourcePlan
from memsift.backends.ids import Id, numbers, to_json
from memsift.budget import Budget
from memsift.errors import InvalidValue
from memsift.plan import Plan, make_plan
from memsift.policies.base import CompactionPolicy
from memsift.vectors import as_unit_rows
from memsift.view import COLUMNS, MemoryView

# Victims whose reasons a plan tells: so many of the worst, and so many of those nearest to the cut.
SHOWN = 5
# Memories of a plan whose reasons are told: the largest.
TOLD = 3


def plan_by_scan(
    source: Source,
    policy: CompactionPolicy,
    keep: int | float,
    *,
    by_tenant: bool = False,
    context: npt.ArrayLike | None = None,
    vectors: Callable[[list[Id]], Any] | None = None,
) -> SourcePlan:
    """What `Source.plan` promises, by reading the columns that the policy needs and deciding here.

    `vectors` gives rows (n, dim) that are read when somebody looks at them, `kernels.Vectors`; without it the scan
    gives all at once.

    Raises
    ------
    InvalidValue
        `keep` is not at least 1, nor a share above 0; or the policy needs what the source has not.
    BudgetExceeded
        Pinned entries alone are more than what may stay.
    """
    keep = checked_keep(keep)
    needs = needed(source, policy)
    window = None if context is None or not len(np.asarray(context)) else as_window(context)
    later = vectors if "vectors" in needs else None
    found = _joined(list(source.scan(needs if later is None else needs - {"vectors"})))
    groups = _groups(found.tenants) if by_tenant else {None: np.arange(len(found))}
    shares, rows, scores, reasons = list[Share](), list[int](), list[float](), list[Any]()
    told = sorted(groups, key=lambda tenant: -groups[tenant].size)[:TOLD]
    for tenant, members in groups.items():
        if not members.size:
            continue
        ids = [found.ids[row] for row in members]
        columns = {name: array[members] for name, array in found.columns.items()}
        if later is not None:
            columns["vectors"] = later(ids)
        plan = _decide(ids, columns, policy, keep, window)
        worst = plan.worst()
        shares.append(
            Share(
                tenant,
                len(ids),
                int(np.count_nonzero(plan.view.pinned)),
                worst.size,
                None if plan.cut is None else float(plan.cut),
            )
        )
        rows += members[worst].tolist()
        scores += [np.nan] * worst.size if plan.scores is None else plan.scores[worst].tolist()
        reasons += [
            {**plan.explain(int(plan.view.ids[row])), "id": to_json(ids[row]), "tenant": tenant}
            for row in dict.fromkeys([*worst[:SHOWN], *worst[-SHOWN:]])
            if tenant in told
        ]
    return SourcePlan(
        source.name,
        policy,
        keep,
        shares,
        [found.ids[row] for row in rows],
        [found.marks[row] for row in rows],
        [found.tenants[row] for row in rows],
        np.array(scores, np.float64),
        reasons,
    )


def checked_keep(keep: object) -> int | float:
    """`keep` as a number of entries of at least 1, or as a share above 0, up to 1."""
    if isinstance(keep, (float, np.floating)):
        return checks.fraction(keep, "keep as a share of the entries", zero=False)
    return checks.integer(keep, "keep as a number of entries", 1, checks.LARGEST_INT)


def needed(source: Source, policy: CompactionPolicy) -> frozenset[str]:
    """The columns to ask for: what the policy needs, and the last access, by which ties are decided.

    Raises
    ------
    InvalidValue
        The source has not all that the policy needs, naming both.
    """
    needs: frozenset[str] = getattr(policy, "needs", source.provides) - {"context"}
    missing = sorted(needs - source.provides)
    if missing:
        raise InvalidValue(
            f"policy must need no more than {source.name} provides "
            f"({', '.join(sorted(source.provides))}); {policy.name} needs {', '.join(missing)} too"
        )
    return needs | ({"accessed_tick", "cost"} & source.provides)


def as_window(context: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """The last queries as unit rows: (w, dim) float32."""
    return as_unit_rows(context, None, "context")


def unit_or_zero(vectors: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Unit rows of `vectors` (n, dim), rows of zeros left as they are: they have no direction."""
    out = np.array(vectors, np.float32)
    some = out.any(1)
    if some.any():
        out[some] = as_unit_rows(np.asarray(vectors)[some], None, "vectors")
    return out


def view_of(
    ids: Sequence[Id],
    columns: dict[str, Any],
    context: npt.NDArray[np.float32] | None,
) -> MemoryView:
    """The view that a policy sees of some entries of a source. `vectors` may be `kernels.Vectors` of unit rows."""
    arrays = {name: array for name, array in columns.items() if name in COLUMNS}
    vectors = columns.get("vectors")
    # Where nobody looks at vectors, something must stand in their place.
    if vectors is None:
        vectors = np.ones((len(ids), 1), np.float32)
    rows = unit_or_zero(vectors) if isinstance(vectors, np.ndarray) else vectors
    dim = rows.shape[1]
    window = np.empty((0, dim), np.float32)
    if context is not None and "vectors" in columns:
        window = context
    if window.shape[1] != dim:
        raise InvalidValue(
            f"context must have {dim} dimensions, as the source has; got {window.shape[1]}"
        )
    plain = MemoryView.from_arrays(
        np.ones((len(ids), 1), np.float32), ids=numbers(ids), now=time.time(), **arrays
    )
    frozen = {name: getattr(plain, name) for name in COLUMNS}
    return MemoryView(frozen, lambda: rows, window, plain.tick, plain.now)


def _decide(
    ids: list[Id],
    columns: dict[str, Any],
    policy: CompactionPolicy,
    keep: int | float,
    window: npt.NDArray[np.float32] | None,
) -> Plan:
    view = view_of(ids, columns, window)
    target = target_of(keep, len(ids), Budget(), 1.0, False)
    return make_plan(view, policy, target, view.pinned)


def _joined(batches: list[Scanned]) -> Scanned:
    if not batches:
        return Scanned([], [], {}, [])
    return Scanned(
        [id_ for batch in batches for id_ in batch.ids],
        [mark for batch in batches for mark in batch.marks],
        {
            name: np.concatenate([batch.columns[name] for batch in batches])
            for name in batches[0].columns
        },
        [tenant for batch in batches for tenant in batch.tenants],
    )


def _groups(tenants: list[str | None]) -> dict[str | None, npt.NDArray[np.intp]]:
    """The rows of each tenant, those without one first, then by name."""
    out: dict[str | None, list[int]] = {}
    for row, tenant in enumerate(tenants):
        out.setdefault(tenant, []).append(row)
    order = sorted(out, key=lambda tenant: (tenant is not None, (tenant or "").encode()))
    return {tenant: np.array(out[tenant], np.intp) for tenant in order}
