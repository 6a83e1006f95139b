"""Signals: what may make an entry worth keeping, each a number per entry, higher = keep."""

from memsift.signals.access import Attention, Frequency, Heat, Recency, StackDistance
from memsift.signals.arrival import Adjacency, Distance, Novelty
from memsift.signals.base import ColumnSignal, Signal
from memsift.signals.caller import Importance, Size, Use
from memsift.signals.centrality import Centrality
from memsift.signals.coherence import Coherence, Density
from memsift.signals.distinct import Distinctiveness
from memsift.signals.human import BaseLevel, Retention

__all__ = [
    "Adjacency",
    "Attention",
    "BaseLevel",
    "Centrality",
    "Coherence",
    "ColumnSignal",
    "Density",
    "Distance",
    "Distinctiveness",
    "Frequency",
    "Heat",
    "Importance",
    "Novelty",
    "Recency",
    "Retention",
    "Signal",
    "Size",
    "StackDistance",
    "Use",
]
