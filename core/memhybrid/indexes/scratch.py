"""One array of zeros that is borrowed again and again: a fresh one of a million numbers costs more than the sums put into it."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

_SPARSE = 8
"""Up to one row in eight touched, the touched rows are wiped one by one; above, the whole array."""


class Scratch:
    """Zeros for one borrower at a time; whoever comes meanwhile gets an array of their own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._array: NDArray[np.float64] = np.zeros(0)

    @contextmanager
    def borrow(self, n: int) -> Generator[tuple[NDArray[np.float64], list[NDArray[np.int32]]], None, None]:
        """n zeros, and a list for the borrower to say which rows it wrote to; they are wiped at the end."""
        if not self._lock.acquire(blocking=False):
            yield np.zeros(n), []
            return
        try:
            if len(self._array) < n:
                self._array = np.zeros(n + n // 8)
            buffer = self._array[:n]
            touched: list[NDArray[np.int32]] = []
            try:
                yield buffer, touched
            finally:
                if _SPARSE * sum(map(len, touched)) < n:
                    for rows in touched:
                        buffer[rows] = 0.0
                else:
                    buffer.fill(0.0)
        finally:
            self._lock.release()
