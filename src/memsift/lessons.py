"""What a memory tells its learning policy: queries, additions and uses, as they come."""

from __future__ import annotations

from typing import Any

import numpy as np

from memsift import kernels
from memsift.kernels import Float32, Float64, Rows
from memsift.learning import Asked, Learned, unrelated
from memsift.learning.unrelated import FEWEST
from memsift.policies.adaptive import AdaptivePolicy
from memsift.policies.base import CompactionPolicy
from memsift.types import Ids
from memsift.view import MemoryView

# A query whose best hit is nearer than the first is somewhat known, and than the second, fully.
KNOWN = (0.7, 0.9)
# Entries that each used one is compared with.
OTHERS = 4
NEVER = np.iinfo(np.uint64).max


class Lessons:
    """What has been learned, and what is needed to learn more.

    Attributes
    ----------
    learned : Learned
        A value: whoever keeps one can put it back.
    asked : Asked
        Fingerprints of the last queries.
    """

    def __init__(self) -> None:
        self.learned = Learned()
        self.asked = Asked()
        self._hits: Ids = np.empty(0, np.int64)  # of the last query

    def taught(self, policy: CompactionPolicy) -> CompactionPolicy:
        """The policy with what has been learned."""
        return policy.taught(self.learned) if isinstance(policy, AdaptivePolicy) else policy

    def to_state(self) -> dict[str, Any]:
        """JSON-ready; `restore` reads it back."""
        return {"asked": list(self.asked.prints), "learned": self.learned.to_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        """Be what `to_state` said; a file of before says nothing.

        Raises
        ------
        MemsiftError, KeyError, TypeError, ValueError
        """
        if "learned" in state:
            self.learned = Learned.from_dict(state["learned"])
            self.asked.restore(state["asked"])

    def query(self, unit: Float32, scores: Float64, ids: Ids) -> None:
        """A query has returned `ids` with these cosines, best first."""
        low, high = KNOWN
        base = self.learned.unrelated
        best = (float(scores.max(initial=-1.0)) - base) / (1.0 - base)
        known = round(min(1.0, max(0.0, (best - low) / (high - low))), 9)
        traffic = self.learned.traffic.asked(known, self.asked.again(unit))
        self.learned, self._hits = self.learned._replace(traffic=traffic), ids

    def addition(self, vector: Float32, last_query: Float32) -> None:
        """An entry came, (dim,); `last_query` (0 or 1, dim)."""
        traffic = self.learned.traffic
        if traffic.waiting is not None and len(last_query):
            alike = kernels.exact_cosines(last_query, np.zeros(1, np.intp), vector)
            self.learned = self.learned._replace(traffic=traffic.stored(float(alike[0])))

    def wants_a_look(self, before: int, after: int) -> bool:
        """Whether entries have doubled in number, so that the embedder is worth another look."""
        return after >= FEWEST and before.bit_length() < after.bit_length()

    def look(self, view: MemoryView) -> None:
        """How alike the embedder finds what has nothing to do with each other."""
        self.learned = self.learned._replace(unrelated=unrelated(view))

    def used(self, policy: AdaptivePolicy, view: MemoryView, rows: Rows) -> None:
        """These rows helped: each is compared with a few that were neither returned nor used.

        Which ones is left to a chance that repeats itself.
        """
        chance = kernels.spread(view.ids, view.tick)
        chance[np.isin(view.ids, self._hits)] = NEVER
        chance[rows] = NEVER
        few = min(OTHERS, int(np.count_nonzero(chance < NEVER)))
        others = np.argpartition(chance, few - 1)[:few] if few else rows[:0]
        both = np.concatenate([rows, others])
        judged = policy.taught(self.learned).bound(view, [])
        scores, youth = judged.exact(view, both), judged.youth(view, both)
        for score, young in zip(scores[: rows.size], youth[: rows.size], strict=True):
            lead, apart = score - scores[rows.size :], young - youth[rows.size :]
            self.learned = self.learned.taught(lead, apart)
