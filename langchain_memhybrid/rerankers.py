"""LangChain document compressors as rerankers of a profile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from langchain_core.documents import BaseDocumentCompressor, Document

from memhybrid.errors import ConfigError

_POSITION = "memhybrid_position"


def as_reranker(compressor: BaseDocumentCompressor) -> Callable[[str, Sequence[str]], list[float]]:
    """A compressor as a function (query, texts) → scores, to be given to `Profile.with_reranker`.

        profile = Profile.balanced().with_reranker(as_reranker(FlashrankRerank(top_n=8)))

    It must return every document, in any order, with `metadata["relevance_score"]` in [0, 1]; so its `top_n` is at least the
    profile's `rerank_top`. Anything else is a ValueError, which makes a search keep its first order and say so in the trace.
    """
    if not callable(getattr(compressor, "compress_documents", None)):
        raise ConfigError(f"compressor: expected a LangChain document compressor, got {type(compressor).__name__}")

    def score(query: str, texts: Sequence[str]) -> list[float]:
        documents = [Document(page_content=text, metadata={_POSITION: i}) for i, text in enumerate(texts)]
        scores: dict[int, float] = {}
        for document in compressor.compress_documents(documents, query):
            position, relevance = document.metadata.get(_POSITION), document.metadata.get("relevance_score")
            if position is None or relevance is None:
                missing = "relevance_score" if relevance is None else "metadata that it was given"
                raise ValueError(f"{type(compressor).__name__} returned a document without the {missing}")
            scores[position] = float(relevance)
        if len(scores) != len(texts):
            raise ValueError(
                f"{type(compressor).__name__} returned {len(scores)} of {len(texts)} documents; set its top_n to at least that many"
            )
        return [scores[i] for i in range(len(texts))]

    return score
