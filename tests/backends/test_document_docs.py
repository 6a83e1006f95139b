"""The pages about Qdrant and Chroma do what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def run(page, told):
    """The page's Python, from top to bottom; what a plan and a sift of 90 memories print is part of it."""
    first, back = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(first, page, "exec"), names)  # noqa: S102 - our own document
    out = told.readouterr().out
    assert "let 36 of 90 entries go (40%), keep 54" in out
    assert "36 entries are gone" in out
    return names, lambda: exec(compile(back, page, "exec"), names)  # noqa: S102


def test_the_page_about_qdrant_runs(tmp_path, monkeypatch, capsys):
    qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra `qdrant`")
    monkeypatch.chdir(tmp_path)
    names, bring_back = run("qdrant.md", capsys)
    assert names["client"].count("memories").count == 54
    bring_back()
    client = qdrant_client.QdrantClient(path="qdrant")
    records = client.scroll("memories", limit=100)[0]
    client.close()
    assert {r.payload["memsift_id"] for r in records} == {f"memory {i}" for i in range(90)}
    assert sorted(r.payload["created_at"] for r in records) == list(range(90))


def test_the_page_about_chroma_runs(tmp_path, monkeypatch, capsys):
    chromadb = pytest.importorskip("chromadb", reason="needs the extra `chroma`")
    monkeypatch.chdir(tmp_path)
    names, bring_back = run("chroma.md", capsys)
    assert names["memories"].count() == 54
    bring_back()
    client = chromadb.PersistentClient("chroma")
    found = client.get_collection("memories", embedding_function=None).get()
    client.close()
    told = dict(zip(found["ids"], found["documents"], strict=True))
    assert told == {f"memory {i}": f"what was said, {i}" for i in range(90)}
    assert sorted(m["created_at"] for m in found["metadatas"]) == list(range(90))


@pytest.mark.parametrize("page", ["qdrant.md", "chroma.md", "sources.md"])
def test_pages_point_at_pages_that_are_there(page):
    text = (DOCS / page).read_text()
    for target in re.findall(r"\]\(([\w.]+\.md)\)", text):
        assert (DOCS / target).exists(), target
    for url in re.findall(r"memsift sift (\S+)", text):
        assert re.match(r"URL$|(qdrant|chroma)(\+https|\+path)?://", url), url
