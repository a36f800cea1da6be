"""Maximal marginal relevance over hybrid scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from memhybrid.errors import InputError
from memhybrid.values import optional_number


def diversify(scores: Sequence[float], vectors: Sequence[Any], k: int, lambda_mult: float) -> list[int]:
    """Positions of k items, each the one with the greatest λ·score - (1 - λ)·(greatest cosine to those chosen before).

    With λ = 1 that is the order of the scores; scores come best first.
    """
    weight = optional_number(lambda_mult, "lambda_mult")
    if weight is None or not 0.0 <= weight <= 1.0:
        raise InputError(f"lambda_mult: expected a number from 0 to 1, got {lambda_mult!r}")
    if not scores:
        return []
    relevance = np.asarray(scores, dtype=np.float64)
    matrix = np.nan_to_num(np.asarray(vectors, dtype=np.float64))
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    chosen, likeness = [0], matrix @ matrix[0]
    while len(chosen) < min(k, len(scores)):
        gains = weight * relevance - (1.0 - weight) * likeness
        gains[chosen] = -np.inf
        chosen.append(int(np.argmax(gains)))
        likeness = np.maximum(likeness, matrix @ matrix[chosen[-1]])
    return chosen
