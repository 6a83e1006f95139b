"""On a few thousand memories, Qdrant and Chroma let go of those that the store in RAM lets go of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memsift.backends.fields import Fields
from memsift.backends.pages import PAGE, PagedVectors
from memsift.policies import CoherencePolicy, LfuPolicy, LruPolicy
from memsift.testing.memories import in_ram, rows

COUNT, WIDE = 2000, 48


def memories(kind):
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(COUNT, WIDE)).astype(np.float32)
    plain = rows(COUNT, 1, ids=kind)
    return [replace(row, vector=v.tolist()) for row, v in zip(plain, vectors, strict=True)]


def agrees(source, entries):
    asked = np.random.default_rng(2).normal(size=(20, WIDE))
    pages = []
    read = source._read

    def counted(ids, **options):
        pages.append(len(ids) if options.get("vectors") or options.get("whole") else 0)
        return read(ids, **options)

    source._read = counted
    for policy in (LruPolicy(), LfuPolicy(), CoherencePolicy()):
        for keep in (COUNT // 10, COUNT // 2):
            plan = source.plan(policy, keep, context=asked)
            assert set(plan.ids) == in_ram(entries, policy, keep, asked), f"{policy}, {keep}"
            if policy == CoherencePolicy():
                worst = sorted(zip(plan.scores.tolist(), plan.ids, strict=True))
                assert [id_ for _, id_ in worst[:5]] == plan.ids[:5]
    assert max(pages) <= PAGE, "vectors come by pages"


def test_qdrant(qdrant):
    import test_qdrant_source as ours

    entries = memories(int)
    points = [ours.to_point(row.id, row.vector, ours.payload_of(row)) for row in entries]
    name = ours.filled(qdrant, points, WIDE)
    agrees(ours.QdrantSource(qdrant, name, Fields(tenant="tenant")), entries)


def test_chroma(chroma_server):
    chromadb = pytest.importorskip("chromadb", reason="needs the extra `chroma`")
    import test_chroma_source as chroma

    entries = memories(lambda i: f"{i:05}")
    where = {"host": chroma_server.host, "port": chroma_server.port}
    client = chromadb.HttpClient(**where, settings=chroma.quiet())
    made = chroma.filled(client, entries)
    agrees(chroma.ChromaSource(client, made.name, Fields(tenant="tenant")), entries)
    chroma.close(client)


@pytest.mark.parametrize("page", [1, 3, 100])
def test_rows_by_pages_are_the_rows(page):
    rng = np.random.default_rng(0)
    held = rng.normal(size=(30, 4)).astype(np.float32)
    held[7] = 0.0
    sizes = []

    def read(ids):
        sizes.append(len(ids))
        return held[ids] * 3

    paged = PagedVectors(list(range(30)), read, 4, page)
    lengths = np.linalg.norm(held, axis=1, keepdims=True)
    unit = np.divide(held, lengths, out=np.zeros_like(held), where=lengths > 0)
    assert paged.shape == (30, 4)
    for key in (
        slice(None),
        slice(5, 20, 3),
        slice(9, 9),
        np.array([3, 3, 29]),
        np.arange(30) % 2 == 0,
        4,
        7,
    ):
        np.testing.assert_allclose(paged[key], unit[key], atol=1e-6)
        assert paged[key].dtype == np.float32
    assert max(sizes) <= page
