"""From signals to one score. Pure functions over arrays: values are (candidates,) with NaN where a signal does not know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memhybrid.protocols import Float64

IDENTITY_PENALTY = -0.08
INTENT_BOOST = 0.04
IMPORTANT_MATCH_BOOST = 0.03
IMPORTANT_FROM = 0.9
UNKNOWN = {"importance": 0.5, "recency": 0.5, "type": 0.5}
"""What weighted fusion takes for a signal that does not know; 0 for the others (spec section 2)."""


@dataclass(frozen=True)
class Fused:
    """Scores in [0, 1], what each signal added, the weight it had for each candidate, and what was added beyond the signals."""

    scores: Float64
    contributions: Mapping[str, Float64]
    weights: Mapping[str, Float64]
    adjustments: Mapping[str, Float64] = field(default_factory=dict)
    max_possible: float | None = None


def max_possible(keyword_hit: bool, boosted: bool) -> float:
    """1, +1 with a keyword hit in the scope, +0.5 with an entity boost in the scope: 1.0, 1.5, 2.0 or 2.5 (Mem0)."""
    return 1.0 + (1.0 if keyword_hit else 0.0) + (0.5 if boosted else 0.0)


def additive(semantic: Float64, bm25: Float64, entity: Float64, *, keyword_hit: bool, boosted: bool) -> Fused:
    """min((semantic + bm25 + entity) / max_possible, 1): spec section 1. NaN counts as 0."""
    most = max_possible(keyword_hit, boosted)
    parts = {"semantic": np.nan_to_num(semantic), "bm25": np.nan_to_num(bm25), "entity": np.nan_to_num(entity)}
    total = parts["semantic"] + parts["bm25"] + parts["entity"]
    weight = np.full(len(total), 1.0 / most)
    return Fused(
        np.minimum(total / most, 1.0),
        {name: values / most for name, values in parts.items()},
        dict.fromkeys(parts, weight),
        max_possible=most,
    )


def weighted(
    values: Mapping[str, Float64], weights: Mapping[str, float], adjustments: Mapping[str, Float64] | None = None
) -> Fused:
    """clamp(Σ weight · value + adjustments, 0, 1): spec section 2. What a signal does not know counts as UNKNOWN says."""
    size = len(next(iter(values.values())))
    contributions: dict[str, Float64] = {}
    total = np.zeros(size)
    for name, value in values.items():
        known = np.where(np.isnan(value), UNKNOWN.get(name, 0.0), value)
        contributions[name] = weights[name] * known
        total = total + contributions[name]
    for extra in (adjustments or {}).values():
        total = total + extra
    return Fused(
        np.clip(total, 0.0, 1.0),
        contributions,
        {name: np.full(size, weights[name]) for name in values},
        dict(adjustments or {}),
    )


def tipsy_adjustments(
    types: list[str | None], lexical: Float64, importance: Float64, *, query_is_identity: bool
) -> dict[str, Float64]:
    """-0.08 for an identity memory where the query is not about identity; +0.04 for an event or relationship memory with a
    lexical match; +0.03 for importance of at least 0.9 with a lexical match.
    """
    matched = np.nan_to_num(lexical) > 0
    identity = np.array([t == "identity" for t in types], dtype=np.bool_)
    lived = np.array([t in ("event", "relationship") for t in types], dtype=np.bool_)
    important = np.nan_to_num(importance, nan=0.0) >= IMPORTANT_FROM
    return {
        "identity_penalty": np.where(identity & (not query_is_identity), IDENTITY_PENALTY, 0.0),
        "intent_boost": np.where(lived & matched, INTENT_BOOST, 0.0),
        "important_match_boost": np.where(important & matched, IMPORTANT_MATCH_BOOST, 0.0),
    }


def renormalised(values: Mapping[str, Float64], weights: Mapping[str, float]) -> Fused:
    """Σ weight · value / Σ weight over the signals that know: what a memory lacks is neither a penalty nor a gift."""
    names = list(values)
    matrix = np.stack([values[name] for name in names])
    known = ~np.isnan(matrix)
    weight = np.array([weights[name] for name in names])[:, None] * known
    total = weight.sum(axis=0)
    share = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    parts = share * np.where(known, matrix, 0.0)
    return Fused(
        np.clip(parts.sum(axis=0), 0.0, 1.0),
        {name: parts[i] for i, name in enumerate(names)},
        {name: share[i] for i, name in enumerate(names)},
    )


def neighbour_lift(
    scores: Float64,
    session: NDArray[np.int64],
    position: Float64,
    *,
    near: Mapping[int, float],
    same_session: float,
    questions: NDArray[np.bool_] | None = None,
    speakers: NDArray[np.int64] | None = None,
    answer: float = 0.0,
) -> Float64:
    """What a memory gains from stronger ones in its session: max over j of κ·(score_j - score_i), at least 0.

    κ is `near[d]` for memories d messages away and `same_session` for any other of the session. Positions are message numbers;
    memories may share one. `session` is -1 and `position` NaN where there is none. A lifted memory stays below its neighbour.
    κ is `answer` where the message before is one of `questions` by another of the `speakers` (-1: not known): who asks what the query
    asks is followed by who knows.
    """
    lift = np.zeros(len(scores))
    inside = session >= 0
    if not inside.any():
        return lift
    _, group = np.unique(session[inside], return_inverse=True)
    strongest = np.full(int(group.max()) + 1, -1.0)
    np.maximum.at(strongest, group, scores[inside])
    lift[inside] = same_session * (strongest[group] - scores[inside])
    placed = np.flatnonzero(inside & np.isfinite(position))
    if len(placed):
        members = np.cumsum(inside)[placed] - 1
        places, at = np.unique(position[placed], return_inverse=True)
        keys, slot = np.unique(group[members] * len(places) + at, return_inverse=True)
        peak = np.full(len(keys), -1.0)
        np.maximum.at(peak, slot, scores[placed])
        gained, own = lift[placed], scores[placed]

        def _at(wanted: Float64) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
            """For each memory the slot of its session at the wanted position, and whether there is one."""
            there = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
            key = group[members] * len(places) + there
            found = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            return found, (places[there] == wanted) & (keys[found] == key)

        for distance, kappa in near.items():
            for offset in {-distance, distance}:
                found, hit = _at(position[placed] + offset)
                gained[hit] = np.maximum(gained[hit], kappa * (peak[found[hit]] - own[hit]))
        if questions is not None and speakers is not None and answer > 0:
            # The strongest question of each message, who asks it, and the strongest that somebody else asks there.
            asked, second = np.full(len(keys), -1.0), np.full(len(keys), -1.0)
            asker = np.full(len(keys), -1, dtype=np.int64)
            asking = np.flatnonzero(questions[placed])
            for i in asking[np.argsort(own[asking], kind="stable")].tolist():
                at, who = slot[i], speakers[placed[i]]
                if asker[at] < 0 or asker[at] != who:
                    second[at] = asked[at]
                asked[at], asker[at] = own[i], who
            found, hit = _at(position[placed] - 1)
            other = (asker[found] < 0) | (asker[found] != speakers[placed])
            best = np.where(other, asked[found], second[found])
            hit &= best > own
            gained[hit] = np.maximum(gained[hit], answer * (best[hit] - own[hit]))
        lift[placed] = gained
    return np.maximum(lift, 0.0)
