"""Cosine similarity of the query's vector with the memory's, negative ones as 0."""

from __future__ import annotations

import numpy as np

from memhybrid.protocols import Float64
from memhybrid.signals.context import SignalContext


class Semantic:
    """max(cosine, 0); NaN where there is no vector. Its raw value is the cosine."""

    name = "semantic"
    query_dependent = True

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        vectors = context.view.partition.vectors
        if context.query.vector is None or vectors is None:
            return context.unknown()
        cosine = vectors.similarity(context.query.vector, context.rows)
        context.record_raw(self.name, cosine)
        return np.maximum(cosine, 0.0)


class CoveredSemantic(Semantic):
    """The same, and NaN where query or memory is in a script that the embedder is not meant for.

    An English model gives Chinese texts vectors that mean nothing: with them fusion was far below BM25 alone.
    """

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        if not context.query.covered:
            return context.unknown()
        values = super().values(context)
        return np.where(context.view.partition.covered.take(context.rows), values, np.nan)
