"""The scoring step of Mem0 as its document has it: a loop over candidates that are dictionaries. A peer to be timed beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def score_and_rank(
    found: Sequence[Mapping[str, Any]],
    keyword: Mapping[str, float],
    boosts: Mapping[str, float],
    threshold: float,
    limit: int,
) -> list[dict[str, Any]]:
    """The `limit` best of the vector hits `found` by min((semantic + bm25 + entity) / max_possible, 1), best first."""
    most = 1.0 + (1.0 if keyword else 0.0) + (0.5 if boosts else 0.0)
    scored: list[dict[str, Any]] = []
    for hit in found:
        if hit["score"] < threshold:
            continue
        total = hit["score"] + keyword.get(hit["id"], 0.0) + boosts.get(hit["id"], 0.0)
        scored.append({**hit, "score": min(total / most, 1.0)})
    scored.sort(key=lambda hit: hit["score"], reverse=True)
    return scored[:limit]
