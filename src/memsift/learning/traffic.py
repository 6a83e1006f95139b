"""How a store's queries recur: whether coming queries will look like the last ones, or ask for something new."""

from __future__ import annotations

from typing import NamedTuple

# What is left of an old query's weight after each new one: half of it after 346.
KEPT = 0.998
# A query this near to the entry that is stored next was a look before storing, and says nothing of questions.
ECHO = 0.98


class Traffic(NamedTuple):
    """Sums over the queries so far, each faded by those after it.

    Parameters
    ----------
    recurring : float, at least 0
        Of how well each query was known, from 0 to 1.
    queries : float, at least 0
        Of 1 for each.
    waiting : float or None
        How well the last query was known; it counts once it is clear that it was no echo of what is stored next.
    """

    recurring: float = 0.0
    queries: float = 0.0
    waiting: float | None = None

    def asked(self, known: float) -> Traffic:
        """A query came that was `known` so well, 0 to 1."""
        settled = self.settled()
        return Traffic(settled.recurring, settled.queries, known)

    def stored(self, cosine: float) -> Traffic:
        """An entry was stored whose cosine to the last query is this."""
        if self.waiting is None:
            return self
        return self._replace(waiting=None) if cosine >= ECHO else self.settled()

    def settled(self) -> Traffic:
        """With the last query counted."""
        if self.waiting is None:
            return self
        return Traffic(KEPT * self.recurring + self.waiting, KEPT * self.queries + 1.0, None)

    @property
    def confidence(self) -> float:
        """The share of queries that recur, in [0, 1); 5 imaginary ones that do not keep it low at first."""
        now = self.settled()
        return now.recurring / (now.queries + 5.0)
