"""Which texts say what is known already: exact repeats, and texts whose cosine to an entry reaches a threshold.

A cosine does not see everything: of two texts whose digits differ, neither is taken for a repeat of the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memsift.durable import DurableStore
from memsift.kernels import NOISE, Float32, products

DIGITS = re.compile(r"\d+")
# How many of the nearest entries are looked at for each text.
NEAREST = 4


# Decimals of a cosine that do not depend on how it was computed.
SURE = 4


class Twin(NamedTuple):
    """An entry that says the same as a text: its id, or, below 0, `-1 - place` of an earlier text of the batch."""

    id: int
    similarity: float


Twins = list[Twin | None]


def twins(
    store: DurableStore, texts: Sequence[str], rows: Float32, threshold: float, *, payloads: bool
) -> Twins:
    """For each text of a batch the live entry that says the same, or None.

    An equal text comes before any other, and then the most similar one; where there are several, the oldest.

    Parameters
    ----------
    rows : (n, dim) float32
        Unit rows of the texts.
    threshold : float
        Cosine from which two texts say the same; above 1, only equal ones do.
    payloads : bool
        Whether entries have texts to compare with. Without them, equal vectors are equal texts.
    """
    found: Twins = _equal(store, texts) if payloads else [None] * len(texts)
    if payloads and threshold > 1.0:
        return found
    return _near(store, texts, rows, min(threshold, 1.0 - NOISE), found)


def _equal(store: DurableStore, texts: Sequence[str]) -> Twins:
    """Entries with the very same text, and the first of the batch that has it."""
    held = store.texts.find(texts)
    every = np.array(sorted({id_ for ids in held for id_ in ids}), np.int64)
    live = set(every[store.holds(every)].tolist())
    first: dict[str, int] = {}
    out: Twins = []
    for place, (text, ids) in enumerate(zip(texts, held, strict=True)):
        id_ = next((id_ for id_ in ids if id_ in live), None)
        if id_ is None and first.setdefault(text, place) != place:
            id_ = -1 - first[text]
        out.append(None if id_ is None else Twin(id_, 1.0))
    return out


def _near(
    store: DurableStore, texts: Sequence[str], rows: Float32, least: float, equal: Twins
) -> Twins:
    """`equal`, and for the rest the most similar entry or earlier text of the batch that is near enough."""
    hits = store.search_many(rows, NEAREST, touch=False)
    close = [[hit for hit in found if hit.score >= least] for found in hits]
    ids = sorted({hit.id for found in close for hit in found})
    said = dict(zip(ids, store.texts.get(ids), strict=True))
    scores = products(rows, rows)
    alike: npt.NDArray[np.bool_] = np.greater_equal(np.tril(scores, -1), least)
    crowded: npt.NDArray[np.bool_] = np.logical_or.reduce(alike, axis=1)
    out: Twins = []
    for place, (text, twin) in enumerate(zip(texts, equal, strict=True)):
        if twin is None:
            candidates = [(hit.score, hit.id, said[hit.id]) for hit in close[place]]
            others = np.flatnonzero(alike[place]).tolist() if crowded[place] else []
            candidates += [(float(scores[place, i]), -1 - i, texts[i]) for i in others]
            fit = [c for c in candidates if c[2] is None or same_digits(text, c[2])]
            best = max(fit, key=_preference, default=None)
            twin = None if best is None else Twin(best[1], min(1.0, best[0]))
        elif twin.id < 0 and (before := out[-1 - twin.id]) is not None:
            twin = Twin(before.id, twin.similarity)  # the text that it repeats was not added itself
        if twin is not None:
            alike[:, place] = False  # it is not added: nobody repeats it
        out.append(twin)
    return out


def _preference(candidate: tuple[float, int, str | None]) -> tuple[float, bool, int]:
    """The more similar one, as far as float32 can tell; an entry before a text of the batch; the older one."""
    score, id_, _ = candidate
    return round(score, SURE), id_ >= 0, -abs(id_)


def same_digits(one: str, other: str) -> bool:
    """Whether two texts hold the same numbers in the same order."""
    return DIGITS.findall(one) == DIGITS.findall(other)
