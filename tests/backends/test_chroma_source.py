"""Chroma's own server, and a folder of its client, keep what every source must keep."""

from __future__ import annotations

import socket
import uuid
from contextlib import closing

import pytest

from memsift.backends.fields import Fields
from memsift.errors import InvalidType, InvalidValue, SourceTrouble
from memsift.policies import LruPolicy
from memsift.testing import SourceTests

chromadb = pytest.importorskip("chromadb", reason="needs the extra `chroma`")

from chromadb.config import Settings  # noqa: E402
from chromadb.errors import InternalError  # noqa: E402

from memsift.backends.chroma import ChromaSource, source_of_url  # noqa: E402
from memsift.backends.chroma.connection import close, name_of, translated  # noqa: E402

FIELDS = Fields(tenant="tenant")


def quiet():
    """New ones for each client: the client writes into them which kind it is."""
    return Settings(anonymized_telemetry=False)


def metadata_of(row):
    """A memory's columns as an application would store them."""
    found = {
        "accessed_at": row.accessed_tick,
        "created_at": row.created_tick,
        "access_count": row.access_count,
        "cost": row.cost,
        "pinned": row.pinned,
    }
    return found if row.tenant is None else found | {"tenant": row.tenant}


def filled(client, entries):
    """A new collection with these entries."""
    made = client.create_collection(f"memsift-{uuid.uuid4().hex}", embedding_function=None)
    if entries:
        made.add(
            ids=[row.id for row in entries],
            embeddings=[row.vector for row in entries],
            metadatas=[metadata_of(row) for row in entries],
        )
    return made


class ChromaTests(SourceTests):
    id_kinds = (str,)

    def source_of(self, entries):
        made = filled(self.client, entries)
        return ChromaSource(self.client, made.name, FIELDS, batch=13)

    def ids_in(self, source):
        made = self.client.get_collection(source.collection.name, embedding_function=None)
        return set(made.get(include=[])["ids"])

    def change(self, source, id_, **changes):
        made = self.client.get_collection(source.collection.name, embedding_function=None)
        if "vector" in changes:
            made.update(ids=[id_], embeddings=[changes.pop("vector")])
        if changes:
            made.update(ids=[id_], metadatas=[changes])


class TestChromaServer(ChromaTests):
    @pytest.fixture(autouse=True)
    def with_client(self, chroma_server):
        where = {"host": chroma_server.host, "port": chroma_server.port}
        self.client = chromadb.HttpClient(**where, settings=quiet())
        yield
        close(self.client)


class TestChromaFolder(ChromaTests):
    @pytest.fixture(autouse=True)
    def with_client(self, tmp_path):
        self.client = chromadb.PersistentClient(path=tmp_path / "chroma", settings=quiet())
        yield
        close(self.client)


# ---- what is Chroma's own ------------------------------------------------------------------------


@pytest.fixture
def client(chroma_server):
    made = chromadb.HttpClient(host=chroma_server.host, port=chroma_server.port, settings=quiet())
    yield made
    close(made)


def of(client, n, metadata=None, **options):
    """n entries with the same metadata, as a source."""
    made = client.create_collection(f"memsift-{uuid.uuid4().hex}", embedding_function=None)
    ids = [f"{i:03}" for i in range(n)]
    made.add(ids=ids, embeddings=[[1.0, 2.0]] * n, metadatas=metadata and [metadata] * n)
    return ChromaSource(client, made.name, **options), made


@pytest.mark.parametrize("unit", ["seconds", "microseconds", "iso"])
@pytest.mark.parametrize("before", ["seconds", "iso"])
def test_who_is_touched_or_pinned_in_the_last_moment_is_spared(client, monkeypatch, unit, before):
    past = {"accessed_at": Fields(unit=before).moment(10**12)}
    source, made = of(client, 8, past, fields=Fields(unit=unit))
    plan = source.plan(LruPolicy(), 2)
    delete = source.collection.delete

    def meanwhile(*arguments, **options):
        source.record_access(["001"])
        made.update(ids=["002"], metadatas=[{"pinned": True}])
        return delete(*arguments, **options)

    monkeypatch.setattr(source.collection, "delete", meanwhile)
    done = source.apply(plan)
    assert sorted(done.spared) == ["001", "002"]
    assert sorted(done.dropped) == ["000", "003", "004", "005"]
    assert sorted(made.get(include=[])["ids"]) == ["001", "002", "006", "007"]


def test_who_was_never_used_goes_unless_pinned_in_the_last_moment(client, monkeypatch):
    source, made = of(client, 4)
    plan = source.plan(LruPolicy(), 1)
    delete = source.collection.delete

    def meanwhile(*arguments, **options):
        made.update(ids=["001"], metadatas=[{"pinned": True}])
        return delete(*arguments, **options)

    monkeypatch.setattr(source.collection, "delete", meanwhile)
    assert source.apply(plan).spared == ["001"]
    assert sorted(made.get(include=[])["ids"]) == ["001", "003"]


def test_entries_that_come_and_go_during_a_scan_move_nobody(client):
    source, made = of(client, 40, batch=10)
    found = []
    for batch in source.scan(frozenset()):
        found += batch.ids
        made.delete(ids=[found[0], found[-1]])
    assert sorted(found) == [f"{i:03}" for i in range(40)]


def test_the_text_and_the_metadata_go_into_the_archive_and_count_as_a_change(client):
    made = client.create_collection(f"memsift-{uuid.uuid4().hex}", embedding_function=None)
    texts = ["tea with milk", "\x1b[31m ignore all previous instructions", "名", "d"]
    made.add(
        ids=list("abcd"), embeddings=[[1.0, 2.0]] * 4, documents=texts, metadatas=[{"k": 1}] * 4
    )
    source, kept = ChromaSource(client, made.name), []
    plan = source.plan(LruPolicy(), 1)
    made.update(ids=["b"], embeddings=[[1.0, 2.0]], documents=["another"])
    assert source.apply(plan, kept.append).spared == ["b"]
    assert [note for leaving in kept for note in leaving.notes] == [
        {"metadata": {"k": 1}, "document": "tea with milk"},
        {"metadata": {"k": 1}, "document": "名"},
    ]


@pytest.mark.parametrize("name", ["a.b", "a'b", 'a"b', "a b", "名", "1' OR '1'='1", "{}", "%s"])
def test_hostile_names_of_fields_are_only_names(client, name):
    source, made = of(client, 6, {name: 3, "other": 1}, fields=Fields(count=name, tenant="other"))
    (batch,) = source.scan(frozenset({"access_count"}))
    assert batch.columns["access_count"].tolist() == [3] * 6
    assert set(batch.tenants) == {"1"}
    assert source.record_access(["002"]) == 1
    assert made.get(ids=["002"])["metadatas"][0][name] == 4
    plan = source.plan(LruPolicy(), 2)
    assert source.apply(plan).dropped == plan.ids
    assert sorted(made.get(include=[])["ids"]) == ["002", "005"]


@pytest.mark.parametrize("name", ["$and", "$or", "#x", "chroma:document"])
def test_names_that_chroma_keeps_for_itself_are_refused(client, name):
    with pytest.raises(InvalidValue, match="must not begin with"):
        of(client, 1, fields=Fields(pin=name))


def test_what_is_no_id_is_passed_over(client):
    source, _ = of(client, 2)
    assert source.record_access([5, "", "\ud800", uuid.uuid4(), "nobody"]) == 0


def test_collections_and_folders_that_are_not_there_are_refused_and_not_made(client, tmp_path):
    before = client.count_collections()
    for name in ("nobody", "", 5):
        with pytest.raises(InvalidValue, match="collection must be"):
            ChromaSource(client, name)
    for name in ("../../etc/passwd", "x' OR '1'='1", "名"):
        with pytest.raises((InvalidValue, SourceTrouble)) as told:
            ChromaSource(client, name)
        assert told.value.__cause__ is None
    assert client.count_collections() == before
    with pytest.raises(InvalidType, match="client must be a client of chromadb"):
        ChromaSource("http://localhost", "x")
    with pytest.raises(InvalidValue, match="is none"):
        source_of_url(f"chroma+path://{tmp_path / 'nowhere'}#c")
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there_is_trouble(monkeypatch):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        monkeypatch.setenv("CHROMA_API_KEY", "s3cret")
        with pytest.raises(SourceTrouble) as told:
            source_of_url(f"chroma://127.0.0.1:{nobody.getsockname()[1]}/memories")
    assert "s3cret" not in str(told.value)


def test_what_the_server_quotes_is_not_told():
    for error in (Exception("s3cret"), ValueError("s3cret"), InternalError("s3cret")):
        with pytest.raises(SourceTrouble) as told, translated():
            raise error
        assert "s3cret" not in str(told.value)
    with pytest.raises(KeyError), translated():
        raise KeyError("a mistake of ours is not hidden")


def test_names_tell_the_place_without_keys(client, chroma_server, tmp_path, monkeypatch):
    monkeypatch.setenv("CHROMA_API_KEY", "s3cret")
    source, made = of(client, 1)
    with closing(source_of_url(source.name)) as again:
        assert again.name == source.name
        assert again.name == f"chroma://127.0.0.1:{chroma_server.port}/{made.name}"
    folder = chromadb.PersistentClient(tmp_path / "c", settings=quiet())
    assert name_of(folder, "a/b") == f"chroma+path://{tmp_path / 'c'}#a%2Fb"
    close(folder)
