"""LangChain's own standard tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

from langchain_memhybrid import MemHybridRetriever, MemHybridVectorStore
from memhybrid.embedders import HashEmbedder
from memhybrid.memory import HybridMemory

TEXTS = ["Ana drinks green tea", "Ben plays the cello", "the parcel was left at the office", "it rained in Lisbon"]


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[MemHybridRetriever]:
        return MemHybridRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        memory = HybridMemory.open(embedder=HashEmbedder(64))
        memory.add(TEXTS)
        return {"memory": memory}

    @property
    def retriever_query_example(self) -> str:
        return "what does Ana drink?"


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> Iterator[VectorStore]:
        with HybridMemory.open(embedder=self.get_embeddings()) as memory:
            yield MemHybridVectorStore.from_memory(memory)


class TestVectorStoreInAFolder(VectorStoreIntegrationTests):
    """The same where Chroma lies in a folder."""

    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        with HybridMemory.open(tmp_path, embedder=self.get_embeddings()) as memory:
            yield MemHybridVectorStore.from_memory(memory)
