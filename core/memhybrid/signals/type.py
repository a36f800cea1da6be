"""What kind of memory it is: who someone is weighs more than what happened."""

from __future__ import annotations

import math
from typing import Any

from memhybrid.protocols import Float64
from memhybrid.signals.context import SignalContext

TYPE_VALUES = {"identity": 1.0, "preference": 0.9, "relationship": 0.8, "event": 0.7, "fact": 0.6}
OTHER = 0.5


def _value(value: Any) -> float:
    return TYPE_VALUES.get(value.strip().casefold(), OTHER) if isinstance(value, str) else math.nan


class MemoryType:
    """identity 1.0, preference 0.9, relationship 0.8, event 0.7, fact 0.6, any other 0.5; NaN where missing."""

    name = "type"
    query_dependent = False

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        return context.view.partition.metadata.floats(context.field_name("type"), context.rows, _value)
