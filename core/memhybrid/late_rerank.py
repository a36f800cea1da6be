"""The built-in reranker: late interaction (MaxSim) on full-precision token vectors of the packaged English model.

`Profile.with_reranker("late-interaction")`. Query and texts are encoded when they are reranked: nothing is stored, and a store with any
embedder can use it. A store with the packaged model runs on the one that is loaded already.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from memhybrid.late import FLOOR_COSINE, is_word, project
from memhybrid.protocols import Float32, TokenEmbedder, TokenVectors
from memhybrid.rerank import NotForThisError, Score

STOP_WEIGHT = 0.25
"""A stop word of the query counts so much; any other word 1."""


def late_interaction(embedder: Any = None) -> Score:
    """A reranker on an embedder with token vectors; the packaged English model where the given one has none."""

    def score(query: str, texts: Sequence[str]) -> Sequence[float]:
        model: Any = embedder if isinstance(embedder, TokenEmbedder) else _packaged()
        if not all(model.covers(text) for text in (query, *texts)):
            raise NotForThisError(
                "the late-interaction model is not meant for the script of the query or of a candidate"
            )
        _, tokens = model.encode([query, *texts])
        wanted, weights = _query(query, tokens[0])
        return [_maxsim(wanted, weights, _words(text)) for text in tokens[1:]]

    return score


@lru_cache(maxsize=1)
def _packaged() -> Any:
    from memhybrid.embedders import LocalEmbedder

    return LocalEmbedder()


def _words(tokens: TokenVectors) -> Float32:
    """The tokens with a letter or digit, as unit vectors."""
    return project(tokens.vectors[[i for i, token in enumerate(tokens.tokens) if is_word(token)]])


def _query(query: str, tokens: TokenVectors) -> tuple[Float32, Float32]:
    """The query's word pieces as unit vectors, and their weights."""
    from memhybrid.text import default_analyzer

    meaning = {word: bool(terms) for word, terms in default_analyzer("fast").analyze_query(query).words}
    kept = [i for i, token in enumerate(tokens.tokens) if is_word(token)]
    if not kept:
        raise NotForThisError("the query has no words")
    weights = [1.0 if meaning.get(tokens.tokens[i].casefold(), True) else STOP_WEIGHT for i in kept]
    return project(tokens.vectors[kept]), np.array(weights, dtype=np.float32)


def _maxsim(query: Float32, weights: Float32, text: Float32) -> float:
    """Weighted mean over the query's tokens of max(0, (best cosine - floor) / (1 - floor)); 0 for a text without words."""
    if not len(text):
        return 0.0
    best = (query @ text.T).max(axis=1).astype(np.float64)
    matched = np.maximum(0.0, (best - FLOOR_COSINE) / (1.0 - FLOOR_COSINE))
    return round(min(float(matched @ weights) / float(weights.sum()), 1.0), 6)
