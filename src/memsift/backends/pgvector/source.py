"""The source itself: a mapped table, and the calls that every source answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql

from memsift import checks
from memsift.backends.base import Applied, Archive, Scanned, SourcePlan
from memsift.backends.ids import Id
from memsift.backends.pgvector import access, deletion, rows, scoring, verdicts
from memsift.backends.pgvector.connection import connect, translated
from memsift.backends.pgvector.mapping import Mapping
from memsift.backends.pgvector.names import quoted
from memsift.backends.pgvector.table import TEXTS, WHOLE, Table
from memsift.backends.planning import TOLD, as_window, checked_keep, needed, plan_by_scan
from memsift.backends.printed import escaped
from memsift.errors import InvalidType, InvalidValue
from memsift.policies import CompactionPolicy

LARGEST_ID = 2**63 - 1
# Entries that are read beyond the victims, to look for those that belong there: some 20 of 200,000 do.
SLACK = 250


class PgvectorSource:
    """A table of PostgreSQL with pgvector as a `Source`.

    Parameters
    ----------
    dsn : str
        `postgresql://user@host/database`, or a connection string. A password in it is never shown; PGPASSWORD and
        ~/.pgpass serve as well.
    mapping : Mapping or str
        Which columns mean what; a text names a table whose columns have the default names.
    timeout_seconds : float
        No statement takes longer.
    work_mem_mb : int
        RAM that each sort of a plan may take on the server before it goes to disk.
    archive_into : str, optional
        A table in the same schema that gets the rows that leave, see `create_archive_table`.

    Raises
    ------
    InvalidValue
        The table has not what the mapping says.
    SourceTrouble
        The server cannot be reached, refused or failed.
    """

    def __init__(
        self,
        dsn: str,
        mapping: Mapping | str,
        *,
        timeout_seconds: float = 300.0,
        work_mem_mb: int = 64,
        archive_into: str | None = None,
    ) -> None:
        self.mapping = Mapping(mapping) if isinstance(mapping, str) else mapping
        if archive_into is not None:
            Mapping(archive_into)  # the same rules for its name
        self.archive_into = archive_into
        self._work_mem = checks.integer(work_mem_mb, "work_mem_mb", 1, 1_000_000)
        self._lock = threading.RLock()
        self._db = connect(dsn, timeout_seconds)
        try:
            with translated():
                self._table = Table.find(self._db, self.mapping)
        except BaseException:
            self._db.close()
            raise
        info = self._db.info
        place = f"{info.host}:{info.port}/{info.dbname} {self._table.key}"
        self.name = f"postgresql://{escaped(place)}"

    @property
    def provides(self) -> frozenset[str]:
        return self._table.provides

    # ---- tables of memsift's own ----------------------------------------------------------------

    def create_access_table(self) -> None:
        """Make the table that the mapping names as `access`, in the schema of the memories. Needs CREATE on it."""
        if self.mapping.access is None:
            raise InvalidValue("Mapping.access must name a table, such as memsift_access; got None")
        with self._lock, translated():
            access.create(self._db, self._table.schema, self.mapping.access)
            self._table = Table.find(self._db, self.mapping)

    def create_archive_table(self) -> None:
        """Make the table `archive_into`: columns as those of the memories, no index, no constraint but NOT NULL."""
        if self.archive_into is None:
            raise InvalidValue("archive_into must name a table; got None")
        with self._lock, translated():
            self._db.execute(
                sql.SQL("CREATE TABLE IF NOT EXISTS {} (LIKE {})").format(
                    quoted(self._table.schema, self.archive_into), self._table.name
                ),
                {},
            )

    # ---- what every source answers --------------------------------------------------------------

    def scan(self, needs: frozenset[str]) -> Iterator[Scanned]:
        with self._lock, translated():
            yield from rows.scan(self._db, self._table, needs)

    def plan(
        self,
        policy: CompactionPolicy,
        keep: int | float,
        *,
        by_tenant: bool = False,
        context: npt.ArrayLike | None = None,
    ) -> SourcePlan:
        """What `policy` would let go. LRU, LFU, Coherence and sums of their signals are scored in the database.

        Other policies are decided here, from the columns that they need. Changes nothing; a role that may read is
        enough. Errors as of `plan_by_scan`, and SourceTrouble.
        """
        if by_tenant and self.mapping.tenant is None:
            raise InvalidValue(
                "Mapping.tenant must name a column where each tenant is a memory; got None"
            )
        size = checked_keep(keep)
        needed(self, policy)
        window = None if context is None or not len(np.asarray(context)) else as_window(context)
        by_sql = scoring.scoring_of(policy, window)
        if by_sql is None:
            return plan_by_scan(self, policy, size, by_tenant=by_tenant, context=window)
        dim = by_sql.context.shape[1] if len(by_sql.context) else self._table.dim
        if self._table.dim is not None and dim != self._table.dim:
            raise InvalidValue(
                f"context must have {self._table.dim} dimensions, as the source has; got {dim}"
            )
        with self._lock, translated():
            return self._plan(by_sql, size, by_tenant)

    def _plan(self, by_sql: scoring.Scoring, keep: int | float, by_tenant: bool) -> SourcePlan:
        table = self._table
        values: dict[str, Any] = by_sql.values | {"source": table.key}
        values |= (
            {"keep": None, "share": keep}
            if isinstance(keep, float)
            else {"keep": keep, "share": None}
        )
        with self._db.transaction():
            self._db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # A row costs twenty distances, far more than the planner thinks: workers share the scan, if there are any.
            self._db.execute(
                "SELECT set_config('work_mem', %s, true), set_config('parallel_tuple_cost', '0.001', true)",
                (f"{self._work_mem * 1024}kB",),
            )
            memories = self._scored(by_sql, by_tenant, values)
            leaving = {
                tenant: verdicts.victims(
                    memory, by_sql, lambda ids: rows.fetch(self._db, table, ids)
                )
                for tenant, memory in memories.items()
            }
        told = sorted(memories, key=lambda tenant: -memories[tenant].held)[:TOLD]
        each = [(memories[tenant], found) for tenant, found in leaving.items()]
        return SourcePlan(
            self.name,
            by_sql.policy,
            keep,
            [verdicts.share_of(memory, found) for memory, found in each],
            [memory.ids[row] for memory, found in each for row in found],
            [mark for memory, found in each for mark in memory.marks(found)],
            [memory.tenant for memory, found in each for _ in found],
            np.array([memory.scores[row] for memory, found in each for row in found], np.float64),
            [why for t in told for why in verdicts.reasons(memories[t], by_sql, leaving[t])],
        )

    def _scored(
        self, by_sql: scoring.Scoring, by_tenant: bool, values: dict[str, Any]
    ) -> dict[str | None, verdicts.Memory]:
        """The memories with their victims, and with all that may lie on either side of the cut."""
        query = scoring.statement(self._table, by_sql, by_tenant)
        slack = 1 if by_sql.band is None else SLACK
        while True:
            with self._db.cursor(binary=True) as cursor:
                found = cursor.execute(query, values | {"slack": slack}).fetchall()
            memories = verdicts.read(found)
            if all(verdicts.reaches(memory, by_sql) for memory in memories.values()):
                return memories
            slack *= 32

    def apply(self, plan: SourcePlan, archive: Archive | None = None) -> Applied:
        """Delete the victims that are as they were, in one transaction; errors roll it back whole.

        Rows go to the table `archive_into` if there is one and no `archive` is given. Needs SELECT and DELETE on the
        table, on memsift's own too, and INSERT on `archive_into`.
        """
        if plan.source != self.name:
            raise InvalidValue(f"plan must be one for {self.name}; it is for {plan.source}")
        self._check_ids(plan.ids)
        with self._lock, translated():
            return deletion.apply(self._db, self._table, plan, archive, self.archive_into)

    def record_access(self, ids: Sequence[Id]) -> int:
        """Count that these entries were returned just now. Needs UPDATE on `time` and `count`, or INSERT and UPDATE on
        memsift's own table.
        """
        if not {"accessed_tick", "access_count"} & self.provides or not len(ids):
            return 0
        known = [id_ for id_ in ids if not isinstance(id_, int) or abs(id_) <= LARGEST_ID]
        self._check_ids(known)
        with self._lock, translated():
            return access.record(self._db, self._table, known)

    @contextmanager
    def locked(self) -> Iterator[tuple[psycopg.Connection[Any], Table]]:
        """The connection and the table, for one thread at a time."""
        with self._lock:
            yield self._db, self._table

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_ids(self, ids: Sequence[Id]) -> None:
        kind = self._table.types["id"]
        wanted = int if kind in WHOLE else str if kind in TEXTS else UUID
        for id_ in ids:
            if type(id_) is not wanted:
                raise InvalidType(
                    f"ids must be of type {wanted.__name__}, as those of the table; "
                    f"got {type(id_).__name__}"
                )
