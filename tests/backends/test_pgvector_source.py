"""A table of a real PostgreSQL keeps what every source must keep, in several forms of it."""

from __future__ import annotations

import pytest
import tables
from psycopg import sql

from memsift.backends.pgvector import Mapping, PgvectorSource
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
