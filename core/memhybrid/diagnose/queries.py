"""Queries that differ in meaning, drawn from the store itself for those who have none."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from memhybrid.indexes.partition import View

WANTED = 12
LONGEST = 200
_SAMPLE = 2_000
_END = re.compile(r"(?<=[.!?])\s+|(?<=[。!?…])|\n")


def draw(view: View, rows: NDArray[np.intp], wanted: int = WANTED) -> list[str]:
    """First sentences of memories that lie far apart: each is the one farthest from all chosen before (greedy k-center)."""
    rows = rows[:: max(-(-len(rows) // _SAMPLE), 1)]
    vectors = view.partition.vectors
    if not len(rows) or vectors is None:
        return []
    matrix = np.nan_to_num(vectors.take(rows)).astype(np.float64)
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    found: list[str] = []
    nearest = matrix @ matrix.mean(axis=0)
    taken = np.zeros(len(rows), dtype=np.bool_)
    while len(found) < min(wanted, max(len(rows) // 2, 2)) and not taken.all():
        at = int(np.argmin(np.where(taken, np.inf, nearest)))
        taken[at] = True
        query = first_sentence(view.text(int(rows[at])))
        if not query or query in found:
            continue
        similarity = matrix @ matrix[at]
        nearest = np.maximum(nearest, similarity) if found else similarity
        found.append(query)
    return found


def first_sentence(text: str) -> str:
    """The first sentence with more than one word or a few Chinese characters, at most 200 characters of it."""
    parts = [part.strip() for part in _END.split(text) if part.strip()]
    best = next((p for p in parts if len(p.split()) > 2 or (not p.isascii() and len(p) > 4)), " ".join(parts))
    return best[:LONGEST].strip()
