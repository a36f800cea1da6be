"""Whether a difference is more than luck: paired randomisation, Holm's correction, bootstrap intervals. All seeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

ROUNDS = 10_000
SEED = 20_260_101
_CHUNK = 500
_EQUAL = 1e-12
"""Sums in another order differ by this much at most; they count as equal."""


def randomisation(one: Sequence[float], other: Sequence[float], *, rounds: int = ROUNDS, seed: int = SEED) -> float:
    """Two-sided p of the mean paired difference, by flipping signs at random: (1 + as extreme) / (1 + rounds)."""
    differences = np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    differences = differences[differences != 0.0]
    if not len(differences):
        return 1.0
    observed = abs(float(differences.sum()))
    generator = np.random.default_rng(seed)
    extreme = 0
    for start in range(0, rounds, _CHUNK):
        signs = generator.integers(0, 2, (min(_CHUNK, rounds - start), len(differences)), dtype=np.int8) * 2 - 1
        extreme += int((np.abs(signs @ differences) >= observed - _EQUAL).sum())
    return (1 + extreme) / (1 + rounds)


def holm(values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down correction: p by name → corrected p."""
    out: dict[str, float] = {}
    largest = 0.0
    for rank, (name, p) in enumerate(sorted(values.items(), key=lambda item: (item[1], item[0]))):
        largest = max(largest, min(1.0, (len(values) - rank) * p))
        out[name] = largest
    return {name: out[name] for name in values}


def interval(
    differences: Sequence[float] | NDArray[np.float64],
    *,
    confidence: float = 0.95,
    rounds: int = ROUNDS,
    seed: int = SEED,
) -> tuple[float, float]:
    """The percentile bootstrap interval of the mean."""
    values = np.asarray(differences, dtype=np.float64)
    if not len(values):
        return 0.0, 0.0
    generator = np.random.default_rng(seed)
    means = np.concatenate(
        [
            values[generator.integers(0, len(values), (min(_CHUNK, rounds - start), len(values)))].mean(axis=1)
            for start in range(0, rounds, _CHUNK)
        ]
    )
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
