"""Scores inside PostgreSQL: what of a policy SQL can say, and the one statement that scores, ranks and cuts.

pgvector sums in float32, so a cosine there may be off. The statement gives the victims and some that rank before them;
`verdicts` computes those again that are so near to the cut that the difference could decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from psycopg import sql
from psycopg.sql import Composable, Composed

from memsift.backends.pgvector.table import Table
from memsift.kernels import Float32
from memsift.policies import CoherencePolicy, CompactionPolicy, LfuPolicy, LruPolicy, ScoredPolicy
from memsift.policies.weighted import WeightedPolicy
from memsift.signals import Coherence, Frequency, Recency, Signal

RECENCY = sql.SQL(
    "CASE WHEN hi > lo THEN (tick - lo)::float8 / (hi - lo)::float8 ELSE 0::float8 END"
)
FREQUENCY = sql.SQL("CASE WHEN most > 0 THEN count::float8 / most::float8 ELSE 0::float8 END")
COHERENCE = sql.SQL("greatest(0::float8, near)")


@dataclass(frozen=True)
class Scoring:
    """A policy as SQL can compute it.

    Parameters
    ----------
    policy : ScoredPolicy
    parts : tuple of (weight, Signal)
        Recency, frequency and at most one coherence.
    order : str
        By what entries are ranked: `tick` and `count` are integers, `score` a weighted sum.
    context : (w, dim) float32
        The queries that coherence looks at; w is 0 where nobody does.
    """

    policy: ScoredPolicy
    parts: tuple[tuple[float, Signal], ...]
    order: str
    context: Float32

    @property
    def off(self) -> float:
        """How far a score may be off on either side: float32 sums over the vector's elements, three of them."""
        weight = sum(abs(float(w)) for w, signal in self.parts if isinstance(signal, Coherence))
        if not len(self.context):
            return 0.0
        # A sum of dim products is off by less than dim rounding errors; so are the two lengths, halved by their roots.
        dim = int(self.context.shape[1])
        return weight * max(1e-5, 2.5 * dim * 2.0**-24) + 1e-9

    @property
    def band(self) -> float | None:
        """On either side of the cut, how near a score may be and still belong on the other; None if all are exact."""
        return 2 * self.off or None

    def near(self, embedding: Composable) -> Composable:
        """The largest cosine to the window's queries; 0 for a row without a direction."""
        if not len(self.context):
            return sql.SQL("0::float8")
        distances = sql.SQL(", ").join(
            sql.SQL("{} <=> {}::vector").format(embedding, sql.Placeholder(f"query{i}"))
            for i in range(len(self.context))
        )
        # pgvector says NaN for rows of zeros; coalesce covers rows of NULL.
        return sql.SQL("coalesce(nullif(1 - least({}), 'NaN'::float8), 0::float8)").format(
            distances
        )

    @property
    def score(self) -> Composed:
        """The weighted sum, added up in the order of the parts."""
        forms = {Recency: RECENCY, Frequency: FREQUENCY, Coherence: COHERENCE}
        terms = [
            sql.SQL("{}::float8 * ({})").format(sql.Placeholder(f"weight{i}"), forms[type(signal)])
            for i, (_, signal) in enumerate(self.parts)
        ]
        return sql.SQL("({})").format(sql.SQL(" + ").join(terms))

    @property
    def key(self) -> Composable:
        """What entries are ranked by, with float noise rounded away as ours is."""
        if self.order != "score":
            return sql.SQL(self.order)
        return sql.SQL("round(score / {}::float8 * 1e9)").format(sql.Placeholder("scale"))

    @property
    def values(self) -> dict[str, Any]:
        """What is bound to the placeholders."""
        out: dict[str, Any] = {f"weight{i}": weight for i, (weight, _) in enumerate(self.parts)}
        out |= {f"query{i}": text_of(row) for i, row in enumerate(self.context)}
        return out | {"scale": self.policy.scale}


def scoring_of(policy: CompactionPolicy, context: Float32 | None) -> Scoring | None:
    """The policy as SQL can compute it; None where it must be decided here, from a scan."""
    nothing = np.empty((0, 1), np.float32)
    window = nothing if context is None else context
    if type(policy) is LruPolicy:
        return Scoring(policy, ((1.0, Recency()),), "tick", nothing)
    if type(policy) is LfuPolicy or (type(policy) is CoherencePolicy and not len(window)):
        return Scoring(policy, ((1.0, Frequency()),), "count", nothing)
    if type(policy) is not CoherencePolicy and type(policy) is not WeightedPolicy:
        return None
    kinds = [type(signal) for _, signal in policy.parts]
    if not set(kinds) <= {Recency, Frequency, Coherence} or kinds.count(Coherence) > 1:
        return None
    queries = max(signal.queries for _, signal in policy.parts)
    return Scoring(policy, policy.parts, "score", window[-queries:] if queries else nothing)


def entries(table: Table, scoring: Scoring, by_tenant: bool) -> Composed:
    """One row per entry with what its score is made of: each vector is read here, and nowhere else."""
    body = sql.SQL(
        "SELECT {id} AS id, {tenant} AS tenant, {tick} AS tick, {count} AS count, {pinned} AS pinned,"
        " {version} AS version, {near} AS near FROM {entries}"
    )
    embedding = table.column("embedding")
    if table.types["embedding"] == "halfvec":
        embedding = sql.SQL("{}::vector").format(embedding)
    return body.format(
        id=table.column("id"),
        tenant=table.tenant if by_tenant else sql.SQL("NULL::text"),
        tick=table.tick,
        count=table.count,
        pinned=table.pinned,
        version=table.raw_version,
        near=scoring.near(embedding),
        entries=table.entries,
    )


def statement(table: Table, scoring: Scoring, by_tenant: bool) -> Composed:
    """The statement of a plan: a row for each memory (id NULL), and its entries that rank behind `room - slack`.

    Columns: id, tenant, tick, count, version, score, place. Of a memory they are NULL, tenant, its least tick, its
    largest count, `largest tick/entries/pinned ones`, NULL, and how many may stay.
    """
    return sql.SQL(
        """
        WITH entry AS MATERIALIZED ({entries}),
        line AS (
            SELECT tenant, count(*) AS held, count(*) FILTER (WHERE pinned) AS pins, min(tick) AS lo,
                max(tick) AS hi, max(count) AS most, {room} AS room
            FROM entry GROUP BY tenant)
        SELECT NULL AS id, tenant, lo AS tick, most AS count, concat_ws('/', hi, held, pins) AS version,
            NULL::float8 AS score, room AS place
        FROM line
        UNION ALL
        SELECT id, tenant, tick, count, {version}, score, place FROM (
            SELECT *, row_number() OVER ({part} ORDER BY {key} DESC, tick DESC, {by_id} DESC) AS place
            FROM (
                SELECT e.id, e.tenant, e.tick, e.count, e.version, l.room - l.pins AS room, {score} AS score
                FROM entry AS e JOIN line AS l ON {same} WHERE NOT e.pinned) AS scored
            ) AS ranked
        WHERE place > room - {slack}::bigint
        """
    ).format(
        entries=entries(table, scoring, by_tenant),
        room=sql.SQL("least(count(*), {})").format(_room()),
        version=sql.SQL("version::text" if table.mapping.version else "''"),
        score=scoring.score,
        key=scoring.key,
        by_id=table.by_id,
        part=sql.SQL("PARTITION BY tenant" if by_tenant else ""),
        # Equality that can be hashed, which IS NOT DISTINCT FROM cannot.
        same=sql.SQL(
            "(e.tenant IS NULL) = (l.tenant IS NULL) AND coalesce(e.tenant, '') = coalesce(l.tenant, '')"
            if by_tenant
            else "true"
        ),
        slack=sql.Placeholder("slack"),
    )


def _room() -> Composable:
    """How many entries of a memory may stay: a number, or a share rounded up, one at least."""
    return sql.SQL(
        "coalesce({keep}::bigint, greatest(1, ceil(count(*) * {share}::float8 - 1e-9))::bigint)"
    ).format(keep=sql.Placeholder("keep"), share=sql.Placeholder("share"))


def text_of(vector: Any) -> str:
    """A vector as pgvector reads it; each element is the very float32."""
    return f"[{','.join(map(str, vector.tolist()))}]"
