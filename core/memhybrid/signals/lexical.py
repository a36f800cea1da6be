"""How much of what the query says a memory says too."""

from __future__ import annotations

from memhybrid.protocols import Float64
from memhybrid.signals.context import SignalContext


class LexicalShare:
    """The idf-weighted share of the query's distinct terms that the memory contains: in [0, 1]; 0 for a query without terms.

    A term that no memory has weighs most of all: it was asked for, and nobody can answer.
    """

    name = "lexical"
    query_dependent = True

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        return context.keywords()[1]


class Coverage(LexicalShare):
    """The same, and NaN for a query without terms: `balanced` drops what is not known, where `tipsy` counts it as 0.

    BM25 saturates: beside a word said five times, the one word more that another memory has counts little. Here it counts.
    """

    name = "coverage"

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        return super().values(context) if context.query.terms else context.unknown()
