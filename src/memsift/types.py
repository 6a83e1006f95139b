"""What comes out of a store: entries, hits, compactions, statistics."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memsift.budget import Budget, Size

if TYPE_CHECKING:
    from memsift.checks import Metadata

Ids = npt.NDArray[np.int64]


class Hit(NamedTuple):
    """One search result: the entry's id, its cosine to the query in [-1, 1], and its metadata."""

    id: int
    score: float
    metadata: Metadata


@dataclass(frozen=True)
class MemoryEntry:
    """One memory, as it stood when it was asked for.

    Parameters
    ----------
    id : int
        Given by a counter; never reused.
    vector : (dim,) float32
        Unit row, read-only.
    created_tick, accessed_tick : int
        Logical time of the addition and of the last search that touched the entry.
    created_at, accessed_at : float
        The same in unix seconds, UTC.
    access_count, use_count : int
        How often it was returned by a touching search, and how often `feedback` said that it helped.
    cost : int
        Tokens, or whatever the budget's `cost` counts.
    importance : float or None
        The caller's prior in [0, 1].
    """

    id: int
    vector: npt.NDArray[np.float32] = field(repr=False)
    created_tick: int
    accessed_tick: int
    created_at: float
    accessed_at: float
    access_count: int
    use_count: int
    cost: int
    importance: float | None
    pinned: bool
    metadata: Metadata


@dataclass(frozen=True)
class Compaction:
    """What an applied plan did.

    Parameters
    ----------
    dropped : (m,) int64
        Ids that left, ascending.
    spared : (s,) int64
        Victims of the plan that stayed, ascending, since they were touched, used, changed or pinned meanwhile.
    audit_head : str or None
        Hash of the audit record; None for a store in RAM, which keeps no audit.
    before, after : Size
    policy : str
        Label of the policy that chose.
    forced : bool
        More than half of the store had to go in one step.
    """

    dropped: Ids
    spared: Ids
    audit_head: str | None
    before: Size
    after: Size
    policy: str
    forced: bool

    def __str__(self) -> str:
        words = f"evicted {len(self.dropped):,} of {self.before.entries:,}, {self.after.entries:,} stay ({self.policy})"
        if len(self.spared):
            words += f"; spared {len(self.spared):,} that were touched or pinned after the plan"
        return words + ("; more than half of the store, in one step" if self.forced else "")


@dataclass(frozen=True)
class IndexState:
    """What a store's index is doing at one moment.

    Parameters
    ----------
    asked : str
        What the store was told to use: `exact`, `hnsw` or `auto`.
    kind : str
        What answers now: `exact` or `hnsw`.
    graph : int
        Nodes in the graph, dead ones included; 0 if none serves.
    dead : int
        Nodes whose entries left or changed.
    scanned : int
        Entries that each search looks at one by one.
    scans : int
        Searches that looked at everything since a graph serves, for there was none in it that was sure to be right.
    rebuilding : bool
        Another graph is being made.
    error : str or None
        What went wrong last in the background.
    recall : float or None
        The share of the true best ten that it finds, by `stats(probe=True)`.
    """

    asked: str
    kind: str
    graph: int
    dead: int
    scanned: int
    scans: int
    rebuilding: bool
    error: str | None
    recall: float | None = None

    def __str__(self) -> str:
        words = self.kind if self.asked == self.kind else f"{self.asked}: {self.kind}"
        if self.graph:
            words += (
                f", {self.graph:,} nodes, {self.dead:,} dead, {self.scanned:,} entries beside it"
            )
        words += ", rebuilding" if self.rebuilding else ""
        words += "" if self.recall is None else f", recall@10 {self.recall:.3f}"
        return words + (f"; last error: {self.error}" if self.error else "")


@dataclass(frozen=True)
class CrowdingState:
    """What a store knows of how crowded it is around its entries, where its policy asks for that.

    `measured` entries are known from the background, 0 in a small store, where all are measured at each decision;
    `running` says whether they are being measured again, `error` what went wrong last.
    """

    measured: int
    running: bool
    error: str | None


@dataclass(frozen=True)
class CompactorState:
    """What compacts a store in the background is doing at one moment.

    Parameters
    ----------
    running : bool
        A thread is at it: the store is nearly full, or it waits for a quiet moment or after an error.
    planned, applied : int
        Plans made, and those carried out; the others came to nothing, since room had been made meanwhile.
    evicted : int
        Entries that left by it.
    last_error : str or None
        What went wrong last.
    retry_in : float
        Seconds until it tries again after an error; 0 if it is not pausing.
    """

    running: bool
    planned: int
    applied: int
    evicted: int
    last_error: str | None
    retry_in: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return asdict(self)


@dataclass(frozen=True)
class Stats:
    """A store's figures at one moment.

    `bytes` splits `allocated`, the RAM that the store holds, by part, room ahead of growth with it; metadata is weighed
    by a sample. `vectors` says how vectors are held. `cold_bytes` is what the file beside a tiered store takes at most;
    of it, RAM holds what the system caches as long as nobody needs the room. `regret` (a `memsift.regret.Regret`) tells
    what was evicted and wanted again, `index` what answers searches, `compactor` what the one in the background does.
    """

    entries: int
    pinned: int
    size: Size
    budget: Budget
    tick: int
    added: int
    evicted: int
    deleted: int
    searches: int
    compactions: int
    forced_compactions: int
    policy: str
    bytes: dict[str, int]
    regret: Any = None
    index: IndexState | None = None
    crowding: CrowdingState | None = None
    vectors: str = "float32"
    cold_bytes: int = 0
    compactor: CompactorState | None = None

    @property
    def allocated(self) -> int:
        """RAM of all parts."""
        return sum(self.bytes.values())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        regret = None if self.regret is None else self.regret.to_dict()
        parts = {"size": self.size._asdict(), "budget": self.budget.limits, "regret": regret}
        return {**asdict(self), **parts, "allocated": self.allocated}


@dataclass(frozen=True)
class Receipt:
    """What an erasure reached.

    Parameters
    ----------
    ids : (m,) int64
        Ids that were erased, ascending.
    places : dict
        Each place with `erased`, `pending: why` or `unreachable: why`.
    audit_head : str or None
        Hash of the audit record.
    """

    ids: Ids
    places: dict[str, str]
    audit_head: str | None

    @property
    def complete(self) -> bool:
        """Whether every place that this process can reach was cleaned."""
        return not any(state.startswith("pending") for state in self.places.values())

    def __str__(self) -> str:
        lines = [
            f"erased {len(self.ids):,} entries{'' if self.complete else ', not everywhere yet'}"
        ]
        return "\n".join(lines + [f"  {place}: {state}" for place, state in self.places.items()])
