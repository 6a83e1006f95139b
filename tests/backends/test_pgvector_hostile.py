"""Hostile names, ids, tenants and columns: nothing but bound parameters and quoted identifiers reaches the server."""

from __future__ import annotations

import re
import threading

import numpy as np
import psycopg
import pytest
import tables
from psycopg import sql

from memsift.backends import SourcePlan
from memsift.backends.pgvector import Mapping, PgvectorSource
from memsift.errors import InvalidType, InvalidValue, SourceTrouble
from memsift.policies import CoherencePolicy, LruPolicy
from memsift.testing.memories import HOSTILE, in_ram, queries, rows

# What row 37 of the list of other people's bugs was about, and its relatives.
NAMES = (
    "author' = 'alice' OR '1'='1' --",
    'a"; DROP TABLE bystander; --',
    'quo""ted',
    "semi;colon",
    "%s",
    "%(id)s",
    "$1",
    "{}",
    "{name}",
    "back\\slash",
    "new\nline",
    "tab\there",
    "SELECT",
    "ÜMLAUT",
    "名前",
    "dot.ted",
    " spaces ",
    "\u202eright to left",
    "x" * 63,
)


@pytest.fixture
def bystander(owner):
    """A table that must outlive everything."""
    owner.execute("CREATE TABLE bystander AS SELECT 1 AS one")
    yield
    assert owner.execute("SELECT one FROM bystander").fetchall() == [(1,)]


def columns_named(owner, table, schema, name):
    """All columns of a table get names with `name` in them."""
    mapped = {}
    for i, (role, old) in enumerate({**tables.NAMES, "id": "id", "embedding": "embedding"}.items()):
        new = f"{name[:60]}{i}"
        owner.execute(
            sql.SQL("ALTER TABLE {} RENAME COLUMN {} TO {}").format(
                sql.Identifier(schema, table), sql.Identifier(old), sql.Identifier(new)
            )
        )
        mapped[role] = new
    return mapped


@pytest.mark.parametrize("name", NAMES)
def test_names_are_only_names(server, database, owner, bystander, name):
    entries = rows(40)
    tables.make(owner, entries, table=name)
    owner.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))
    owner.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    owner.execute(
        sql.SQL("ALTER TABLE {} SET SCHEMA {}").format(sql.Identifier(name), sql.Identifier(name))
    )
    mapped = columns_named(owner, name, name, name)
    mapping = Mapping(name, name, **mapped, access=f"{name[:55]}_access", kept=(mapped["tenant"],))
    with PgvectorSource(server.dsn(database), mapping, archive_into=f"{name[:55]}_old") as source:
        assert source.name.isprintable()
        source.create_access_table()
        source.create_archive_table()
        plan = source.plan(CoherencePolicy(), 20, context=queries(3))
        assert set(plan.ids) == in_ram(entries, CoherencePolicy(), 20, queries(3))
        assert str(plan).replace("\n", "").isprintable()
        source.record_access(plan.ids[:1])
        kept = []
        first = source.apply(plan.part(0, 10), kept.append)
        assert set(first.dropped) == set(plan.ids[1:10])
        assert kept[0].notes[0].keys() == {mapped["tenant"]}
        assert set(source.apply(plan.part(10, 20)).dropped) == set(plan.ids[10:])
    count = sql.SQL("SELECT count(*) FROM {}")
    left = owner.execute(count.format(sql.Identifier(name, name))).fetchone()
    moved = owner.execute(count.format(sql.Identifier(name, f"{name[:55]}_old"))).fetchone()
    assert (left, moved) == ((21,), (10,))
    owner.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


def test_tenants_are_only_tenants(server, database, owner, bystander):
    tenants = [*HOSTILE, *NAMES, "", None, "x" * 10_000]
    entries = []
    for i, tenant in enumerate(tenants):
        for j, row in enumerate(rows(6, seed=i)):
            entries.append(
                type(row)(**{**vars(row), "id": 6 * i + j, "tenant": tenant, "pinned": False})
            )
    tables.make(owner, entries)
    with PgvectorSource(server.dsn(database), Mapping("memories", **tables.NAMES)) as source:
        plan = source.plan(LruPolicy(), 2, by_tenant=True)
        distinct = list(dict.fromkeys(tenants))
        assert {share.tenant for share in plan.shares} == set(distinct)
        for tenant in distinct:
            own = [row for row in entries if row.tenant == tenant]
            gone = {id_ for id_, of in zip(plan.ids, plan.tenants, strict=True) if of == tenant}
            assert gone == in_ram(own, LruPolicy(), 2, None)
        assert set(source.apply(plan).dropped) == set(plan.ids)
    assert owner.execute("SELECT count(*) FROM memories").fetchone() == (2 * len(distinct),)


def test_the_text_of_statements_is_the_same_whatever_the_values(server, database, owner):
    """The server's own log has what reached it: between two runs only parameters differ."""
    texts = []
    for run in (0, 1):
        entries = [
            type(row)(**{**vars(row), "id": f"{HOSTILE[run]}{run}-secret-{i}", "pinned": False})
            for i, row in enumerate(rows(20, seed=run))
        ]
        tables.make(owner, entries)
        with PgvectorSource(
            server.dsn(database), Mapping("memories", **tables.NAMES, access="counted")
        ) as source:
            source.create_access_table()
            owner.execute("SELECT 'begin'")
            plan = source.plan(
                CoherencePolicy(alpha=run, gamma=0.3 + run), 9 + run, context=queries(3, seed=run)
            )
            source.plan(LruPolicy(), 0.3 + run / 10, by_tenant=True)
            source.record_access(plan.ids[: 2 + run])
            source.apply(plan.part(0, 4 + run), lambda _: None)
            source.apply(plan)
            owner.execute("SELECT 'end'")
        log = server.log.read_text().rpartition("SELECT 'begin'")[2].partition("SELECT 'end'")[0]
        found = re.findall(r"(?:execute \S+|statement): (.*?)(?=\n\d{4}-\d\d-\d\d |\Z)", log, re.S)
        assert "secret" in log, "parameters are in the log's details"
        texts.append(found)
        for text in found:
            assert "secret" not in text
    assert texts[0] == texts[1]
    assert len(texts[0]) > 8


def test_a_list_of_ten_thousand_ids_is_one_parameter(server, database, owner):
    tables.make(owner, rows(30))
    owner.execute("ALTER TABLE memories ALTER id TYPE smallint")
    with PgvectorSource(server.dsn(database), Mapping("memories", **tables.NAMES)) as source:
        assert source.record_access(list(range(100_000))) == 30
        assert source.record_access([2**63 - 1, 2**70, -(2**70)]) == 0


@pytest.mark.parametrize(
    "wrong",
    ["", "a\0b", "x" * 64, "ü" * 32, "\ud800", 5, b"bytes", ["list"]],
)
def test_what_is_no_name_is_refused(wrong):
    for role in ("table", "id", "embedding", "time", "tenant", "access"):
        with pytest.raises((InvalidValue, InvalidType), match=f"Mapping.{role}"):
            Mapping(**{"table": "memories", role: wrong})


def test_what_the_table_has_not_is_said(server, database, owner):
    tables.make(owner, rows(3))
    owner.execute("CREATE TABLE loose (id bigint, embedding vector(8))")
    owner.execute("CREATE VIEW seen AS SELECT * FROM memories")
    for mapping, words in (
        (Mapping("nowhere"), "must be a table"),
        (Mapping("memories", "nowhere"), "must be a table"),
        (Mapping("seen"), "must be a table"),
        (Mapping("loose"), "NOT NULL and unique"),
        (Mapping("memories", time="nothing"), "Mapping.time must be a column"),
        (Mapping("memories", time="keep"), "of type float8, int2"),
        (Mapping("memories", pin="hits"), "Mapping.pin must be a column of type bool"),
        (Mapping("memories", embedding="owner"), "halfvec, vector"),
        (Mapping("memories", kept=("nothing",)), "Mapping.kept"),
    ):
        with pytest.raises(InvalidValue, match=re.escape(words)):
            PgvectorSource(server.dsn(database), mapping)


def test_ids_of_another_kind_are_refused_before_the_server_sees_them(server, database, owner):
    tables.make(owner, rows(5))
    with PgvectorSource(server.dsn(database), Mapping("memories", **tables.NAMES)) as source:
        plan = source.plan(LruPolicy(), 2)
        with pytest.raises(InvalidType, match="type int"):
            source.record_access(["1' OR '1'='1"])
        alien = SourcePlan(
            source.name, LruPolicy(), 2, plan.shares, ["1"], ["m"], [None], np.zeros(1)
        )
        with pytest.raises(InvalidType, match="type int"):
            source.apply(alien)
        other = SourcePlan("elsewhere", LruPolicy(), 2, plan.shares, [], [], [], np.zeros(0))
        with pytest.raises(InvalidValue, match="elsewhere"):
            source.apply(other)
    assert owner.execute("SELECT count(*) FROM memories").fetchone() == (5,)


def test_a_statement_that_takes_too_long_is_ended(server, database, owner):
    tables.make(owner, rows(5))
    mapping = Mapping("memories", **tables.NAMES)
    with PgvectorSource(server.dsn(database), mapping, timeout_seconds=0.3) as source:
        plan = source.plan(LruPolicy(), 2)
        with owner.transaction():
            owner.execute("SELECT * FROM memories FOR UPDATE")
            with pytest.raises(SourceTrouble, match=r"timeout|lock"):
                source.apply(plan)
        assert set(source.apply(plan).dropped) == set(plan.ids), "and the source can go on"


def test_an_access_that_is_being_counted_is_waited_for(server, database, owner):
    """Somebody else's transaction has touched a victim and is not through: the deletion waits, and spares it."""
    tables.make(owner, rows(20))
    with PgvectorSource(server.dsn(database), Mapping("memories", **tables.NAMES)) as source:
        plan = source.plan(LruPolicy(), 5)
        done = []
        with psycopg.connect(server.dsn(database)) as other:
            other.execute("UPDATE memories SET hits = hits + 1 WHERE id = %s", (plan.ids[3],))
            deletion = threading.Thread(target=lambda: done.append(source.apply(plan)))
            deletion.start()
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            while not owner.execute(waiting).fetchone()[0]:
                assert deletion.is_alive()
            other.commit()
            deletion.join(60)
        assert done[0].spared == [plan.ids[3]]
        assert len(done[0].dropped) == len(plan) - 1
