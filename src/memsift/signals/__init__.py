"""Signals: what may make an entry worth keeping, each a number per entry, higher = keep."""

from memsift.signals.access import Frequency, Recency
from memsift.signals.base import Signal
from memsift.signals.coherence import Coherence

__all__ = ["Coherence", "Frequency", "Recency", "Signal"]
