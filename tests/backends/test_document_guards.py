"""The filters under which documents are deleted say what a few lines of Python say, whatever their fields hold."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsift.backends.documents import Document
from memsift.backends.fields import instant, is_number

TEXTS = ["2024-05-06T07:08:09Z", "2024-05-06T09:08:09.000001+02:00", "2031-01-01", "tomorrow", "1"]
times = st.none() | st.sampled_from(TEXTS) | st.integers(0, 9) | st.floats(0, 9) | st.booleans()
pins = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats(-2, 2)
    | st.sampled_from(["true", ""])
)
documents = st.lists(st.tuples(times, pins), min_size=1, max_size=8)
few = settings(max_examples=60, deadline=None)


def read(entries, names=str):
    """Documents as they were when a plan was applied."""
    return [
        Document(names(i), {"time": time, "pin": pin}, {"n": i})
        for i, (time, pin) in enumerate(entries)
    ]


def body(time, pin):
    return {k: v for k, v in (("accessed_at", time), ("pinned", pin)) if v is not None}


def is_later(time, before):
    """Whether a last access lies after all of those, numbers among numbers and moments among moments."""
    if is_number(time):
        return time > max((b for b in before if is_number(b)), default=-1)
    moments = [instant(b) for b in before if instant(b) is not None]
    return instant(time) is not None and (not moments or instant(time) > max(moments))


@few
@given(before=documents, after=documents)
def test_qdrant_spares_the_touched_and_the_pinned(before, after):
    qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra `qdrant`")
    from qdrant_client import models

    from memsift.backends.qdrant import QdrantSource

    client = qdrant_client.QdrantClient(":memory:")
    flat = models.VectorParams(size=1, distance=models.Distance.DOT)
    client.create_collection("c", vectors_config=flat)
    points = [
        models.PointStruct(id=i, vector=[1.0], payload=body(*fields))
        for i, fields in enumerate(after)
    ]
    client.upsert("c", points)
    QdrantSource(client, "c")._delete(read(before, int))
    left = {record.id for record in client.scroll("c", limit=100)[0]}
    old = [time for time, _ in before]
    assert left == {
        i
        for i, (time, pin) in enumerate(after)
        if i >= len(before) or is_later(time, old) or pin is True or (is_number(pin) and pin > 0)
    }
    client.close()


@pytest.fixture(scope="module")
def collection(chroma_server):
    import chromadb

    from memsift.backends.chroma.connection import close

    client = chromadb.HttpClient(host=chroma_server.host, port=chroma_server.port)
    made = client.create_collection("guards", embedding_function=None)
    yield client, made
    close(client)


@few
@given(before=documents, after=documents)
def test_chroma_spares_the_touched_and_the_pinned(collection, before, after):
    from memsift.backends.chroma import ChromaSource

    client, made = collection
    made.delete(ids=[str(i) for i in range(8)])
    made.add(
        ids=[str(i) for i in range(len(after))],
        embeddings=[[1.0]] * len(after),
        metadatas=[body(*fields) or None for fields in after],
    )
    ChromaSource(client, "guards")._delete(read(before))
    left = {int(id_) for id_ in made.get(include=[])["ids"]}
    numbers = [time for time, _ in before if is_number(time)]
    texts = {time for time, _ in before if instant(time) is not None}

    def stays(i, time, pin):
        if i >= len(before) or pin is True:
            return True
        was = before[i][0]
        if is_number(was):
            return not (is_number(time) and time <= max(numbers))
        # Of one that was never used Chroma can only be asked for its pin.
        return instant(was) is not None and time not in texts

    assert left == {i for i, fields in enumerate(after) if stays(i, *fields)}
