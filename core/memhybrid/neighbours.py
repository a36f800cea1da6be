"""Context: memories next to a strong hit in the same session gain from it, candidates or not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memhybrid.fusion import neighbour_lift
from memhybrid.protocols import Float64
from memhybrid.signals.context import SignalContext
from memhybrid.signals.importance import read_importance

NEAR = {0: 0.7, 1: 0.7, 2: 0.6}
SAME_SESSION = 0.4
"""Shares of a neighbour's lead, by distance in messages and for the rest of the session; fitted, see docs/quality.md."""

Rows = NDArray[np.intp]


def _places(context: SignalContext, rows: Rows) -> tuple[NDArray[np.int64], Float64]:
    """Session code (-1: none) and position of the rows: `msg_id`, or the rank by `created_at` where the session has none."""
    table = context.view.partition.metadata
    column = table.column(context.field_name("session_id"))
    if column is None:
        return np.full(len(rows), -1, dtype=np.int64), np.full(len(rows), np.nan)
    session = column.codes.take(rows).astype(np.int64)
    position = table.floats(context.field_name("msg_id"), rows, read_importance)
    for code in np.unique(session[(session >= 0) & np.isnan(position)]).tolist():
        members = _allowed(context, column.rows_with(code, context.view.n))
        if np.isfinite(table.floats(context.field_name("msg_id"), members, read_importance)).any():
            continue
        times = table.times([context.field_name("created_at")], members)
        # Equal times share a rank: which of them came first is not known.
        known = np.unique(times[np.isfinite(times)])
        inside = np.flatnonzero(session == code)
        own = times[np.searchsorted(members, rows[inside])] if len(members) else np.full(len(inside), np.nan)
        position[inside] = np.where(np.isfinite(own), np.searchsorted(known, own), np.nan)
    return session, position


def _allowed(context: SignalContext, rows: Rows) -> Rows:
    return rows if context.mask is None else rows[context.mask[rows]]


def neighbours_of(context: SignalContext, scores: Float64) -> Rows:
    """Rows within two messages of the strongest candidates that are no candidates themselves."""
    table = context.view.partition.metadata
    column = table.column(context.field_name("session_id"))
    if column is None or not len(scores):
        return np.empty(0, np.intp)
    most = min(context.profile.context_expand, len(scores))
    strongest = context.rows[np.argpartition(-scores, most - 1)[:most]] if most else context.rows[:0]
    codes = column.codes.take(strongest)
    found: list[Rows] = []
    for code in np.unique(codes[codes >= 0]).tolist():
        members = _allowed(context, column.rows_with(code, context.view.n))
        _, position = _places(context, members)
        order = np.argsort(position, kind="stable")
        placed = position[order]
        own = position[np.isin(members, strongest[codes == code])]
        for at in own[np.isfinite(own)].tolist():
            low = int(np.searchsorted(placed, at - max(NEAR), side="left"))
            high = int(np.searchsorted(placed, at + max(NEAR), side="right"))
            found.append(members[order[low:high]])
    if not found:
        return np.empty(0, np.intp)
    return np.setdiff1d(np.concatenate(found), context.rows)


def lift(context: SignalContext, scores: Float64) -> Float64:
    """What each candidate gains from its neighbours among the candidates."""
    session, position = _places(context, context.rows)
    return neighbour_lift(scores, session, position, near=NEAR, same_session=SAME_SESSION)
