"""VectorStoreQuery: which mode is which search."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode, VectorStoreQueryResult

from llamaindex_memhybrid._convert import SOURCE_KEY, embedder_of, query_text, to_node, to_scored_node
from llamaindex_memhybrid._filters import all_of
from memhybrid.errors import InputError
from memhybrid.memory import MemoryView
from memhybrid.profiles import Profile
from memhybrid.records import Hit
from memhybrid.values import optional_number, positive

Mode = VectorStoreQueryMode
_KEYWORDS = (Mode.SPARSE, Mode.TEXT_SEARCH)
_HYBRID = (Mode.HYBRID, Mode.SEMANTIC_HYBRID)
_OPTIONS = ("min_score", "max_tokens", "record_usage", "include_outdated")
_MMR_OPTIONS = ("mmr_threshold", "mmr_prefetch_factor")


def run_query(
    view: MemoryView,
    query: VectorStoreQuery,
    where: Mapping[str, Any] | None,
    *,
    annotate: bool,
    profile: Any = None,
    **options: Any,
) -> VectorStoreQueryResult:
    """Search as the query says."""
    unknown = sorted(set(options) - {*_OPTIONS, *_MMR_OPTIONS})
    if unknown:
        raise TypeError(f"query: unknown options {unknown}; known: {['where', 'profile', *_OPTIONS, *_MMR_OPTIONS]}")
    mode = _mode(query)
    if query.doc_ids:
        where = all_of(where, {SOURCE_KEY: {"$in": list(query.doc_ids)}})
    k = positive(_top_k(query, mode), "similarity_top_k")
    mmr = {name: options.pop(name) for name in _MMR_OPTIONS if name in options}
    if query.query_str is None and query.query_embedding is None:
        return _listed(view, query, where, k)
    if mode is Mode.MMR:
        hits = _mmr(view, query, where, k, profile, options, **mmr)
    else:
        chosen = _profile(query, mode) if profile is None else profile
        hits = _search(view, query, where, k, chosen, options, with_vector=mode not in _KEYWORDS)
    nodes = [to_scored_node(hit, annotate=annotate) for hit in hits]
    return VectorStoreQueryResult(
        nodes=[n.node for n in nodes], similarities=[n.get_score() for n in nodes], ids=[n.node_id for n in nodes]
    )


def _mode(query: VectorStoreQuery) -> VectorStoreQueryMode:
    try:
        mode = Mode(query.mode)
    except ValueError as error:
        raise InputError(f"mode: {query.mode!r} is not a query mode") from error
    if mode not in (Mode.DEFAULT, *_KEYWORDS, *_HYBRID, Mode.MMR):
        raise InputError(
            f"mode: {mode.value!r} is not supported; use default, sparse, text_search, hybrid, semantic_hybrid or mmr"
        )
    if mode in _KEYWORDS and query.query_str is None:
        raise InputError(f"mode: {mode.value!r} needs query_str")
    return mode


def _top_k(query: VectorStoreQuery, mode: VectorStoreQueryMode) -> int:
    if mode in _HYBRID and query.hybrid_top_k is not None:
        return query.hybrid_top_k
    if mode is Mode.SPARSE and query.sparse_top_k is not None:
        return query.sparse_top_k
    return query.similarity_top_k


def _profile(query: VectorStoreQuery, mode: VectorStoreQueryMode) -> str | Profile | None:
    """The profile of a mode; None is the memory's own."""
    if mode in _KEYWORDS:
        return "bm25"
    if mode not in _HYBRID:
        return "semantic"
    if query.alpha is None:
        return None
    alpha = optional_number(query.alpha, "alpha")
    if alpha is None or not 0.0 <= alpha <= 1.0:
        raise InputError(f"alpha: expected a number from 0 (keywords) to 1 (vectors), got {query.alpha!r}")
    weights = {"semantic": alpha, "bm25_calibrated": 1.0 - alpha}
    sources = tuple(name for name, weight in (("semantic", alpha), ("bm25", 1.0 - alpha)) if weight > 0)
    return Profile(name=f"alpha={alpha:g}", sources=sources, signals=weights)


def _search(
    view: MemoryView,
    query: VectorStoreQuery,
    where: Mapping[str, Any] | None,
    k: int,
    profile: Any,
    options: Mapping[str, Any],
    *,
    with_vector: bool = True,
) -> Sequence[Hit]:
    """The hits; where ids are given, the best of all that satisfy the filter, cut to these ids."""
    wanted = None if not query.node_ids else set(query.node_ids)
    result = view.search(
        query_text(query.query_str or ""),
        k if wanted is None else max(view.count(where), 1),
        where=where,
        embedding=query.query_embedding if with_vector else None,
        profile=profile,
        **options,
    )
    return [hit for hit in result.hits if wanted is None or hit.memory.id in wanted][:k]


def _listed(
    view: MemoryView, query: VectorStoreQuery, where: Mapping[str, Any] | None, k: int
) -> VectorStoreQueryResult:
    """A query without text and vector lists what satisfies its filter, in the order in which it was added, without scores."""
    if query.node_ids:
        wanted = set(query.node_ids)
        memories = [m for m in view.list(where=where, include_outdated=False) if m.id in wanted][:k]
    else:
        memories = view.list(where=where, limit=k, include_outdated=False)
    nodes = [to_node(memory) for memory in memories]
    return VectorStoreQueryResult(nodes=nodes, similarities=None, ids=[n.node_id for n in nodes])


def _mmr(
    view: MemoryView,
    query: VectorStoreQuery,
    where: Mapping[str, Any] | None,
    k: int,
    profile: Any,
    options: Mapping[str, Any],
    *,
    mmr_threshold: Any = None,
    mmr_prefetch_factor: Any = 4.0,
) -> Sequence[Hit]:
    """The most similar, then those that differ most from what is chosen. The scores stay those of the search."""
    threshold = optional_number(query.mmr_threshold if mmr_threshold is None else mmr_threshold, "mmr_threshold")
    if threshold is not None and not 0.0 <= threshold <= 1.0:
        raise InputError(f"mmr_threshold: expected a number from 0 to 1, got {threshold!r}")
    factor = optional_number(mmr_prefetch_factor, "mmr_prefetch_factor")
    if factor is None or factor < 1.0:
        raise InputError(f"mmr_prefetch_factor: expected a number of at least 1, got {mmr_prefetch_factor!r}")
    found = _search(view, query, where, math.ceil(k * factor), profile or "semantic", options)
    stored = {m.id: m.embedding for m in view.get([hit.memory.id for hit in found], embeddings=True)}
    hits = [hit for hit in found if stored.get(hit.memory.id) is not None]
    vector: Any = query.query_embedding
    if vector is None:
        vector = np.asarray(embedder_of(view).embed_query([query_text(query.query_str or "")]))[0]
    _, chosen = get_top_k_mmr_embeddings(
        list(vector),
        [stored[hit.memory.id] for hit in hits],
        similarity_top_k=k,
        embedding_ids=list(range(len(hits))),
        mmr_threshold=threshold,
    )
    return [hits[i] for i in chosen]
