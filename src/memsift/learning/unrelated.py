"""How alike an embedder finds texts that have nothing to do with each other."""

from __future__ import annotations

import numpy as np

from memsift.kernels import spread
from memsift.view import MemoryView

SAMPLE = 128
FEWEST = 16
# Even in one conversation a tenth of all pairs is as good as unrelated; embedders without a common direction give
# such pairs cosines below this.
QUANTILE, USUAL = 0.1, 0.25


def unrelated(view: MemoryView) -> float:
    """The mean cosine of unrelated texts under the view's embedder, about: in [0, 0.95].

    0 for most embedders, and while there are few entries. Estimated from at most 128 entries, whatever their order.
    """
    if len(view) < FEWEST:
        return 0.0
    few = min(SAMPLE, len(view))
    keys = spread(view.ids, 0)
    rows = np.argpartition(keys, few - 1)[:few]
    vectors = view.take(rows[np.argsort(keys[rows])]).vectors.astype(np.float64)
    pairs = np.dot(vectors, vectors.T)[np.triu_indices(few, 1)]
    low = float(np.quantile(pairs, QUANTILE))
    return min(0.95, round(low, 3)) if low > USUAL else 0.0
