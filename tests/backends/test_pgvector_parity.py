"""The plan that PostgreSQL makes has the victims of the store in RAM, id for id."""

from __future__ import annotations

import numpy as np
import pytest

from memsift.backends.pgvector import Mapping, PgvectorSource, scoring
from memsift.budget import Budget
from memsift.plan import make_plan
from memsift.policies import CoherencePolicy, LfuPolicy, LruPolicy, parse
from memsift.view import MemoryView

NAMES = {"time": "seen", "count": "hits", "pin": "pinned", "tenant": "owner"}
POLICIES = [
    LruPolicy(),
    LfuPolicy(),
    CoherencePolicy(),
    CoherencePolicy(alpha=0.0, beta=0.0, gamma=1.0, window=3),
    parse("0.7*recency+0.3*frequency"),
    parse("1.0*coherence:window=2"),
]


def memories(n, dim, seed=0):
    """Columns of n memories on a few topics: unit vectors, many near the cut, many that tie."""
    rng = np.random.default_rng(seed)
    topics = rng.normal(size=(40, dim))
    vectors = topics[rng.integers(40, size=n)] + 0.7 * rng.normal(size=(n, dim))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    vectors[n // 2 : n // 2 + n // 10] = vectors[: n // 10]  # said twice
    return {
        "vectors": vectors,
        "ids": np.cumsum(rng.integers(1, 4, n)),
        "accessed_tick": rng.integers(1, n // 4, n),
        "access_count": np.where(rng.random(n) < 0.6, 0, rng.integers(0, 9, n)),
        "pinned": rng.random(n) < 0.01,
    }, (topics[:20] + 0.5 * rng.normal(size=(20, dim)))


def fill(db, columns, kind="vector"):
    dim = columns["vectors"].shape[1]
    db.execute(
        f"CREATE TABLE memories (id bigint PRIMARY KEY, embedding {kind}({dim}), seen bigint, hits bigint,"
        " pinned boolean, owner text)"
    )
    with db.cursor() as cursor, cursor.copy("COPY memories FROM STDIN") as copy:
        names = ("ids", "vectors", "accessed_tick", "access_count", "pinned")
        for id_, *row in zip(*(columns[name].tolist() for name in names), strict=True):
            copy.write_row((id_, str(row[0]), *row[1:], f"tenant {id_ % 3}"))


def wanted(columns, context, policy, keep, of=slice(None)):
    arrays = {name: column[of] for name, column in columns.items()}
    view = MemoryView.from_arrays(arrays.pop("vectors"), context=context, **arrays)
    return make_plan(view, policy, Budget(keep), view.pinned).victims.tolist()


@pytest.fixture
def opened(server, database, owner):
    """Fills the table and opens it."""
    sources = []

    def of(columns, kind="vector"):
        fill(owner, columns, kind)
        sources.append(PgvectorSource(server.dsn(database), Mapping("memories", **NAMES)))
        return sources[-1]

    yield of
    for source in sources:
        source.close()


@pytest.mark.parametrize("dim", [3, 384])
def test_victims_are_those_of_the_store_in_ram(opened, dim):
    columns, context = memories(4000, dim)
    source = opened(columns)
    for policy in POLICIES:
        for keep in (60, 2000, 3970):
            assert scoring.scoring_of(policy, context.astype(np.float32)) is not None
            plan = source.plan(policy, keep, context=context)
            assert sorted(plan.ids) == wanted(columns, context, policy, keep), f"{policy}, {keep}"


def test_victims_of_each_tenant_are_those_of_its_own_store(opened):
    columns, context = memories(3000, 16)
    source = opened(columns)
    for policy in POLICIES:
        plan = source.plan(policy, 0.3, by_tenant=True, context=context)
        for tenant in range(3):
            own = columns["ids"] % 3 == tenant
            share = -(-int(own.sum()) * 3 // 10)
            found = sorted(
                id_
                for id_, t in zip(plan.ids, plan.tenants, strict=True)
                if t == f"tenant {tenant}"
            )
            assert found == wanted(columns, context, policy, share, own), f"{policy}"


@pytest.mark.parametrize("alike", [True, False])
def test_what_float_noise_could_decide_is_decided_by_rule(opened, alike):
    """All vectors point one way, up to the last digit of each element: sums in float32 would tell them apart."""
    n, dim = 600, 384
    rng = np.random.default_rng(5)
    base = rng.normal(size=dim)
    # Powers of two change no digit; other factors round each element anew.
    lengths = 2.0 ** rng.integers(-3, 4, (n, 1)) if alike else rng.uniform(0.5, 2.0, (n, 1))
    columns = {
        "vectors": base.astype(np.float32) * lengths if alike else base * lengths,
        "ids": rng.permutation(n) + 1,
        "accessed_tick": np.full(n, 7),
        "access_count": np.zeros(n, np.int64),
        "pinned": np.zeros(n, np.bool_),
    }
    columns["vectors"] = columns["vectors"].astype(np.float32)
    source, context = opened(columns), [base + rng.normal(size=dim)]
    for policy in (CoherencePolicy(), parse("1.0*coherence")):
        for keep in (1, 300, 599):
            found = sorted(source.plan(policy, keep, context=context).ids)
            assert found == wanted(columns, context, policy, keep)
            if alike:
                assert found == list(range(1, n - keep + 1)), "the highest ids stay"


def test_half_precision_vectors_are_compared_as_they_are(opened):
    columns, context = memories(1500, 24)
    source = opened(columns, "halfvec")
    stored = {**columns, "vectors": columns["vectors"].astype(np.float16).astype(np.float32)}
    plan = source.plan(CoherencePolicy(), 700, context=context)
    assert sorted(plan.ids) == wanted(stored, context, CoherencePolicy(), 700)


def test_a_window_may_be_long(opened):
    columns, _ = memories(500, 8)
    context = np.random.default_rng(1).normal(size=(1500, 8))
    policy = CoherencePolicy(window=1500)
    found = sorted(opened(columns).plan(policy, 200, context=context).ids)
    assert found == wanted(columns, context, policy, 200)


@pytest.mark.parametrize("index", ["hnsw", "ivfflat"])
def test_an_index_changes_no_victim_and_finds_none_of_them_afterwards(opened, owner, index):
    columns, context = memories(2000, 16)
    source = opened(columns)
    owner.execute(f"CREATE INDEX ON memories USING {index} (embedding vector_cosine_ops)")
    plan = source.plan(CoherencePolicy(), 900, context=context)
    assert sorted(plan.ids) == wanted(columns, context, CoherencePolicy(), 900)
    assert set(source.apply(plan).dropped) == set(plan.ids)
    gone = set(plan.ids)
    with owner.transaction():
        owner.execute("SET LOCAL enable_seqscan = off")
        used = owner.execute(
            "EXPLAIN SELECT id FROM memories ORDER BY embedding <=> %s::vector LIMIT 20",
            (str(context[0].tolist()),),
        ).fetchall()
        assert "Index Scan" in str(used)
        for query in context:
            found = owner.execute(
                "SELECT id FROM memories ORDER BY embedding <=> %s::vector LIMIT 20",
                (str(query.tolist()),),
            ).fetchall()
            assert found
            assert gone.isdisjoint(id_ for (id_,) in found)


def test_entries_without_a_direction_have_no_coherence(opened, owner):
    columns, context = memories(400, 8)
    source = opened(columns)
    owner.execute("UPDATE memories SET embedding = NULL WHERE id % 2 = 0")
    owner.execute("UPDATE memories SET embedding = '[0,0,0,0,0,0,0,0]' WHERE id % 5 = 0")
    policy = parse("1.0*coherence")
    plan = source.plan(policy, 100, context=context)
    without = (columns["ids"] % 2 == 0) | (columns["ids"] % 5 == 0)
    # In RAM such an entry is one that no query comes near.
    far = columns["vectors"].copy()
    far[without] = -context.mean(0)
    rows = MemoryView.from_arrays(far).vectors
    near = (rows @ (context / np.linalg.norm(context, axis=1, keepdims=True)).T).max(1)
    near[without] = 0.0
    order = np.lexsort((-columns["ids"], -columns["accessed_tick"], -np.maximum(0, near).round(9)))
    stay = [row for row in order if not columns["pinned"][row]][: 100 - columns["pinned"].sum()]
    kept = set(columns["ids"][stay].tolist()) | set(columns["ids"][columns["pinned"]].tolist())
    assert set(plan.ids) == set(columns["ids"].tolist()) - kept


def test_other_policies_are_decided_here_from_the_columns_alone(opened, server):
    columns, _ = memories(500, 8)
    source = opened(columns)
    for policy in (parse("random:seed=3"), parse("stack_distance")):
        assert scoring.scoring_of(policy, None) is None
        assert sorted(source.plan(policy, 200).ids) == wanted(columns, None, policy, 200)
    asked = server.log.read_text().rpartition("CREATE TABLE memories")[2]
    assert "COPY" in asked
    assert not [line for line in asked.splitlines() if "DECLARE" in line and "embedding" in line]


def test_a_reader_may_plan(opened, server, database, owner):
    columns, context = memories(300, 8)
    opened(columns).close()
    owner.execute("DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN")
    owner.execute(
        "GRANT USAGE ON SCHEMA public, extensions TO reader; GRANT SELECT ON memories TO reader"
    )
    source = PgvectorSource(server.dsn(database, "reader"), Mapping("memories", **NAMES))
    plan = source.plan(CoherencePolicy(), 100, context=context)
    assert len(plan) == 200
    with pytest.raises(OSError, match="must be allowed"):
        source.apply(plan)
    assert owner.execute("SELECT count(*) FROM memories").fetchone() == (300,)
    owner.execute("GRANT DELETE ON memories TO reader")
    assert len(source.apply(plan).dropped) == 200
    source.close()
