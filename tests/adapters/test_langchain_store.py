"""What the LangChain store does beyond the official suite: beside `InMemoryVectorStore`, filters, a budget, a file."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core", reason="the extra langchain is not installed")

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from memsift import LruPolicy
from memsift.adapters.langchain import MemsiftEmbeddings, MemsiftVectorStore
from memsift.errors import InvalidFilter, InvalidMetadata, InvalidType, InvalidValue

EMBEDDING = DeterministicFakeEmbedding(size=8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.memsift"


def documents(count: int) -> list[Document]:
    return [
        Document(id=str(i), page_content=f"text {i}", metadata={"n": i, "kind": "ab"[i % 2]})
        for i in range(count)
    ]


def test_it_answers_as_langchain_s_store_in_ram(path: Path) -> None:
    """Random puts, deletes and questions; every answer is the same, scores to float32."""
    chance = random.Random(7)
    theirs = InMemoryVectorStore(EMBEDDING)
    with MemsiftVectorStore(EMBEDDING, path) as ours:
        for _ in range(60):
            chosen = chance.sample(documents(12), 3)
            for store in (ours, theirs):
                store.add_documents([d.model_copy() for d in chosen])
            gone = [str(chance.randrange(14)) for _ in range(2)]
            for store in (ours, theirs):
                store.delete(gone)
            query, k = f"text {chance.randrange(20)}", chance.randint(1, 6)
            wanted = chance.choice([None, lambda d: d.metadata["kind"] == "a"])
            one = ours.similarity_search_with_score(query, k, filter=wanted)
            other = theirs.similarity_search_with_score(query, k, filter=wanted)
            assert [d for d, _ in one] == [d for d, _ in other]
            assert [s for _, s in one] == pytest.approx([s for _, s in other], abs=1e-6)
            for weight in (0.0, 0.3, 1.0):
                ask: Any = {"k": k, "fetch_k": 8, "lambda_mult": weight, "filter": wanted}
                assert ours.max_marginal_relevance_search(query, **ask) == (
                    theirs.max_marginal_relevance_search(query, **ask)
                )
            some = [str(i) for i in range(14)]
            assert ours.get_by_ids(some) == theirs.get_by_ids(some)


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ({"kind": "a"}, {0, 2, 4}),
        ({"n": {"$gt": 1, "$lte": 3}}, {2, 3}),
        ({"n": {"$in": [1, 5]}}, {1, 5}),
        ({"$or": [{"n": 0}, {"kind": "b", "n": {"$ne": 3}}]}, {0, 1, 5}),
        ({"none": 1}, set()),
    ],
)
def test_a_filter_may_be_a_dict(where: Any, wanted: set[int]) -> None:
    with MemsiftVectorStore(EMBEDDING) as store:
        store.add_documents(documents(6))
        assert {d.metadata["n"] for d in store.similarity_search("x", 10, filter=where)} == wanted
        retriever = store.as_retriever(search_kwargs={"k": 10, "filter": where})
        assert {d.metadata["n"] for d in retriever.invoke("x")} == wanted


def test_any_text_is_an_id_and_some_texts_are_odd(path: Path) -> None:
    ids = ["", "a/b", "'; DROP TABLE entry; --", "\0", "\ud800", "🙂" * 100]
    with MemsiftVectorStore(EMBEDDING, path) as store:
        assert store.add_texts([f"text of {i}" for i in range(6)], ids=ids) == ids
    with MemsiftVectorStore(EMBEDDING, path) as store:
        assert [d.id for d in store.get_by_ids(ids)] == ids
        store.add_texts([""], ids=["a/b"])
        assert store.get_by_ids(["a/b"])[0].page_content == ""
        assert store.delete(ids[:3])
        assert [d.id for d in store.get_by_ids(ids)] == ids[3:]
        assert store.delete()
        assert len(store.store) == 0


def test_what_cannot_be_kept_is_refused_as_a_whole(path: Path) -> None:
    with MemsiftVectorStore(EMBEDDING, path) as store:
        good = "a good text"
        refused: list[tuple[Any, type[Exception]]] = [
            (lambda: store.add_texts([good, "nul\0"]), InvalidValue),
            (lambda: store.add_texts([good, "x" * 70_000]), InvalidValue),
            (lambda: store.add_texts([good, "b"], [{}, {"a": {1}}]), InvalidMetadata),
            (lambda: store.add_texts([good], [{"memsift:key": "mine"}]), InvalidMetadata),
            (lambda: store.add_texts([good, "b"], [{}]), InvalidValue),
            (lambda: store.add_texts([good], ids=[3]), InvalidType),
            (lambda: store.similarity_search("x", 0), InvalidValue),
            (lambda: store.similarity_search("x", filter="n > 3"), InvalidFilter),
        ]
        for call, error in refused:
            with pytest.raises(error):
                call()
        assert len(store.store) == 0


def test_the_budget_holds_and_what_left_can_be_restored(path: Path) -> None:
    """Three places, least recently used first. MMR looks at all three, but only what it gives out counts as used."""
    options = {"budget": 3, "policy": LruPolicy(), "low_watermark": 1.0}
    with MemsiftVectorStore(EMBEDDING, path, **options) as store:
        store.add_texts(["a", "b", "c"], ids=["a", "b", "c"])
        assert store.max_marginal_relevance_search("a", k=1)[0].id == "a"
        store.get_by_ids(["b"])
        store.add_texts(["d"], ids=["d"])
        assert [d.id for d in store.get_by_ids(["a", "b", "c", "d"])] == ["a", "b", "d"]
        assert store.archived() == ["c"]
        assert store.restore("c")
        assert store.get_by_ids(["c"])[0].page_content == "c"
        assert len(store.store) == 3


def test_a_search_that_would_have_found_what_left_is_regretted() -> None:
    options: dict[str, Any] = {"budget": 2, "policy": LruPolicy(), "low_watermark": 1.0}
    with MemsiftVectorStore(EMBEDDING, **options) as store:
        store.add_texts(["a", "b", "c"], ids=["a", "b", "c"])
        assert store.archived() == ["a"]
        store.similarity_search("a", k=1, filter={"none": 1})
        assert store.store.stats().regret.wanted == 0
        store.similarity_search("a", k=1)
        assert store.store.stats().regret.wanted == 1


def test_without_a_file_nothing_is_left() -> None:
    store = MemsiftVectorStore.from_texts(["a"], EMBEDDING, [{"n": 1}], ids=["x"], budget=10)
    folder = store.store.path.parent
    assert folder.is_dir()
    assert store.get_by_ids(["x"])[0].metadata == {"n": 1}
    store.close()
    store.close()
    assert not folder.exists()
    dropped = MemsiftVectorStore(EMBEDDING)
    folder = dropped.store.path.parent
    del dropped
    assert not folder.exists()


def test_relevance_is_the_cosine_and_never_negative() -> None:
    with MemsiftVectorStore(EMBEDDING) as store:
        store.add_documents(documents(12))
        scores = [s for _, s in store.similarity_search_with_relevance_scores("text 3", k=12)]
        assert scores[0] == pytest.approx(1.0, abs=1e-6)
        assert min(scores) == 0.0
        kwargs = {"score_threshold": 0.99, "k": 5}
        found = store.as_retriever(search_type="similarity_score_threshold", search_kwargs=kwargs)
        assert [d.id for d in found.invoke("text 3")] == ["3"]


def test_coroutines() -> None:
    async def live() -> None:
        store = await MemsiftVectorStore.afrom_texts(["a", "b"], EMBEDDING, ids=["a", "b"])
        with store:
            mmr = await store.amax_marginal_relevance_search("a", k=1)
            by_vector = await store.asimilarity_search_by_vector(EMBEDDING.embed_query("b"), k=1)
            assert [d.id for d in mmr + by_vector] == ["a", "b"]
            assert await store.adelete(["a"])
            assert [d.id for d in await store.aget_by_ids(["a", "b"])] == ["b"]

    asyncio.run(live())


ADDER = """
import sys
from langchain_core.embeddings import DeterministicFakeEmbedding
from memsift.adapters.langchain import MemsiftVectorStore
with MemsiftVectorStore(DeterministicFakeEmbedding(size=8), sys.argv[1], busy_timeout=60.0) as store:
    for i in range(30):
        store.add_texts([f"{sys.argv[2]} {i}"], ids=[f"k{i % 3}"])
"""


def test_two_processes_put_the_same_ids_and_one_document_is_left_of_each(path: Path) -> None:
    with MemsiftVectorStore(EMBEDDING, path, busy_timeout=60.0) as store:
        store.add_texts(["mine"], ids=["k0"])
        adders = [
            subprocess.Popen([sys.executable, "-c", ADDER, str(path), name]) for name in ("a", "b")
        ]
        assert [adder.wait(120) for adder in adders] == [0, 0]
        assert {d.id for d in store.similarity_search("x", k=50)} == {"k0", "k1", "k2"}
        assert len(store.store) == 3
        assert store.get_by_ids(["k0"])[0].page_content in ("a 27", "b 27")


def test_memsift_s_embedders_serve_langchain() -> None:
    embedding = MemsiftEmbeddings("hashed")
    assert len(embedding.embed_query("tea")) == embedding.dim
    with MemsiftVectorStore(embedding) as store:
        store.add_texts(["the cat sat on the mat", "stock prices fell"])
        assert store.similarity_search("a cat on a mat", k=1)[0].page_content[:7] == "the cat"
