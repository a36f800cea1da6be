"""A node postprocessor as the core's reranker."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_memhybrid import MemHybridRetriever, MemHybridVectorStore, as_reranker
from memhybrid import Profile
from memhybrid.memory import HybridMemory


class ByLength(BaseNodePostprocessor):
    """The longer the text the better, on a scale of its own."""

    top_n: int = 100
    scale: float = 100.0

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        assert query_bundle is not None
        for node in nodes:
            node.score = len(node.text) / self.scale
        return sorted(nodes, key=lambda n: -(n.score or 0.0))[: self.top_n]


def test_scores_come_in_the_order_of_the_texts() -> None:
    """Whatever order the postprocessor gives."""
    assert as_reranker(ByLength())("q", ["a", "aaa", "aa"]) == [0.01, 0.03, 0.02]


def test_logits_become_probabilities() -> None:
    """Scores beyond [0, 1] go through the logistic function, and the order stays."""
    scores = as_reranker(ByLength(scale=1.0))("q", ["a", "aaa", "aa"])
    assert all(0.0 < s < 1.0 for s in scores)
    assert scores[0] < scores[2] < scores[1]


def test_fewer_scores_are_an_error() -> None:
    """A postprocessor that cuts its list cannot rerank, and says how to make it."""
    with pytest.raises(ValueError, match="top_n"):
        as_reranker(ByLength(top_n=2))("q", ["a", "aaa", "aa"])


@pytest.mark.parametrize("top_n", [100, 1])
def test_the_core_reranks_and_fails_open(store: MemHybridVectorStore, memory: HybridMemory, top_n: int) -> None:
    """In a profile it changes the order; where it gives too few scores the search goes on and says so."""
    options: dict[str, Any] = {"rerank_blend": 1.0, "rerank_margin": None}
    profile = Profile.semantic().with_reranker(as_reranker(ByLength(top_n=top_n)), **options)
    result = memory.search("drinks", profile=profile)
    first = MemHybridRetriever.from_memory(memory, profile=profile).retrieve("drinks")[0]
    if top_n == 100:
        assert first.score == max(len(h.memory.text) for h in result) / 100
    else:
        assert result.hits
        assert any("rerank" in text for text in result.trace.degraded)
