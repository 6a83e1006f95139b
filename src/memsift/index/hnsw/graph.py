"""The graph: the one file that knows usearch. Nodes are int8 rows, numbered by whoever adds them.

usearch as it must be used: one thread (several leave nodes that nothing leads to), the dtype named, int8 rows scaled
by us, one by one, since its own cast squeezes a unit row into six levels; a metric that does not mind the scale.
"""

from __future__ import annotations

import importlib.util
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memsift.errors import MissingExtra

if TYPE_CHECKING:
    from usearch.index import Index

Int8 = npt.NDArray[np.int8]
Numbers = npt.NDArray[np.int64]

# Measured at 100,000 × 384 around 100 centres with as much noise as centre, 30 candidates ranked again: at an expansion
# of 72, 16 links find .978 of the best ten, 24 links .989, 32 links .995 for a tenth more time than 16; with uneven
# noise (a third to four thirds of a centre), .998. All take 14 s to build.
CONNECTIVITY = 32
EXPANSION_ADD = 128
EXPANSION = 72
# Bytes of a saved node beside its row, with room to spare: links, levels, key.
NODE_BYTES = 1024
# Writing a graph out keeps the interpreter to itself; every so many nodes, others get a turn.
BREATH_NODES, BREATH_SECONDS = 256, 5e-5


def installed() -> bool:
    """Whether usearch is there."""
    try:
        return importlib.util.find_spec("usearch") is not None
    except ValueError:  # somebody has put None in its place
        return False


def version() -> str:
    """Of usearch: what one version wrote, another need not read."""
    import usearch

    return str(usearch.__version__)


def demand() -> None:
    """Raise `MissingExtra` unless usearch can be imported."""
    try:
        import usearch.index  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            f"index 'hnsw' needs usearch: pip install 'memsift[ann]', or open with index='exact'; {error}"
        ) from None


def quantised(rows: npt.NDArray[np.float32]) -> Int8:
    """Each row, (..., dim), scaled so that its largest element is 127, and rounded: int8 of the same shape."""
    largest = np.abs(rows).max(-1, keepdims=True)
    scaled: Int8 = np.rint(rows * (np.float32(127.0) / largest)).astype(np.int8)
    return scaled


class Graph:
    """A navigable graph of int8 rows (Malkov, Yashunin 2018).

    One thread adds, one at a time; others search meanwhile and wait for at most one addition. Whoever asks how large it
    is gets a number of ours: asked amid an addition, usearch crashed.

    Attributes
    ----------
    nbytes : int
        Memory that it holds, of lately.
    """

    def __init__(self, dim: int) -> None:
        self._index: Any = _empty(dim)
        self._turn = threading.Lock()
        self._asking = self._size = self.nbytes = 0

    @classmethod
    def of(cls, payload: bytes | bytearray | memoryview, dim: int) -> Graph:
        """The graph of what `dump` gave. It must be what `dump` gave: usearch checks nothing.

        Raises
        ------
        ValueError
            It is a graph of other rows.
        """
        made = cls(dim)
        made._index.load(payload, progress=_breathe)
        if (made._index.ndim, made._index.dtype) != (dim, _empty(dim).dtype):
            raise ValueError("rows must be int8 and of the memory's dimension")
        made._size, made.nbytes = len(made._index), int(made._index.memory_usage)
        return made

    def __len__(self) -> int:
        return self._size

    def add(self, node: int, row: Int8) -> None:
        """Put a node in, (dim,) int8: 150 to 300 µs."""
        while self._asking:
            # Whoever lets go of a lock is the first to take it again: the searches would starve.
            time.sleep(BREATH_SECONDS)
        with self._turn:
            self._index.add(node, row, threads=1)
            self._size += 1
            if self._size % BREATH_NODES == 1:
                self.nbytes = int(self._index.memory_usage)

    def nearest(self, query: Int8, count: int, expansion: int = EXPANSION) -> Numbers:
        """About the `count` nodes nearest to a query, (dim,) int8, nearest first; fewer if there are fewer."""
        self._asking += 1
        try:
            with self._turn:
                if self._index.expansion_search != expansion:
                    self._index.expansion_search = expansion
                found = self._index.search(query, count, threads=1)
        finally:
            self._asking -= 1
        nodes: Numbers = found.keys.astype(np.int64)
        return nodes

    def dump(self) -> bytearray:
        """All of it as bytes. Nobody may add meanwhile; searches are welcome."""
        saved: bytearray = self._index.save(progress=_breathe)
        return saved


def _empty(dim: int) -> Index:
    from usearch.index import Index

    return Index(
        ndim=dim,
        metric="cos",
        dtype="i8",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=EXPANSION,
        enable_key_lookups=False,
    )


def _breathe(done: int, total: int) -> bool:
    if done % BREATH_NODES == 0:
        time.sleep(BREATH_SECONDS)
    return True


# usearch wants types there, not their names.
_breathe.__annotations__ = {"done": int, "total": int, "return": bool}
