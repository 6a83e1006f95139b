"""Memories that lie elsewhere: a `Source` scans and deletes, the same policies decide, a sift is written down.

`base` says what a source is, `planning` decides by what a scan gives, `sifting` carries a plan out so that it survives
being stopped, `ram` is the reference. Vector databases have a room each. Whoever writes a source inherits
`memsift.testing.SourceTests`.
"""

from memsift.backends.base import Applied, Scanned, Share, Source, SourcePlan
from memsift.backends.planning import plan_by_scan
from memsift.backends.ram import RamSource
from memsift.backends.sifting import Sift, SiftReport

__all__ = [
    "Applied",
    "RamSource",
    "Scanned",
    "Share",
    "Sift",
    "SiftReport",
    "Source",
    "SourcePlan",
    "plan_by_scan",
]
