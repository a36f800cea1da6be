"""Vectors of one scope's rows: true cosine for any of them, and an exact scan.

Vectors are kept as they were given, with the inverse of their length beside them; a zero vector has similarity 0 to everything.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memhybrid.indexes.growable import Growable
from memhybrid.protocols import Float32, Float64


class RowSource(Protocol):
    """Something that has vectors by slot, such as the memory-mapped file."""

    def take(self, slots: NDArray[np.intp]) -> Float32:
        """The given slots, copied."""
        ...


def unit(vector: NDArray[np.floating]) -> Float32:
    """The vector at length 1, float32; zero stays zero."""
    wide = np.asarray(vector, dtype=np.float64)
    norm = float(np.sqrt(wide @ wide))
    return (wide / norm if norm > 0 else wide).astype(np.float32)


class VectorRows:
    """Rows 0..n with d numbers each: in memory (`resident`), or read from the slot file when asked for.

    Rows without a vector are all NaN and have similarity NaN.
    """

    def __init__(self, dimension: int, source: RowSource | None = None) -> None:
        self.dimension = dimension
        self.resident = source is None
        self._source = source
        self._slots = Growable(np.int64, fill=-1)
        self._rows = Growable(np.float32, width=dimension, fill=0) if source is None else None
        self._scale = Growable(np.float32, fill=np.nan)

    def append(self, start: int, vectors: Float32, slots: NDArray[np.int64]) -> None:
        """Rows from `start` on: their vectors (m, d) and where these lie in the slot file."""
        norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(norms > 0, 1.0 / norms, 0.0)
        scale[np.isnan(norms)] = np.nan
        self._slots.set_many(start, slots)
        if self._rows is not None:
            self._rows.set_many(start, np.nan_to_num(vectors))
        self._scale.set_many(start, scale.astype(np.float32))

    def take(self, rows: NDArray[np.intp]) -> Float32:
        """The rows' vectors as given, (m, d)."""
        if self._rows is not None:
            return self._rows.take(rows)
        assert self._source is not None
        return self._source.take(self._slots.take(rows).astype(np.intp))

    def similarity(self, query: Float32, rows: NDArray[np.intp]) -> Float64:
        """Cosine of each row with the unit query, in [-1, 1]; the same to the last bit whatever else is asked for."""
        if not len(rows):
            return np.empty(0)
        vectors = self.take(rows)
        # A row-wise sum, unlike a matrix product, does not depend on the other rows.
        dots = np.multiply(vectors, query[None, :], dtype=np.float32).sum(axis=1, dtype=np.float64)
        return np.clip(dots * self._scale.take(rows), -1.0, 1.0)

    def scan(self, query: Float32, n: int) -> Float32:
        """Cosine of the rows 0..n with the unit query, by one matrix product; equal to `similarity` to rounding."""
        return self._matrix(n) @ query * self._scale.view(n)

    def scan_many(self, queries: Float32, n: int) -> Float32:
        """The same for several unit queries: shape (queries, n)."""
        return (queries @ self._matrix(n).T) * self._scale.view(n)[None, :]

    def _matrix(self, n: int) -> Float32:
        if self._rows is not None:
            return self._rows.view(n)
        return self.take(np.arange(n))

    def slots(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Where the rows lie in the slot file."""
        return self._slots.take(rows)

    def nbytes(self) -> int:
        """Resident bytes."""
        rows = self._rows.nbytes() if self._rows is not None else 0
        return rows + self._slots.nbytes() + self._scale.nbytes()


def best_rows(
    scores: NDArray[np.floating], n: int, mask: NDArray[np.bool_] | None, tolerance: float = 1e-6
) -> NDArray[np.intp]:
    """Rows with the n best finite scores (inside the mask) and all that tie with the last of them, in no particular order."""
    finite = np.isfinite(scores)
    rows = np.flatnonzero(finite if mask is None else finite & mask)
    if len(rows) <= n:
        return rows
    inside = scores[rows]
    last = np.partition(inside, len(rows) - n)[len(rows) - n]
    return rows[inside >= last - tolerance]
