"""A budget over sixteen shards has the victims that it has over one table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsift.backends.pgvector import Mapping, PgvectorSource
from memsift.backends.pgvector.shard import PgvectorShard
from memsift.backends.threshold import Extremes, Key, global_cut
from memsift.errors import InvalidValue
from memsift.policies import CoherencePolicy, LfuPolicy, LruPolicy, RandomPolicy, parse

SHARDS = 16


class ListShard:
    """Scores in a list; what a histogram sees may be off by `noise`."""

    def __init__(self, keys, noise=0.0):
        self.all, self.noise, self.asked = keys, noise, 0
        rng = np.random.default_rng(len(keys))
        self.rough = [key.score + rng.uniform(-noise, noise) for key in keys]

    def extremes(self):
        ticks = [key.tick for key in self.all] or [0]
        return Extremes(len(self.all), len(self.all), min(ticks), max(ticks), 1)

    def histogram(self, whole, low, high, bins):
        self.asked += 1
        out = np.zeros(bins + 2, np.int64)
        for score in self.rough:
            place = int(np.floor((score - low) / (high - low) * bins)) + 1
            # As width_bucket: exactly what the edges say.
            out[0 if score < low else bins + 1 if score >= high else min(max(place, 1), bins)] += 1
        return out

    def keys(self, whole, low, high):
        return [k for k, rough in zip(self.all, self.rough, strict=True) if low <= rough < high]


def dealt(keys, noise=0.0):
    return [ListShard(keys[i::SHARDS], noise) for i in range(SHARDS)]


def staying(shards, cut):
    return {key.id for shard in shards for key in shard.all if cut is None or cut.stays(key)}


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 400), st.integers(0, 420), st.integers(0, 2**32), st.sampled_from([0, 1e-4]))
def test_the_cut_is_that_of_one_sorted_list(n, keep, seed, noise):
    rng = np.random.default_rng(seed)
    spread = rng.choice([0.001, 1.0, 1000.0])
    scores = np.round(rng.normal(size=n) * spread, int(rng.integers(0, 9)))
    keys = [Key(float(s), int(rng.integers(3)), int(i)) for i, s in enumerate(scores)]
    shards = dealt(keys, noise)
    cut = global_cut(shards, keep, noise=noise, few=int(rng.choice([1, 20, 10_000])))
    ranked = sorted(keys, key=lambda key: (key.score, key.tick, key.id), reverse=True)
    assert staying(shards, cut) == {key.id for key in ranked[:keep]}
    if cut is not None:
        assert (cut.staying, cut.leaving) == (keep, n - keep)


def test_few_rounds_find_the_cut_of_many():
    rng = np.random.default_rng(0)
    keys = [Key(float(s), 0, i) for i, s in enumerate(rng.random(4000))]
    shards = dealt(keys)
    cut = global_cut(shards, 1000, few=10)
    assert cut.rounds == 1
    assert {shard.asked for shard in shards} == {2}, "the histogram, and what lies above the bin"


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InvalidValue, match="keep"):
        global_cut([], -1)
    with pytest.raises(InvalidValue, match="below high"):
        global_cut([], 1, 1.0, 1.0)
    assert global_cut([], 1) is None


@pytest.fixture
def partitions(server, database, owner):
    """A table of 16 partitions with 1,200 rows in a few topics, as one source and as sixteen."""
    rng = np.random.default_rng(2)
    topics = rng.normal(size=(9, 12))
    owner.execute(
        "CREATE TABLE memories (id bigint PRIMARY KEY, embedding vector(12), seen bigint, hits int,"
        " pinned boolean) PARTITION BY HASH (id)"
    )
    for i in range(SHARDS):
        owner.execute(
            f"CREATE TABLE part{i} PARTITION OF memories FOR VALUES WITH (MODULUS {SHARDS}, REMAINDER {i})"
        )
    with owner.cursor() as cursor, cursor.copy("COPY memories FROM STDIN") as copy:
        for i in range(1200):
            # Every third says what another one says: ties across the shards.
            vector = topics[i % 9] if i % 3 == 0 else topics[i % 9] + rng.normal(size=12)
            hits = int(rng.integers(0, 5)) if i % 2 else 0
            seen = int(rng.integers(1, 300))
            copy.write_row((i, str(vector.tolist()), seen, hits, bool(rng.random() < 0.02)))
    names = {"time": "seen", "count": "hits", "pin": "pinned"}
    opened = [
        PgvectorSource(server.dsn(database), Mapping(table, **names))
        for table in ("memories", *(f"part{i}" for i in range(SHARDS)))
    ]
    yield opened[0], opened[1:], topics[:3] + rng.normal(size=(3, 12)) / 3
    for source in opened:
        source.close()


def test_sixteen_partitions_under_one_budget_lose_what_the_whole_table_would(partitions, owner):
    whole, parts, context = partitions
    pins = owner.execute("SELECT count(*) FROM memories WHERE pinned").fetchone()[0]
    policies = [CoherencePolicy(), LruPolicy(), LfuPolicy(), parse("0.5*recency+0.5*frequency")]
    for policy in policies:
        shards = [PgvectorShard(part, policy, context) for part in parts]
        for keep in (pins, pins + 1, 400, 800, 1199):
            wanted = whole.plan(policy, keep, context=context)
            cut = global_cut(shards, keep - pins, noise=shards[0].noise, few=5)
            plans = [shard.plan(cut) for shard in shards]
            assert sorted(id_ for plan in plans for id_ in plan.ids) == sorted(wanted.ids), (
                f"{policy}, {keep}"
            )
            assert cut.leaving == len(wanted)
        assert global_cut(shards, 1200) is None
        assert len(shards[0].plan(None)) == 0
        for shard in shards:
            shard.close()
    for part, plan in zip(parts, plans, strict=True):
        assert set(part.apply(plan).dropped) == set(plan.ids)
    assert owner.execute("SELECT count(*) FROM memories").fetchone() == (1199,)


def test_a_shard_scores_what_sql_can_score(partitions):
    with pytest.raises(InvalidValue, match="which SQL can score"):
        PgvectorShard(partitions[1][0], RandomPolicy())
