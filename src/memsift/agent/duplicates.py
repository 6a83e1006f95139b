"""Which texts say what is known already: exact repeats, and texts whose cosine to an entry reaches a threshold.

A cosine does not see everything: of two texts whose digits differ, neither is taken for a repeat of the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memsift.kernels import NOISE, Float32, products
from memsift.types import Hit

DIGITS = re.compile(r"\d+")
# The same text embedded twice may come out a little different; an exact repeat is looked for from this cosine on.
SAME = 0.999
# How many of the nearest entries are looked at for each text.
NEAREST = 4


class Twin(NamedTuple):
    """An entry that says the same as a text: its id, or, below 0, `-1 - place` of an earlier text of the batch."""

    id: int
    similarity: float


def twins(
    rows: Float32,
    texts: Sequence[str],
    threshold: float,
    hits: Sequence[Sequence[Hit]],
    known: Callable[[list[int]], Sequence[str | None]],
) -> list[Twin | None]:
    """For each text of a batch the entry that says the same, the most similar one, older before younger; or None.

    Parameters
    ----------
    rows : (n, dim) float32
        Unit rows of the texts.
    threshold : float
        Cosine from which two texts say the same; above 1, only equal texts do.
    hits : n lists of Hit
        The nearest entries of each, best first.
    known : callable
        Texts of entries by their ids; None where there is none, and the cosine alone decides.
    """
    least = min(threshold, SAME)
    near = [[hit for hit in found if hit.score >= least] for found in hits]
    ids = sorted({hit.id for found in near for hit in found})
    said = dict(zip(ids, known(ids), strict=True)) if ids else {}
    scores = products(rows, rows)
    alike: npt.NDArray[np.bool_] = np.tril(scores, -1) >= least
    crowded = alike.any(1)
    out: list[Twin | None] = []
    for place, text in enumerate(texts):
        candidates = [(hit.score, hit.id, said[hit.id]) for hit in near[place]]
        if crowded[place]:
            for other in np.flatnonzero(alike[place]).tolist():
                score = min(1.0, float(scores[place, other]))
                candidates.append((score, -1 - other, texts[other]))
        fit = [c for c in candidates if _same(text, c[2], c[0], threshold)]
        best = max(fit, key=lambda c: (c[0], c[1] >= 0, -abs(c[1])), default=None)
        out.append(None if best is None else Twin(best[1], best[0]))
        if best is not None:
            alike[:, place] = False  # it is not added: nobody repeats it
    return out


def _same(text: str, other: str | None, score: float, threshold: float) -> bool:
    if other is None:
        return score >= min(threshold, 1.0 - NOISE)
    if text == other:
        return True
    return score >= threshold and DIGITS.findall(text) == DIGITS.findall(other)
