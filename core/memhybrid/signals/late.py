"""Late interaction: every word of the query looks for its best match among the memory's words (MaxSim)."""

from __future__ import annotations

from memhybrid.late import maxsim
from memhybrid.protocols import Float64
from memhybrid.signals.context import SignalContext


class LateInteraction:
    """Weighted mean over the query's tokens of the best cosine among the memory's tokens; NaN where either has no tokens."""

    name = "late"
    query_dependent = True

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        tokens = context.query.tokens
        if tokens is None:
            return context.unknown()
        stored = context.view.partition.tokens
        return maxsim(tokens, [stored[int(row)] for row in context.rows])
