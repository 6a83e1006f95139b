"""How a store's queries recur: whether coming queries will look like the last ones, or ask for something new."""

from __future__ import annotations

import math
import zlib
from typing import Any, NamedTuple

import numpy as np

from memsift.kernels import Float32

# What is left of an old query's weight after each new one: half of it after 346.
KEPT = 0.998
# A query this near to the entry that is stored next was a look before storing, and says nothing of questions.
ECHO = 0.98
# Queries recur from this confidence on, and until it falls below that. Measured where nothing, and where half, was
# forgotten: agent logs reach 0.59 at most and chats 0.04; where the same is asked again and again it is 0.69 and more,
# 0.54 once nine tenths are forgotten.
OPENS, CLOSES = 0.64, 0.5
IMAGINARY = 5.0


class Traffic(NamedTuple):
    """Sums over the queries so far, each faded by those after it.

    Parameters
    ----------
    recurring : float, at least 0
        Of how well each query was known, from 0 to 1.
    repeated : float, at least 0
        Of 1 for each that was asked before in the same words.
    queries : float, at least 0
        Of 1 for each.
    waiting : float or None
        How well the last query was known; it counts once it is clear that it was no echo of what is stored next.
    again : bool
        Whether the query that waits was asked before.
    recurs : bool
        Whether nearly all queries are known ones; it takes less to stay than to become so.
    genuine, echoes : int
        How many there ever were, without fading: questions, and looks before storing.
    """

    recurring: float = 0.0
    repeated: float = 0.0
    queries: float = 0.0
    waiting: float | None = None
    again: bool = False
    recurs: bool = False
    genuine: int = 0
    echoes: int = 0

    def asked(self, known: float, again: bool = False) -> Traffic:
        """A query came that was `known` so well, 0 to 1, and may have been asked before."""
        return self._counted(known, again)

    def stored(self, cosine: float) -> Traffic:
        """An entry was stored whose cosine to the last query is this."""
        if self.waiting is None:
            return self
        if cosine < ECHO:
            return self.settled()
        return self._replace(waiting=None, again=False, echoes=self.echoes + 1)

    def settled(self) -> Traffic:
        """With the last query counted."""
        return self if self.waiting is None else self._counted(None, False)

    def _counted(self, known: float | None, again: bool) -> Traffic:
        """With the query that waits counted, and another one waiting."""
        if self.waiting is None:
            return self._replace(waiting=known, again=again)
        recurring = KEPT * self.recurring + self.waiting
        queries = KEPT * self.queries + 1.0
        return Traffic(
            recurring,
            KEPT * self.repeated + self.again,
            queries,
            known,
            again,
            recurring / (queries + IMAGINARY) >= (CLOSES if self.recurs else OPENS),
            self.genuine + 1,
            self.echoes,
        )

    @property
    def confidence(self) -> float:
        """The share of queries that recur, in [0, 1); 5 imaginary ones that do not keep it low at first."""
        now = self.settled()
        return now.recurring / (now.queries + IMAGINARY)

    @property
    def questions(self) -> float:
        """The share of all queries that were no looks before storing, in [0, 1]; 0 while there were none."""
        now = self.settled()
        return now.genuine / max(1, now.genuine + now.echoes)

    @property
    def repetition(self) -> float:
        """The share of queries that were asked before in the same words, in [0, 1), reckoned in the same way."""
        now = self.settled()
        return now.repeated / (now.queries + IMAGINARY)


class Asked:
    """Fingerprints of the last 256 different queries, by which one that comes again is known whatever the embedder.

    A fingerprint is a checksum of the vector with each element rounded to an eighth of its usual size: the same text
    gives the same one, a similar text another.
    """

    LENGTH = 256

    def __init__(self) -> None:
        self.prints: dict[int, None] = {}  # the last asked last

    def restore(self, prints: list[Any]) -> None:
        """Be what `list(prints)` said. ValueError or TypeError if that is not what it can be."""
        numbers = [int(number) for number in prints]
        if len(numbers) > self.LENGTH or not all(0 <= number < 2**32 for number in numbers):
            raise ValueError("asked must be a few numbers of 32 bits")
        self.prints = dict.fromkeys(numbers)

    def again(self, unit: Float32) -> bool:
        """Whether this query is among them; from now on it is."""
        steps = np.rint(unit * np.float32(8.0 * math.sqrt(unit.size))).astype("<i2")
        found = zlib.crc32(steps.data)
        known = self.prints.pop(found, self) is None
        self.prints[found] = None
        if len(self.prints) > self.LENGTH:
            del self.prints[next(iter(self.prints))]
        return known
