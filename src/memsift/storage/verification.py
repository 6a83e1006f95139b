"""Looking at a store from end to end: what is checked, and what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memsift.budget import Size
from memsift.errors import MemsiftError
from memsift.storage import rows
from memsift.storage.archive import Archive
from memsift.storage.file import translated
from memsift.storage.journal import Journal
from memsift.storage.ledger import Ledger
from memsift.storage.texts import FOUND, checked
from memsift.table import Entries

if TYPE_CHECKING:
    from memsift.memory import Memory

# Entries that are searched for by their own vectors: all of so many, else a sample spread evenly.
SAMPLE = 1000


@dataclass(frozen=True)
class Verification:
    """What a look at a whole store found.

    Parameters
    ----------
    checks : dict
        Each check with "ok" or what is wrong.
    live, archived : int
        Entries that were looked at.
    records : int
        Records of the chain.
    """

    checks: dict[str, str]
    live: int
    archived: int
    records: int

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return all(found == "ok" for found in self.checks.values())

    def __str__(self) -> str:
        head = "nothing is wrong" if self.ok else "something is wrong"
        size = f"{self.live:,} live, {self.archived:,} archived, {self.records:,} records"
        return "\n".join(
            [f"{head} ({size})"] + [f"  {name}: {found}" for name, found in self.checks.items()]
        )


class _Wrong(MemsiftError):
    """A finding."""


def check(
    memory: Memory, journal: Journal, archive: Archive, ledger: Ledger, found: dict[str, str]
) -> Verification:
    """Run every check; one that fails does not keep the others from running. The caller holds the lock."""
    held = {"live": _nothing(journal.dim), "archived": _nothing(journal.dim)}

    def sums() -> None:
        where = (
            f"e.key >= {journal.ns << rows.ID_BITS} AND e.key < {(journal.ns + 1) << rows.ID_BITS}"
        )
        held["live"] = journal.fetch.entries(f"{where} AND e.archived_at IS NULL")
        held["archived"] = archive.entries()

    def chain() -> None:
        verdict = ledger.verify()
        _demand(verdict.status != "broken", str(verdict))
        _demand(journal.names_head(), "it does not end with the record that the namespace names")

    def ghosts() -> None:
        _demand(journal.ghosts.same(memory.ghosts), "ghosts in memory differ from the file's")
        live = np.isin(memory.ghosts.ids, memory.table.column("ids"))
        _demand(not live.any(), "an entry that is held is a ghost as well")

    steps: dict[str, Callable[[], None]] = {
        "pages": lambda: _pages(journal),
        "rows": sums,
        "strays": lambda: _strays(journal),
        "texts": lambda: _texts(journal),
        "table": lambda: _same(memory, held["live"]),
        "index": lambda: _finds_all(memory),
        "bounds": lambda: _bounds(memory, journal, held),
        "ghosts": ghosts,
        "chain": chain,
    }
    for name, step in steps.items():
        try:
            with translated():
                step()
            found[name] = "ok"
        except MemsiftError as error:
            found[name] = str(error)
    try:
        records = len(ledger)
    except MemsiftError:
        records = 0
    return Verification(found, len(held["live"].vectors), len(held["archived"].vectors), records)


def _nothing(dim: int) -> Entries:
    return Entries(np.empty((0, dim), np.float32), rows.unpacked(b""), [])


def _demand(condition: object, otherwise: str) -> None:
    if not condition:
        raise _Wrong(otherwise)


def _pages(journal: Journal) -> None:
    answers = journal.db.execute("PRAGMA integrity_check(5)").fetchall()
    _demand(answers == [("ok",)], "; ".join(str(text)[:100] for (text,) in answers))


def _strays(journal: Journal) -> None:
    """Every vector and note belongs to an entry, and every entry to a namespace."""
    for table in ("vector", "note", "payload"):
        query = f"SELECT count(*) FROM {table} WHERE key NOT IN (SELECT key FROM entry)"
        strays = journal.db.execute(query).fetchone()[0]
        _demand(not strays, f"{strays} rows of {table} belong to no entry")
    query = (
        f"SELECT count(*) FROM entry WHERE key >> {rows.ID_BITS} NOT IN (SELECT ns FROM namespace)"
    )
    strays = journal.db.execute(query).fetchone()[0]
    _demand(not strays, f"{strays} entries belong to no namespace")


def _texts(journal: Journal) -> None:
    """Every text sums to what stands beside it, and there are as many as the namespace counts."""
    span = journal.ns << rows.ID_BITS, (journal.ns + 1) << rows.ID_BITS
    query = f"SELECT {FOUND} WHERE key >= ? AND key < ?"
    count = sum(1 for _ in checked(journal.db.execute(query, span)))
    _demand(count == journal.texts, f"there must be {journal.texts}; got {count}")


def _same(memory: Memory, live: Entries) -> None:
    table, ids = memory.table, live.columns["ids"]
    _demand(
        np.array_equal(np.sort(table.column("ids")), ids), "ids in memory differ from the file's"
    )
    ours = table.entries(ids)
    _demand(not table.differs(ids, live.vectors).any(), "vectors in memory differ")
    for name, values in live.columns.items():
        _demand(ours.columns[name].tobytes() == values.tobytes(), f"{name} in memory differs")
    notes = [note or None for note in ours.metadata or []]
    _demand(notes == [note or None for note in live.metadata or []], "metadata in memory differs")
    sizes = (table.column(name).sum() for name in ("nbytes", "cost"))
    _demand(table.size == Size(len(table), *map(int, sizes)), "sizes in memory do not add up")


def _finds_all(memory: Memory) -> None:
    """Each entry, searched for by its own vector, is found; by a graph, nearly each."""
    ids, vectors = memory.table.column("ids"), memory.table.vectors
    sample = np.unique(np.linspace(0, max(0, len(ids) - 1), min(len(ids), SAMPLE)).astype(int))
    may_miss = 0 if memory.index.sees_all else sample.size // 20
    for slot in sample:
        slots, scores = memory.index.search(vectors[slot], 1)
        if not slots.size or (slots[0] != slot and scores[0] < _own_cosine(vectors[slot])):
            may_miss -= 1
        _demand(may_miss >= 0, f"entry {ids[slot]} is not found by its own vector")


def _own_cosine(vector: npt.NDArray[np.float32]) -> float:
    wide = vector.astype(np.float64)
    return float(wide @ wide) - 1e-6


def _bounds(memory: Memory, journal: Journal, held: dict[str, Entries]) -> None:
    config = journal.config
    _demand(config.budget.fits(memory.table.size), f"{memory.table.size} exceeds {config.budget}")
    ends = {
        "ids": memory.next_id,
        "created_tick": memory.tick + 1,
        "accessed_tick": memory.tick + 1,
    }
    for entries in held.values():
        for name, end in ends.items():
            highest = entries.columns[name].max(initial=-1)
            _demand(highest < end, f"{name} must be below {end}; one is {highest}")
    counts = memory.counts
    _demand(min(counts.values()) >= 0, "a counter is below 0")
    _demand(counts["added"] <= memory.next_id, "more entries were added than ids were given")
    resting = held["archived"].columns
    size = Size(len(resting["ids"]), int(resting["nbytes"].sum()), int(resting["cost"].sum()))
    _demand(config.archive.fits(size), f"archive of {size} exceeds {config.archive}")
