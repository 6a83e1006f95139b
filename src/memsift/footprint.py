"""How much memory a memory takes, by part."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from memsift.memory import Memory

# Metadata of so many entries is weighed, spread evenly over all.
WEIGHED = 512


def footprint(memory: Memory) -> dict[str, int]:
    """Bytes in RAM by part, room ahead of growth with them; metadata is weighed by a sample.

    Interpreter, libraries, SQLite's own cache of a file, and what a `where` filter or a plan needs for a moment are
    not in it.
    """
    table, lessons = memory.table, memory.lessons
    clusters, log = memory.impressions.clusters, memory.log
    parts = table.allocated
    parts["metadata"] += _notes(table.column("metadata"))
    parts["ghosts"] = memory.ghosts.nbytes
    parts["queries"] = memory.context.nbytes + sys.getsizeof(lessons.asked.prints)
    parts["impressions"] = sum(
        part.nbytes for part in (memory.impressions.mean.total, clusters.leaders, clusters.numbers)
    )
    parts["crowding"] = memory.crowding.nbytes
    parts["index"] = int(getattr(memory.index, "nbytes", 0))
    parts["log"] = int(getattr(log, "nbytes", 0))
    return parts


def _notes(column: Any) -> int:
    """What some metadata takes, times what share of all it is."""
    if column.strides == (0,):
        return 0
    rows = np.unique(np.linspace(0, max(0, len(column) - 1), WEIGHED).astype(np.intp))[
        : len(column)
    ]
    seen: dict[int, int] = {}
    shared = once = 0
    for note in column[rows]:
        for part in _parts(note):
            known = seen.get(id(part))
            size = sys.getsizeof(part) if known is None else 0
            # What several entries refer to, such as keys, is there once however many there are.
            if known is None:
                seen[id(part)] = size
                once += size
            elif known:
                seen[id(part)] = 0
                once -= known
                shared += known
    return shared + once * len(column) // max(1, rows.size)


def _parts(value: Any) -> Any:
    """Every object that metadata is made of, but those that Python has anyway."""
    if value is None or value is True or value is False:
        return
    yield value
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _parts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _parts(item)
