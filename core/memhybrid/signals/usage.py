"""How often and how lately a memory was returned. Feeds itself: see `memhybrid diagnose`."""

from __future__ import annotations

import math

import numpy as np

from memhybrid.errors import StoreError
from memhybrid.protocols import Float64
from memhybrid.signals.context import SignalContext

DAY = 86_400.0
FORGETTING_DAYS = 14.0
SATURATES_AT = 20


def usage_value(count: int, days_since: float | None) -> float:
    """0.8·clamp(1 - days/14, 0, 1) + 0.2·min(1, ln(1+count)/ln(1+20)); the first part is 0 for a memory never returned."""
    last = 0.0 if days_since is None else min(max(1.0 - days_since / FORGETTING_DAYS, 0.0), 1.0)
    return 0.8 * last + 0.2 * min(1.0, math.log1p(max(count, 0)) / math.log1p(SATURATES_AT))


class Usage:
    """`usage_value` from the ledger's count and last time; 0 for a memory never returned."""

    name = "usage"
    query_dependent = False

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        if context.ledger is None:
            return context.unknown()
        ids = [context.view.id(int(row)) for row in context.rows]
        try:
            known = context.ledger.get(ids)
        except StoreError as error:
            # Counts are no memories: without them the search goes on, and the trace says so.
            raise RuntimeError(str(error)) from error
        now = context.request.now
        out = np.zeros(len(ids))
        for i, identifier in enumerate(ids):
            entry = known.get(identifier)
            if entry is not None:
                out[i] = usage_value(entry.count, None if entry.last is None else (now - entry.last) / DAY)
        return out
