"""Other people's hybrid retrieval on the same data and vectors, built for each user. The only file that knows frameworks."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import chromadb
import numpy as np
from langchain_chroma import Chroma
from langchain_classic.retrievers import EnsembleRetriever
from langchain_community.retrievers import BM25Retriever
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import BaseNode, TextNode
from llama_index.retrievers.bm25 import BM25Retriever as LlamaBM25Retriever
from llama_index.vector_stores.chroma import ChromaVectorStore
from rank_bm25 import BM25Okapi

from memhybrid.evaluate.datasets import Dataset, Query
from memhybrid.evaluate.vectors import Cached
from memhybrid.protocols import Analyzer
from memhybrid.records import Memory

LEG = 60
"""What each half of a fusion brings, at least: as many as the candidates of our own sources."""
ID = "_id"

Ranker = Callable[[str, int], Sequence[str]]
Progress = Callable[[int, int], None]


@dataclass
class Peer:
    """A peer as a system: a ranker for each user, and what to do when all is done."""

    name: str
    rankers: dict[Any, Ranker]
    close: Callable[[], None] = lambda: None

    def rank(self, query: Query, k: int) -> Sequence[str]:
        """Ids, best first, at most k."""
        ranker = self.rankers.get(query.user)
        return [] if ranker is None else ranker(query.text, k)[:k]


def peers(dataset: Dataset, embedder: Cached, analyzer: Analyzer, progress: Progress | None = None) -> list[Peer]:
    """All of them, ready to be asked."""
    client = chromadb.EphemeralClient()
    made = [Peer(name, {}) for name in ("rank_bm25", "langchain ensemble", "llamaindex rrf", "llamaindex relative")]
    names: list[str] = []

    def collection(size: int) -> tuple[str, dict[str, Any]]:
        # One thread and a search list as long as the collection: Chroma's graph then finds the same, true neighbours each time.
        names.append(f"peer-{uuid.uuid4().hex}")
        return names[-1], {"hnsw": {"space": "cosine", "num_threads": 1, "ef_search": max(size, 100)}}

    users = dataset.users()
    for done, user in enumerate(users, 1):
        memories = dataset.of(user)
        made[0].rankers[user] = _okapi(memories, analyzer)
        made[1].rankers[user] = _ensemble(memories, embedder, client, *collection(len(memories)))
        rrf, relative = _fusions(memories, embedder, client, *collection(len(memories)))
        made[2].rankers[user], made[3].rankers[user] = rrf, relative
        if progress is not None:
            progress(done, len(users))

    def close() -> None:
        while names:
            client.delete_collection(names.pop())

    made[-1].close = close
    return made


def _okapi(memories: Sequence[Memory], analyzer: Analyzer) -> Ranker:
    """rank_bm25's BM25Okapi over our analyser's terms. Equal scores keep the order of the corpus."""
    terms = [list(a.terms) for a in analyzer.analyze([m.text for m in memories])]
    ids = np.array([m.id for m in memories], dtype=object)
    index = BM25Okapi(terms) if any(terms) else None

    def rank(query: str, k: int) -> Sequence[str]:
        if index is None:
            return []
        scores = index.get_scores(list(analyzer.analyze_query(query).terms))
        return ids[np.argsort(-scores, kind="stable")[:k]].tolist()

    return rank


class _LangChainVectors(Embeddings):
    def __init__(self, cache: Cached) -> None:
        self._cache = cache

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._cache.embed_documents(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self._cache.embed_query([text])[0].tolist()


def _ensemble(memories: Sequence[Memory], cache: Cached, client: Any, name: str, configuration: Any) -> Ranker:
    """EnsembleRetriever of BM25Retriever, with its own way to cut texts, and Chroma; weights one half each."""
    documents = [Document(page_content=m.text, metadata={ID: m.id}, id=m.id) for m in memories]
    store = Chroma(
        collection_name=name,
        embedding_function=_LangChainVectors(cache),
        client=client,
        collection_configuration=configuration,
    )
    for start in range(0, len(documents), 1000):
        store.add_documents(documents[start : start + 1000])
    words = BM25Retriever.from_documents(documents)
    vectors = store.as_retriever()
    both = EnsembleRetriever(retrievers=[words, vectors], weights=[0.5, 0.5], id_key=ID)

    def rank(query: str, k: int) -> Sequence[str]:
        words.k = min(max(k, LEG), len(documents))
        vectors.search_kwargs["k"] = words.k
        return [cast("str", d.id) for d in both.invoke(query)]

    return rank


class _LlamaVectors(BaseEmbedding):
    cache: Any

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.cache.embed_query([query])[0].tolist()

    def _get_text_embedding(self, text: str) -> list[float]:
        return self.cache.embed_documents([text])[0].tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def _fusions(
    memories: Sequence[Memory], cache: Cached, client: Any, name: str, configuration: Any
) -> tuple[Ranker, Ranker]:
    """QueryFusionRetriever of BM25Retriever and Chroma, by reciprocal ranks and by relative scores; no query is generated."""
    vectors = cache.embed_documents([m.text for m in memories]).tolist()
    nodes: list[BaseNode] = [
        TextNode(id_=m.id or "", text=m.text, embedding=v) for m, v in zip(memories, vectors, strict=True)
    ]
    store = ChromaVectorStore(chroma_collection=client.create_collection(name, configuration=configuration))
    index = VectorStoreIndex(
        nodes,
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=_LlamaVectors(model_name="cached", cache=cache),
    )
    by_vectors = index.as_retriever(similarity_top_k=LEG)
    by_words = LlamaBM25Retriever.from_defaults(nodes=nodes, similarity_top_k=min(LEG, len(nodes)))

    def ranker(mode: FUSION_MODES) -> Ranker:
        both = QueryFusionRetriever(
            [by_vectors, by_words], llm=MockLLM(), mode=mode, num_queries=1, use_async=False, similarity_top_k=LEG
        )

        def rank(query: str, k: int) -> Sequence[str]:
            leg = min(max(k, LEG), len(nodes))
            by_words.similarity_top_k = leg
            setattr(by_vectors, "similarity_top_k", leg)  # noqa: B010 - a property that BaseRetriever does not declare
            both.similarity_top_k = k
            return [found.node.node_id for found in both.retrieve(query)]

        return rank

    return ranker(FUSION_MODES.RECIPROCAL_RANK), ranker(FUSION_MODES.RELATIVE_SCORE)
