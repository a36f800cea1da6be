"""memhybrid for LangChain: a retriever and a vector store over hybrid memory, and rerankers the other way round.

from langchain_memhybrid import MemHybridRetriever

retriever = MemHybridRetriever.from_vectorstore(chroma)  # a langchain_chroma.Chroma that you have
retriever.invoke("where does Ana live?", k=3, filter={"type": "fact"})
"""

from __future__ import annotations

try:
    from langchain_memhybrid.rerankers import as_reranker
    from langchain_memhybrid.retrievers import MemHybridRetriever
    from langchain_memhybrid.vectorstores import MemHybridVectorStore
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "langchain_core":
        raise
    from memhybrid.errors import MissingExtraError

    raise MissingExtraError("langchain-core", "langchain") from error

__all__ = ["MemHybridRetriever", "MemHybridVectorStore", "as_reranker"]
