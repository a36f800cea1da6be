"""The asynchronous half of the vector store: each method runs its synchronous twin on one of our threads."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from typing_extensions import Self, override

from memhybrid.concurrency import in_thread, in_write_thread


class AsyncTwins(VectorStore, ABC):
    """What LangChain would run on the event loop's own executor, or convert on the way. Arguments are those of the twins."""

    @classmethod
    @override
    async def afrom_texts(cls, texts: Iterable[str], embedding: Any = None, *args: Any, **kwargs: Any) -> Self:
        """`from_texts` without blocking the event loop."""
        return await in_write_thread(cls.from_texts, texts, embedding, *args, **kwargs)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    @classmethod
    @override
    async def afrom_documents(cls, documents: Iterable[Document], embedding: Any = None, **kwargs: Any) -> Self:
        """`from_documents` without blocking the event loop."""
        return await in_write_thread(cls.from_documents, documents, embedding, **kwargs)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    @override
    async def aadd_texts(self, texts: Iterable[str], *args: Any, **kwargs: Any) -> list[str]:
        """`add_texts` without blocking the event loop."""
        return await in_write_thread(self.add_texts, texts, *args, **kwargs)

    @override
    async def aadd_documents(self, documents: Iterable[Document], **kwargs: Any) -> list[str]:
        """`add_documents` without blocking the event loop."""
        return await in_write_thread(self.add_documents, documents, **kwargs)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    @override
    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """`delete` without blocking the event loop."""
        return await in_write_thread(self.delete, ids, **kwargs)

    @override
    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """`get_by_ids` without blocking the event loop."""
        return await in_thread(self.get_by_ids, ids)

    @override
    async def asimilarity_search(self, query: str, *args: Any, **kwargs: Any) -> list[Document]:
        """`similarity_search` without blocking the event loop."""
        return await in_thread(self.similarity_search, query, *args, **kwargs)

    @override
    async def asimilarity_search_with_score(
        self, query: str, *args: Any, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """`similarity_search_with_score` without blocking the event loop."""
        return await in_thread(self.similarity_search_with_score, query, *args, **kwargs)

    @override
    async def asimilarity_search_by_vector(self, embedding: list[float], *args: Any, **kwargs: Any) -> list[Document]:
        """`similarity_search_by_vector` without blocking the event loop."""
        return await in_thread(self.similarity_search_by_vector, embedding, *args, **kwargs)

    @override
    async def amax_marginal_relevance_search(self, query: str, *args: Any, **kwargs: Any) -> list[Document]:
        """`max_marginal_relevance_search` without blocking the event loop."""
        return await in_thread(self.max_marginal_relevance_search, query, *args, **kwargs)

    @override
    async def amax_marginal_relevance_search_by_vector(
        self, embedding: list[float], *args: Any, **kwargs: Any
    ) -> list[Document]:
        """`max_marginal_relevance_search_by_vector` without blocking the event loop."""
        return await in_thread(self.max_marginal_relevance_search_by_vector, embedding, *args, **kwargs)
