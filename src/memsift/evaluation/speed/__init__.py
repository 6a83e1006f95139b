"""How fast the store is, beside bare numpy and beside the peers that pip brings.

All contenders are timed in one process, in turn, by CPU time with one BLAS thread: absolute times belong to a machine,
ratios mostly do not.
"""

from memsift.evaluation.speed.clock import timed
from memsift.evaluation.speed.data import BLOCK, WINDOW, K, clustered
from memsift.evaluation.speed.row import SpeedRow, Time, measured, row_of

__all__ = ["BLOCK", "WINDOW", "K", "SpeedRow", "Time", "clustered", "measured", "row_of", "timed"]
