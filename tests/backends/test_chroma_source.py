"""Chroma's own server, and a folder of its client, keep what every source must keep."""

from __future__ import annotations

import uuid

import pytest

from memsift.backends.fields import Fields
from memsift.testing import SourceTests

chromadb = pytest.importorskip("chromadb", reason="needs the extra `chroma`")

from chromadb.config import Settings  # noqa: E402

from memsift.backends.chroma import ChromaSource  # noqa: E402
from memsift.backends.chroma.connection import close  # noqa: E402

FIELDS = Fields(tenant="tenant")
QUIET = Settings(anonymized_telemetry=False)


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
        self.client = chromadb.HttpClient(**where, settings=QUIET)
        yield
        close(self.client)


class TestChromaFolder(ChromaTests):
    @pytest.fixture(autouse=True)
    def with_client(self, tmp_path):
        self.client = chromadb.PersistentClient(path=tmp_path / "chroma", settings=QUIET)
        yield
        close(self.client)
