"""A sift of Qdrant or Chroma that dies at any step, and again, ends with exactly the planned victims gone."""

from __future__ import annotations

import json
import os
import uuid
from itertools import count
from urllib.parse import urlsplit

import pytest
from document_child import BATCH, killed, source_at

from memsift import MemoryStore
from memsift.backends.sifting import unfinished
from memsift.policies import LruPolicy
from memsift.testing.memories import id_of, in_ram, rows

KEEP = 5
ENTRIES = rows(11, seed=3, ids=lambda i: id_of(str, i))
GONE = in_ram(ENTRIES, LruPolicy(), KEEP, None)


def sifted_after_kills(url, folder, last):
    """Kill a sift at step `last`, sometimes what goes on too; then let it end. Whether it was killed at all."""
    was_killed = killed(url, folder, KEEP, last)
    if last % 3 == 0 and unfinished(folder / "chain.memsift"):
        killed(url, folder, KEEP, 1 + last % 8)
    if was_killed:
        assert not killed(url, folder, KEEP, 0)
    assert not unfinished(folder / "chain.memsift")
    return was_killed


def check(url, folder, last):
    source = source_at(url)
    left = [id_ for batch in source.scan(frozenset()) for id_ in batch.ids]
    source.close()
    assert sorted(left) == sorted({row.id for row in ENTRIES} - GONE), f"killed at step {last}"
    with MemoryStore.open(folder / "chain.memsift", namespace="sift") as chain:
        assert chain.audit.verify(chain.audit.head()).status == "ok"
        assert chain.verify().ok
        bodies = [json.loads(body) for body in chain.audit.bodies()]
    plan = bodies[0]["note"]["plan"]
    own = [body for body in bodies if body["note"]["plan"] == plan]
    assert [body["note"]["batch"] for body in own] == list(range(-(-len(GONE) // BATCH)))
    assert sum(body["evicted_count"] for body in own) == len(GONE), "each is counted once"
    with MemoryStore.open(folder / "gone.memsift") as archive:
        held = [entry.metadata["id"] for entry in archive.get(archive.view().ids)]
    assert sorted(held) == sorted(GONE), "and archived once"


def fill_qdrant(client, name):
    from qdrant_client import models
    from test_qdrant_source import payload_of

    from memsift.backends.qdrant import to_point

    cosine = models.VectorParams(size=8, distance=models.Distance.COSINE)
    client.create_collection(name, vectors_config=cosine)
    client.upsert(name, [to_point(r.id, r.vector, payload_of(r)) for r in ENTRIES], wait=True)


def fill_chroma(client, name):
    from test_chroma_source import metadata_of

    from memsift.backends.chroma.connection import close

    made = client.create_collection(name, embedding_function=None)
    ids, vectors = [row.id for row in ENTRIES], [row.vector for row in ENTRIES]
    made.add(ids=ids, embeddings=vectors, metadatas=[metadata_of(row) for row in ENTRIES])
    close(client)


def every_step(folder, place, first=1, stride=1):
    """A new collection for each step, or every other, until a sift has no further step."""
    for last in count(first, stride):
        url, at = place(last), folder / str(last)
        at.mkdir(exist_ok=True)
        was_killed = sifted_after_kills(url, at, last)
        check(url, at, last)
        if not was_killed:
            return last


def test_qdrant(tmp_path):
    qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra `qdrant`")
    server, names = os.environ.get("MEMSIFT_QDRANT_URL"), []

    def place(last):
        name = f"memsift-{uuid.uuid4().hex}"
        where = {"url": server} if server else {"path": str(tmp_path / f"q{last}")}
        client = qdrant_client.QdrantClient(**where)
        fill_qdrant(client, name)
        client.close()
        names.append(name)
        secure = "+https" if server and server.startswith("https:") else ""
        if server:
            return f"qdrant{secure}://{urlsplit(server).netloc}/{name}"
        return f"qdrant+path://{tmp_path / f'q{last}'}#{name}"

    try:
        assert every_step(tmp_path, place) > 30
    finally:
        if server:
            client = qdrant_client.QdrantClient(url=server)
            for name in names:
                client.delete_collection(name)
            client.close()


def test_chroma_server(tmp_path, chroma_server):
    chromadb = pytest.importorskip("chromadb", reason="needs the extra `chroma`")
    where = {"host": chroma_server.host, "port": chroma_server.port}

    def place(last):
        name = f"memsift-{uuid.uuid4().hex}"
        fill_chroma(chromadb.HttpClient(**where), name)
        return f"chroma://{chroma_server.host}:{chroma_server.port}/{name}"

    # The steps of the server and of the folder are the same, so that each takes every other one.
    assert every_step(tmp_path, place, 1, 2) > 25


def test_chroma_folder(tmp_path):
    chromadb = pytest.importorskip("chromadb", reason="needs the extra `chroma`")

    def place(last):
        fill_chroma(chromadb.PersistentClient(tmp_path / f"c{last}"), "memories")
        return f"chroma+path://{tmp_path / f'c{last}'}#memories"

    assert every_step(tmp_path, place, 2, 2) > 25
