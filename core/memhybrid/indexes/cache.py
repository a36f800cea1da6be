"""Which partitions are in memory: loaded when first asked for, dropped, least recently used first, under a budget."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from memhybrid.concurrency import many_objects
from memhybrid.indexes.partition import Partition
from memhybrid.state.sidecar import CachedMemory, Sidecar

EXACT_LIMIT = 10_000
"""Memories of a store without scope keys up to which its vectors are scanned exactly instead of asking Chroma's index."""
_TRIES = 3


class Partitions:
    """Partitions by scope. Any thread may `get`; `apply` is called under the store's write lock, after the cache was written."""

    def __init__(self, sidecar: Sidecar, *, scoped: bool, budget: int | None, bm25: str = "memhybrid") -> None:
        self._sidecar = sidecar
        self._scoped = scoped
        self._budget = budget
        self._bm25 = bm25
        self._lock = threading.Lock()
        self._resident: OrderedDict[str, Partition] = OrderedDict()
        self._sizes: dict[str, tuple[int, int]] = {}
        self._epochs: dict[str, int] = {}
        self._epoch_all = 0
        self.write_lock = threading.RLock()
        self.cold_loads = 0

    def get(self, scope: str) -> Partition:
        """The partition, loaded if need be. An unknown scope is an empty partition."""
        with self._lock:
            found = self._resident.get(scope)
            if found is not None:
                self._resident.move_to_end(scope)
                return found
        for _ in range(_TRIES):
            epoch = self._epoch(scope)
            made = self._load(scope)
            published = self._publish(scope, made, epoch)
            if published is not None:
                return published
        # Writes kept coming in between: keep the writer out for one load.
        with self.write_lock:
            epoch = self._epoch(scope)
            return self._publish(scope, self._load(scope), epoch) or self._load(scope)

    def _epoch(self, scope: str) -> tuple[int, int]:
        with self._lock:
            return self._epoch_all, self._epochs.get(scope, 0)

    def _load(self, scope: str) -> Partition:
        with many_objects():
            rows = self._sidecar.load(scope)
            dimension = self._sidecar.dimension
            vectors = self._sidecar.vectors() if dimension is not None else None
            resident = self._scoped or len(rows) <= EXACT_LIMIT
            self.cold_loads += 1
            return Partition.load(scope, rows, dimension, vectors, resident=resident, bm25=self._bm25)

    def _publish(self, scope: str, made: Partition, epoch: tuple[int, int]) -> Partition | None:
        """Make a loaded partition the resident one, unless a write came after it was read."""
        with self._lock:
            found = self._resident.get(scope)
            if found is not None:
                return found
            if (self._epoch_all, self._epochs.get(scope, 0)) != epoch:
                return None
            self._resident[scope] = made
            self._evict(scope)
            return made

    def apply(self, scope: str, put: Sequence[CachedMemory], slots: Sequence[int], removed: Sequence[str]) -> None:
        """Bring a resident partition up to what the cache now holds; others find it there when they are loaded."""
        with self._lock:
            self._epochs[scope] = self._epochs.get(scope, 0) + 1
            found = self._resident.get(scope)
        if found is None:
            return
        if removed:
            found.remove(removed)
        if put:
            found.put(put, slots)
        if found.mostly_dead:
            self.drop(scope)
        elif self._budget is not None:
            with self._lock:
                self._evict(scope)

    def _evict(self, keep: str) -> None:
        if self._budget is None:
            return
        total = sum(self._size(scope, partition) for scope, partition in self._resident.items())
        while total > self._budget and len(self._resident) > 1:
            scope = next(s for s in self._resident if s != keep)
            total -= self._size(scope, self._resident.pop(scope))
            self._sizes.pop(scope, None)

    def _size(self, scope: str, partition: Partition) -> int:
        rows = len(partition.ids)
        known = self._sizes.get(scope)
        if known is None or rows > known[0] * 1.1 + 16:
            known = self._sizes[scope] = (rows, partition.nbytes())
        return known[1]

    def drop(self, scope: str | None = None) -> None:
        """Forget a partition, or all of them; they are loaded again when asked for."""
        with self._lock:
            if scope is None:
                self._epoch_all += 1
                self._resident.clear()
                self._sizes.clear()
            else:
                self._epochs[scope] = self._epochs.get(scope, 0) + 1
                self._resident.pop(scope, None)
                self._sizes.pop(scope, None)

    def sizes(self) -> dict[str, int]:
        """Approximate resident bytes by part, over the resident partitions."""
        with self._lock:
            partitions = list(self._resident.values())
        out: dict[str, int] = {}
        for partition in partitions:
            for part, size in partition.sizes().items():
                out[part] = out.get(part, 0) + size
        return out

    @property
    def resident(self) -> int:
        """How many partitions are in memory."""
        return len(self._resident)
