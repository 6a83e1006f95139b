"""What an entry says, judged without its text: by its length, its vector, and the questions that passed it by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from memsift.kernels import Float32, Float64
from memsift.learning import Learned, Lengths, unrelated
from memsift.signals import Size
from memsift.signals.base import filled
from memsift.view import MemoryView

# A term of a score: its name, its weight, and its values of some rows.
Part = tuple[str, float, Callable[[MemoryView, Any], Float64]]

ALL = slice(None)
SIZE = Size(cap=64)
LENGTH, NOVELTY, DISTANCE = 2.0, 1.5, 1.5
# How near to a copy, and to the middle of everything, an entry can be taken for.
COPY, MIDDLE = 0.02, 0.98
# What each question since an entry came says against it, and each to which the caller said that some hit helped.
ASKED, ANSWERED = 0.08, 0.08


def said(known: Learned) -> list[Part]:
    """The terms of content, as far as they can tell entries apart."""
    copy = COPY * (1.0 - known.unrelated)
    parts: list[Part] = [
        ("size", LENGTH * known.lengths.trust, SIZE.of),
        ("novelty", NOVELTY, lambda view, rows: _novelty(view.nearest, rows, copy)),
        ("distance", DISTANCE, lambda view, rows: _distance(view.typicality, rows)),
    ]
    questions, answered = known.traffic.questions, known.answered
    if questions:
        parts.append(("questions", -ASKED, _since(questions)))
    if answered:
        parts.append(("answered", -ANSWERED, _since(answered)))
    return parts


def joined(
    lengths: Lengths,
    cost: npt.NDArray[np.int64],
    nearest: Float32,
    typicality: Float32,
    unrelated: float,
) -> Lengths:
    """`lengths` with some more entries, whose columns (m,) are given; the first of all has nothing to compare with."""
    compared = ~(np.isnan(nearest) | np.isnan(typicality))
    if not compared.any():
        return lengths
    nearest, typicality = nearest[compared], typicality[compared]
    copy = COPY * (1.0 - unrelated)
    content = NOVELTY * _novelty(nearest, ALL, copy) + DISTANCE * _distance(typicality, ALL)
    size = np.log1p(np.minimum(cost[compared], SIZE.cap).astype(np.float64))
    return lengths.joined(size, content)


def seen(view: MemoryView) -> Learned:
    """What the entries of a view say of themselves, where no store has learned anything."""
    common = unrelated(view)
    lengths = joined(Lengths(), view.cost, view.nearest, view.typicality, common)
    return Learned(lengths=lengths, unrelated=common)


def _novelty(nearest: Float32, rows: Any, copy: float) -> Float64:
    found: Float64 = np.log(1.0 + copy - np.clip(filled(nearest, rows), 0.0, 1.0))
    return found


def _distance(typicality: Float32, rows: Any) -> Float64:
    found: Float64 = np.log(1.0 - np.minimum(filled(typicality, rows), MIDDLE))
    return found


def _since(share: float) -> Callable[[MemoryView, Any], Float64]:
    """ln(1 + a share of the searches since an entry came). Ticks count searches and additions, ids the latter alone."""

    def of(view: MemoryView, rows: Any) -> Float64:
        if not len(view):
            return np.zeros(0)
        searches = view.tick - view.created_tick[rows] - (view.ids.max() - view.ids[rows])
        found: Float64 = np.log1p(share * np.maximum(0, searches))
        return found

    return of
