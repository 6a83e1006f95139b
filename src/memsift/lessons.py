"""What a memory tells its learning policy: queries, additions and uses, as they come."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from memsift import kernels
from memsift.kernels import Float32, Float64
from memsift.learning import Asked, Learned, unrelated
from memsift.learning.unrelated import FEWEST
from memsift.policies.adaptive import AdaptivePolicy
from memsift.policies.base import CompactionPolicy
from memsift.policies.content import joined
from memsift.view import MemoryView

# A query whose best hit is nearer than the first is somewhat known, and than the second, fully.
KNOWN = (0.75, 0.85)


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
        self._answered = False  # whether a hit of the last query is said to have helped

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

    def query(self, unit: Float32, scores: Float64) -> None:
        """A query has returned entries with these cosines, best first."""
        low, high = KNOWN
        traffic, lengths, helped, base = self.learned
        best = ((float(scores[0]) if scores.size else -1.0) - base) / (1.0 - base)
        known = round(min(1.0, max(0.0, (best - low) / (high - low))), 9)
        traffic = traffic.asked(known, self.asked.again(unit))
        self.learned, self._answered = Learned(traffic, lengths, helped, base), False

    def additions(
        self,
        first: Float32,
        last_query: Float32,
        cost: npt.NDArray[np.int64],
        nearest: Float32,
        typicality: Float32,
    ) -> None:
        """Entries came, with these columns (m,): the first of them, (dim,), after `last_query` (0 or 1, dim)."""
        traffic = self.learned.traffic
        if traffic.waiting is not None and len(last_query):
            alike = kernels.exact_cosines(last_query, np.zeros(1, np.intp), first)
            traffic = traffic.stored(float(alike[0]))
        lengths = joined(self.learned.lengths, cost, nearest, typicality, self.learned.unrelated)
        self.learned = self.learned._replace(traffic=traffic, lengths=lengths)

    def wants_a_look(self, before: int, after: int) -> bool:
        """Whether entries have doubled in number, so that the embedder is worth another look."""
        return after >= FEWEST and before.bit_length() < after.bit_length()

    def look(self, view: MemoryView) -> None:
        """How alike the embedder finds what has nothing to do with each other."""
        self.learned = self.learned._replace(unrelated=unrelated(view))

    def used(self) -> None:
        """The caller said that hits of the last query helped."""
        if not self._answered:
            self.learned = self.learned._replace(helped=self.learned.helped + 1)
        self._answered = True
