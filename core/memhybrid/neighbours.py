"""Context: memories next to a strong hit in the same session gain from it, candidates or not; a question yields to its answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memhybrid.fusion import neighbour_lift
from memhybrid.indexes.vectors import best_rows
from memhybrid.protocols import Float64
from memhybrid.signals.context import SignalContext
from memhybrid.signals.importance import finite_number

NEAR = {0: 0.7, 1: 0.7, 2: 0.6}
SAME_SESSION = 0.4
"""Shares of a neighbour's lead, by distance in messages and for the rest of the session; fitted, see docs/quality.md."""

ANSWER = 0.95
"""The share for a message that follows another speaker's question."""

QUESTION = 0.1
"""The share of its score that a question in a conversation loses: it says what was not known, the answer is elsewhere."""

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class _Session:
    """The living rows of one session with a position, in order of it; valid while rows of the session and dead rows are as many."""

    size: int
    dead: int
    rows: Rows
    positions: Float64


def _session(context: SignalContext, code: int) -> _Session:
    """A session's rows by `msg_id`, or by the rank of `created_at` where none has one; kept until it grows."""
    table = context.view.partition.metadata
    column = table.column(context.field_name("session_id"))
    assert column is not None
    view, kept = context.view, context.view.partition.sessions
    dead = view.n - view.count
    fields = context.profile.fields
    key = (fields.session_id, fields.msg_id, fields.created_at, code)
    known = kept.get(key)
    if isinstance(known, _Session) and (known.size, known.dead) == (column.size_with(code, view.n), dead):
        return known
    members = column.rows_with(code, view.n)
    size = len(members)
    if view.alive is not None:
        members = members[view.alive[members]]
    positions = table.floats(context.field_name("msg_id"), members, finite_number)
    if not np.isfinite(positions).any():
        times = table.times([context.field_name("created_at")], members)
        # Equal times share a rank: which of them came first is not known.
        ranks = np.searchsorted(np.unique(times[np.isfinite(times)]), times).astype(np.float64)
        positions = np.where(np.isfinite(times), ranks, np.nan)
    order = np.argsort(positions, kind="stable")
    made = kept[key] = _Session(size, dead, members[order], positions[order])
    return made


def _places(context: SignalContext, rows: Rows) -> tuple[NDArray[np.int64], Float64]:
    """Session code (-1: none) and position of the rows."""
    table = context.view.partition.metadata
    column = table.column(context.field_name("session_id"))
    if column is None:
        return np.full(len(rows), -1, dtype=np.int64), np.full(len(rows), np.nan)
    session = column.codes.take(rows).astype(np.int64)
    position = table.floats(context.field_name("msg_id"), rows, finite_number)
    for code in np.unique(session[(session >= 0) & np.isnan(position)]).tolist():
        whole = _session(context, code)
        by_row = np.argsort(whole.rows)
        inside = np.flatnonzero(session == code)
        position[inside] = whole.positions[by_row[np.searchsorted(whole.rows[by_row], rows[inside])]]
    return session, position


def neighbours_of(context: SignalContext, scores: Float64) -> Rows:
    """Rows within two messages of the strongest candidates that are no candidates themselves."""
    column = context.view.partition.metadata.column(context.field_name("session_id"))
    most = context.profile.context_expand
    if column is None or not most or not len(scores):
        return np.empty(0, np.intp)
    # All that tie with the last of them, too: which of these come first in memory differs from process to process.
    strongest = context.rows[best_rows(scores, most, None, tolerance=0.0)]
    session, position = _places(context, strongest)
    reach = max(NEAR)
    found: list[Rows] = [np.empty(0, np.intp)]
    for code, at in zip(session.tolist(), position.tolist(), strict=True):
        if code >= 0 and at == at:
            whole = _session(context, code)
            low = int(whole.positions.searchsorted(at - reach, side="left"))
            high = int(whole.positions.searchsorted(at + reach, side="right"))
            found.append(whole.rows[low:high])
    near = np.unique(np.concatenate(found))
    near = near[near < context.view.n]
    if context.mask is not None:
        near = near[context.mask[near]]
    known = np.sort(context.rows)
    return near[known[np.minimum(known.searchsorted(near), len(known) - 1)] != near]


@dataclass(frozen=True)
class Conversation:
    """Where candidates stand in their sessions: session code (-1: none), position (NaN: none), whether one asks, who speaks (-1)."""

    session: NDArray[np.int64]
    position: Float64
    asks: NDArray[np.bool_]
    speaker: NDArray[np.int64]

    @classmethod
    def of(cls, context: SignalContext) -> Conversation:
        """The context's candidates."""
        session, position = _places(context, context.rows)
        partition = context.view.partition
        speaker = partition.metadata.column(context.field_name("speaker"))
        return cls(
            session,
            position,
            partition.questions.take(context.rows),
            np.full(len(session), -1) if speaker is None else speaker.codes.take(context.rows).astype(np.int64),
        )

    def lift(self, scores: Float64) -> Float64:
        """What each candidate gains from its neighbours among the candidates."""
        return neighbour_lift(
            scores,
            self.session,
            self.position,
            near=NEAR,
            same_session=SAME_SESSION,
            questions=self.asks,
            speakers=self.speaker,
            answer=ANSWER,
        )

    def asking(self, scores: Float64) -> Float64:
        """What a candidate that asks, in a session, has less: it looks most like the query and answers it least."""
        return np.where(self.asks & (self.session >= 0), -QUESTION * scores, 0.0)
