"""Who takes part: ours, bare numpy, and the peers that pip brings. A further one takes a line here."""

from memsift.evaluation.speed.engines.bare import Bare
from memsift.evaluation.speed.engines.base import Absent, Engine
from memsift.evaluation.speed.engines.chroma import Chroma
from memsift.evaluation.speed.engines.faiss import FaissFlat, FaissGraph
from memsift.evaluation.speed.engines.hnswlib import Hnswlib
from memsift.evaluation.speed.engines.ours import (
    CoherenceStore,
    FastStore,
    HalfStore,
    Int8Store,
    LruStore,
    Store,
)
from memsift.evaluation.speed.engines.sqlite_vec import SqliteVec
from memsift.evaluation.speed.engines.usearch import UsearchExact, UsearchGraph

OURS: tuple[type[Engine], ...] = (Store, CoherenceStore, FastStore)
# With loss, in half and in a quarter of the memory.
LOSSY: tuple[type[Engine], ...] = (HalfStore, Int8Store)
ALWAYS: tuple[type[Engine], ...] = (*OURS, *LOSSY, LruStore, Bare)
PEERS: tuple[type[Engine], ...] = (
    UsearchExact,
    FaissFlat,
    SqliteVec,
    UsearchGraph,
    FaissGraph,
    Hnswlib,
    Chroma,
)

__all__ = ["ALWAYS", "LOSSY", "OURS", "PEERS", "Absent", "Bare", "Engine", "LruStore", "Store"]
