"""Readers: from what lies on a disk to a `Trace`."""

from memsift.evaluation.readers.git import read_git
from memsift.evaluation.readers.log import read_log, record
from memsift.evaluation.readers.manual import read_manual
from memsift.evaluation.readers.npz import read_npz, variants_of

__all__ = ["read_git", "read_log", "read_manual", "read_npz", "record", "variants_of"]
