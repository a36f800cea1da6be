"""All indexes of one scope, and the view of them that a search pins.

Rows are appended and tombstoned, never changed: an update is a new row. A `View` therefore stays what it was, however long a
search takes and whatever is written meanwhile. One writer at a time; readers take no lock.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memhybrid.indexes.bm25 import Bm25Index, Bm25State
from memhybrid.indexes.entities import EntityIndex
from memhybrid.indexes.growable import Growable
from memhybrid.indexes.metadata import MetadataTable
from memhybrid.indexes.postings import PackedTerms
from memhybrid.indexes.rank_bm25 import RankBm25Index
from memhybrid.indexes.vectors import RowSource, VectorRows
from memhybrid.records import Memory
from memhybrid.scope import Filter
from memhybrid.state.sidecar import CachedMemory

Rows = NDArray[np.intp]
COMPACT_FROM = 1_000
"""Dead rows from which a partition that is mostly dead is loaded anew."""


@dataclass(frozen=True)
class View:
    """One scope as it is at one moment: rows 0..n, of which `alive` ones (None: all) exist."""

    partition: Partition
    n: int
    alive: NDArray[np.bool_] | None
    lexical: Bm25State

    @property
    def count(self) -> int:
        """Number of living memories."""
        return self.lexical.documents

    def mask(self, where: Filter | None) -> NDArray[np.bool_] | None:
        """Living rows that satisfy the filter; None means every row."""
        if where is None:
            return self.alive
        inside = where.mask(self.partition.metadata, self.n)
        return inside if self.alive is None else inside & self.alive

    def linked(self, key: str) -> Rows:
        """Living rows that mention the entity."""
        return self.partition.entities.linked(key, self.n, self.alive)

    def rows_of(self, ids: Sequence[str]) -> Rows:
        """Living rows of those of the ids that exist here, in the order of the ids."""
        find = self.partition.row_of.get
        rows = np.array([find(i, -1) for i in ids], dtype=np.intp)
        if len(rows) and int(rows.max()) >= self.n:
            rows = np.array([self._row_of(i) for i in ids], dtype=np.intp)
        rows = rows[rows >= 0]
        return rows if self.alive is None else rows[self.alive[rows]]

    def _row_of(self, identifier: str) -> int:
        """The row that an id had when this view was taken, -1 for none: a memory being replaced is still there."""
        row = self.partition.row_of.get(identifier, -1)
        while row >= self.n:
            row = self.partition.replaces.get(row, -1)
        return row

    def living(self) -> Rows:
        """All living rows."""
        return np.arange(self.n, dtype=np.intp) if self.alive is None else np.flatnonzero(self.alive)

    def id(self, row: int) -> str:
        """A row's id."""
        return self.partition.ids[row]

    def text(self, row: int) -> str:
        """A row's text."""
        return self.partition.texts[row]

    def memory(self, row: int) -> Memory:
        """A fresh Memory; changing its metadata changes nothing here."""
        partition = self.partition
        return Memory(partition.ids[row], partition.texts[row], partition.metadata.get(row))

    def order(self, rows: Rows, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """Positions that sort the rows by score, descending, then by id."""
        order = np.argsort(-scores, kind="stable")
        ranked = scores[order]
        ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) + 1
        if len(ends) < len(rows):
            ids, start = self.partition.ids, 0
            for end in ends.tolist():
                if end - start > 1:
                    order[start:end] = sorted(order[start:end].tolist(), key=lambda i: ids[rows[i]])
                start = end
        return order


class Partition:
    """The writer's side of one scope."""

    def __init__(
        self, scope: str, dimension: int | None, source: RowSource | None = None, bm25: str = "memhybrid"
    ) -> None:
        self.scope = scope
        self.ids: list[str] = []
        self.texts: list[str] = []
        self.row_of: dict[str, int] = {}
        self.replaces: dict[int, int] = {}
        self.metadata = MetadataTable()
        self.lexical = RankBm25Index() if bm25 == "rank-bm25" else Bm25Index()
        self.entities = EntityIndex()
        self.vectors = None if dimension is None else VectorRows(dimension, source)
        self.covered = Growable(np.bool_, fill=False)
        self.questions = Growable(np.bool_, fill=False)
        self.tokens: list[bytes | None] = []
        self.sessions: dict[Any, Any] = {}
        self.entity_vectors: dict[str, NDArray[np.float32]] | None = None
        self._source = source
        self._text_bytes = 0
        self._view = View(self, 0, None, self.lexical.state)

    @classmethod
    def load(
        cls,
        scope: str,
        rows: Sequence[tuple[Any, ...]],
        dimension: int | None,
        vectors: RowSource | None,
        *,
        resident: bool,
        bm25: str = "memhybrid",
    ) -> Partition:
        """From the cache's rows (see Sidecar.load). `resident` copies the vectors into memory for exact scans."""
        made = cls(scope, dimension, None if resident else vectors, bm25)
        if not rows:
            return made
        slots = np.array([row[0] for row in rows], dtype=np.int64)
        hashes = np.frombuffer(b"".join(row[4] for row in rows), dtype=np.uint64)
        counts = np.frombuffer(b"".join(row[5] for row in rows), dtype=np.uint16)
        ends = np.cumsum([len(row[5]) // 2 for row in rows]).tolist()
        packed: list[PackedTerms] = []
        start = 0
        for end in ends:
            packed.append(PackedTerms(hashes[start:end], counts[start:end]))
            start = end
        # One call for all: a call a row takes four times as long.
        metadatas: list[dict[str, Any]] = json.loads(f"[{','.join(row[3] for row in rows)}]")
        memories: list[tuple[str, str, dict[str, Any], Sequence[str], bool, bytes | None]] = [
            (row[1], row[2], metadata, json.loads(row[6]) if row[6] != "[]" else (), bool(row[7]), row[8])
            for row, metadata in zip(rows, metadatas, strict=True)
        ]
        matrix = vectors.take(slots.astype(np.intp)) if vectors is not None and dimension is not None else None
        made._append(memories, packed, matrix, slots)
        return made

    def put(self, memories: Sequence[CachedMemory], slots: Sequence[int]) -> None:
        """Add or replace memories, given as analysed and by their slots in the cache."""
        if self.vectors is None:
            self.vectors = VectorRows(len(memories[0].vector), self._source)
        replaced = [self.row_of[m.id] for m in memories if m.id in self.row_of]
        if replaced:
            self._remove_rows(replaced)
        self._append(
            [(m.id, m.text, dict(m.metadata), m.entities, m.covered, m.tokens) for m in memories],
            [m.terms for m in memories],
            np.stack([m.vector for m in memories]),
            np.array(slots, dtype=np.int64),
        )

    def _append(
        self,
        memories: Sequence[tuple[str, str, dict[str, Any], Sequence[str], bool, bytes | None]],
        packed: Sequence[PackedTerms],
        matrix: NDArray[np.float32] | None,
        slots: NDArray[np.int64],
    ) -> None:
        start = len(self.ids)
        self.metadata.append(start, (memory[2] for memory in memories))
        self.covered.set_many(start, np.array([memory[4] for memory in memories], dtype=np.bool_))
        self.questions.set_many(start, np.array([m[1].rstrip()[-1:] in ("?", "？") for m in memories], dtype=np.bool_))
        self.ids.extend(memory[0] for memory in memories)
        self.texts.extend(memory[1] for memory in memories)
        self.tokens.extend(memory[5] for memory in memories)
        for row, (identifier, text, _, entities, _, tokens) in enumerate(memories, start):
            if entities:
                self.entities.add(row, entities)
            self._text_bytes += 2 * 60 + len(identifier) + len(text) + (len(tokens) + 33 if tokens else 0)
        if self.vectors is not None and matrix is not None:
            self.vectors.append(start, matrix, slots)
        self.lexical.add_packed(range(start, start + len(memories)), packed)
        for offset, memory in enumerate(memories):
            old = self.row_of.get(memory[0])
            if old is not None:
                self.replaces[start + offset] = old
            self.row_of[memory[0]] = start + offset
        self._publish()

    def remove(self, ids: Sequence[str]) -> None:
        """Remove memories; unknown ids are ignored."""
        rows = [self.row_of.pop(i) for i in ids if i in self.row_of]
        if rows:
            self._remove_rows(rows)
            self._publish()

    def _remove_rows(self, rows: Sequence[int]) -> None:
        self.lexical.remove(rows)

    def _publish(self) -> None:
        state = self.lexical.state
        self._view = View(self, state.n_rows, state.alive, state)

    def view(self) -> View:
        """What a search works on."""
        return self._view

    @property
    def mostly_dead(self) -> bool:
        """Whether it is time to load it anew."""
        dead = self._view.n - self._view.count
        return dead >= COMPACT_FROM and dead > self._view.count

    def sizes(self) -> dict[str, int]:
        """Approximate resident bytes by part."""
        return {
            "bm25": self.lexical.nbytes(),
            "entities": self.entities.nbytes(),
            "metadata": self.metadata.nbytes(),
            "texts_ids_tokens": self._text_bytes + 8 * 3 * len(self.ids) + 100 * len(self.row_of),
            "vectors": self.vectors.nbytes() if self.vectors is not None else 0,
        }

    def nbytes(self) -> int:
        """Approximate resident bytes."""
        return sum(self.sizes().values())
