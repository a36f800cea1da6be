"""A LlamaIndex node postprocessor as a reranker of the core."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode


def as_reranker(postprocessor: BaseNodePostprocessor) -> Callable[[str, Sequence[str]], Sequence[float]]:
    """For `profile.with_reranker(as_reranker(…))`: a function (query, texts) → scores in [0, 1], in the order of the texts.

    Scores beyond [0, 1] are taken for logits. Where the postprocessor gives fewer scores than there are texts it raises
    ValueError, and the search goes on without it: set its `top_n` to at least the profile's `rerank_top`.
    """

    def score(query: str, texts: Sequence[str]) -> Sequence[float]:
        nodes = [NodeWithScore(node=TextNode(id_=str(i), text=text), score=0.0) for i, text in enumerate(texts)]
        ranked = postprocessor.postprocess_nodes(nodes, query_bundle=QueryBundle(query))
        scores = {n.node.node_id: n.score for n in ranked if n.score is not None}
        missing = [i for i in range(len(texts)) if str(i) not in scores]
        if missing:
            raise ValueError(
                f"{type(postprocessor).__name__} gave scores for {len(texts) - len(missing)} of {len(texts)} texts; "
                "set its top_n to at least that"
            )
        raw = np.array([scores[str(i)] for i in range(len(texts))], dtype=np.float64)
        return (1.0 / (1.0 + np.exp(-raw))).tolist() if ((raw < 0) | (raw > 1)).any() else raw.tolist()

    return score
