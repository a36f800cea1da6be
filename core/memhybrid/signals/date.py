"""Whether a memory was written near a date that the query names."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from memhybrid.indexes.vectors import best_rows
from memhybrid.protocols import Float64
from memhybrid.signals.context import SignalContext

FADES_DAYS = 14.0
BESIDE = 0.5
"""The most that a memory of another day than the named ones has. It may tell of them, as people tell of yesterday; it is not of them."""
DAY = 86_400.0
_EPOCH_ORDINAL = 719_163  # date(1970, 1, 1).toordinal()
_LATEST_ORDINAL = 3_652_059  # date.max.toordinal()


def nearness(context: SignalContext, times: Float64) -> Float64:
    """1 on a named date, else 0.5 · max(0, 1 - days from the nearest one / 14), for epoch seconds.

    NaN where there is no time or no date was named.
    """
    out = np.full(len(times), np.nan)
    if not context.query.dates:
        return out
    days = np.floor(times / DAY)
    unique, inverse = np.unique(days, return_inverse=True)
    values = np.full(len(unique), math.nan)
    for i, day in enumerate(unique):
        if math.isfinite(day):
            ordinal = min(max(int(day) + _EPOCH_ORDINAL, 1), _LATEST_ORDINAL)
            away = min(d.days_from(ordinal) for d in context.query.dates)
            values[i] = 1.0 if not away else BESIDE * max(0.0, 1.0 - away / FADES_DAYS)
    return values[inverse]


class DateNearness:
    """`nearness` of the memory's `created_at`; NaN where the query names no date or the memory has none."""

    name = "date"
    query_dependent = True

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        if not context.query.dates:
            return context.unknown()
        return nearness(
            context, context.view.partition.metadata.times([context.field_name("created_at")], context.rows)
        )


def dated_rows(context: SignalContext, n: int) -> NDArray[np.intp]:
    """The n rows nearest to a named date, by semantic similarity where these tie, then by id."""
    if not context.query.dates:
        return np.empty(0, np.intp)
    column = context.view.partition.metadata.column(context.field_name("created_at"))
    if column is None:
        return np.empty(0, np.intp)
    near = np.nan_to_num(nearness(context, column.all_times(context.view.n)))
    if context.mask is not None:
        near[~context.mask] = 0.0
    rows = np.flatnonzero(near > 0)
    if len(rows) <= n:
        return rows
    score = near[rows]
    scan = context.shared.get("scan")
    if scan is not None:
        score = score + np.nan_to_num(scan[rows])
    best = best_rows(score, n, None, tolerance=0.0)
    return rows[best[context.view.order(rows[best], score[best])[:n]]]
