"""The sifting process is killed at every step, and whoever runs it again ends where the plan said."""

from __future__ import annotations

import json
import os
import signal

import psycopg
import pytest
import tables

from memsift import MemoryStore
from memsift.backends import Sift, planfile
from memsift.backends.archive import ArchiveFile
from memsift.backends.chain import Chain
from memsift.backends.pgvector import Mapping, PgvectorSource
from memsift.backends.sifting import unfinished
from memsift.policies import CoherencePolicy
from memsift.testing.memories import queries, rows

# Before and after each of these, a process may die.
STEPS = [
    (planfile, "write"),
    (planfile, "remove"),
    (Chain, "append"),
    (ArchiveFile, "__call__"),
    (ArchiveFile, "finish"),
    (PgvectorSource, "apply"),
    (psycopg.Transaction, "__exit__"),
]
ENTRIES, KEEP, BATCH = 60, 25, 20
LAST = 30  # more than there are steps


def begin_or_go_on(dsn, chain, archive):
    with PgvectorSource(dsn, Mapping("memories", **tables.NAMES)) as source:
        if unfinished(chain):
            return Sift.resume(source, chain).run()
        plan = source.plan(CoherencePolicy(), KEEP, context=queries(3))
        return Sift.begin(source, plan, chain, archive=archive, batch=BATCH).run()


def killed_at(step, work):
    """Run `work` in a process that dies at that step; whether it came so far."""
    child = os.fork()
    if child == 0:
        count = 0

        def counted():
            nonlocal count
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)

        def stepping(method):
            def wrapped(*arguments, **options):
                counted()
                done = method(*arguments, **options)
                counted()
                return done

            return wrapped

        try:
            for owner, name in STEPS:
                setattr(owner, name, stepping(getattr(owner, name)))
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("ending", [".memsift", ".rvf", None])
def test_a_sift_that_is_killed_at_any_step_ends_as_planned(
    server, database, owner, tmp_path, ending
):
    dsn, entries = server.dsn(database), rows(ENTRIES)
    owner.execute("CREATE TABLE gone (id bigint)")
    kills = 0
    for step in range(1, LAST):
        tables.make(owner, entries)
        owner.execute("TRUNCATE gone")
        # The database itself writes down who was deleted, in the same transaction.
        owner.execute(
            "CREATE OR REPLACE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN INSERT INTO gone VALUES (old.id); RETURN old; END $$"
        )
        owner.execute(
            "CREATE TRIGGER note AFTER DELETE ON memories FOR EACH ROW EXECUTE FUNCTION note()"
        )
        with PgvectorSource(dsn, Mapping("memories", **tables.NAMES)) as source:
            planned = source.plan(CoherencePolicy(), KEEP, context=queries(3)).ids
        chain = tmp_path / f"{step}.memsift"
        archive = None if ending is None else tmp_path / f"{step}-victims{ending}"
        if not killed_at(step, lambda c=chain, a=archive: begin_or_go_on(dsn, c, a)):
            break
        kills += 1
        if unfinished(chain) or not chain.exists() or not read_chain(chain):
            begin_or_go_on(dsn, chain, archive)
        assert not unfinished(chain)
        gone = [id_ for (id_,) in owner.execute("SELECT id FROM gone ORDER BY id").fetchall()]
        assert gone == sorted(planned), f"killed at step {step}: those of the plan, none twice"
        left = owner.execute("SELECT count(*) FROM memories").fetchone()
        assert left == (KEEP,)
        records = read_chain(chain)
        assert [r["note"]["batch"] for r in records] == [0, 1]
        assert sum(r["evicted_count"] for r in records) == len(planned)
        if archive is not None:
            assert archived(archive) == sorted(planned), f"killed at step {step}"
            assert not archive.with_name(f"{archive.name}.memsift").exists()
    assert kills >= 14, "every step was met"


def read_chain(chain):
    with MemoryStore.open(chain, dim=1, namespace="sift") as store:
        assert store.audit.verify(store.audit.head()).status == "ok"
        assert store.verify().ok
        return [json.loads(body) for body in store.audit.bodies()]


def archived(archive):
    opened = MemoryStore.load_rvf if archive.suffix == ".rvf" else MemoryStore.open
    with opened(archive) as store:
        return sorted(entry.metadata["id"] for entry in store.get(store.view().ids))
