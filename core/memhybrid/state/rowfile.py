"""Rows of fixed width by slot number: memory-mapped in a file, or in memory where the store has no folder."""

from __future__ import annotations

import mmap
import os
import threading
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from memhybrid.errors import StoreError


class Rows(Protocol):
    """Both kinds."""

    width: int

    def put(self, slots: NDArray[np.intp], values: NDArray[Any]) -> None:
        """Set the given slots."""
        ...

    def take(self, slots: NDArray[np.intp]) -> NDArray[Any]:
        """The given slots, copied."""
        ...

    def wipe(self, slots: NDArray[np.intp]) -> None:
        """Overwrite with zeros."""
        ...

    def truncate(self) -> None:
        """Drop all rows."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class MemoryRows:
    """In memory, growing by doubling."""

    def __init__(self, width: int, dtype: DTypeLike) -> None:
        self.width = width
        self._array: NDArray[Any] = np.zeros((64, width), dtype=dtype)

    def put(self, slots: NDArray[np.intp], values: NDArray[Any]) -> None:
        """Set the given slots."""
        top = int(slots.max()) + 1
        if top > len(self._array):
            grown = np.zeros((max(top, 2 * len(self._array)), self.width), dtype=self._array.dtype)
            grown[: len(self._array)] = self._array
            self._array = grown
        self._array[slots] = values

    def take(self, slots: NDArray[np.intp]) -> NDArray[Any]:
        """The given slots, copied."""
        return self._array[slots]

    def wipe(self, slots: NDArray[np.intp]) -> None:
        """Overwrite with zeros."""
        self._array[slots[slots < len(self._array)]] = 0

    def truncate(self) -> None:
        """Drop all rows."""
        self._array = np.zeros((64, self.width), dtype=self._array.dtype)

    def close(self) -> None:
        """Nothing to do."""


class FileRows:
    """One row a slot in a file without a header. A killed process leaves whole rows: the system keeps what was written.

    `put` and `take` may run at the same time in several threads; a row that is being replaced may be read half new.
    """

    def __init__(self, path: Path, width: int, dtype: DTypeLike, *, writable: bool = True) -> None:
        self.path = path
        self.width = width
        self._dtype = np.dtype(dtype)
        self._row_bytes = width * self._dtype.itemsize
        self._writable = writable
        self._lock = threading.Lock()
        if writable:
            path.touch(exist_ok=True)
        self._file = path.open("r+b" if writable else "rb")
        self._map: mmap.mmap | None = None
        self._array: NDArray[Any] = np.empty((0, width), dtype=self._dtype)
        self._remap()

    def _remap(self) -> None:
        size = os.fstat(self._file.fileno()).st_size
        rows = size // self._row_bytes
        if rows:
            access = mmap.ACCESS_WRITE if self._writable else mmap.ACCESS_READ
            # Old maps stay alive as long as an array refers to them.
            self._map = mmap.mmap(self._file.fileno(), rows * self._row_bytes, access=access)
            self._array = np.frombuffer(self._map, dtype=self._dtype).reshape(rows, self.width)
        else:
            self._map, self._array = None, np.empty((0, self.width), dtype=self._dtype)

    def __len__(self) -> int:
        """How many rows the file has room for."""
        return len(self._array)

    def put(self, slots: NDArray[np.intp], values: NDArray[Any]) -> None:
        """Set the given slots, growing the file when needed. StoreError when the disk is full."""
        with self._lock:
            top = int(slots.max()) + 1
            if top > len(self._array):
                rows = max(top, min(2 * len(self._array), len(self._array) + 65536), 256)
                try:
                    # Blocks are reserved now: a full disk would otherwise kill the process at the first write to the map.
                    if hasattr(os, "posix_fallocate"):
                        os.posix_fallocate(self._file.fileno(), 0, rows * self._row_bytes)
                    else:
                        self._file.truncate(rows * self._row_bytes)
                except OSError as error:
                    raise StoreError(
                        f"cannot grow {self.path} to {rows} rows: {error.strerror}; make room there"
                    ) from error
                self._remap()
            self._array[slots] = values

    def take(self, slots: NDArray[np.intp]) -> NDArray[Any]:
        """The given slots, copied; zeros beyond the end of the file."""
        array = self._array
        if len(slots) and int(slots.max()) >= len(array):
            if not self._writable:
                with self._lock:
                    self._remap()
                array = self._array
            if int(slots.max()) >= len(array):
                out = np.zeros((len(slots), self.width), dtype=self._dtype)
                inside = slots < len(array)
                out[inside] = array[slots[inside]]
                return out
        return array[slots]

    def wipe(self, slots: NDArray[np.intp]) -> None:
        """Overwrite with zeros, so that nothing of a deleted memory stays in the file."""
        with self._lock:
            self._array[slots[slots < len(self._array)]] = 0

    def truncate(self) -> None:
        """Drop all rows."""
        with self._lock:
            self._map, self._array = None, np.empty((0, self.width), dtype=self._dtype)
            self._file.truncate(0)

    def close(self) -> None:
        """Close the file; arrays that were handed out stay valid."""
        self._file.close()
        self._map = None
        self._array = np.empty((0, self.width), dtype=self._dtype)
