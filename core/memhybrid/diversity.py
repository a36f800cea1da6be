"""Fewer results that say the same: near-duplicate collapse and maximal marginal relevance, both off by default.

Off leaves the order untouched. Both look at the best candidates only and reorder or drop positions; scores stay what they were.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memhybrid.indexes.partition import View
from memhybrid.profiles import Profile
from memhybrid.protocols import Float64
from memhybrid.records import Dropped
from memhybrid.text.normalise import fold, normalise

SHINGLE = 3
LOOKED_AT = 200
"""Candidates that are compared with each other, at most."""


def shingles(text: str) -> frozenset[str]:
    """The text's character trigrams without spaces and punctuation, in any script; short texts are one shingle."""
    letters = "".join(c for c in fold(normalise(text[:20_000])) if c.isalnum())
    if len(letters) <= SHINGLE:
        return frozenset((letters,)) if letters else frozenset()
    return frozenset(letters[i : i + SHINGLE] for i in range(len(letters) - SHINGLE + 1))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """|common| / |all|; texts without letters are like nothing, not like each other."""
    return len(one & other) / len(one | other) if one and other else 0.0


def collapse(view: View, rows: NDArray[np.intp], order: Sequence[int], threshold: float) -> tuple[list[int], list[int]]:
    """Positions without those whose text is nearly that of a better one, and the positions left out.

    Nearly means a Jaccard similarity of character trigrams of at least `threshold`.
    """
    kept: list[int] = []
    dropped: list[int] = []
    seen: list[frozenset[str]] = []
    for position in order[:LOOKED_AT]:
        mine = shingles(view.text(int(rows[position])))
        if any(jaccard(mine, other) >= threshold for other in seen):
            dropped.append(position)
        else:
            kept.append(position)
            seen.append(mine)
    return kept + list(order[LOOKED_AT:]), dropped


def mmr(
    view: View, rows: NDArray[np.intp], order: Sequence[int], scores: Float64, k: int, trade_off: float
) -> list[int]:
    """The order of maximal marginal relevance (Carbonell and Goldstein 1998): λ·score - (1-λ)·largest cosine to those chosen.

    The first k places are chosen so among the best candidates; the rest follows in its old order. λ = 1 changes nothing.
    """
    vectors = view.partition.vectors
    pool = list(order[:LOOKED_AT])
    if vectors is None or len(pool) < 2:
        return list(order)
    matrix = np.nan_to_num(vectors.take(rows[pool]).astype(np.float64))
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix /= np.where(norms > 0, norms, 1.0)
    relevance = scores[pool]
    closest = np.zeros(len(pool))
    free = np.ones(len(pool), dtype=np.bool_)
    chosen: list[int] = []
    for _ in range(min(k, len(pool))):
        gain = np.where(free, trade_off * relevance - (1.0 - trade_off) * closest, -np.inf)
        best = int(np.argmax(gain))
        chosen.append(best)
        free[best] = False
        closest = np.maximum(closest, matrix @ matrix[best])
    taken = set(chosen)
    return [pool[i] for i in chosen] + [pool[i] for i in range(len(pool)) if i not in taken] + list(order[LOOKED_AT:])


def diversify(
    view: View, rows: NDArray[np.intp], order: list[int], scores: Float64, k: int, profile: Profile
) -> tuple[list[int], list[Dropped]]:
    """The order with near-duplicates out and different memories forward, where the profile asks for it, and who was left out."""
    left_out: list[Dropped] = []
    if profile.collapse_from is not None:
        order, alike = collapse(view, rows, order, profile.collapse_from)
        left_out = [Dropped(view.id(int(rows[i])), float(scores[i]), "near-duplicate") for i in alike]
    if profile.mmr_lambda is not None:
        order = mmr(view, rows, order, scores, k, profile.mmr_lambda)
    return order, left_out
