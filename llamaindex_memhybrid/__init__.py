"""memhybrid for LlamaIndex: a retriever, a vector store, and what goes between the two worlds.

from llamaindex_memhybrid import MemHybridRetriever, MemHybridVectorStore

retriever = MemHybridRetriever.from_index(index)              # an index over Chroma that you already have
retriever = MemHybridRetriever.from_nodes(nodes)              # or nodes, with the packaged embedder
store = MemHybridVectorStore.from_params(path="./memory")     # or a vector store for VectorStoreIndex and IngestionPipeline
"""

from __future__ import annotations

from memhybrid.errors import MissingExtraError

try:
    import llama_index.core as _core
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "llama_index":
        raise
    raise MissingExtraError("llama-index-core", "llamaindex") from error

from llamaindex_memhybrid._filters import to_where
from llamaindex_memhybrid.embedding import MemHybridEmbedding
from llamaindex_memhybrid.rerank import as_reranker
from llamaindex_memhybrid.retriever import MemHybridRetriever
from llamaindex_memhybrid.vector_store import MemHybridVectorStore

del _core

__all__ = [
    "MemHybridEmbedding",
    "MemHybridRetriever",
    "MemHybridVectorStore",
    "as_reranker",
    "to_where",
]
