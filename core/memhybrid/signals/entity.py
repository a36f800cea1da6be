"""Entity boost: a memory that mentions what the query names gains, the less the more memories mention it (Mem0)."""

from __future__ import annotations

from itertools import islice

import numpy as np
from numpy.typing import NDArray

from memhybrid.protocols import Float64
from memhybrid.signals.context import SignalContext

ENTITY_BOOST_WEIGHT = 0.5
MIN_SIMILARITY = 0.5
MAX_QUERY_ENTITIES = 8
MAX_STORED_ENTITIES = 500


def boost(similarity: float, linked: int) -> float:
    """similarity · 0.5 / (1 + 0.001 (linked - 1)²), in [0, 0.5]."""
    return similarity * ENTITY_BOOST_WEIGHT / (1.0 + 0.001 * (linked - 1) ** 2)


def matches_by_vector(context: SignalContext) -> list[tuple[str, float]]:
    """Stored entities with a cosine of at least 0.5 to one of the query's first eight, the best 500 for each."""
    keys = list(context.query.entities[:MAX_QUERY_ENTITIES])
    stored: dict[str, NDArray[np.float32]] = context.shared.get("entity_vectors", {})
    if not keys or not stored or context.embed_names is None:
        return []
    names = list(stored)
    matrix = np.stack([stored[name] for name in names]).astype(np.float64)
    queries = context.embed_names(keys).astype(np.float64)
    found: list[tuple[str, float]] = []
    similarity = _unit(queries) @ _unit(matrix).T
    for row in similarity:
        best = sorted(np.flatnonzero(row >= MIN_SIMILARITY).tolist(), key=lambda i: (-row[i], names[i]))
        living = islice((i for i in best if len(context.view.linked(names[i]))), MAX_STORED_ENTITIES)
        found.extend((names[i], min(float(row[i]), 1.0)) for i in living)
    return found


def matches_by_name(context: SignalContext) -> list[tuple[str, float]]:
    """Stored entities that the query names, exactly or nearly spelt so; the query's case does not matter."""
    view = context.view
    found: dict[str, float] = {}

    def living(name: str) -> bool:
        return len(view.linked(name)) > 0

    for name in context.query.names:
        if living(name):
            found[name] = 1.0
    for key in context.query.entities:
        if key not in found:
            for name, similarity in view.partition.entities.close_spellings(key, living=living):
                found[name] = max(found.get(name, 0.0), similarity)
    return list(found.items())


def _unit(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(norms > 0, norms, 1.0)


class EntityBoost:
    """A memory's largest boost over all matches, in [0, 0.5]; never the sum."""

    name = "entity"
    query_dependent = True

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        by_vector = context.shared.get("entity_vectors") is not None
        matches = matches_by_vector(context) if by_vector else matches_by_name(context)
        out = np.zeros(len(context.rows))
        boosted = False
        for key, similarity in matches:
            linked = context.view.linked(key)
            if context.mask is not None:
                linked = linked[context.mask[linked]]
            if len(linked):
                boosted = True
                out[np.isin(context.rows, linked)] = np.maximum(
                    out[np.isin(context.rows, linked)], boost(similarity, len(linked))
                )
        context.shared["entity_boost"] = boosted
        context.record_raw(self.name, out)
        return out
