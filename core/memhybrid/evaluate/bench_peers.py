"""Peers for `memhybrid bench`: the frameworks' hybrid retrievers over a Chroma collection that is already filled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_chroma import Chroma
from langchain_classic.retrievers import EnsembleRetriever
from langchain_community.retrievers import BM25Retriever
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import TextNode
from llama_index.retrievers.bm25 import BM25Retriever as LlamaBM25Retriever
from llama_index.vector_stores.chroma import ChromaVectorStore

LEG = 60
"""What each half of a fusion brings."""


class _Given(Embeddings):
    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._embedder.embed_documents(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self._embedder.embed_query([text])[0].tolist()


class _GivenLlama(BaseEmbedding):
    embedder: Any

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.embedder.embed_query([query])[0].tolist()

    def _get_text_embedding(self, text: str) -> list[float]:
        return self.embedder.embed_documents([text])[0].tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def ensemble(texts: Sequence[str], client: Any, collection: str, embedder: Any) -> Callable[[str], Any]:
    """LangChain's EnsembleRetriever of BM25Retriever and Chroma."""
    words = BM25Retriever.from_documents(
        [Document(page_content=t, metadata={"_id": f"m{i}"}) for i, t in enumerate(texts)], k=LEG
    )
    store = Chroma(collection_name=collection, client=client, embedding_function=_Given(embedder))
    both = EnsembleRetriever(retrievers=[words, store.as_retriever(search_kwargs={"k": LEG})], weights=[0.5, 0.5])
    return both.invoke


def query_fusion(texts: Sequence[str], collection: Any, embedder: Any) -> Callable[[str], Any]:
    """LlamaIndex's QueryFusionRetriever of BM25Retriever (a static bm25s index) and Chroma, by reciprocal ranks."""
    index = VectorStoreIndex.from_vector_store(
        ChromaVectorStore(chroma_collection=collection), embed_model=_GivenLlama(model_name="given", embedder=embedder)
    )
    nodes = [TextNode(id_=f"m{i}", text=t) for i, t in enumerate(texts)]
    both = QueryFusionRetriever(
        [
            index.as_retriever(similarity_top_k=LEG),
            LlamaBM25Retriever.from_defaults(nodes=list(nodes), similarity_top_k=LEG),
        ],
        llm=MockLLM(),
        mode=FUSION_MODES.RECIPROCAL_RANK,
        num_queries=1,
        use_async=False,
        similarity_top_k=10,
    )
    return both.retrieve
