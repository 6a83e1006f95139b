"""Who takes part: ours, bare numpy, and the peers that pip brings. A further one takes a line here."""

from memsift.evaluation.speed.engines.bare import Bare
from memsift.evaluation.speed.engines.base import Absent, Engine
from memsift.evaluation.speed.engines.chroma import Chroma
from memsift.evaluation.speed.engines.faiss import FaissFlat, FaissGraph
from memsift.evaluation.speed.engines.hnswlib import Hnswlib
from memsift.evaluation.speed.engines.ours import CoherenceStore, LruStore, Store
from memsift.evaluation.speed.engines.sqlite_vec import SqliteVec
from memsift.evaluation.speed.engines.usearch import UsearchExact, UsearchGraph

OURS: tuple[type[Engine], ...] = (Store, CoherenceStore)
ALWAYS: tuple[type[Engine], ...] = (*OURS, LruStore, Bare)
PEERS: tuple[type[Engine], ...] = (
    UsearchExact,
    FaissFlat,
    SqliteVec,
    UsearchGraph,
    FaissGraph,
    Hnswlib,
    Chroma,
)

__all__ = ["ALWAYS", "OURS", "PEERS", "Absent", "Bare", "Engine", "LruStore", "Store"]
