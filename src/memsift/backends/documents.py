"""Sources whose entries are documents with a vector, told apart by marks: what Qdrant's and Chroma's have in common.

Such systems have no transactions and tell no version of a row. So a plan carries, for each victim, a digest of all
that it was; `apply` reads the victims again, archives those that are still the same, and deletes them under a filter
that leaves alone whoever was touched or pinned in the meantime.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.backends.base import Applied, Archive, Scanned, SourcePlan
from memsift.backends.fields import COLUMNS, Fields
from memsift.backends.ids import Id
from memsift.backends.pages import PAGE, PagedVectors
from memsift.backends.planning import plan_by_scan
from memsift.errors import InvalidValue
from memsift.policies.base import CompactionPolicy


@dataclass(frozen=True)
class Document:
    """An entry as it was read.

    Parameters
    ----------
    id : int, str or UUID
    values : dict
        What its mapped fields hold, by role.
    body : dict
        All its fields; empty if only the mapped ones were asked for.
    vector : (dim,) float32 or None
        None if it has none, or nobody asked.
    whole : str
        A digest of everything it is, vector included; empty if not all was read.
    """

    id: Id
    values: dict[str, Any]
    body: dict[str, Any] = field(default_factory=dict)
    vector: npt.NDArray[np.float32] | None = None
    whole: str = ""


class DocumentSource(ABC):
    """Documents as a `Source`. A subclass says how they are read, deleted and written.

    Parameters
    ----------
    name : str
        Where they lie, for people.
    fields : Fields
    batch : int
        Documents that a scan asks for at a time.
    """

    provides: ClassVar[frozenset[str]] = frozenset({*COLUMNS, "vectors"})

    def __init__(self, name: str, fields: Fields, batch: int) -> None:
        self.name, self.fields = name, fields
        self._batch = checks.integer(batch, "batch", 1, 10_000)
        self._written = 0

    # ---- what a subclass says -------------------------------------------------------------------

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of the vectors."""

    @abstractmethod
    def _pages(self, vectors: bool) -> Iterator[list[Document]]:
        """All documents with their mapped fields, each once, whoever else adds or deletes meanwhile."""

    @abstractmethod
    def _read(self, ids: list[Id], *, whole: bool = False, vectors: bool = False) -> list[Document]:
        """Those of up to `batch` ids that are there: mapped fields, and the vector or everything if asked."""

    @abstractmethod
    def _delete(self, leaving: list[Document]) -> None:
        """Delete documents, but for those that were touched or pinned since they were read."""

    @abstractmethod
    def _write(self, changes: dict[Id, dict[str, Any]]) -> None:
        """Set mapped fields, by role, of documents that are there."""

    @abstractmethod
    def close(self) -> None:
        """Let the connection go."""

    # ---- what a source does ---------------------------------------------------------------------

    def scan(self, needs: frozenset[str]) -> Iterator[Scanned]:
        for page in self._pages("vectors" in needs):
            if page:
                yield self._scanned(page, needs)

    def plan(
        self,
        policy: CompactionPolicy,
        keep: int | float,
        *,
        by_tenant: bool = False,
        context: npt.ArrayLike | None = None,
    ) -> SourcePlan:
        if by_tenant and self.fields.tenant is None:
            raise InvalidValue(
                "Fields.tenant must name a field where each tenant is a memory; got None"
            )
        plan = plan_by_scan(
            self, policy, keep, by_tenant=by_tenant, context=context, vectors=self._vectors
        )
        return replace(plan, marks=self._sealed(plan))

    def apply(self, plan: SourcePlan, archive: Archive | None = None) -> Applied:
        done = Applied([], [], [])
        for start in range(0, len(plan), self._batch):
            rows = slice(start, start + self._batch)
            marks = dict(zip(plan.ids[rows], plan.marks[rows], strict=True))
            found = {document.id: document for document in self._whole(list(marks))}
            leaving = [
                document
                for document in found.values()
                if document.whole == marks[document.id] and not self._is_pinned(document)
            ]
            if archive is not None and leaving:
                archive(self._scanned(leaving, self.provides, notes=True))
            if leaving:
                self._delete(leaving)
            there = {document.id for document in self._read(list(found))} if found else set[Id]()
            gone = {document.id for document in leaving} - there
            done.dropped.extend(id_ for id_ in marks if id_ in gone)
            done.spared.extend(id_ for id_ in marks if id_ in there)
            done.absent.extend(id_ for id_ in marks if id_ not in gone and id_ not in there)
        return done

    def record_access(self, ids: Sequence[Id]) -> int:
        wanted, known = list(dict.fromkeys(ids)), 0
        # A clock that is read twice within a microsecond must not say the same.
        self._written = max(time.time_ns() // 1000, self._written + 1)
        for start in range(0, len(wanted), self._batch):
            page = self._read(wanted[start : start + self._batch])
            if page:
                self._write({d.id: self.fields.accessed(d.values, self._written) for d in page})
            known += len(page)
        return known

    # ---- inside ---------------------------------------------------------------------------------

    def _vectors(self, ids: list[Id]) -> PagedVectors:
        """The vectors of some entries, read when they are looked at."""

        def read(some: list[Id]) -> npt.NDArray[np.float32]:
            found = {document.id: document for document in self._read(some, vectors=True)}
            return self._stacked([found.get(id_) for id_ in some])

        return PagedVectors(ids, read, self.dim, min(PAGE, self._batch))

    def _sealed(self, plan: SourcePlan) -> list[str]:
        """Marks that tell any later change: of whoever changed already, the scan's, which none can match."""
        whole = dict[Id, str]()
        for start in range(0, len(plan), self._batch):
            rows = slice(start, start + self._batch)
            marks = dict(zip(plan.ids[rows], plan.marks[rows], strict=True))
            for document in self._whole(list(marks)):
                if self.fields.mark(document.values) == marks[document.id]:
                    whole[document.id] = document.whole
        return [whole.get(id_, mark) for id_, mark in zip(plan.ids, plan.marks, strict=True)]

    def _whole(self, ids: list[Id]) -> list[Document]:
        """Everything of the documents that are there, read by pages."""
        size = min(PAGE, self._batch)
        pages = [
            self._read(ids[start : start + size], whole=True) for start in range(0, len(ids), size)
        ]
        return [document for page in pages for document in page]

    def _scanned(self, page: list[Document], needs: frozenset[str], notes: bool = False) -> Scanned:
        values = [document.values for document in page]
        columns = self.fields.columns(values, needs)
        if "vectors" in needs:
            columns["vectors"] = self._stacked(page)
        return Scanned(
            [document.id for document in page],
            [self.fields.mark(some) for some in values],
            columns,
            [self.fields.tenant_of(some) for some in values],
            [document.body for document in page] if notes else [],
        )

    def _stacked(self, page: Sequence[Document | None]) -> npt.NDArray[np.float32]:
        """Vectors as rows, zeros where there is none: (n, dim)."""
        out = np.zeros((len(page), self.dim), np.float32)
        for row, document in enumerate(page):
            if document is not None and document.vector is not None:
                out[row] = document.vector
        return out

    def _is_pinned(self, document: Document) -> bool:
        return bool(self.fields.columns([document.values], frozenset())["pinned"][0])
