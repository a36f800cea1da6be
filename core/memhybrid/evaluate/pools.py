"""The signals of every labelled query's candidates, computed once, so that a profile is judged in milliseconds.

All candidates of all queries stand in flat arrays, one after the other. Fusion and the lift by neighbours are the search's own
functions, called on all of them at once.
"""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from memhybrid import fusion, neighbours
from memhybrid.errors import ConfigError, DegradedError
from memhybrid.evaluate.datasets import USER_KEY, Dataset, Query
from memhybrid.journal import Journal
from memhybrid.memory import HybridMemory
from memhybrid.profiles import Profile
from memhybrid.protocols import Float64
from memhybrid.query import embed_queries, features
from memhybrid.signals.context import SignalContext

K = 10
KEPT = 60
"""Candidates kept of each query: the best by the profile, with and without the lift, and the best by each signal."""
Bm25Key = tuple[float, float, float]
Progress = Callable[[int, int], None]
Integers = NDArray[np.int64]


def bm25_key(profile: Profile) -> Bm25Key:
    """What the keyword signal depends on in a profile."""
    return profile.bm25_k1, profile.bm25_b, profile.bm25_half


@dataclass(frozen=True)
class Pools:
    """R candidates of Q queries. `query` (R,) ascends; `tie` (R,) orders equal scores; `grade` (R,) is 0 where not relevant.

    `values` are the signals by their name in the profile, (R,) each; those of keywords by `bm25_key`.
    """

    query: Integers
    tie: Integers
    grade: Float64
    ideal: Float64
    conversation: neighbours.Conversation
    values: dict[str, Float64]
    keywords: dict[str, dict[Bm25Key, Float64]]

    def scores(self, profile: Profile) -> Float64:
        """Every candidate's score by a profile."""
        names = [name for name, weight in profile.signals.items() if weight > 0]
        chosen = {n: self.keywords[n][bm25_key(profile)] if n in self.keywords else self.values[n] for n in names}
        fused = fusion.renormalised(chosen, {n: profile.signals[n] for n in names}).scores
        if not profile.context:
            return fused
        lifted = np.minimum(fused + self.conversation.lift(fused), 1.0)
        return lifted + self.conversation.asking(lifted)

    def ndcg(self, profile: Profile) -> Float64:
        """nDCG@10 of every query (Q,): gain is the grade, discount the binary logarithm of rank + 1."""
        order = np.lexsort((self.tie, -self.scores(profile), self.query))
        sizes = np.bincount(self.query, minlength=len(self.ideal))
        rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        first = rank < K
        gained = self.grade[order[first]] / np.log2(rank[first] + 2.0)
        return np.bincount(self.query[order[first]], weights=gained, minlength=len(self.ideal)) / self.ideal


@dataclass(frozen=True)
class _One:
    """One query's candidates."""

    ids: list[str]
    conversation: neighbours.Conversation
    values: dict[str, Float64]
    keywords: dict[str, dict[Bm25Key, Float64]]


def collect(
    memory: HybridMemory,
    dataset: Dataset,
    profile: Profile,
    keywords: Sequence[Profile],
    progress: Progress | None = None,
) -> Pools:
    """Signals of the profile's candidates for every query; those of BM25 for each of the `keywords` profiles too."""
    if profile.fusion != "renormalised" or profile.custom or profile.reranker is not None:
        raise ConfigError(f"profile {profile.name!r}: only profiles like balanced (renormalised fusion) can be fitted")
    parts: list[_One] = []
    for done, query in enumerate(dataset.queries, 1):
        parts.append(_signals(memory, dataset, query, profile, keywords))
        if progress is not None:
            progress(done, len(dataset.queries))
    return _joined(parts, dataset.queries)


def _signals(
    memory: HybridMemory, dataset: Dataset, query: Query, profile: Profile, keywords: Sequence[Profile]
) -> _One:
    """The first half of a search: candidates, and what the signals say of them."""
    bound = memory.scoped(**{USER_KEY: query.user}) if dataset.scoped else memory
    store, searcher = bound._store, bound._searcher
    request = bound._request(
        query.text,
        K,
        where=None,
        embedding=None,
        min_score=None,
        max_tokens=None,
        record_usage=False,
        min_msg_id=None,
        max_msg_id=None,
        prefix_only=False,
        include_outdated=True,
        now=time.time(),
    )
    journal = Journal()
    vector, tokens = embed_queries(store, [request], profile, journal.failed)[0]
    view = store.partitions.get(request.scope).view()
    analysed = features(store, request, vector, tokens, view.lexical, journal.failed)
    context = SignalContext(view, np.empty(0, np.intp), analysed, request, profile, view.mask(None), store.ledger)
    context.shared["nearest"] = store.backend.nearest
    rows, _ = searcher._candidates(context, journal)
    scored = searcher._score(context.over(rows), journal)
    if len(rows):
        if profile.context:
            # Neighbours join as in a search with this profile; which ones would with other weights is left out.
            extra = neighbours.neighbours_of(context.over(rows), scored.fused.scores)
            scored = scored.joined(searcher._score(context.over(extra), journal)) if len(extra) else scored
            rows = scored.rows
        lifted = scored.fused.scores + neighbours.Conversation.of(context.over(rows)).lift(scored.fused.scores)
        rows = rows[_worth_keeping([scored.fused.scores, lifted, *scored.values.values()])]
    if journal.degraded:
        raise DegradedError("; ".join(journal.degraded))
    context = context.over(rows)
    values: dict[str, Float64] = {}
    by_keywords: dict[str, dict[Bm25Key, Float64]] = {}
    for name in profile.signals:
        signal = profile.make_signal(name)
        if name.startswith("bm25"):
            by_keywords[name] = {bm25_key(p): _clean(signal.values(replace(context, profile=p))) for p in keywords}
        else:
            values[name] = _clean(signal.values(context))
    return _One([view.id(int(row)) for row in rows], neighbours.Conversation.of(context), values, by_keywords)


def _clean(values: Float64) -> Float64:
    return np.where(np.isfinite(values), np.clip(values, 0.0, 1.0), np.nan)


def _worth_keeping(rankings: Sequence[Float64]) -> NDArray[np.intp]:
    """Positions that are among the best of any of the rankings."""
    if len(rankings[0]) <= KEPT:
        return np.arange(len(rankings[0]), dtype=np.intp)
    best = [np.argpartition(-np.nan_to_num(values, nan=-1.0), KEPT)[:KEPT] for values in rankings]
    return np.unique(np.concatenate(best))


def _joined(parts: Sequence[_One], queries: Sequence[Query]) -> Pools:
    def flat(arrays: list[NDArray[np.float64]]) -> Float64:
        return np.concatenate([np.empty(0), *arrays])

    identifiers = [i for part in parts for i in part.ids]
    rank = {identifier: place for place, identifier in enumerate(sorted(set(identifiers)))}
    talks = [part.conversation for part in parts]
    largest = max((int(t.session.max(initial=-1)) for t in talks), default=-1) + 1
    sessions = [np.where(t.session >= 0, t.session + n * largest, -1) for n, t in enumerate(talks)]
    ideal = [
        sum(g / np.log2(r + 2.0) for r, g in enumerate(sorted(q.relevant.values(), reverse=True)[:K])) for q in queries
    ]
    return Pools(
        query=np.repeat(np.arange(len(parts)), [len(p.ids) for p in parts]),
        tie=np.array([rank[i] for i in identifiers], dtype=np.int64),
        grade=np.array(
            [q.relevant.get(i, 0) for q, p in zip(queries, parts, strict=True) for i in p.ids], dtype=np.float64
        ),
        ideal=np.array(ideal),
        conversation=neighbours.Conversation(
            np.concatenate([np.empty(0, dtype=np.int64), *sessions]),
            flat([t.position for t in talks]),
            np.concatenate([np.empty(0, dtype=np.bool_), *(t.asks for t in talks)]),
            np.concatenate([np.empty(0, dtype=np.int64), *(t.speaker for t in talks)]),
        ),
        values={name: flat([p.values[name] for p in parts]) for name in parts[0].values},
        keywords={
            name: {key: flat([p.keywords[name][key] for p in parts]) for key in by_key}
            for name, by_key in parts[0].keywords.items()
        },
    )
