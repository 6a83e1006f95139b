"""The pages about sources do what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memsift import CoherencePolicy, MemoryStore
from memsift.backends.pgvector import Mapping, PgvectorSource

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def run(code, names):
    exec(compile(code, "docs", "exec"), names)  # noqa: S102 - our own document


def test_the_page_about_postgresql_runs(server, database, owner, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table, role = blocks("pgvector.md", "sql")
    owner.execute(table)
    owner.execute("DROP ROLE IF EXISTS sifter")
    owner.execute(role)
    owner.execute("GRANT USAGE ON SCHEMA public, extensions TO sifter")
    owner.execute("GRANT UPDATE (seen_at, hits) ON memories TO sifter")
    (code,) = blocks("pgvector.md", "python")
    url = "postgresql://app@localhost/agents"
    assert url in code
    run(code.replace(url, server.url(database, "sifter")), {})
    told = capsys.readouterr().out
    assert "let 36 of 90 entries go (40%), keep 54" in told
    assert "36 entries are gone" in told
    found = owner.execute("SELECT owner, count(*) FROM memories GROUP BY 1 ORDER BY 1").fetchall()
    assert found == [("alice", 18), ("bob", 36)]
    with MemoryStore.open("victims.memsift") as store:
        entry = store.get(store.view().ids)[0]
        assert entry.metadata["row"] == {"words": f"memory {entry.metadata['id']}"}
    owner.execute("DROP OWNED BY sifter; DROP ROLE sifter")


def test_the_page_about_scale_runs(server, database, owner):
    (table, _), context = blocks("pgvector.md", "sql"), [[0.1, 0.9, 1.0]]
    owner.execute(table)
    names = {"time": "seen_at", "count": "hits"}
    for part in ("one", "two", "three"):
        owner.execute(f"CREATE TABLE {part} (LIKE memories INCLUDING ALL)")
        owner.execute(
            f"INSERT INTO {part} SELECT id * 10 + {len(part)}, owner, words, embedding, seen_at, hits"
            " FROM memories, generate_series(1, 3) AS again WHERE again = 1"
        )
    sources = [PgvectorSource(server.dsn(database), Mapping(p, **names)) for p in ("one", "three")]
    (code,) = blocks("scale.md", "python")
    found = {"sources": sources, "policy": CoherencePolicy(), "context": context}
    run(code.replace("keep=600", "keep=60"), found)
    assert sum(map(len, found["plans"])) == 2 * 90 - 60
    for source in sources:
        source.close()


@pytest.mark.parametrize("page", ["pgvector.md", "scale.md"])
def test_no_number_is_missing(page):
    assert not re.search(r"@[A-Z]+@", (DOCS / page).read_text())
