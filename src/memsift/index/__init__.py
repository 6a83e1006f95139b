"""Finding the nearest entries, and the filter that narrows them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from memsift.index.exact import ExactIndex
from memsift.index.where import Filter, compile_filter

if TYPE_CHECKING:
    from memsift.index.hnsw import HnswIndex
    from memsift.index.hnsw.build import TableRows
    from memsift.index.hnsw.saved import Companion

__all__ = ["KINDS", "ExactIndex", "Filter", "compile_filter", "demand", "made"]

KINDS = ("exact", "hnsw", "auto")
# Below, the scan answers within 3 ms, and a graph costs more than it saves unless there are several searches for each
# addition: 150 to 300 µs to put one in, of which a compaction throws half away.
CROSSOVER = 50_000


def demand(kind: str) -> None:
    """Raise `MissingExtra` if this kind of index needs a package that is not installed."""
    if kind == "hnsw":
        from memsift.index.hnsw import graph

        graph.demand()


def made(
    kind: str,
    table: TableRows,
    lock: threading.RLock,
    home: Companion | None = None,
    before: ExactIndex | HnswIndex | None = None,
) -> ExactIndex | HnswIndex:
    """An index over a table of the kind asked for, with what is left of the one before.

    `auto` is exact without usearch.
    """
    if kind != "exact":
        from memsift.index.hnsw import HnswIndex, graph, search

        if kind == "hnsw" or graph.installed():
            least = CROSSOVER if kind == "auto" else search.SMALLEST
            old = before if isinstance(before, HnswIndex) else None
            return HnswIndex(table, lock, kind, least, home, old)
    if before is not None:
        before.close()
    return ExactIndex(table)
