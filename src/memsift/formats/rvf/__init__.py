"""RuVector Format files (.rvf): vectors that the official tools read, and everything else that a memory holds.

`docs/rvf.md` describes the bytes.
"""

from memsift.formats.rvf.read import read_rvf
from memsift.formats.rvf.snapshot import RvfSnapshot
from memsift.formats.rvf.write import write_rvf

__all__ = ["RvfSnapshot", "read_rvf", "write_rvf"]
