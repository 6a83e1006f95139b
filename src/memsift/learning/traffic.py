"""How a store's queries recur: whether coming queries will look like the last ones, or ask for something new."""

from __future__ import annotations

import hashlib
from collections import deque
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
        return self.settled()._replace(waiting=known, again=again)

    def stored(self, cosine: float) -> Traffic:
        """An entry was stored whose cosine to the last query is this."""
        if self.waiting is None:
            return self
        if cosine < ECHO:
            return self.settled()
        return self._replace(waiting=None, again=False, echoes=self.echoes + 1)

    def settled(self) -> Traffic:
        """With the last query counted."""
        if self.waiting is None:
            return self
        counted = Traffic(
            KEPT * self.recurring + self.waiting,
            KEPT * self.repeated + self.again,
            KEPT * self.queries + 1.0,
            genuine=self.genuine + 1,
            echoes=self.echoes,
        )
        enough = CLOSES if self.recurs else OPENS
        return counted._replace(recurs=counted.confidence >= enough)

    @property
    def confidence(self) -> float:
        """The share of queries that recur, in [0, 1); 5 imaginary ones that do not keep it low at first."""
        now = self.settled()
        return now.recurring / (now.queries + 5.0)

    @property
    def questions(self) -> float:
        """The share of all queries that were no looks before storing, in [0, 1]; 0 while there were none."""
        now = self.settled()
        return now.genuine / max(1, now.genuine + now.echoes)

    @property
    def repetition(self) -> float:
        """The share of queries that were asked before in the same words, in [0, 1), reckoned in the same way."""
        now = self.settled()
        return now.repeated / (now.queries + 5.0)


class Asked:
    """Fingerprints of the last 256 queries, by which one that comes again is known whatever the embedder.

    A fingerprint is a hash of the vector with each element rounded to an eighth of its usual size: the same text gives
    the same one, a similar text another.
    """

    LENGTH = 256

    def __init__(self) -> None:
        self.prints: deque[int] = deque(maxlen=self.LENGTH)

    def restore(self, prints: list[Any]) -> None:
        """Be what `list(prints)` said. ValueError or TypeError if that is not what it can be."""
        numbers = [int(number) for number in prints]
        if len(numbers) > self.LENGTH or not all(0 <= number < 2**32 for number in numbers):
            raise ValueError("asked must be a few numbers of 32 bits")
        self.prints.clear()
        self.prints.extend(numbers)

    def again(self, unit: Float32) -> bool:
        """Whether this query is among them; from now on it is."""
        steps = np.rint(unit * (8.0 * np.sqrt(unit.size))).clip(-127, 127).astype(np.int8)
        digest = hashlib.blake2b(steps.tobytes(), digest_size=4).digest()
        found = int.from_bytes(digest, "little")
        known = found in self.prints
        self.prints.append(found)
        return known
