"""What a store learns while it is used: how its queries recur, and which entries its caller finds useful."""

from memsift.learning.learned import Learned
from memsift.learning.taste import Taste
from memsift.learning.traffic import Traffic

__all__ = ["Learned", "Taste", "Traffic"]
