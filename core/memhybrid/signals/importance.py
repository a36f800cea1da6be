"""How important a memory was judged when it was written."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from memhybrid.protocols import Float64
from memhybrid.signals.context import SignalContext


def finite_number(value: Any) -> float:
    """A finite number, also from text such as "0.8"; NaN for anything else."""
    if isinstance(value, bool | list):
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError):
        return math.nan
    return number if math.isfinite(number) else math.nan


_warned = False


def read_importance(value: Any) -> float:
    """`finite_number`; the first value in a process that is none is warned of, by its type alone."""
    global _warned  # noqa: PLW0603 - once in a process is what is meant
    number = finite_number(value)
    if math.isnan(number) and not _warned:
        _warned = True
        warnings.warn(
            f"the importance of some memories is no finite number (a {type(value).__name__}): it counts as not known there",
            UserWarning,
            stacklevel=2,
        )
    return number


class Importance:
    """importance / scale, clamped to [0, 1]; NaN where missing or unreadable.

    With `stretch="quantile"` the value is the share of the scope's known importances that lie below, half of the equal ones
    counted: a narrow band such as 60-90 then uses the whole range.
    """

    name = "importance"
    query_dependent = False

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        key = context.field_name("importance")
        table = context.view.partition.metadata
        raw = table.floats(key, context.rows, read_importance)
        context.record_raw(self.name, raw)
        if context.profile.stretch != "quantile":
            return np.clip(raw / context.profile.importance_scale, 0.0, 1.0)
        everything = np.sort(table.floats(key, context.view.living(), read_importance))
        known = everything[np.isfinite(everything)]
        if not len(known):
            return raw
        below = np.searchsorted(known, raw, side="left")
        upto = np.searchsorted(known, raw, side="right")
        return np.where(np.isnan(raw), np.nan, (below + upto) / 2.0 / len(known))
