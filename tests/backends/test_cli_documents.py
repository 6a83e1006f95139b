"""`memsift sift` on Qdrant and Chroma: a dry run by default, then the plan, then an archive of who is gone."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from memsift import MemoryStore
from memsift.cli.app import cli
from memsift.policies import LruPolicy
from memsift.testing.memories import in_ram, rows

ENTRIES = rows(40, ids=lambda i: f"id{i:02}")


def sift(*arguments):
    return CliRunner().invoke(cli, ["sift", *arguments])


def qdrant_place(tmp_path):
    qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra `qdrant`")
    import test_qdrant_source as qdrant

    client = qdrant_client.QdrantClient(path=str(tmp_path / "q"))
    points = [qdrant.to_point(row.id, row.vector, qdrant.payload_of(row)) for row in ENTRIES]
    name = qdrant.filled(client, points)
    client.close()

    def ids():
        again = qdrant_client.QdrantClient(path=str(tmp_path / "q"))
        found = {qdrant.id_of(record) for record in again.scroll(name, limit=1000)[0]}
        again.close()
        return found

    return f"qdrant+path://{tmp_path / 'q'}", name, ids


def chroma_place(server):
    chromadb = pytest.importorskip("chromadb", reason="needs the extra `chroma`")
    import test_chroma_source as chroma

    client = chromadb.HttpClient(host=server.host, port=server.port)
    name = chroma.filled(client, ENTRIES).name
    chroma.close(client)

    def ids():
        again = chromadb.HttpClient(host=server.host, port=server.port)
        made = again.get_collection(name, embedding_function=None)
        found = set(made.get(include=[])["ids"])
        chroma.close(again)
        return found

    return f"chroma://{server.host}:{server.port}", name, ids


@pytest.mark.parametrize("system", ["qdrant", "chroma"])
def test_a_collection_is_sifted(system, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    url, name, ids = (
        qdrant_place(tmp_path)
        if system == "qdrant"
        else chroma_place(request.getfixturevalue("chroma_server"))
    )
    what = ["--table", name, "--keep", "50%", "--policy", "lru", "--column", "tenant=tenant"]
    done = sift(url, *what)
    assert done.exit_code == 0, done.output
    assert "let 20 of 40 entries go (50%), keep 20" in done.output
    assert "Nothing was changed" in done.output
    assert ids() == {row.id for row in ENTRIES}
    done = sift(url, *what, "--archive", "gone.memsift", "--yes", "--json", "--batch", "7")
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert (report["dropped"], report["spared"]) == (20, 0)
    gone = in_ram(ENTRIES, LruPolicy(), 20, None)
    assert ids() == {row.id for row in ENTRIES} - gone
    with MemoryStore.open("gone.memsift") as store:
        held = [entry.metadata["id"] for entry in store.get(store.view().ids)]
    assert sorted(held) == sorted(gone)
    done = sift(url, *what[:-2], "--by", "tenant")
    assert done.exit_code != 0
    assert "Fields.tenant must name a field" in str(done.exception) + done.output
    done = sift(f"{url}/{name}" if system == "chroma" else f"{url}#{name}", *what[2:])
    assert "let 10 of 20 entries go" in done.output, "the URL may name the collection"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["qdrant://user:s3cret@h/c"], "no password"),
        (["chroma://h/c?token=s3cret"], "no password"),
        (["qdrant+path://nowhere#c"], "is none"),
        (["chroma+path://nowhere#c"], "is none"),
        (["qdrant://h/c", "--column", "version=x"], "must name roles among cost, count, created"),
        (["chroma://h/c", "--column", "embedding=x"], "must name roles among cost, count, created"),
        (["chroma://h/c", "--column", "unit=hours"], "Fields.unit must be one of"),
        (["qdrant://h/c", "--archive-table", "x"], "archive into a file"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = sift(*arguments, "--keep", "5", "--policy", "lru")
    assert done.exit_code != 0
    assert told in done.output + str(done.exception)
    assert "s3cret" not in done.output
    assert list(tmp_path.iterdir()) == []
