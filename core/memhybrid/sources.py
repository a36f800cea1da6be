"""Where candidates come from. Each source brings about n rows of the pinned view, all under the same mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memhybrid.concurrency import aside
from memhybrid.errors import StoreError
from memhybrid.indexes.vectors import best_rows
from memhybrid.protocols import Float32
from memhybrid.signals.context import SignalContext
from memhybrid.signals.date import dated_rows
from memhybrid.signals.entity import matches_by_name
from memhybrid.signals.importance import read_importance

Rows = NDArray[np.intp]
Nearest = Callable[[Float32, int], Sequence[str]]
Source = Callable[[SignalContext, int], Rows]
NONE: Rows = np.empty(0, np.intp)
_GATHER_UP_TO = 20_000
"""Allowed rows up to which a filtered search of a large store reads their vectors instead of asking Chroma's index."""
_OVERFETCH = 4


def semantic(context: SignalContext, n: int) -> Rows:
    """The nearest rows by cosine: exact where the vectors are in memory or few are allowed, else from Chroma's index."""
    query, vectors, view = context.query.vector, context.view.partition.vectors, context.view
    if query is None or vectors is None or not view.n:
        return NONE
    if vectors.resident:
        scan = context.query.scan
        if scan is None or len(scan) != view.n:
            scan = vectors.scan(query, view.n)
        context.shared["scan"] = scan
        return _best(context, best_rows(scan, n, context.mask), n)
    allowed = None if context.mask is None else np.flatnonzero(context.mask)
    if allowed is not None and len(allowed) <= _GATHER_UP_TO:
        return _best(context, allowed, n)
    nearest: Nearest = context.shared["nearest"]
    if context.profile.pool_from_index is not None:
        # Each further neighbour from the index costs time, and the keyword half brings candidates, too: on chat turns without
        # scopes 60 and 100 give the same recall and nDCG.
        n = min(n, max(context.profile.pool_from_index, 4 * context.request.k))
    wanted = n if allowed is None or len(allowed) == view.count else min(_OVERFETCH * n, view.count)
    while True:
        rows = view.rows_of(nearest(query, min(wanted, view.count)))
        if context.mask is not None:
            rows = rows[context.mask[rows]]
        if len(rows) >= n or wanted >= view.count or allowed is None:
            return rows[:n]
        if wanted >= _GATHER_UP_TO:
            return _best(context, allowed, n)
        wanted *= _OVERFETCH


def _best(context: SignalContext, rows: Rows, n: int) -> Rows:
    """The n most similar of the rows; equal similarities by id, so that the same data brings the same candidates everywhere."""
    vectors, query = context.view.partition.vectors, context.query.vector
    if len(rows) <= n or vectors is None or query is None:
        return rows
    similarity = vectors.similarity(query, rows)
    near = best_rows(similarity, n, None, tolerance=0.0)
    return rows[near[context.view.order(rows[near], similarity[near])[:n]]]


def semantic_covered(context: SignalContext, n: int) -> Rows:
    """The same, where the embedder is meant for the query's script."""
    return semantic(context, n) if context.query.covered else NONE


def bm25(context: SignalContext, n: int) -> Rows:
    """The best keyword hits of the whole scope."""
    if not context.query.terms:
        return NONE
    lexical, terms, parameters = context.view.lexical, context.query.terms, context.profile.bm25
    rows = lexical.top(terms, n, parameters, context.mask)
    return rows[context.view.order(rows, lexical.scores(terms, rows, parameters))[:n]] if len(rows) > n else rows


def entity(context: SignalContext, n: int) -> Rows:
    """Memories that mention what the query names, rarest names first; names that too many mention bring nobody."""
    found: list[Rows] = []
    total = 0
    linked = [context.view.linked(key) for key, _ in matches_by_name(context)]
    for rows in sorted(linked, key=len):
        allowed = rows if context.mask is None else rows[context.mask[rows]]
        if total + len(allowed) > n:
            break
        total += len(allowed)
        found.append(allowed)
    return np.unique(np.concatenate(found)) if found else NONE


def importance(context: SignalContext, n: int) -> Rows:  # noqa: ARG001 - how many is fixed by the request, not by the pool
    """The max(k, 10) most important memories, whatever the query; an importance that is not known counts as the middle."""
    living = context.view.living() if context.mask is None else np.flatnonzero(context.mask)
    values = context.view.partition.metadata.floats(context.field_name("importance"), living, read_importance)
    values = np.where(np.isnan(values), 0.5 * context.profile.importance_scale, values)
    most = max(context.request.k, 10)
    rows = living[best_rows(values, most, None, tolerance=0.0)]
    kept = values[np.searchsorted(living, rows)]
    return rows[context.view.order(rows, kept)[:most]]


def date(context: SignalContext, n: int) -> Rows:
    """Memories written near a date that the query names."""
    return dated_rows(context, n)


def everything(context: SignalContext, n: int) -> Rows:  # noqa: ARG001 - all means all
    """Every memory of the scope."""
    return context.view.living() if context.mask is None else np.flatnonzero(context.mask)


SOURCES: dict[str, Source] = {
    "semantic": semantic,
    "semantic_covered": semantic_covered,
    "bm25": bm25,
    "entity": entity,
    "importance": importance,
    "date": date,
    "everything": everything,
}


def recall(context: SignalContext, n: int, failed: Callable[[str, Exception], None]) -> tuple[Rows, dict[str, Rows]]:
    """The union of the profile's sources, ascending, and what each brought. A source that raises brings nothing and is reported."""
    brought: dict[str, Any] = {}
    vectors, names = context.view.partition.vectors, context.profile.sources
    # Chroma's index answers beside the keyword half; what is in memory is faster than a second thread.
    beside = {
        name: aside(SOURCES[name], context, n)
        for name in names
        if name.startswith("semantic") and vectors is not None and not vectors.resident and len(names) > 1
    }
    for name in sorted(names, key=lambda name: name in beside):
        try:
            brought[name] = beside[name]() if name in beside else SOURCES[name](context, n)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - one failing source must not fail the search; the trace says so
            failed(name, error)
            brought[name] = NONE
    rows = np.unique(np.concatenate([*brought.values(), NONE]))
    return rows, {name: brought[name] for name in names}
