"""LangChain's own tests for vector stores, all of them. Not collected here: test_langchain_suite.py runs them apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests

from memsift.adapters.langchain import MemsiftVectorStore


class TestInAFile(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:  # type: ignore[override]
        with MemsiftVectorStore(self.get_embeddings(), tmp_path / "a.memsift", budget=100) as store:
            yield store


class TestWithoutAFile(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> Iterator[VectorStore]:  # type: ignore[override]
        with MemsiftVectorStore(self.get_embeddings()) as store:
            yield store
