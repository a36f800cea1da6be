"""Names and the memories that mention them, both ways, without caps."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

SPELLING_CUTOFF = 85.0
"""Normalised indel similarity (0-100) from which a name counts as a misspelling of another."""
SPELLING_MIN_LENGTH = 5
"""Shorter names are matched exactly: a letter more or less makes another name of them."""


class EntityIndex:
    """Normalised name → rows. Rows are appended; a reader passes the rows that live in its state."""

    def __init__(self) -> None:
        self._rows_of: dict[str, array[int]] = {}
        self._keys_of: dict[int, tuple[str, ...]] = {}
        self._by_length: dict[tuple[str, int], list[str]] = {}

    def add(self, row: int, keys: Iterable[str]) -> None:
        """Link a new row to its names."""
        kept: list[str] = []
        for key in dict.fromkeys(keys):
            rows = self._rows_of.get(key)
            if rows is None:
                rows = self._rows_of[key] = array("i")
                if len(key) >= SPELLING_MIN_LENGTH:
                    self._by_length.setdefault((key[0], len(key)), []).append(key)
            rows.append(row)
            kept.append(key)
        if kept:
            self._keys_of[row] = tuple(kept)

    def keys_of(self, row: int) -> tuple[str, ...]:
        """The names that a row mentions."""
        return self._keys_of.get(row, ())

    def known(self, key: str) -> bool:
        """Whether any row ever mentioned the name."""
        return key in self._rows_of

    def linked(self, key: str, n: int, alive: NDArray[np.bool_] | None) -> NDArray[np.intp]:
        """Living rows below n that mention the name, ascending."""
        rows = self._rows_of.get(key)
        if rows is None:
            return np.empty(0, np.intp)
        found = np.array(rows, dtype=np.intp)
        found = found[found < n]
        return found if alive is None else found[alive[found]]

    def close_spellings(
        self, key: str, limit: int = 5, living: Callable[[str], bool] = bool
    ) -> list[tuple[str, float]]:
        """Other names spelt nearly like this one, with their similarity in (0, 1], best first.

        Same first letter and nearly the same length, so that a large index is not searched whole. Names that are not `living`
        are passed over: what was deleted must not take a place.
        """
        if len(key) < SPELLING_MIN_LENGTH:
            return []
        spread = max(1, round(len(key) * (1 - SPELLING_CUTOFF / 100) * 2))
        names: list[str] = []
        for length in range(max(SPELLING_MIN_LENGTH, len(key) - spread), len(key) + spread + 1):
            names.extend(self._by_length.get((key[0], length), ()))
        found = process.extract(key, names, scorer=fuzz.ratio, score_cutoff=SPELLING_CUTOFF, limit=None)
        close = [(name, score / 100.0) for name, score, _ in found if name != key and living(name)]
        return sorted(close, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def names(self) -> list[str]:
        """Every name that was ever linked, in order of first appearance."""
        return list(self._rows_of)

    def links(self, rows: Sequence[int]) -> dict[str, int]:
        """How many of the given rows mention each name."""
        out: dict[str, int] = {}
        for row in rows:
            for key in self.keys_of(row):
                out[key] = out.get(key, 0) + 1
        return out

    def nbytes(self) -> int:
        """Approximate resident bytes."""
        names = sum(170 + len(k) + 4 * len(rows) for k, rows in list(self._rows_of.items()))
        return names + sum(56 + 8 * len(keys) + 100 for keys in list(self._keys_of.values()))
