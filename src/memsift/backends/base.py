"""What a source is: a place outside of memsift where memories lie, and what is asked of it."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from memsift.audit.replay import policy_fields
from memsift.backends.ids import Id, to_json
from memsift.policies.base import CompactionPolicy, policy_name

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scanned:
    """Some entries of a source, aligned.

    Parameters
    ----------
    ids : list of int, str or UUID, (n,)
    marks : list of str, (n,)
        What an entry was like: as long as its mark is the same, nobody has touched, pinned or changed it.
    columns : dict
        Arrays by the names of the view's columns, (n,) each; `vectors` is (n, dim) and may hold rows of zeros for
        entries without a direction.
    tenants : list of str or None, (n,)
        To whom each entry belongs; None where the source knows no tenants.
    notes : list of dict, (n,)
        What an archive keeps beside the vector, JSON-ready; empty unless the rows are about to leave.
    """

    ids: list[Id]
    marks: list[str]
    columns: dict[str, npt.NDArray[Any]]
    tenants: list[str | None]
    notes: list[dict[str, Any]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)


class Share(NamedTuple):
    """What a plan does to one memory: a tenant's, or all that the source holds (tenant None)."""

    tenant: str | None
    held: int
    pinned: int
    leaving: int
    cut: float | None


class Applied(NamedTuple):
    """What became of a plan's victims: gone, still there since they changed, or not there any more before."""

    dropped: list[Id]
    spared: list[Id]
    absent: list[Id]


@dataclass(frozen=True, eq=False)
class SourcePlan:
    """Which entries of a source would leave. Nothing has happened yet.

    Parameters
    ----------
    source : str
        The source's name.
    policy : CompactionPolicy
    keep : int or float
        Entries that stay in each memory, or the share of them.
    shares : list of Share
        One for each memory.
    ids, marks, tenants : list, (m,)
        The victims, worst first within a tenant, and what each was like.
    scores : (m,) float64
        NaN where the policy gives none.
    reasons : list of dict
        Why some of them leave: the worst, and those nearest to the cut.
    nonce : str
        Tells apart two plans that decided the same.
    """

    source: str
    policy: CompactionPolicy
    keep: int | float
    shares: list[Share]
    ids: list[Id] = field(repr=False)
    marks: list[str] = field(repr=False)
    tenants: list[str | None] = field(repr=False)
    scores: Float64 = field(repr=False)
    reasons: list[dict[str, Any]] = field(repr=False, default_factory=list)
    nonce: str = field(repr=False, default_factory=partial(secrets.token_hex, 16))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def held(self) -> int:
        """Entries of all memories, when the plan was made."""
        return sum(share.held for share in self.shares)

    @property
    def forced(self) -> bool:
        """Whether more than half of some memory would leave in one step."""
        return any(2 * share.leaving > share.held for share in self.shares)

    @cached_property
    def id(self) -> str:
        """SHA-256 over what was decided, in hex: the name of the plan in the audit and in files."""
        digest = hashlib.sha256()
        head = [self.nonce, self.source, policy_fields(self.policy), self.keep]
        digest.update(json.dumps([*head, *map(list, self.shares)], sort_keys=True).encode())
        for id_, mark in zip(self.ids, self.marks, strict=True):
            digest.update(json.dumps([to_json(id_), mark]).encode())
        return digest.hexdigest()

    def part(self, start: int, stop: int) -> SourcePlan:
        """The same for some of the victims only."""
        rows = slice(start, stop)
        return replace(
            self,
            ids=self.ids[rows],
            marks=self.marks[rows],
            tenants=self.tenants[rows],
            scores=self.scores[rows],
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "source": self.source,
            "policy": policy_name(self.policy),
            "keep": self.keep,
            "held": self.held,
            "leaving": len(self),
            "forced": self.forced,
            "memories": [share._asdict() for share in self.shares],
            "reasons": self.reasons,
        }

    def __str__(self) -> str:
        from memsift.backends.printed import describe

        return describe(self)


# Called with what is about to leave, before it does. If it raises, nothing leaves.
Archive = Callable[[Scanned], None]


@runtime_checkable
class Source(Protocol):
    """Memories in another system. `memsift.testing.SourceTests` holds what each method must keep to."""

    @property
    def name(self) -> str:
        """Where the memories lie, for people: never with a password."""
        ...

    @property
    def provides(self) -> frozenset[str]:
        """The view's columns that the source can give, `vectors` among them."""
        ...

    def scan(self, needs: frozenset[str]) -> Iterator[Scanned]:
        """All entries, in batches, each once: the columns in `needs`, and `pinned` where the source has it."""
        ...

    def plan(
        self,
        policy: CompactionPolicy,
        keep: int | float,
        *,
        by_tenant: bool = False,
        context: npt.ArrayLike | None = None,
    ) -> SourcePlan:
        """What `policy` would let go, all tenants together or each for itself. Changes nothing.

        `context` (w, dim) are the last queries, for policies that look at them.
        """
        ...

    def apply(self, plan: SourcePlan, archive: Archive | None = None) -> Applied:
        """Delete the victims whose marks are still the same and that are not pinned, and say what became of each.

        In one transaction where the system has them. `archive` is called with exactly what is about to leave.
        """
        ...

    def record_access(self, ids: Sequence[Id]) -> int:
        """Count that these entries were returned just now. Unknown ids are passed over; returns how many were known."""
        ...

    def close(self) -> None:
        """Let the connection go."""
        ...
