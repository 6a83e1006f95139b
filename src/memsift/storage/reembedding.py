"""Another embedder: every vector of a namespace made anew from its entry's text, in one transaction.

Ids, counters, clocks, texts and metadata stay. What was measured with the old vectors goes: recent queries, ghosts and
regret, what newcomers are compared with, what the policy has learned, the access log, and the graph of an index.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from memsift.budget import Size
from memsift.errors import BudgetExceeded, InvalidValue
from memsift.impressions import NAMES
from memsift.kernels import Float32, word_sums
from memsift.storage import rows
from memsift.storage.journal import Journal
from memsift.storage.texts import FOUND, checked
from memsift.vectors import as_unit_rows
from memsift.view import COLUMNS

Embed = Callable[[list[str]], Float32]
KEPT_STATE = ("tick", "next_id", "counts", "live", "head", "texts")


def rewrite(journal: Journal, embed: Embed, dim: int, embedder: str) -> None:
    """Write every vector anew and commit. The caller holds the store's lock, and no touch waits.

    Parameters
    ----------
    embed : callable
        (n, dim) float32 unit rows of n texts.

    Raises
    ------
    InvalidValue
        An entry has no text. Nothing was changed.
    BudgetExceeded
        The pinned entries do not fit with longer vectors. Nothing was changed.
    """
    db, span = journal.db, (journal.ns << rows.ID_BITS, (journal.ns + 1) << rows.ID_BITS)
    db.execute("BEGIN IMMEDIATE")
    state = journal.read_state()
    where = "WHERE key >= ? AND key < ? ORDER BY key"
    found = db.execute(f"SELECT key, row, archived_at FROM entry {where}", span).fetchall()
    query = f"SELECT {FOUND} {where}"
    said = dict(checked(db.execute(query, span)))
    silent = [key - span[0] for key, _, _ in found if key not in said]
    if silent:
        raise InvalidValue(
            f"reembed needs the text of every entry; {len(silent)} of {len(found)} have none, among them "
            f"{', '.join(map(str, silent[:5]))}: delete them, or give them one with store.texts.put"
        )
    raw = rows.joined(row for _, row, _ in found)
    rows.unpacked(raw)  # every sum checked
    entries = np.frombuffer(raw, rows.PACKED).copy()
    entries["nbytes"] += 4 * (dim - journal.dim)
    live = np.array([at is None for _, _, at in found], np.bool_)
    _fits(journal, entries[live & entries["pinned"]])
    vectors = as_unit_rows(embed([said[key] for key, _, _ in found]), dim)
    if len(vectors) != len(found):
        raise InvalidValue(f"vectors must be one per text ({len(found)}); got {len(vectors)}")
    entries["vector"] = word_sums(vectors)
    for name in NAMES:
        entries[name] = COLUMNS[name][1]
    entries["sum"] = rows.row_sums(entries)
    fat = rows.slices(np.ascontiguousarray(vectors, "<f4").data.cast("B"), 4 * dim) if found else ()
    narrow = rows.slices(entries.data.cast("B"), rows.PACKED.itemsize) if found else ()
    keys = [key for key, _, _ in found]
    db.executemany("UPDATE vector SET row = ? WHERE key = ?", zip(fat, keys, strict=True))
    db.executemany("UPDATE entry SET row = ? WHERE key = ?", zip(narrow, keys, strict=True))
    for table in ("leader", "ghost"):
        db.execute(f"DELETE FROM {table} WHERE key >= ? AND key < ?", span)
    # Whoever slept through this must read everything again.
    for table in ("log", "change"):
        db.execute(f"DELETE FROM {table} WHERE ns = ?", (journal.ns,))
    values = {name: state.values[name] for name in KEPT_STATE if name in state.values}
    # As after an erasure: graphs that know the old vectors are of no use to anybody.
    values |= {"seen": 0, "erasures": journal.erasures + 1}
    _write(journal, state.generation + 1, values, dim, embedder)
    db.execute("COMMIT")


def _fits(journal: Journal, pinned: Any) -> None:
    size = Size(len(pinned), int(pinned["nbytes"].sum()), int(pinned["cost"].sum()))
    if not journal.config.budget.fits(size):
        raise BudgetExceeded(
            f"pinned entries must fit into {journal.config.budget} with the new vectors; they take {size}"
        )


def _write(
    journal: Journal, generation: int, values: dict[str, Any], dim: int, embedder: str
) -> None:
    text = json.dumps(values, separators=(",", ":"))
    config = replace(journal.config, embedder=embedder).text()
    total = rows.state_sum(journal.identity_with(dim), (generation, config, text, b""))
    journal.db.execute(
        "UPDATE namespace SET dim = ?, generation = ?, config = ?, state = ?, context = ?, sum = ? WHERE ns = ?",
        (dim, generation, config, text, b"", total, journal.ns),
    )
