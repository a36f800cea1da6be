"""BM25's raw score on a scale of [0, 1], in three ways: for itself, for `mem0`, and for `balanced`."""

from __future__ import annotations

import numpy as np

from memhybrid.protocols import Float64
from memhybrid.signals.context import SignalContext


def sigmoid_parameters(query_terms: int) -> tuple[float, float]:
    """Midpoint and steepness by the number of lemmas in the query (Mem0)."""
    for most, midpoint, steepness in ((3, 5.0, 0.7), (6, 7.0, 0.6), (9, 9.0, 0.5), (15, 10.0, 0.5)):
        if query_terms <= most:
            return midpoint, steepness
    return 12.0, 0.5


def sigmoid(raw: Float64, query_terms: int) -> Float64:
    """1 / (1 + exp(-steepness (raw - midpoint))); 0 where raw is NaN (no hit), 0 or below."""
    midpoint, steepness = sigmoid_parameters(query_terms)
    hit = np.isfinite(raw) & (raw > 0)
    values = np.zeros(len(raw))
    values[hit] = 1.0 / (1.0 + np.exp(-steepness * (raw[hit] - midpoint)))
    return values


def raw_scores(context: SignalContext) -> Float64:
    """BM25 of every candidate, NaN where no query term occurs."""
    return context.keywords()[0]


class RawBm25:
    """raw / (raw + 10): monotone in the raw score, so that the order is BM25's own; 0 without a hit or from 0 down."""

    name = "bm25"
    query_dependent = True
    half = 10.0

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        raw = raw_scores(context)
        context.record_raw(self.name, np.nan_to_num(raw))
        positive = np.maximum(np.nan_to_num(raw), 0.0)
        return positive / (positive + self.half)


class SigmoidBm25:
    """Mem0's: the sigmoid of the raw score for the best max(4k, 60) keyword hits of the scope, 0 for all others."""

    name = "bm25"
    query_dependent = True

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        lexical, terms, profile = context.view.lexical, context.query.terms, context.profile
        best = (
            lexical.top(terms, profile.pool_size(context.request.k), profile.bm25, context.mask)
            if terms
            else context.rows[:0]
        )
        scores = lexical.scores(terms, best, profile.bm25) if len(best) else np.empty(0)
        # Ties at the end of the list are cut by id, as in every ranking here.
        order = context.view.order(best, np.nan_to_num(scores))[: profile.pool_size(context.request.k)]
        hits = best[order]
        context.shared["keyword_hit"] = bool((scores > 0).any())
        raw = np.where(np.isin(context.rows, hits), raw_scores(context), np.nan)
        context.record_raw(self.name, np.nan_to_num(raw))
        return sigmoid(raw, len(terms))


class CalibratedBm25:
    """x / (x + h) with x = raw / idf of a term that no memory has: the same scale for thirty notes and thirty thousand.

    x counts how many of the rarest terms' worth was matched; h = 1 (fitted, see docs/quality.md). Depends on the query, the memory
    and the statistics N, df and avgdl alone, and keeps BM25's order.
    """

    name = "bm25"
    query_dependent = True

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        if not context.query.terms:
            return context.unknown()
        raw = np.nan_to_num(raw_scores(context))
        context.record_raw(self.name, raw)
        x = np.maximum(raw, 0.0) / context.view.lexical.idf_unseen()
        return x / (x + context.profile.bm25_half)
