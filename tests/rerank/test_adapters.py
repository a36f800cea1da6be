"""Rerankers of the frameworks, through a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from memhybrid import Profile
from memhybrid.records import SearchResult
from tests.conftest import make_memory

TEXTS = [f"alpine tunnel survey, entry {i}" for i in range(6)]


def search(reranker: Any) -> tuple[SearchResult, list[str]]:
    """The result with the reranker's word alone, and the order without it."""
    profile = Profile.tipsy().with_reranker(reranker, rerank_margin=None, rerank_blend=1.0, deadline_s=60.0)
    with make_memory(None) as memory:
        memory.add([(text, {"importance": 50 + i}) for i, text in enumerate(TEXTS)])
        before = memory.search("alpine", 6, profile=profile.replace(rerank="off"), record_usage=False)
        return memory.search("alpine", 6, profile=profile, record_usage=False), [h.memory.text for h in before]


@pytest.mark.parametrize(("returned", "kept"), [(6, False), (3, True)])
def test_a_langchain_compressor(returned: int, kept: bool) -> None:
    """A compressor that scores every document reorders them; one that drops some leaves the first stage, and the trace says so."""
    pytest.importorskip("langchain_core")
    from langchain_core.documents import BaseDocumentCompressor, Document

    from langchain_memhybrid import as_reranker

    class Backwards(BaseDocumentCompressor):
        def compress_documents(
            self, documents: Sequence[Document], query: str, callbacks: Any = None
        ) -> Sequence[Document]:
            scored = [
                Document(page_content=d.page_content, metadata={**d.metadata, "relevance_score": i / 10})
                for i, d in enumerate(documents)
            ]
            return scored[::-1][:returned]

    result, before = search(as_reranker(Backwards()))
    assert [h.memory.text for h in result] == (before if kept else before[::-1])
    assert bool(result.trace.degraded) is kept


@pytest.mark.parametrize(("returned", "kept"), [(6, False), (3, True)])
def test_a_llamaindex_postprocessor(returned: int, kept: bool) -> None:
    """A postprocessor that scores every node reorders them; one that drops some leaves the first stage, and the trace says so."""
    pytest.importorskip("llama_index.core")
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore, QueryBundle

    from llamaindex_memhybrid import as_reranker

    class Backwards(BaseNodePostprocessor):
        def _postprocess_nodes(
            self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
        ) -> list[NodeWithScore]:
            scored = [NodeWithScore(node=n.node, score=i / 10) for i, n in enumerate(nodes)]
            return scored[::-1][:returned]

    result, before = search(as_reranker(Backwards()))
    assert [h.memory.text for h in result] == (before if kept else before[::-1])
    assert bool(result.trace.degraded) is kept
