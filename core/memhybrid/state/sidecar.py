"""The cache beside Chroma: each memory as analysed, in one SQLite file, its vector in a memory-mapped one.

Everything here can be rebuilt from Chroma. Texts and metadata are kept too, so that opening an unchanged store reads nothing
from Chroma and analyses nothing. A row points at a slot of the vector file. Vectors are written first and the row is committed
last; whatever a killed process left undone is found by the change token, which is committed with the rows.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memhybrid.errors import StoreError
from memhybrid.indexes.postings import PackedTerms
from memhybrid.state.full import way_out
from memhybrid.state.rowfile import FileRows, MemoryRows, Rows

FORMAT = "1"
"""Raise it whenever what is stored changes its meaning; another format is rebuilt from Chroma, never guessed at."""
_IN_LIST = 500

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS memory (
    slot INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    scope TEXT,
    hash BLOB NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    terms BLOB NOT NULL,
    counts BLOB NOT NULL,
    entities TEXT NOT NULL,
    covered INTEGER NOT NULL,
    tokens BLOB
);
CREATE INDEX IF NOT EXISTS memory_scope ON memory (scope, slot);
CREATE TABLE IF NOT EXISTS entity_vector (
    scope TEXT NOT NULL, key TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (scope, key)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class CachedMemory:
    """One memory as analysed.

    `scope` is None where its metadata lacks a scope key. `covered` tells whether the embedder is meant for the text's script,
    `tokens` are its compressed token vectors (None: none were made).
    """

    id: str
    scope: str | None
    hash: bytes
    text: str
    metadata: Mapping[str, Any]
    terms: PackedTerms
    entities: tuple[str, ...]
    covered: bool
    vector: NDArray[np.float32]
    tokens: bytes | None = None
    slot: int = -1


class Sidecar:
    """Reads and writes the cache. Writers are serialised by the caller; any thread may read."""

    def __init__(self, folder: Path | None, dimension: int | None, *, writable: bool = True) -> None:
        self.folder = folder
        self.writable = writable
        self._lock = threading.RLock()
        self._db = self._connect()
        self._dimension = dimension
        self._vectors: Rows | None = None
        self._free: list[int] = []
        self._next_slot = 0
        with self._guard():
            if writable:
                self._db.executescript(_SCHEMA)
            row = self._db.execute("SELECT coalesce(max(slot), -1) + 1 FROM memory").fetchone()
            self._next_slot = int(row[0])
            if self._next_slot:
                used = (
                    {s for (s,) in self._db.execute("SELECT slot FROM memory")}
                    if self.count() < self._next_slot
                    else None
                )
                if used is not None:
                    # Slots are used again only after reopening: a reader may still hold the rows of this session's deletes.
                    self._free = [s for s in range(self._next_slot) if s not in used]

    def _connect(self) -> sqlite3.Connection:
        try:
            if self.folder is None:
                return sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            path = self.folder / "cache.sqlite3"
            if not self.writable:
                return sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False, isolation_level=None)
            db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=10)
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute("PRAGMA secure_delete=ON")
            db.execute("PRAGMA mmap_size=268435456")
            return db
        except sqlite3.Error as error:
            raise StoreError(f"cannot open the state in {self.folder}: {error}") from error

    @contextmanager
    def _guard(self) -> Generator[None, None, None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                text = f"the state in {self.folder or 'memory'} failed: {error}{way_out(error)}"
                if type(error) is sqlite3.DatabaseError and self.folder is not None:
                    text += ". Close the store and delete cache.sqlite3* there: it is made again from Chroma"
                raise StoreError(text) from error

    @contextmanager
    def transaction(self) -> Generator[None, None, None]:
        """All or nothing; may be nested."""
        with self._guard():
            if self._db.in_transaction:
                yield
                return
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    # --- what the state belongs to -----------------------------------------------------------------------------------

    def whole(self, dimension: int | None) -> bool:
        """Whether both files are as long as they must be; a copy that broke off or a lost file shows here."""
        if self.folder is None or not self.writable:
            return True
        with self._guard():
            pages, size = (
                int(self._db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size")
            )
            log = self.folder / "cache.sqlite3-wal"
            logged = log.exists() and log.stat().st_size > 0
            if not logged and (self.folder / "cache.sqlite3").stat().st_size < pages * size:
                return False
            if not self._next_slot:
                return True
            rows = None if dimension is None else self.vectors(dimension)
            return isinstance(rows, FileRows) and len(rows) >= self._next_slot

    def get_meta(self, key: str) -> str | None:
        """One value about the whole cache."""
        with self._guard():
            row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, **values: str | None) -> None:
        """Set values about the whole cache; None removes."""
        with self.transaction():
            for key, value in values.items():
                if value is None:
                    self._db.execute("DELETE FROM meta WHERE key = ?", (key,))
                else:
                    self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def clear(self) -> None:
        """Forget everything, with the space it took."""
        with self._guard():
            for table in ("memory", "entity_vector", "meta"):
                self._db.execute(f"DELETE FROM {table}")  # noqa: S608 - three constants
            self._next_slot, self._free = 0, []
            if self._vectors is not None:
                self._vectors.truncate()
                self._vectors.close()
                self._vectors = None
            elif self.folder is not None:
                (self.folder / "vectors.f32").unlink(missing_ok=True)
            self._dimension = None
            self._db.execute("VACUUM")

    # --- vectors -----------------------------------------------------------------------------------------------------

    @property
    def dimension(self) -> int | None:
        """Length of the vectors; None as long as there are none."""
        return self._dimension

    def vectors(self, dimension: int | None = None) -> Rows:
        """The vector file, made at the first write."""
        with self._lock:
            if self._vectors is None:
                width = self._dimension or dimension
                assert width is not None
                self._dimension = width
                if self.folder is None:
                    self._vectors = MemoryRows(width, np.float32)
                else:
                    self._vectors = FileRows(self.folder / "vectors.f32", width, np.float32, writable=self.writable)
            return self._vectors

    # --- memories ----------------------------------------------------------------------------------------------------

    def put(self, memories: Sequence[CachedMemory]) -> list[int]:
        """Store or replace; the slot of each. A memory that is replaced keeps its slot."""
        if not memories:
            return []
        known = self.slots_of([m.id for m in memories])
        with self.transaction():
            slots = [known[m.id] if m.id in known else self._take_slot() for m in memories]
            matrix = np.stack([m.vector for m in memories])
            self.vectors(matrix.shape[1]).put(np.array(slots, dtype=np.intp), matrix)
            self._db.executemany(
                "INSERT OR REPLACE INTO memory VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        slot,
                        m.id,
                        m.scope,
                        m.hash,
                        m.text,
                        json.dumps(dict(m.metadata), ensure_ascii=False),
                        m.terms.hashes.tobytes(),
                        m.terms.counts.tobytes(),
                        json.dumps(m.entities, ensure_ascii=False),
                        int(m.covered),
                        m.tokens,
                    )
                    for slot, m in zip(slots, memories, strict=True)
                ],
            )
        return slots

    def _take_slot(self) -> int:
        if self._free:
            return self._free.pop()
        self._next_slot += 1
        return self._next_slot - 1

    def remove(self, ids: Sequence[str]) -> None:
        """Forget memories and their vectors. The vectors of names that only they mentioned go with `compact`."""
        slots = self.slots_of(ids)
        if not slots:
            return
        with self.transaction():
            self._db.executemany("DELETE FROM memory WHERE slot = ?", [(s,) for s in slots.values()])
        if self._vectors is not None or self._dimension is not None:
            self.vectors().wipe(np.array(list(slots.values()), dtype=np.intp))

    def slots_of(self, ids: Sequence[str]) -> dict[str, int]:
        """id → slot of those that exist."""
        return {row[0]: row[1] for row in self._by_ids("id, slot", ids)}

    def scopes_of(self, ids: Sequence[str]) -> dict[str, str | None]:
        """id → partition of those that exist."""
        return {row[0]: row[1] for row in self._by_ids("id, scope", ids)}

    def hashes_of(self, ids: Sequence[str]) -> dict[str, bytes]:
        """id → content hash of those that exist."""
        return {row[0]: row[1] for row in self._by_ids("id, hash", ids)}

    def contents_of(self, ids: Sequence[str]) -> dict[str, tuple[str, dict[str, Any]]]:
        """id → (text, metadata) of those that exist."""
        return {row[0]: (row[1], json.loads(row[2])) for row in self._by_ids("id, text, metadata", ids)}

    def vectors_of(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """id → vector of those that exist."""
        slots = self.slots_of(ids)
        if not slots:
            return {}
        matrix = self.vectors().take(np.array(list(slots.values()), dtype=np.intp))
        return dict(zip(slots, matrix, strict=True))

    def tokens_of(self, identifier: str) -> bytes | None:
        """One memory's packed token vectors."""
        rows = self._by_ids("tokens", [identifier])
        return rows[0][0] if rows else None

    def _by_ids(self, columns: str, ids: Sequence[str]) -> list[tuple[Any, ...]]:
        out: list[tuple[Any, ...]] = []
        with self._guard():
            for start in range(0, len(ids), _IN_LIST):
                part = list(ids[start : start + _IN_LIST])
                marks = ",".join("?" * len(part))
                out.extend(self._db.execute(f"SELECT {columns} FROM memory WHERE id IN ({marks})", part))  # noqa: S608
        return out

    def load(self, scope: str | None, *, unscoped: bool = False) -> list[tuple[Any, ...]]:
        """The rows of one partition in slot order: slot, id, text, metadata, terms, counts, entities, covered, tokens.

        `unscoped` takes every memory whatever its scope.
        """
        columns = "slot, id, text, metadata, terms, counts, entities, covered, tokens"
        with self._guard():
            if unscoped:
                return self._db.execute(f"SELECT {columns} FROM memory ORDER BY slot").fetchall()  # noqa: S608
            return self._db.execute(
                f"SELECT {columns} FROM memory WHERE scope IS ? ORDER BY slot",  # noqa: S608
                (scope,),
            ).fetchall()

    def count(self, scope: str | None = None) -> int:
        """Number of memories, of one partition if given."""
        with self._guard():
            if scope is None:
                row = self._db.execute("SELECT count(*) FROM memory").fetchone()
            else:
                row = self._db.execute("SELECT count(*) FROM memory WHERE scope = ?", (scope,)).fetchone()
        return int(row[0])

    def count_outside(self) -> int:
        """Memories whose metadata lacks a scope key."""
        with self._guard():
            return int(self._db.execute("SELECT count(*) FROM memory WHERE scope IS NULL").fetchone()[0])

    def scopes(self) -> list[str]:
        """Every partition that has memories."""
        with self._guard():
            rows = self._db.execute(
                "SELECT DISTINCT scope FROM memory WHERE scope IS NOT NULL ORDER BY scope"
            ).fetchall()
        return [str(row[0]) for row in rows]

    def all_hashes(self) -> dict[str, bytes]:
        """id → content hash of everything."""
        with self._guard():
            return dict(self._db.execute("SELECT id, hash FROM memory").fetchall())

    # --- entity vectors ----------------------------------------------------------------------------------------------

    def entity_vectors(self, scope: str) -> dict[str, NDArray[np.float32]]:
        """key → vector of one partition's names."""
        with self._guard():
            rows = self._db.execute("SELECT key, vector FROM entity_vector WHERE scope = ?", (scope,)).fetchall()
        return {str(key): np.frombuffer(blob, dtype=np.float32) for key, blob in rows}

    def put_entity_vectors(self, scope: str, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """Keep the vectors of names."""
        if not self.writable:
            return
        with self.transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO entity_vector VALUES (?, ?, ?)",
                [(scope, key, np.asarray(v, dtype=np.float32).tobytes()) for key, v in vectors.items()],
            )

    def drop_entity_vectors(self, scope: str, keys: Iterable[str]) -> None:
        """Forget the vectors of names that no memory of the partition mentions any more."""
        with self.transaction():
            self._db.executemany("DELETE FROM entity_vector WHERE scope = ? AND key = ?", [(scope, k) for k in keys])

    # --- upkeep ------------------------------------------------------------------------------------------------------

    def _forget_names(self) -> None:
        """The vectors of names that no memory mentions any more."""
        for (scope,) in self._db.execute("SELECT DISTINCT scope FROM entity_vector").fetchall():
            mentioned: set[str] = set()
            for (text,) in self._db.execute("SELECT entities FROM memory WHERE scope = ?", (scope,)):
                mentioned.update(json.loads(text))
            keys = self._db.execute("SELECT key FROM entity_vector WHERE scope = ?", (scope,)).fetchall()
            self.drop_entity_vectors(scope, [key for (key,) in keys if key not in mentioned])

    def compact(self) -> None:
        """Give back the space of deleted memories, so that nothing of them is left in any file."""
        with self._guard():
            self._forget_names()
            self._db.execute("VACUUM")
            if self.folder is not None:
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            self._db.close()
            if self._vectors is not None:
                self._vectors.close()
