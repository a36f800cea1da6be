"""READ PATH: query → candidates → signals → fusion → rerank → budget → hits.

One request goes through `Searcher.search`, several at once through `search_many`, which shares embedding and the matrix product.
A part that fails is left out and the trace says so; only a failing store is an error.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memhybrid import budget, diversity, fusion, neighbours
from memhybrid.errors import DegradedError, StoreError
from memhybrid.identity import is_identity_query
from memhybrid.indexes.partition import Partition, View
from memhybrid.journal import Journal
from memhybrid.profiles import Profile
from memhybrid.protocols import Float64, TokenVectors
from memhybrid.query import embed_queries, features
from memhybrid.records import Dropped, Hit, SearchResult, Trace
from memhybrid.rerank import rerank, skip_reason
from memhybrid.scored import Scored, as_hits
from memhybrid.signals.context import QueryFeatures, Request, SignalContext
from memhybrid.signals.range import inside
from memhybrid.sources import recall
from memhybrid.store import Store
from memhybrid.sync import Syncer
from memhybrid.validity import valid_filter

_Scan = tuple[Partition, NDArray[np.float32]]
"""Similarities to all rows, and the partition that the rows are of: it may be loaded anew, in another order, meanwhile."""
LISTED_DROPS = 100
LISTED_RUNNERS_UP = 10


class Searcher:
    """Answers requests from the pinned views of a store."""

    def __init__(self, store: Store, syncer: Syncer) -> None:
        self._store = store
        self._syncer = syncer

    def search(self, request: Request, profile: Profile, *, strict: bool, strong: bool) -> SearchResult:
        """One query."""
        return self.search_many([request], profile, strict=strict, strong=strong)[0]

    def search_many(
        self, requests: Sequence[Request], profile: Profile, *, strict: bool, strong: bool
    ) -> list[SearchResult]:
        """Several queries: one call to the embedder, one matrix product a scope; the answers are those of `search`."""
        shared = Journal()
        stale = self._syncer.ensure_fresh(strong=strong)
        if stale:
            shared.degraded.append(stale)
        shared.degraded.extend(
            f"{piece} is not installed; see memory.stats()" for piece in self._store.analyzer.missing if strict
        )
        shared.lap("freshness")
        vectors = embed_queries(self._store, requests, profile, shared.failed)
        shared.lap("embed")
        scans = self._scans(requests, vectors)
        results: list[SearchResult] = []
        for i, request in enumerate(requests):
            journal = Journal(
                started=shared.started,
                timings={name: ms / len(requests) for name, ms in shared.timings.items()},
                degraded=list(shared.degraded),
                failed_parts=set(shared.failed_parts),
            )
            result = self._answer(request, profile, vectors[i], scans.get(i), journal)
            if strict and result.trace.degraded:
                raise DegradedError("; ".join(result.trace.degraded))
            results.append(result)
        return results

    def _scans(self, requests: Sequence[Request], vectors: Sequence[tuple[Any, Any]]) -> dict[int, _Scan]:
        """Similarities of several queries to a whole resident scope in one product."""
        by_scope: dict[str, list[int]] = {}
        for i, request in enumerate(requests):
            if vectors[i][0] is not None:
                by_scope.setdefault(request.scope, []).append(i)
        out: dict[int, _Scan] = {}
        for scope, members in by_scope.items():
            partition = self._store.partitions.get(scope)
            if len(members) < 2 or partition.vectors is None or not partition.vectors.resident:
                continue
            matrix = partition.vectors.scan_many(np.stack([vectors[i][0] for i in members]), partition.view().n)
            out.update((i, (partition, row)) for i, row in zip(members, matrix, strict=True))
        return out

    def _answer(
        self,
        request: Request,
        profile: Profile,
        vector: tuple[NDArray[np.float32] | None, TokenVectors | None],
        scan: _Scan | None,
        journal: Journal,
    ) -> SearchResult:
        """The path of one query, top to bottom."""
        view = self._store.partitions.get(request.scope).view()
        query = features(self._store, request, *vector, view.lexical, journal.failed)
        if scan is not None and scan[0] is view.partition and len(scan[1]) == view.n:
            query = replace(query, scan=scan[1])
        mask = view.mask(valid_filter(view, request, profile))
        context = SignalContext(view, np.empty(0, np.intp), query, request, profile, mask, self._store.ledger)
        context.shared["nearest"] = self._store.backend.nearest
        if profile.entity_vectors:
            self._entity_vectors(context, journal)
        journal.lap("analyse")

        rows, brought = self._candidates(context, journal)
        context = context.over(rows)
        journal.lap("recall")

        scored = self._score(context, journal)
        if profile.context and len(scored.rows):
            scored = self._with_neighbours(context.over(scored.rows), scored, journal)
        journal.lap("score")

        order = self._order(view, scored, profile)
        order, scores = self._rerank(view, request, profile, scored, order, journal)
        journal.lap("rerank")
        order, alike = diversity.diversify(view, scored.rows, order, scores, request.k, profile)
        journal.dropped.extend(alike)
        chosen = self._choose(view, request, profile, scored, order, scores, journal)
        hits = as_hits(view, scored, chosen, brought)
        self._record_usage(request, profile, hits, journal)
        journal.lap("finish")
        return SearchResult(request.query, hits, self._trace(request, profile, query, brought, scored, journal))

    # --- candidates --------------------------------------------------------------------------------------------------

    def _candidates(
        self, context: SignalContext, journal: Journal
    ) -> tuple[NDArray[np.intp], dict[str, NDArray[np.intp]]]:
        request, profile, view = context.request, context.profile, context.view
        if not view.count:
            return context.rows, {}
        if not request.has_query and "importance" not in profile.sources:
            journal.notes.append("the query is empty: nothing to look for")
            return context.rows, {}
        rows, brought = recall(context, profile.pool_size(request.k), journal.failed)
        if view.count <= profile.exhaustive_up_to and request.has_query:
            rows = view.living() if context.mask is None else np.flatnonzero(context.mask)
        if (
            len(rows) < request.k
            and request.has_query
            and profile.min_score is None
            and profile.fusion == "renormalised"
        ):
            rows = self._filled(context, rows)
        return rows, brought

    @staticmethod
    def _filled(context: SignalContext, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """k is filled where there are memories enough, though no source brought them."""
        allowed = context.view.living() if context.mask is None else np.flatnonzero(context.mask)
        others = np.setdiff1d(allowed, rows)
        missing = context.request.k - len(rows)
        ids = context.view.partition.ids
        extra = heapq.nsmallest(missing, others.tolist(), key=ids.__getitem__)
        return np.union1d(rows, np.array(extra, dtype=np.intp))

    def _entity_vectors(self, context: SignalContext, journal: Journal) -> None:
        """Vectors of the scope's entity names, embedded once and kept; the query's are embedded here."""
        store = self._store
        try:
            partition = context.view.partition
            names = partition.entities.names()
            if not context.query.entities or not names or context.query.vector is None:
                return
            known = partition.entity_vectors
            if known is None:
                known = store.sidecar.entity_vectors(context.request.scope)
            fresh = [name for name in names if name not in known]
            if fresh:
                made = dict(zip(fresh, store.embedder.embed_documents(fresh), strict=True))
                store.sidecar.put_entity_vectors(context.request.scope, made)
                known = {**known, **made}
            partition.entity_vectors = known
            context.shared["entity_vectors"] = {name: known[name] for name in names}
            context.embed_names = store.embedder.embed_query
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - without entities the search goes on, and the trace says so
            journal.failed("entity vectors", error)

    # --- scores ------------------------------------------------------------------------------------------------------

    def _score(self, context: SignalContext, journal: Journal) -> Scored:
        """Signals and fusion for the context's rows."""
        profile = context.profile
        values: dict[str, Float64] = {}
        raw: dict[str, Float64] = {}
        weights: dict[str, float] = {}
        for name, weight in profile.signals.items():
            if weight <= 0:
                continue
            signal = profile.make_signal(name)
            context.shared.pop("raw", None)
            try:
                made = np.asarray(signal.values(context), dtype=np.float64)
                if made.shape != (len(context.rows),):
                    raise ValueError(f"gave shape {made.shape} for {len(context.rows)} candidates")
                made = np.where(np.isfinite(made), np.clip(made, 0.0, 1.0), np.nan)
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001 - one failing signal must not fail the search; the trace says so
                if signal.name not in journal.failed_parts:
                    journal.failed(signal.name, error)
                made = context.unknown()
            values[signal.name] = made
            recorded = context.raw(signal.name)
            raw[signal.name] = made if recorded is None else recorded
            weights[signal.name] = weight
        return self._fuse(context, values, raw, weights)

    @staticmethod
    def _fuse(
        context: SignalContext, values: dict[str, Float64], raw: dict[str, Float64], weights: dict[str, float]
    ) -> Scored:
        profile, rows = context.profile, context.rows
        if profile.fusion == "additive":
            semantic = values["semantic"]
            keep = raw["semantic"] >= (profile.gate if profile.gate is not None else -1.0)
            fused = fusion.additive(
                semantic,
                values.get("bm25", np.zeros(len(rows))),
                values.get("entity", np.zeros(len(rows))),
                keyword_hit=bool(context.shared.get("keyword_hit")),
                boosted=bool(context.shared.get("entity_boost")),
            )
            return Scored(rows, values, raw, fused).only(keep)
        if profile.fusion == "renormalised":
            return Scored(rows, values, raw, fusion.renormalised(values, weights))
        extra: dict[str, Float64] = {}
        if profile.adjustments:
            types = context.view.partition.metadata.objects(context.field_name("type"), rows.tolist())
            extra = fusion.tipsy_adjustments(
                [t.strip().casefold() if isinstance(t, str) else None for t in types],
                values.get("lexical", np.zeros(len(rows))),
                values.get("importance", np.zeros(len(rows))),
                query_is_identity=profile.identity_predicate(context.request.query)
                if profile.identity_predicate is not None
                else is_identity_query(context.request.query),
            )
        scored = Scored(rows, values, raw, fusion.weighted(values, weights, extra))
        if profile.positive_only:
            scored = scored.only(scored.fused.scores > 0)
        if context.request.has_range and (context.request.prefix_only or not context.request.has_query):
            scored = scored.only(inside(context.over(scored.rows)))
        return scored

    def _with_neighbours(self, context: SignalContext, scored: Scored, journal: Journal) -> Scored:
        """Neighbours of the strongest join, then everything gains from stronger neighbours."""
        try:
            extra = neighbours.neighbours_of(context, scored.fused.scores)
            if len(extra):
                scored = scored.joined(self._score(context.over(extra), journal))
            conversation = neighbours.Conversation.of(context.over(scored.rows))
            lifted = scored.adjusted("context", conversation.lift(scored.fused.scores))
            return lifted.adjusted("question", conversation.asking(lifted.fused.scores))
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - without context the search goes on, and the trace says so
            journal.failed("context", error)
            return scored

    # --- order, rerank, budget ---------------------------------------------------------------------------------------

    @staticmethod
    def _order(view: View, scored: Scored, profile: Profile) -> list[int]:
        """Best first: score, then (tipsy) updated_at and id descending, else id ascending."""
        scores, rows, ids = scored.fused.scores, scored.rows, view.partition.ids
        if not profile.order_by_updated:
            return view.order(rows, scores).tolist()
        fields = profile.fields
        times = np.nan_to_num(view.partition.metadata.times([fields.updated_at, fields.created_at], rows), nan=-np.inf)
        return sorted(range(len(rows)), key=lambda i: (scores[i], times[i], ids[rows[i]]), reverse=True)

    def _rerank(
        self, view: View, request: Request, profile: Profile, scored: Scored, order: list[int], journal: Journal
    ) -> tuple[list[int], Float64]:
        scores = scored.fused.scores.copy()
        if profile.rerank == "off":
            return order, scores
        head = order[: profile.rerank_top]
        failed = "embedder" in journal.failed_parts
        first = scores[head]
        reason = skip_reason(
            profile,
            has_query=bool(request.query.strip()),
            embedding_failed=failed,
            scores=first,
            elapsed_s=journal.elapsed(),
        )
        if reason is not None:
            journal.notes.append(f"rerank skipped: {reason}")
            return order, scores
        texts = [view.text(int(scored.rows[i])) for i in head]
        outcome = rerank(
            profile, request.query, texts, first, elapsed_s=journal.elapsed(), embedder=self._store.embedder
        )
        (journal.degraded if outcome.failed else journal.notes).append(outcome.note)
        if outcome.scores is None:
            return order, scores
        scores[head] = outcome.scores
        place = {i: p for p, i in enumerate(head)}
        # Equal blends keep the first stage's order; the reranked stay ahead of the rest.
        return sorted(head, key=lambda i: (-scores[i], place[i])) + order[profile.rerank_top :], scores

    def _choose(
        self,
        view: View,
        request: Request,
        profile: Profile,
        scored: Scored,
        order: list[int],
        scores: Float64,
        journal: Journal,
    ) -> list[tuple[int, float]]:
        """At most k hits above the floor within the token budget; what does not fit is skipped and the next one tried."""
        floor = request.min_score if request.min_score is not None else profile.min_score
        most = request.max_tokens if request.max_tokens is not None else profile.max_tokens
        count = budget.Counting(profile.token_counter) if most is not None else None
        chosen: list[tuple[int, float]] = []
        left = most or 0
        for position in order:
            row, score = int(scored.rows[position]), float(scores[position])
            reason = None
            tokens = 0
            if floor is not None and score < floor:
                reason = "min_score"
            elif len(chosen) >= request.k:
                reason = "limit"
            elif count is not None:
                tokens = count(view.text(row))
                reason = "max_tokens" if tokens > left else None
            if reason is None:
                left -= tokens
                chosen.append((position, score))
            elif reason == "limit" and len(chosen) + len(journal.dropped) >= request.k + LISTED_RUNNERS_UP:
                break
            elif len(journal.dropped) < LISTED_DROPS:
                journal.dropped.append(Dropped(view.id(row), score, reason))
        if count is not None and count.error is not None:
            journal.failed("token counter", count.error)
        return chosen

    # --- result ------------------------------------------------------------------------------------------------------

    def _record_usage(self, request: Request, profile: Profile, hits: Sequence[Hit], journal: Journal) -> None:
        wanted = profile.record_usage if request.record_usage is None else request.record_usage
        if not wanted or not hits:
            return
        ids = [hit.memory.id or "" for hit in hits]
        try:
            self._store.ledger.record(ids, request.now)
            # A delete that came in between has cleaned the ledger before we counted: nothing may point at what is gone.
            row_of = self._store.partitions.get(request.scope).row_of
            gone = [identifier for identifier in ids if identifier not in row_of]
            if gone:
                self._store.ledger.forget(gone)
        except StoreError as error:
            journal.failed("usage ledger", error)

    def _trace(
        self,
        request: Request,
        profile: Profile,
        query: QueryFeatures,
        brought: Mapping[str, NDArray[np.intp]],
        scored: Scored,
        journal: Journal,
    ) -> Trace:
        return Trace(
            profile=profile.name,
            scope=self._store.scopes.as_dict(request.scope),
            terms=query.terms,
            entities=query.entities,
            candidates={name.removesuffix("_covered"): len(rows) for name, rows in brought.items()},
            pool=len(scored.rows),
            weights={profile.make_signal(n).name: w for n, w in profile.signals.items()},
            max_possible=scored.fused.max_possible,
            min_score=request.min_score if request.min_score is not None else profile.min_score,
            degraded=tuple(journal.degraded),
            notes=tuple(journal.notes),
            dropped=tuple(journal.dropped),
            timings_ms={**journal.timings, "total": journal.elapsed() * 1000.0},
        )
