"""Candidates with their signals and scores, and how they become hits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memhybrid import fusion
from memhybrid.indexes.partition import View
from memhybrid.protocols import Float64
from memhybrid.records import Hit, SignalDetail


def as_hits(
    view: View, scored: Scored, chosen: Sequence[tuple[int, float]], brought: Mapping[str, NDArray[np.intp]]
) -> tuple[Hit, ...]:
    """The chosen positions as hits, in plain Python values."""
    positions = [position for position, _ in chosen]
    rows = scored.rows[positions]
    found_by = {
        name.removesuffix("_covered"): (rows[:, None] == found).any(axis=1).tolist() for name, found in brought.items()
    }
    fused = scored.fused
    columns = {
        name: (
            values[positions].tolist(),
            scored.raw[name][positions].tolist(),
            fused.weights[name][positions].tolist(),
            fused.contributions[name][positions].tolist(),
        )
        for name, values in scored.values.items()
    }
    adjusted = {name: values[positions].tolist() for name, values in fused.adjustments.items()}
    hits: list[Hit] = []
    for i, (row, (_, score)) in enumerate(zip(rows.tolist(), chosen, strict=True)):
        signals: dict[str, float | None] = {}
        details: dict[str, SignalDetail] = {}
        for name, (values, raw, weights, contributions) in columns.items():
            value = values[i]
            if math.isnan(value):
                signals[name] = None
                continue
            signals[name] = value
            details[name] = SignalDetail(
                raw[i] if math.isfinite(raw[i]) else value, value, weights[i], contributions[i]
            )
        sources = tuple(name for name, flags in found_by.items() if flags[i]) or ("context",)
        extra = {name: values[i] for name, values in adjusted.items() if values[i] != 0}
        hits.append(Hit(view.memory(row), score, signals, details, sources, extra))
    return tuple(hits)


@dataclass(frozen=True)
class Scored:
    """Candidates with their signals and fused scores, all in the same order."""

    rows: NDArray[np.intp]
    values: dict[str, Float64]
    raw: dict[str, Float64]
    fused: fusion.Fused

    def only(self, keep: NDArray[np.bool_]) -> Scored:
        """Those that are kept."""
        fused = self.fused

        def cut(arrays: Mapping[str, Float64]) -> dict[str, Float64]:
            return {name: values[keep] for name, values in arrays.items()}

        return Scored(
            self.rows[keep],
            cut(self.values),
            cut(self.raw),
            fusion.Fused(
                fused.scores[keep],
                cut(fused.contributions),
                cut(fused.weights),
                cut(fused.adjustments),
                fused.max_possible,
            ),
        )

    def joined(self, other: Scored) -> Scored:
        """Both, where a memory's score does not depend on the others."""

        def both(one: Mapping[str, Float64], two: Mapping[str, Float64]) -> dict[str, Float64]:
            return {name: np.concatenate([values, two[name]]) for name, values in one.items()}

        mine, theirs = self.fused, other.fused
        return Scored(
            np.concatenate([self.rows, other.rows]),
            both(self.values, other.values),
            both(self.raw, other.raw),
            fusion.Fused(
                np.concatenate([mine.scores, theirs.scores]),
                both(mine.contributions, theirs.contributions),
                both(mine.weights, theirs.weights),
                both(mine.adjustments, theirs.adjustments),
                mine.max_possible,
            ),
        )

    def adjusted(self, name: str, amount: Float64) -> Scored:
        """With an amount added to each score, which the trace shows under its name."""
        fused = self.fused
        return Scored(
            self.rows,
            self.values,
            self.raw,
            fusion.Fused(
                np.clip(fused.scores + amount, 0.0, 1.0),
                fused.contributions,
                fused.weights,
                {**fused.adjustments, name: amount},
                fused.max_possible,
            ),
        )
