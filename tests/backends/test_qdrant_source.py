"""Qdrant in its local mode, or a server where MEMSIFT_QDRANT_URL is set, keeps what every source must keep."""

from __future__ import annotations

import os
import uuid

import pytest

from memsift.backends.fields import Fields
from memsift.testing import SourceTests

qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra `qdrant`")

from qdrant_client import QdrantClient, models  # noqa: E402

from memsift.backends.qdrant import QdrantSource, id_of, point_id, to_point  # noqa: E402

FIELDS = Fields(tenant="tenant")


def payload_of(row):
    """A memory's columns as an application would store them."""
    return {
        "accessed_at": row.accessed_tick,
        "created_at": row.created_tick,
        "access_count": row.access_count,
        "cost": row.cost,
        "pinned": row.pinned,
        "tenant": row.tenant,
    }


@pytest.fixture
def client():
    url = os.environ.get("MEMSIFT_QDRANT_URL")
    made = QdrantClient(url=url, timeout=60) if url else QdrantClient(":memory:")
    before = {c.name for c in made.get_collections().collections}
    yield made
    for collection in made.get_collections().collections:
        if collection.name not in before:
            made.delete_collection(collection.name)
    made.close()


def filled(client, points, dim=8, **config):
    """A new collection with these points."""
    name = f"memsift-{uuid.uuid4().hex}"
    config.setdefault(
        "vectors_config", models.VectorParams(size=dim, distance=models.Distance.COSINE)
    )
    client.create_collection(name, **config)
    if points:
        client.upsert(name, points, wait=True)
    return name


class TestQdrantSource(SourceTests):
    @pytest.fixture(autouse=True)
    def with_client(self, client):
        self.client = client

    def source_of(self, entries):
        points = [to_point(row.id, row.vector, payload_of(row)) for row in entries]
        return QdrantSource(self.client, filled(self.client, points), FIELDS, batch=13)

    def ids_in(self, source):
        records, _ = self.client.scroll(source.collection, limit=10_000)
        return {id_of(record) for record in records}

    def change(self, source, id_, **changes):
        if "vector" in changes:
            vectors = [models.PointVectors(id=point_id(id_), vector=changes.pop("vector"))]
            self.client.update_vectors(source.collection, vectors, wait=True)
        if changes:
            self.client.set_payload(source.collection, changes, [point_id(id_)], wait=True)
