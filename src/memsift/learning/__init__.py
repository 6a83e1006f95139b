"""What a store learns while it is used: how its queries recur, and what its caller finds useful."""

from memsift.learning.learned import Learned
from memsift.learning.lengths import Lengths
from memsift.learning.traffic import Asked, Traffic
from memsift.learning.unrelated import unrelated

__all__ = ["Asked", "Learned", "Lengths", "Traffic", "unrelated"]
