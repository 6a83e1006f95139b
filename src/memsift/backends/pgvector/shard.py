"""A table as one of many shards under one budget: scored once into a temporary table, then asked about it."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import numpy.typing as npt
from psycopg import sql
from psycopg.sql import Composed

from memsift.backends.base import Share, SourcePlan
from memsift.backends.pgvector import rows, scoring, verdicts
from memsift.backends.pgvector.connection import translated
from memsift.backends.pgvector.source import LARGEST_ID, PgvectorSource
from memsift.backends.planning import as_window
from memsift.backends.threshold import Counts, Cut, Extremes, Key
from memsift.errors import InvalidValue
from memsift.kernels import DECIMALS
from memsift.policies import CompactionPolicy


class PgvectorShard:
    """One shard's part of `global_cut`, and the plan that follows from the cut.

    Vectors are read once. Needs the right to make temporary tables, which roles have by default.
    """

    def __init__(
        self, source: PgvectorSource, policy: CompactionPolicy, context: npt.ArrayLike | None = None
    ) -> None:
        window = None if context is None or not len(np.asarray(context)) else as_window(context)
        found = scoring.scoring_of(policy, window)
        if found is None:
            raise InvalidValue(
                "policy must be lru, lfu, coherence or a sum of their signals, which SQL can score; "
                f"got {policy.name}"
            )
        self.source, self.scoring = source, found
        name = f"memsift_{secrets.token_hex(8)}"
        self._name = sql.Identifier("pg_temp", name)
        with source.locked() as (db, table), translated():
            made = sql.SQL("CREATE TEMP TABLE {} AS {}").format(
                sql.Identifier(name), scoring.entries(table, found, False)
            )
            db.execute(made, found.values | {"source": table.key})

    @property
    def noise(self) -> float:
        """How far a score may be off."""
        return self.scoring.off

    def extremes(self) -> Extremes:
        # Pinned entries are no candidates, but scores are relative to them as well.
        query = (
            "SELECT count(*), count(*) FILTER (WHERE NOT pinned), coalesce(min(tick), 0),"
            " coalesce(max(tick), 0), coalesce(max(count), 0) FROM {}"
        )
        return Extremes(*self._ask(query, {})[0])

    def histogram(self, whole: Extremes, low: float, high: float, bins: int) -> Counts:
        query = (
            "SELECT width_bucket({score}, {low}::float8, {high}::float8, {bins}::int) AS bin, count(*)"
            " FROM {name} WHERE NOT pinned GROUP BY 1"
        )
        out = np.zeros(bins + 2, np.int64)
        for place, count in self._ask(query, self._values(whole, low=low, high=high, bins=bins)):
            out[place] = count
        return out

    def keys(self, whole: Extremes, low: float, high: float) -> list[Key]:
        query = (
            "SELECT id, NULL, tick, count, version::text, {score} AS score, 0 FROM {name}"
            " WHERE NOT pinned AND {score} >= {low}::float8 AND {score} < {high}::float8"
        )
        found = self._ask(query, self._values(whole, low=low, high=high))
        return self._exact(whole, found)

    def plan(self, cut: Cut | None) -> SourcePlan:
        """What leaves of this shard by the cut of all; nothing if there is none, for then all may stay."""
        if cut is None:
            return self.source.plan(self.scoring.policy, LARGEST_ID)
        query = (
            "SELECT id, NULL, tick, count, version::text, {score} AS score, 0 FROM {name}"
            " WHERE NOT pinned AND {score} <= {edge}::float8 ORDER BY {score}, tick, id"
        )
        middle = np.inf if cut.key is None else cut.key.score * self.scoring.policy.scale
        reach = 2 * self.noise + 1e-8
        found = self._ask(query, self._values(cut.whole, edge=middle + reach))
        near = [row for row in found if row[5] >= middle - reach]
        stays = {key.id for key in self._exact(cut.whole, near) if cut.stays(key)}
        leaving = [row for row in found if row[0] not in stays]
        held, pinned = self._ask("SELECT count(*), count(*) FILTER (WHERE pinned) FROM {}", {})[0]
        return SourcePlan(
            self.source.name,
            self.scoring.policy,
            max(1, held - len(leaving)),
            [Share(None, held, pinned, len(leaving), None if cut.key is None else middle)],
            [row[0] for row in leaving],
            [f"{row[2]}/{row[3]}/{row[4]}" for row in leaving],
            [None] * len(leaving),
            np.array([row[5] for row in leaving], np.float64),
        )

    def close(self) -> None:
        """Let the temporary table go."""
        with self.source.locked() as (db, _), translated():
            db.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(self._name))

    def _exact(self, whole: Extremes, found: list[tuple[Any, ...]]) -> list[Key]:
        """The exact keys of some rows."""
        if not found:
            return []
        ids, _, ticks, counts, _, scores, _ = zip(*found, strict=True)
        keys = np.array(scores)
        if self.scoring.order == "score":
            keys = (keys / self.scoring.policy.scale).round(DECIMALS)
        if self.scoring.band is not None:
            ends = whole.low, whole.high, whole.most
            memory = verdicts.Memory(None, *ends, len(found), 0, 0, ids, (), ticks, counts)
            with self.source.locked() as (db, table), translated():
                every = np.arange(len(found))
                keys = verdicts.exact_keys(
                    memory, self.scoring, every, lambda some: rows.fetch(db, table, some)
                )
        return list(map(Key, keys.tolist(), ticks, ids))

    def _values(self, whole: Extremes, **more: object) -> dict[str, object]:
        ends = {"lo": whole.low, "hi": whole.high, "most": whole.most}
        return self.scoring.values | ends | more

    def _ask(self, query: str, values: dict[str, object]) -> list[tuple[Any, ...]]:
        with self.source.locked() as (db, _), translated():
            return db.execute(self._composed(query), values, binary=True).fetchall()

    def _composed(self, query: str) -> Composed:
        names = {name: sql.Placeholder(name) for name in ("low", "high", "bins", "edge")}
        ends = sql.SQL(
            "(SELECT *, {}::bigint AS lo, {}::bigint AS hi, {}::bigint AS most FROM {}) AS entry"
        ).format(*(sql.Placeholder(name) for name in ("lo", "hi", "most")), self._name)
        if "{}" in query:
            return sql.SQL(query).format(self._name)
        return sql.SQL(query).format(name=ends, score=self.scoring.score, **names)
