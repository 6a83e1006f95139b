"""A table of a real PostgreSQL keeps what every source must keep, in several forms of it."""

from __future__ import annotations

import numpy as np
import pytest
import tables
from psycopg import sql

from memsift.backends.pgvector import Mapping, PgvectorSource
from memsift.errors import InvalidValue
from memsift.policies import LfuPolicy, LruPolicy, parse
from memsift.testing import SourceTests


class PgvectorTests(SourceTests):
    """What the forms share."""

    kind, time = "vector", "bigint"

    @pytest.fixture(autouse=True)
    def _place(self, server, database, owner):
        self.dsn, self.db, self.sources = server.dsn(database), owner, []
        yield
        for source in self.sources:
            source.close()

    def source_of(self, entries):
        tables.make(self.db, entries, kind=self.kind, time=self.time)
        return self.opened(Mapping("memories", **tables.NAMES))

    def opened(self, mapping):
        self.sources.append(PgvectorSource(self.dsn, mapping))
        return self.sources[-1]

    def ids_in(self, source):
        return {id_ for (id_,) in self.db.execute("SELECT id FROM memories").fetchall()}

    def change(self, source, id_, **changes):
        names = {"pinned": "keep", "vector": "embedding"}
        for name, value in changes.items():
            query = sql.SQL("UPDATE memories SET {} = %s WHERE id = %s")
            new = value if name == "pinned" else str(value)
            self.db.execute(query.format(sql.Identifier(names[name])), (new, id_))


class TestPgvector(PgvectorTests):
    pass


class TestPgvectorWithTimestamps(PgvectorTests):
    time = "timestamptz"


class TestPgvectorWithAccessTable(PgvectorTests):
    """A table that knows of no access, no pin and no cost: memsift counts for itself."""

    def source_of(self, entries):
        tables.make(self.db, entries)
        self.db.execute("DROP TABLE IF EXISTS memsift_access")
        source = self.opened(Mapping("memories", tenant="owner", access="memsift_access"))
        source.create_access_table()
        self.db.execute(
            "INSERT INTO memsift_access SELECT 'public.memories', id::text,"
            " 'epoch'::timestamptz + seen * interval '1 microsecond', hits, keep, tokens FROM memories"
        )
        for column in ("seen", "added", "hits", "keep", "tokens"):
            self.db.execute(
                sql.SQL("ALTER TABLE memories DROP COLUMN {}").format(sql.Identifier(column))
            )
        return source

    def change(self, source, id_, **changes):
        if "pinned" in changes:
            query = "UPDATE memsift_access SET pinned = %s WHERE id = %s::text"
            self.db.execute(query, (changes.pop("pinned"), str(id_)))
        super().change(source, id_, **changes)


class TestPgvectorInPartitions(PgvectorTests):
    """The table is sixteen partitions by a hash of the id."""

    def source_of(self, entries):
        tables.make(self.db, entries)
        self.db.execute("ALTER TABLE memories RENAME TO plain")
        self.db.execute(
            "DROP TABLE IF EXISTS whole; CREATE TABLE memories (LIKE plain, PRIMARY KEY (id)) PARTITION BY HASH (id)"
        )
        for i in range(16):
            self.db.execute(
                f"CREATE TABLE memories_{i} PARTITION OF memories FOR VALUES WITH (MODULUS 16, REMAINDER {i})"
            )
        self.db.execute("INSERT INTO memories SELECT * FROM plain; DROP TABLE plain")
        return self.opened(Mapping("memories", **tables.NAMES))


class TestWhatAColumnMayHold:
    """Times, counts and pins as they come in other people's tables."""

    @pytest.fixture(autouse=True)
    def _place(self, server, database, owner):
        self.dsn, self.db = server.dsn(database), owner

    def columns(self, mapping, *needs):
        with PgvectorSource(self.dsn, mapping) as source:
            found = list(source.scan(frozenset(needs)))
            order = np.argsort(np.array([id_ for batch in found for id_ in batch.ids]))
            return {n: np.concatenate([b.columns[n] for b in found])[order].tolist() for n in needs}

    def test_times_that_are_missing_infinite_or_before_1970(self):
        self.db.execute(
            "CREATE TABLE memories (id int PRIMARY KEY, embedding vector(1), seen timestamp, added timestamptz);"
            "INSERT INTO memories VALUES (1, '[1]', '2020-01-01', '2019-01-01'), (2, '[1]', NULL, '2019-01-01'),"
            " (3, '[1]', NULL, NULL), (4, '[1]', 'infinity', NULL), (5, '[1]', '-infinity', NULL),"
            " (6, '[1]', '1900-01-01', NULL), (7, NULL, '2020-01-01 00:00:00.000001', NULL)"
        )
        mapping = Mapping("memories", time="seen", created="added")
        found = self.columns(mapping, "accessed_tick", "created_tick")
        first, before = 1_577_836_800_000_000, 1_546_300_800_000_000
        assert found["accessed_tick"] == [first, before, 0, 2**62, 0, 0, first + 1]
        assert found["created_tick"] == [before, before, 0, 0, 0, 0, 0]

    def test_counts_pins_and_costs_that_are_missing_or_below_zero(self):
        self.db.execute(
            "CREATE TABLE memories (id int PRIMARY KEY, embedding vector(1), hits int, keep bool, tokens int);"
            "INSERT INTO memories VALUES (1, '[1]', 5, true, 7), (2, '[1]', NULL, NULL, NULL),"
            " (3, '[1]', -5, false, -7)"
        )
        mapping = Mapping("memories", count="hits", pin="keep", cost="tokens")
        found = self.columns(mapping, "access_count", "pinned", "cost")
        assert found == {
            "access_count": [5, 0, 0],
            "pinned": [True, False, False],
            "cost": [7, 1, 0],
        }

    @pytest.mark.parametrize("kind", ["int", "bigint", "double precision", "numeric"])
    @pytest.mark.parametrize("unit", ["ticks", "seconds"])
    def test_a_number_can_be_a_time(self, kind, unit):
        self.db.execute(
            f"CREATE TABLE memories (id int PRIMARY KEY, embedding vector(1), seen {kind}, hits int);"
            "INSERT INTO memories VALUES (1, '[1]', 100, 0), (2, '[1]', 200, 0), (3, '[1]', NULL, NULL)"
        )
        mapping = Mapping("memories", time="seen", count="hits", unit=unit)
        with PgvectorSource(self.dsn, mapping) as source:
            assert source.record_access([1]) == 1
            assert source.plan(LruPolicy(), 2).ids == [3]
            assert source.plan(LruPolicy(), 1).ids == [3, 2]
        (seen, now), *_ = self.db.execute(
            "SELECT seen, extract(epoch FROM clock_timestamp()) FROM memories WHERE id = 1"
        ).fetchall()
        assert float(seen) == 201 if unit == "ticks" else abs(float(seen) - float(now)) < 600

    @pytest.mark.parametrize("unit", ["milliseconds", "microseconds"])
    def test_when_it_was_added_stands_in_until_the_first_access(self, unit):
        factor = {"milliseconds": 1000, "microseconds": 1_000_000}[unit]
        self.db.execute(
            "CREATE TABLE memories (id int PRIMARY KEY, embedding vector(1), added bigint);"
            f"INSERT INTO memories SELECT i, '[1]', (1500000000 + i)::bigint * {factor} FROM generate_series(1, 3) i"
        )
        mapping = Mapping("memories", created="added", unit=unit, access="counted")
        with PgvectorSource(self.dsn, mapping) as source:
            source.create_access_table()
            assert source.plan(LruPolicy(), 1).ids == [1, 2]
            source.record_access([1])
            assert source.plan(LruPolicy(), 1).ids == [2, 3]
            assert source.apply(source.plan(LruPolicy(), 1)).dropped == [2, 3]

    def test_a_memory_for_each_tenant_needs_to_know_the_tenants(self):
        self.db.execute("CREATE TABLE memories (id int PRIMARY KEY, embedding vector(1), seen int)")
        with PgvectorSource(self.dsn, Mapping("memories", time="seen")) as source:
            with pytest.raises(InvalidValue, match="tenant must name a column"):
                source.plan(LruPolicy(), 0.5, by_tenant=True)
            assert len(source.plan(LruPolicy(), 0.5)) == 0

    def test_a_policy_without_its_columns_is_refused(self):
        self.db.execute("CREATE TABLE memories (id int PRIMARY KEY, embedding vector(1))")
        with PgvectorSource(self.dsn, "memories") as source:
            for policy, words in ((LruPolicy(), "accessed_tick"), (LfuPolicy(), "access_count")):
                with pytest.raises(InvalidValue, match=words):
                    source.plan(policy, 1)
            assert len(source.plan(parse("1.0*coherence"), 1, context=[[1.0]])) == 0
            assert source.record_access([1]) == 0

    def test_memsift_s_own_table_forgets_with_the_memories(self):
        self.db.execute(
            "CREATE TABLE memories (id text PRIMARY KEY, embedding vector(1));"
            "INSERT INTO memories SELECT 'm' || i, '[1]' FROM generate_series(1, 9) i"
        )
        with PgvectorSource(self.dsn, Mapping("memories", access="counted")) as source:
            source.create_access_table()
            source.create_access_table()
            source.record_access(["m1", "m2", "m3"])
            source.record_access(["m2"])
            plan = source.plan(LfuPolicy(), 1)
            assert set(plan.ids) == {f"m{i}" for i in range(1, 10)} - {"m2"}
            source.apply(plan)
        assert self.db.execute("SELECT id, access_count FROM counted").fetchall() == [("m2", 2)]
