"""Arrays that grow at the end. What was written once is not moved under a reader that holds a view."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Growable:
    """A one- or two-dimensional array with amortised appends. Row i is set once; views of older sizes stay valid."""

    def __init__(self, dtype: DTypeLike, *, width: int | None = None, fill: Any = 0, capacity: int = 16) -> None:
        self._fill = fill
        self._width = width
        shape = (capacity,) if width is None else (capacity, width)
        self._array: NDArray[Any] = np.full(shape, fill, dtype=dtype)

    def reserve(self, n: int) -> NDArray[Any]:
        """The array with room for n rows."""
        array = self._array
        if n > len(array):
            capacity = max(n, len(array) * 2)
            shape = (capacity,) if self._width is None else (capacity, self._width)
            grown = np.full(shape, self._fill, dtype=array.dtype)
            grown[: len(array)] = array
            self._array = array = grown
        return array

    def set(self, row: int, value: Any) -> None:
        """Set one row."""
        self.reserve(row + 1)[row] = value

    def set_many(self, start: int, values: NDArray[Any]) -> None:
        """Set the rows from `start` on."""
        self.reserve(start + len(values))[start : start + len(values)] = values

    def get(self, row: int) -> Any:
        """One row, the fill where nothing was set."""
        array = self._array
        return array[row] if row < len(array) else self._fill

    def view(self, n: int) -> NDArray[Any]:
        """The rows 0..n, without a copy where they were all set. Never grows the array: readers must not write."""
        array = self._array
        return array[:n] if n <= len(array) else self._padded(array, n)

    def take(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """The given rows, copied."""
        array = self._array
        if not len(rows):
            return array[:0]
        top = int(rows.max()) + 1
        return (array if top <= len(array) else self._padded(array, top))[rows]

    def _padded(self, array: NDArray[Any], n: int) -> NDArray[Any]:
        pad = np.full((n - len(array), *array.shape[1:]), self._fill, dtype=array.dtype)
        return np.concatenate([array, pad])

    def nbytes(self) -> int:
        """Resident bytes."""
        return int(self._array.nbytes)
