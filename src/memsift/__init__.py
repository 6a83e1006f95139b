"""memsift: a vector memory with a budget that holds, and that forgets by measured usefulness.

A *memory* is a set of entries of fixed capacity; a *policy* chooses which to keep; a *plan* is that choice,
written down.
"""

from memsift import policies
from memsift.accesslog import AccessLog
from memsift.budget import Budget, Size
from memsift.errors import MemsiftError
from memsift.plan import Plan
from memsift.policies import (
    ActrPolicy,
    AdaptivePolicy,
    CoherencePolicy,
    CompactionPolicy,
    EbbinghausPolicy,
    FifoPolicy,
    GdsfPolicy,
    GenerativeAgentsPolicy,
    GraphPolicy,
    LfuPolicy,
    LongestPolicy,
    LruPolicy,
    OldestPolicy,
    RandomPolicy,
    ShortestPolicy,
    WeightedPolicy,
)
from memsift.reference import compact, recall_at_k
from memsift.signals import (
    Adjacency,
    Attention,
    BaseLevel,
    Centrality,
    Coherence,
    Density,
    Distance,
    Distinctiveness,
    Frequency,
    Heat,
    Importance,
    Novelty,
    Recency,
    Retention,
    StackDistance,
    Use,
)
from memsift.store import MemoryStore
from memsift.types import Compaction, Hit, MemoryEntry, Stats
from memsift.view import MemoryView

__version__ = "0.1.0"

__all__ = [
    "AccessLog",
    "ActrPolicy",
    "AdaptivePolicy",
    "Adjacency",
    "Attention",
    "BaseLevel",
    "Budget",
    "Centrality",
    "Coherence",
    "CoherencePolicy",
    "Compaction",
    "CompactionPolicy",
    "Density",
    "Distance",
    "Distinctiveness",
    "EbbinghausPolicy",
    "FifoPolicy",
    "Frequency",
    "GdsfPolicy",
    "GenerativeAgentsPolicy",
    "GraphPolicy",
    "Heat",
    "Hit",
    "Importance",
    "LfuPolicy",
    "LongestPolicy",
    "LruPolicy",
    "MemoryEntry",
    "MemoryStore",
    "MemoryView",
    "MemsiftError",
    "Novelty",
    "OldestPolicy",
    "Plan",
    "RandomPolicy",
    "Recency",
    "Retention",
    "ShortestPolicy",
    "Size",
    "StackDistance",
    "Stats",
    "Use",
    "WeightedPolicy",
    "compact",
    "policies",
    "recall_at_k",
]
