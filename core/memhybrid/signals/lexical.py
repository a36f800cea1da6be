"""How much of what the query says a memory says too."""

from __future__ import annotations

import numpy as np

from memhybrid.indexes.bm25 import Bm25Params
from memhybrid.protocols import Float64
from memhybrid.signals.context import SignalContext


class LexicalShare:
    """The idf-weighted share of the query's distinct terms that the memory contains: in [0, 1]; 0 for a query without terms."""

    name = "lexical"
    query_dependent = True

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        distinct = list(dict.fromkeys(context.query.terms))
        if not distinct:
            return np.zeros(len(context.rows))
        lexical = context.view.lexical
        # A term that no memory has weighs as much as one that a single memory has: asked for, and not there.
        weights = np.array([lexical.idf(max(lexical.document_frequency(t), 1), Bm25Params()) for t in distinct])
        contained = lexical.matched(distinct, context.rows)
        total = float(weights.sum())
        return np.clip(weights @ contained / total, 0.0, 1.0) if total > 0 else np.zeros(len(context.rows))
