"""`memsift sift` against a real server."""

from __future__ import annotations

import json

import numpy as np
import psycopg
import pytest
import tables
from click.testing import CliRunner

from memsift import MemoryStore
from memsift.backends import Sift
from memsift.backends.pgvector import Mapping, PgvectorSource
from memsift.cli.app import cli
from memsift.policies import LruPolicy
from memsift.testing.memories import in_ram, queries, rows

SECRET = "s3cr/et@of:all#times"


@pytest.fixture
def run(server, database, owner, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables.make(owner, rows(60))

    def of(*arguments, url=None, **options):
        columns = [f"--column={role}={name}" for role, name in tables.NAMES.items()]
        wanted = ["sift", url or server.url(database), "--table", "memories", *columns, *arguments]
        return CliRunner().invoke(cli, wanted, **options)

    return of


def count(owner, table="memories"):
    return owner.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def test_it_is_a_dry_run_unless_told_otherwise(run, owner, tmp_path):
    done = run("--keep", "50%", "--policy", "lru")
    assert done.exit_code == 0, done.output
    assert "let 30 of 60 entries go (50%), keep 30" in done.output
    assert "recency" in done.output
    assert "Nothing was changed" in done.output
    assert count(owner) == 60
    assert list(tmp_path.iterdir()) == []


def test_it_asks_before_it_deletes(run, owner):
    done = run("--keep", "40", "--policy", "lru", "--delete", input="n\n")
    assert done.exit_code == 1
    assert "Delete 20 entries" in done.output
    assert count(owner) == 60
    done = run("--keep", "40", "--policy", "lru", "--delete", input="y\n")
    assert done.exit_code == 0, done.output
    assert "20 entries are gone" in done.output
    assert count(owner) == 40
    assert "20 rows" not in done.output


def test_its_victims_are_those_of_the_policy_and_its_chain_is_proved(run, owner, tmp_path):
    np.save("queries.npy", queries(4))
    done = run(
        "--keep", "35", "--policy", "coherence", "--context", "queries.npy", "--yes", "--json"
    )
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert report["dropped"] == 25
    from memsift.policies import CoherencePolicy

    gone = in_ram(rows(60), CoherencePolicy(), 35, queries(4))
    left = {id_ for (id_,) in owner.execute("SELECT id FROM memories").fetchall()}
    assert left == {row.id for row in rows(60)} - gone
    head = CliRunner().invoke(cli, ["audit", "head", "sift.memsift", "-n", "sift"])
    (tmp_path / "head.txt").write_text(head.output)
    arguments = ["audit", "verify", "sift.memsift", "-n", "sift", "--head", "head.txt"]
    assert CliRunner().invoke(cli, arguments).exit_code == 0


def test_each_tenant_keeps_its_share(run, owner):
    done = run("--keep", "5", "--policy", "lfu", "--by", "tenant", "--yes", "--force")
    assert done.exit_code == 0, done.output
    assert "tenant" in done.output
    found = owner.execute("SELECT count(*) FROM memories GROUP BY owner").fetchall()
    assert found == [(5,)] * 5


def test_more_than_half_needs_force(run, owner):
    done = run("--keep", "20", "--policy", "lru", "--yes")
    assert done.exit_code == 2
    assert "--force" in done.output
    assert count(owner) == 60


@pytest.mark.parametrize("ending", ["memsift", "rvf"])
def test_victims_are_archived(run, owner, tmp_path, ending):
    done = run("--keep", "50", "--policy", "lru", "--yes", "--archive", f"victims.{ending}")
    assert done.exit_code == 0, done.output
    opened = MemoryStore.load_rvf if ending == "rvf" else MemoryStore.open
    with opened(tmp_path / f"victims.{ending}") as store:
        assert len(store) == 10


def test_rows_are_moved_into_another_table(run, owner):
    owner.execute("ALTER TABLE memories ADD COLUMN words text DEFAULT 'said'")
    done = run("--keep", "50", "--policy", "lru", "--yes", "--archive-table", 'old "memories"')
    assert done.exit_code == 0, done.output
    assert count(owner, '"old ""memories"""') == 10
    kept = owner.execute('SELECT DISTINCT words FROM "old ""memories"""').fetchall()
    assert kept == [("said",)]
    assert count(owner) == 50


def test_one_that_was_stopped_goes_on(run, server, database, owner, tmp_path):
    with PgvectorSource(server.dsn(database), Mapping("memories", **tables.NAMES)) as source:
        plan = source.plan(LruPolicy(), 30)
        Sift.begin(source, plan, tmp_path / "sift.memsift", batch=7)
    dry = run()
    assert "a sift was begun and not finished" in dry.output, dry.output
    assert count(owner) == 60
    done = run("--yes")
    assert done.exit_code == 0, done.output
    assert "30 entries are gone" in done.output
    left = {id_ for (id_,) in owner.execute("SELECT id FROM memories").fetchall()}
    assert left.isdisjoint(plan.ids)


def test_one_that_moves_rows_into_a_table_goes_on_with_that_table(run, server, database, owner):
    mapping = Mapping("memories", **tables.NAMES)
    with PgvectorSource(server.dsn(database), mapping, archive_into="old") as source:
        source.create_archive_table()
        Sift.begin(source, source.plan(LruPolicy(), 50), "sift.memsift")
    done = run("--yes")
    assert done.exit_code == 2
    assert "archive_into must be the table" in done.output
    assert count(owner) == 60
    assert run("--yes", "--archive-table", "old").exit_code == 0
    assert (count(owner), count(owner, "old")) == (50, 10)


def test_the_access_table_is_made_on_request(run, owner):
    arguments = ("--column", "access=memsift_access")
    assert "needs" not in run("--keep", "50", "--policy", "lru", *arguments).output
    done = run("--keep", "50", "--policy", "lru", *arguments, "--create-access")
    assert done.exit_code == 0, done.output
    assert count(owner, "memsift_access") == 0


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://app:{SECRET}@127.0.0.1:1/db",
        "postgresql://app:s3cret@127.0.0.1:1/db",
        "postgresql://app:s3cret@127.0.0.1:port/db",
        "postgresql://app@127.0.0.1:1/db?password=s3cret&nonsense=1",
        "postgresql://app:s3cret%zz@127.0.0.1/db",
        "postgresql://s3cret:s3cret@s3cret:s3cret/s3cret",
        "mysql://app:s3cret@host/db",
        "s3cret",
    ],
)
def test_a_password_is_never_shown(run, url):
    done = run("--keep", "5", "--policy", "lru", url=url)
    assert done.exit_code in (1, 2)
    assert isinstance(done.exception, SystemExit)
    shown = done.output.replace("app", "")
    assert "s3c" not in shown, shown
    assert "times" not in shown
    assert len(shown) > 20


def test_what_is_wrong_is_said(run):
    for arguments, words in (
        (("--keep", "5"), "--policy"),
        (("--policy", "lru"), "--keep"),
        (("--keep", "many", "--policy", "lru"), "--keep"),
        (("--keep", "0", "--policy", "lru"), "keep"),
        (("--keep", "5", "--policy", "nonsense"), "policy must be one of"),
        (("--keep", "5", "--policy", "lru", "--column", "heat=x"), "roles among"),
        (("--keep", "5", "--policy", "lru", "--column", "cost"), "ROLE=NAME"),
        (("--keep", "5", "--policy", "lru", "--archive", "a.txt", "--yes", "--force"), ".memsift"),
        (("--keep", "5", "--policy", "lru", "--table", "nowhere"), "must be a table"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2, done.output
        assert words in done.output
        assert isinstance(done.exception, SystemExit)


def test_an_unfinished_sift_is_one_of_its_own_table(run, server, database, owner, tmp_path):
    with psycopg.connect(server.dsn(database), autocommit=True) as db:
        tables.make(db, rows(10), table="others")
    with PgvectorSource(server.dsn(database), Mapping("others", **tables.NAMES)) as source:
        Sift.begin(source, source.plan(LruPolicy(), 5), tmp_path / "sift.memsift")
    done = run("--yes")
    assert done.exit_code == 2
    assert "public.others" in done.output
