"""The pages about adapters run as they are written."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


def run(page: str, *needed: str) -> dict[str, Any]:
    for module in needed:
        pytest.importorskip(module, reason=f"{module} is not installed")
    names: dict[str, Any] = {}
    for code in blocks(page):
        exec(compile(code, page, "exec"), names)  # noqa: S102 - our own document
    return names


@pytest.mark.parametrize(
    ("page", "needed"),
    [
        ("langgraph.md", ("langgraph.graph", "langchain_core", "wordllama")),
        ("langchain.md", ("langchain_core", "wordllama")),
        ("adk.md", ("google.adk.memory", "wordllama")),
    ],
)
def test_the_page_runs(
    page: str, needed: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(blocks(page)) >= 1
    run(page, *needed)
    assert list(tmp_path.glob("*.memsift"))


@pytest.fixture
def recipes() -> dict[str, Any]:
    return run("migrating.md", "langgraph.store.base", "langchain_core")


def twice(move: Callable[[], None]) -> None:
    """A recipe may be run again."""
    move()
    move()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_from_a_langgraph_store(recipes: dict[str, Any], kind: str, tmp_path: Path) -> None:
    from contextlib import ExitStack

    from langgraph.store.memory import InMemoryStore

    from memsift.adapters.langgraph import MemsiftStore

    with ExitStack() as stack:
        theirs: Any = InMemoryStore()
        if kind == "sqlite":
            sqlite = pytest.importorskip("langgraph.store.sqlite", reason="it is not installed")
            theirs = stack.enter_context(sqlite.SqliteStore.from_conn_string(":memory:"))
        ours = stack.enter_context(MemsiftStore(tmp_path / "a.memsift"))
        items = {((f"u{i % 3}", "x")[: 1 + i % 2], str(i)): {"n": i} for i in range(50)}
        for (namespace, key), value in items.items():
            theirs.put(namespace, key, value)
        twice(lambda: recipes["from_langgraph"](theirs, ours, page=7))
        found = {(item.namespace, item.key): item.value for item in ours.search((), limit=100)}
        assert found == items


def test_from_a_chroma_folder(recipes: dict[str, Any], tmp_path: Path) -> None:
    chromadb = pytest.importorskip("chromadb", reason="chromadb is not installed: 380 MB")
    from langchain_core.embeddings import DeterministicFakeEmbedding

    from memsift.adapters.langchain import MemsiftVectorStore

    embedding = DeterministicFakeEmbedding(size=6)
    quiet = chromadb.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(tmp_path / "chroma"), quiet)
    theirs = client.create_collection("notes", embedding_function=None)
    texts = [f"text {i}" for i in range(12)]
    theirs.add(
        ids=[f"id {i}" for i in range(12)],
        documents=texts,
        embeddings=embedding.embed_documents(texts),
        metadatas=[{"n": i} for i in range(12)],
    )
    with MemsiftVectorStore(embedding, tmp_path / "a.memsift") as ours:
        twice(lambda: recipes["from_chroma"](str(tmp_path / "chroma"), "notes", ours, page=5))
        assert len(ours.store) == 12
        (best, score), *_ = ours.similarity_search_with_score("text 7", k=3)
        assert (best.id, best.page_content, best.metadata) == ("id 7", "text 7", {"n": 7})
        assert score == pytest.approx(1.0, abs=1e-6)


def test_from_mem0_s_local_store(recipes: dict[str, Any], tmp_path: Path) -> None:
    """A folder as mem0 2.2 leaves it: written by qdrant-client, as mem0 does, with mem0's names in the payload."""
    qdrant = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    from memsift.agent import AgentMemory

    models = qdrant.models
    client = qdrant.QdrantClient(path=str(tmp_path / "qdrant"))
    size = models.VectorParams(size=4, distance=models.Distance.COSINE)
    client.create_collection("mem0", vectors_config=size)
    said = ["Ada eats no nuts", "Ada writes compilers", "Bob plays the cello"]
    when = "2026-05-01T10:00:00+00:00"
    common = {"hash": "x", "created_at": when, "updated_at": when, "text_lemmatized": "y"}
    points = [
        models.PointStruct(
            id=f"00000000-0000-0000-0000-00000000000{i}",
            vector=[1.0, float(i), 0.0, 0.0],
            payload={"data": text, "user_id": text.split()[0].lower(), **common},
        )
        for i, text in enumerate(said)
    ]
    client.upsert("mem0", points)
    client.close()
    with AgentMemory.open(tmp_path / "a.memsift", embedder="hashed") as ours:
        twice(lambda: recipes["from_mem0"](str(tmp_path / "qdrant"), ours, page=2))
        assert len(ours) == 3
        best = ours.recall("Who plays the cello?", k=1, where={"user_id": "bob"})[0]
        assert best.text == "Bob plays the cello"
        assert best.metadata == {"user_id": "bob", "mem0": points[2].id}
        assert best.created_at == 1777629600.0
