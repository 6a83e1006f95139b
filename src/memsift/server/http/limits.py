"""How much is let in: requests per second, and requests at once."""

from __future__ import annotations

import time
from collections.abc import Callable


class Bucket:
    """A token bucket: `rate` requests per second, and up to `burst` at once after a pause."""

    def __init__(
        self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._level, self._since = float(burst), clock()

    def take(self) -> bool:
        """Whether one more is let in."""
        now = self._clock()
        self._level = min(self._burst, self._level + (now - self._since) * self._rate)
        self._since = now
        if self._level < 1.0:
            return False
        self._level -= 1.0
        return True
