"""The query, analysed once: terms, entities, names, dates, vector and token vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from memhybrid.deadline import Deadline
from memhybrid.errors import EmbedderError, StoreError
from memhybrid.indexes.bm25 import Bm25State
from memhybrid.indexes.vectors import unit
from memhybrid.late import QueryTokens, is_word, project
from memhybrid.profiles import Profile
from memhybrid.protocols import Float32, QueryAnalysis, TokenEmbedder, TokenVectors
from memhybrid.signals.context import QueryFeatures, Request
from memhybrid.signals.identifier import identifiers
from memhybrid.store import Store
from memhybrid.text.dates import dates_in

STOP_WEIGHT = 0.25
"""Weight of a stop word in late interaction; content words weigh 0.1 + 0.9·idf/idf of a term that no memory has."""
CONTENT_FLOOR = 0.1
MAX_QUERY_CHARACTERS = 20_000
"""Longer queries are cut before they are embedded: no model reads more, and a search must not take minutes."""

Failed = Callable[[str, Exception], None]
_deadline = Deadline("embed", most_hanging=32)


Vectors = tuple[Float32 | None, TokenVectors | None]


def embed_queries(store: Store, requests: Sequence[Request], profile: Profile, failed: Failed) -> list[Vectors]:
    """Vector and tokens of each query in one call to the embedder; (None, None) where there are none or the embedder failed."""
    out: list[Vectors] = [(None if r.embedding is None else unit(r.embedding), None) for r in requests]
    used = {*profile.sources, *(name for name, weight in profile.signals.items() if weight > 0)}
    needs_vector = any(name.startswith("semantic") for name in used)
    wants_tokens = "late" in used and store.late_interaction
    # What an embedder makes of a script that it does not know is used by nobody but the plain signal.
    any_script = "semantic" in used or profile.entity_vectors
    wanted = [
        i
        for i, r in enumerate(requests)
        if r.query.strip()
        and ((r.embedding is None and needs_vector) or wants_tokens)
        and (any_script or store.covers(r.query))
    ]
    dimension = store.sidecar.dimension
    if not wanted or not (needs_vector or wants_tokens) or dimension is None:
        return out
    texts = [requests[i].query[:MAX_QUERY_CHARACTERS] for i in wanted]
    try:
        store.check_embedder(dimension)
    except (EmbedderError, StoreError):
        raise
    except Exception as error:  # noqa: BLE001 - an embedder that is out of reach now is no wrong one
        failed("embedder", error)
        return out
    try:
        token_embedder = store.embedder if wants_tokens and isinstance(store.embedder, TokenEmbedder) else None

        def embed() -> tuple[Float32, Sequence[TokenVectors | None]]:
            if token_embedder is not None:
                return token_embedder.encode(texts)
            return store.embedder.embed_query(texts), [None] * len(texts)

        patience = profile.embed_timeout_s
        vectors, token_list = embed() if patience is None else _deadline.call(patience * len(texts), embed)
        if vectors.shape != (len(texts), dimension) or not np.isfinite(vectors).all():
            raise ValueError(
                f"the embedder gave shape {vectors.shape} for {len(texts)} queries of {dimension} dimensions"
            )
    except Exception as error:  # noqa: BLE001 - the search goes on without the semantic signal, and the trace says so
        failed("embedder", error)
        return out
    for offset, i in enumerate(wanted):
        vector = out[i][0]
        out[i] = (unit(vectors[offset]) if vector is None else vector, token_list[offset])
    return out


def features(
    store: Store,
    request: Request,
    vector: Float32 | None,
    tokens: TokenVectors | None,
    lexical: Bm25State,
    failed: Failed,
) -> QueryFeatures:
    """Everything that the signals need to know about the query."""
    text = request.query
    analysis = QueryAnalysis(())
    if text.strip():
        try:
            analysis = store.analyzer.analyze_query(text)
        except Exception as error:  # noqa: BLE001 - the search goes on by vectors, and the trace says so
            failed("analyzer", error)
    covered = request.embedding is not None or not text.strip() or store.covers(text)
    weighted = None
    if tokens is not None and covered:
        weighted = _weighted_tokens(tokens, analysis, lexical)
    return QueryFeatures(
        text=text,
        terms=analysis.terms,
        entities=tuple(e.key for e in analysis.entities),
        names=analysis.names,
        vector=vector,
        covered=covered,
        tokens=weighted,
        dates=dates_in(text, request.now),
        identifiers=identifiers(analysis),
    )


def _weighted_tokens(tokens: TokenVectors, analysis: QueryAnalysis, lexical: Bm25State) -> QueryTokens | None:
    """Token vectors with the weight of the word that each belongs to; punctuation is left out."""
    words = _words(tokens.tokens)
    terms_of = dict(analysis.words)
    most = lexical.idf_unseen()
    weights = np.zeros(len(tokens.tokens), dtype=np.float32)
    for i, word in enumerate(words):
        if word is None:
            continue
        surface = word if word in terms_of else next((longer for longer in terms_of if word in longer), word)
        if any(character.isdigit() for character in surface):
            # The pieces of a number or an identifier mean nothing by themselves: ZX-4417 is not nearly ZX-4471.
            continue
        terms = terms_of.get(surface, (word,))
        if not terms:
            weights[i] = STOP_WEIGHT
        else:
            idf = max(lexical.idf_of(term) for term in terms)
            weights[i] = CONTENT_FLOOR + (1.0 - CONTENT_FLOOR) * min(idf / most, 1.0) if most > 0 else 1.0
    kept = weights > 0
    if not kept.any():
        return None
    return QueryTokens(project(tokens.vectors[kept]), weights[kept])


def _words(pieces: Sequence[str]) -> list[str | None]:
    """For each word piece the word that it is part of; None for punctuation."""
    out: list[str | None] = [None] * len(pieces)
    start = 0
    while start < len(pieces):
        stop = start + 1
        while stop < len(pieces) and pieces[stop].startswith("##"):
            stop += 1
        word = pieces[start] + "".join(p[2:] for p in pieces[start + 1 : stop])
        if is_word(word):
            for i in range(start, stop):
                out[i] = word.casefold()
        start = stop
    return out
