"""memsift: a vector memory with a budget that holds, and that forgets by measured usefulness.

A *memory* is a set of entries of fixed capacity; a *policy* chooses which to keep; a *plan* is that choice,
written down.
"""

from memsift import policies
from memsift.budget import Budget, Size
from memsift.errors import MemsiftError
from memsift.plan import Plan
from memsift.policies import (
    CoherencePolicy,
    CompactionPolicy,
    FifoPolicy,
    LfuPolicy,
    LruPolicy,
    RandomPolicy,
    WeightedPolicy,
)
from memsift.reference import compact, recall_at_k
from memsift.signals import Coherence, Frequency, Recency
from memsift.store import MemoryStore
from memsift.types import Compaction, Hit, MemoryEntry, Stats
from memsift.view import MemoryView

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "Coherence",
    "CoherencePolicy",
    "Compaction",
    "CompactionPolicy",
    "FifoPolicy",
    "Frequency",
    "Hit",
    "LfuPolicy",
    "LruPolicy",
    "MemoryEntry",
    "MemoryStore",
    "MemoryView",
    "MemsiftError",
    "Plan",
    "RandomPolicy",
    "Recency",
    "Size",
    "Stats",
    "WeightedPolicy",
    "compact",
    "policies",
    "recall_at_k",
]
