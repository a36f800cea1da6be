"""Whether a memory lies in the message range that was asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memhybrid.protocols import Float64
from memhybrid.signals.context import SignalContext
from memhybrid.signals.importance import finite_number


def spans(context: SignalContext) -> tuple[Float64, Float64]:
    """First and last message of each candidate: its min_msg_id..max_msg_id, else msg_id; NaN where it has neither."""
    table = context.view.partition.metadata

    def column(role: str) -> Float64:
        return table.floats(context.field_name(role), context.rows, _message)

    single = column("msg_id")
    first, last = column("min_msg_id"), column("max_msg_id")
    both = np.isfinite(first) & np.isfinite(last)
    return np.where(both, first, single), np.where(both, last, single)


def _message(value: Any) -> float:
    return finite_number(value)


def meets(context: SignalContext) -> NDArray[np.bool_]:
    """Which candidates' spans meet the requested range; without a range, none."""
    request = context.request
    if not request.has_range:
        return np.zeros(len(context.rows), dtype=np.bool_)
    first, last = spans(context)
    low = -np.inf if request.min_msg_id is None else request.min_msg_id
    high = np.inf if request.max_msg_id is None else request.max_msg_id
    with np.errstate(invalid="ignore"):
        return (last >= low) & (first <= high)


def inside(context: SignalContext) -> NDArray[np.bool_]:
    """Which candidates pass the range as a filter: with `prefix_only` the whole span ends at or before max_msg_id."""
    kept = meets(context)
    if context.request.prefix_only and context.request.max_msg_id is not None:
        _, last = spans(context)
        with np.errstate(invalid="ignore"):
            kept &= last <= context.request.max_msg_id
    return kept


class MessageRange:
    """1 if the memory's span meets the requested one, else 0; 0 for all where none was asked for."""

    name = "range"
    query_dependent = False

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        return meets(context).astype(np.float64)
