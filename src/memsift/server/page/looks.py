"""A look: one plan, and a map of the memory as that plan saw it. A few are kept, so that what was seen can be done."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memsift.errors import InvalidValue, MemsiftError, StaleView
from memsift.plan import Plan
from memsift.server.page.projection import Axes, fit, spread_evenly

if TYPE_CHECKING:
    from memsift.agent import AgentMemory

Rows = npt.NDArray[np.intp]

KEPT = 6
POINTS = 2_000
VICTIMS = 4_000
TRIES = 5
# The axes stay until this share of the entries came or went: a map that turns at each addition is none.
DRIFT = 0.1

ORDERS = ("score", "-score", "-uses", "-accessed", "-created", "created")
SHOWN = ("all", "victims", "pinned")


class GoneLook(MemsiftError, LookupError):
    """A look that is kept no longer, or never was."""


@dataclass(frozen=True)
class Look:
    """A plan, and where some of its entries lie on a map.

    Parameters
    ----------
    key : str
        By which the page names it.
    rows : (m,) intp
        Rows of the plan's view that are on the map, ascending: an even sample, and the victims.
    places : (m, 2) float32
    axes : Axes
    """

    key: str
    plan: Plan
    rows: Rows
    places: npt.NDArray[np.float32]
    axes: Axes

    def order(self, shown: str, by: str) -> Rows:
        """Rows of all entries, of the victims or of the pinned ones, in an order."""
        view, plan = self.plan.view, self.plan
        scores = view.accessed_tick if plan.scores is None else plan.scores
        keys: dict[str, Any] = {
            "score": scores,
            "-score": -scores,
            "-uses": -view.use_count,
            "-accessed": -view.accessed_at,
            "-created": -view.created_at,
            "created": view.created_at,
        }
        everyone = np.ones(len(view), np.bool_)
        chosen = {"all": everyone, "victims": ~plan.keep, "pinned": view.pinned}[shown]
        rows: Rows = np.flatnonzero(chosen)
        rows = rows[np.lexsort((view.ids[rows], view.accessed_tick[rows], keys[by][rows]))]
        return rows


class Looks:
    """The last few looks at a memory."""

    def __init__(self, memory: AgentMemory) -> None:
        self._memory = memory
        self._kept: OrderedDict[str, Look] = OrderedDict()
        self._lock = threading.Lock()
        # One plan at a time: whoever reloads in haste waits, and the memory serves others meanwhile.
        self._thinking = threading.Lock()
        self._axes: tuple[Axes, npt.NDArray[np.int64]] | None = None

    def take(self, target: int | float) -> Look:
        """Plan for a target, and draw the map.

        Raises
        ------
        InvalidValue, BudgetExceeded
            By `AgentMemory.plan`.
        """
        with self._thinking:
            for left in reversed(range(TRIES)):
                try:
                    look = self._draw(self._plan(target))
                    break
                except StaleView:
                    if not left:
                        raise
        with self._lock:
            self._kept[look.key] = look
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return look

    def get(self, key: str) -> Look:
        """A look that was taken before."""
        with self._lock:
            if key not in self._kept:
                raise GoneLook("look must be one of the last few; this one is kept no longer")
            self._kept.move_to_end(key)
            return self._kept[key]

    def _plan(self, target: int | float) -> Plan:
        held = len(self._memory.store)
        if isinstance(target, int) and target > held:
            if held:
                raise InvalidValue(f"target must be from 1 to {held} entries; got {target}")
            target = 0.5  # of nothing
        return self._memory.plan(target)

    def _draw(self, plan: Plan) -> Look:
        view = plan.view
        victims = np.flatnonzero(~plan.keep)
        victims = victims[spread_evenly(victims.size, VICTIMS)]
        # By ids, so that it is the same sample whatever moved in the table.
        sample = np.argsort(view.ids, kind="stable")[spread_evenly(len(view), POINTS)]
        axes = self._axes_of(plan, sample)
        rows = np.union1d(sample, victims)
        return Look(
            secrets.token_urlsafe(9), plan, rows, axes.places(view.take(rows).vectors), axes
        )

    def _axes_of(self, plan: Plan, sample: Rows) -> Axes:
        ids = plan.view.ids
        if self._axes is not None:
            axes, known = self._axes
            stayed = np.intersect1d(ids, known, assume_unique=True).size
            if len(ids) + len(known) - 2 * stayed <= DRIFT * len(known):
                return axes
        before = None if self._axes is None else self._axes[0]
        axes = fit(plan.view.take(sample).vectors, before)
        self._axes = axes, ids
        return axes
