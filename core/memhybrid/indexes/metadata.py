"""Metadata as columns: each key's distinct values once, and a 4-byte code a row.

A filter looks at distinct values, not at rows, so that nothing loops over the store in Python.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memhybrid.indexes.growable import Growable
from memhybrid.times import parse_time

ABSENT = -1
_CACHED_PREDICATES = 64


def _identity(value: Any) -> Any:
    """A hashable stand-in that keeps True, 1 and 1.0 apart, in lists too."""
    if isinstance(value, list):
        return (list, tuple((type(item), item) for item in value))
    return (type(value), value)


def as_time(value: Any) -> float:
    """Epoch seconds, NaN for what is no time."""
    moment = None if isinstance(value, list) else parse_time(value)
    return np.nan if moment is None else moment


class Column:
    """One metadata key. `values` are the distinct values in order of first appearance; `codes[row]` points into them."""

    def __init__(self) -> None:
        self.codes = Growable(np.int32, fill=ABSENT)
        self.values: list[Any] = []
        self._code_of: dict[Any, int] = {}
        self._predicates: dict[Any, NDArray[np.bool_]] = {}
        self._converted: dict[Callable[[Any], float], NDArray[np.float64]] = {}
        self._groups: dict[int, array[int]] = {}
        self._grouped = 0
        self._group_lock = threading.Lock()

    def put(self, rows: Sequence[int], values: Sequence[Any]) -> None:
        """Set the values of rows, ascending (once; rows do not change)."""
        code_of = self._code_of
        codes: list[int] = []
        for value in values:
            kind = type(value)
            identity = _identity(value) if kind is list else (kind, value)
            code = code_of.get(identity)
            if code is None:
                code = len(self.values)
                self.values.append(value)
                code_of[identity] = code
            codes.append(code)
        self.codes.reserve(rows[-1] + 1)[rows] = codes

    def rows(self, n: int) -> NDArray[np.int32]:
        """Codes of the rows 0..n, ABSENT where the key is missing."""
        return self.codes.view(n)

    def at(self, row: int) -> Any:
        """The value of one row; KeyError where it has none."""
        code = self.codes.get(row)
        if code == ABSENT:
            raise KeyError(row)
        return self.values[code]

    def mask(self, n: int, key: Any, predicate: Callable[[Any], bool], *, absent: bool) -> NDArray[np.bool_]:
        """Which of the rows 0..n satisfy the predicate; `key` identifies it so that its answers are kept."""
        codes = self.rows(n)
        answers = self._answers(key, predicate)
        # The last entry answers for ABSENT, which is -1.
        return np.append(answers, absent)[codes]

    def _answers(self, key: Any, predicate: Callable[[Any], bool]) -> NDArray[np.bool_]:
        known = self._predicates.get(key)
        values = self.values
        have = 0 if known is None else len(known)
        want = len(values)
        if known is not None and have >= want:
            return known
        fresh = np.fromiter((predicate(values[i]) for i in range(have, want)), dtype=np.bool_, count=want - have)
        answers = fresh if known is None else np.concatenate([known, fresh])
        if len(self._predicates) >= _CACHED_PREDICATES:
            self._predicates.clear()
        self._predicates[key] = answers
        return answers

    def times(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Epoch seconds of the rows' values, NaN where missing or no time."""
        return self.converted(as_time)[self.codes.take(rows)]

    def all_times(self, n: int) -> NDArray[np.float64]:
        """Epoch seconds of the rows 0..n, NaN where missing or no time."""
        return self.converted(as_time)[self.rows(n)]

    def converted(self, convert: Callable[[Any], float]) -> NDArray[np.float64]:
        """`convert` of each distinct value, by code; NaN behind the last one, where the code ABSENT (-1) points.

        Kept for each function, and extended when values were added.
        """
        known = self._converted.get(convert)
        have, want = 0 if known is None else len(known) - 1, len(self.values)
        if known is not None and have >= want:
            return known
        fresh = np.fromiter((convert(self.values[i]) for i in range(have, want)), dtype=np.float64, count=want - have)
        made = np.concatenate([fresh if known is None else np.concatenate([known[:-1], fresh]), [np.nan]])
        self._converted[convert] = made
        return made

    def rows_with(self, code: int, n: int) -> NDArray[np.intp]:
        """Rows below n with the given code, ascending. Rows that came since the last call are sorted in first."""
        with self._group_lock:
            self._sort_in(n)
            found = np.array(self._groups.get(code, ()), dtype=np.intp)
        return found[found < n]

    def size_with(self, code: int, n: int) -> int:
        """How many rows have the code, those from n on included where they are sorted in already."""
        if self._grouped < n:
            with self._group_lock:
                self._sort_in(n)
        return len(self._groups.get(code, ()))

    def _sort_in(self, n: int) -> None:
        if self._grouped < n:
            fresh = self.codes.view(n)[self._grouped :]
            order = np.argsort(fresh, kind="stable")
            codes = fresh[order]
            starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
            for code, rows in zip(codes[starts].tolist(), np.split(order, starts[1:]), strict=True):
                if code != ABSENT:
                    found = self._groups.setdefault(code, array("i"))
                    found.frombytes((rows + self._grouped).astype(np.int32).tobytes())
            self._grouped = n

    def nbytes(self) -> int:
        """Approximate resident bytes."""
        groups = sum(80 + 4 * len(rows) for rows in list(self._groups.values()))
        return (
            groups + self.codes.nbytes() + sum(160 + (len(v) if isinstance(v, str) else 8) for v in list(self.values))
        )


class MetadataTable:
    """The metadata of rows 0..n, by key."""

    def __init__(self) -> None:
        self._columns: dict[str, Column] = {}

    def append(self, start: int, metadatas: Iterable[Mapping[str, Any]]) -> None:
        """Set the metadata of new rows, from `start` on."""
        found: dict[str, tuple[list[int], list[Any]]] = {}
        for row, metadata in enumerate(metadatas, start):
            for key, value in metadata.items():
                entry = found.get(key)
                if entry is None:
                    entry = found[key] = ([], [])
                entry[0].append(row)
                entry[1].append(value)
        for key, (rows, values) in found.items():
            self._columns.setdefault(key, Column()).put(rows, values)

    def column(self, key: str) -> Column | None:
        """The column of a key, or None if no row ever had it."""
        return self._columns.get(key)

    def get(self, row: int) -> dict[str, Any]:
        """A fresh dict of one row's metadata; lists are copied."""
        out: dict[str, Any] = {}
        for key, column in list(self._columns.items()):
            code = column.codes.get(row)
            if code != ABSENT:
                value = column.values[code]
                out[key] = list(value) if isinstance(value, list) else value
        return out

    def floats(self, key: str, rows: NDArray[np.intp], convert: Callable[[Any], float]) -> NDArray[np.float64]:
        """`convert`, a function at module level, of each row's value; NaN where the key is missing."""
        column = self._columns.get(key)
        return np.full(len(rows), np.nan) if column is None else column.converted(convert)[column.codes.take(rows)]

    def objects(self, key: str, rows: Iterable[int]) -> list[Any]:
        """The rows' values, None where missing."""
        column = self._columns.get(key)
        if column is None:
            return [None for _ in rows]
        out: list[Any] = []
        for row in rows:
            code = column.codes.get(row)
            out.append(None if code == ABSENT else column.values[code])
        return out

    def times(self, keys: Sequence[str], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Epoch seconds from the first of the keys that has a readable time for the row, else NaN."""
        out = np.full(len(rows), np.nan)
        for key in keys:
            column = self._columns.get(key)
            if column is not None:
                missing = np.isnan(out)
                if not missing.any():
                    break
                out[missing] = column.times(rows[missing])
        return out

    def nbytes(self) -> int:
        """Approximate resident bytes."""
        return sum(column.nbytes() for column in self._columns.values())
