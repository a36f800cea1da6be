"""The cache beside Chroma: each memory as analysed, in one SQLite file, its vector in a memory-mapped one.

Everything here can be rebuilt from Chroma. Texts and metadata are kept too, so that opening an unchanged store reads nothing
from Chroma and analyses nothing. A row points at a slot of the vector file. Vectors are written first and the row is committed
last; whatever a killed process left undone is found by the change token, which is committed with the rows.

Every row has a checksum, of itself and of its vector, and every partition the sum of these: what is read is what was written, or the
cache is made again (`mend`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from memhybrid.indexes.postings import PackedTerms
from memhybrid.state.cachefile import SCHEMA, CacheFile, remove_files
from memhybrid.state.checks import CacheDamagedError, is_sound, of_row, of_vector
from memhybrid.state.rowfile import FileRows, MemoryRows, Rows

FORMAT = "2"
"""Raise it whenever what is stored changes its meaning; another format is rebuilt from Chroma, never guessed at."""
COLUMNS = "slot, id, text, metadata, terms, counts, entities, covered, tokens, scope, hash, vector_check, row_check"
VECTORS_READ = 10_000
"""Memories of a partition up to which its vectors are read, and so compared with their checksums, when it is loaded."""
_IN_LIST = 500
_OUTSIDE = ""
"""Where the tally counts memories without a partition."""


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


def _row(slot: int, memory: CachedMemory) -> tuple[Any, ...]:
    """As in COLUMNS."""
    told = (
        slot,
        memory.id,
        memory.text,
        json.dumps(dict(memory.metadata), ensure_ascii=False),
        memory.terms.hashes.tobytes(),
        memory.terms.counts.tobytes(),
        json.dumps(memory.entities, ensure_ascii=False),
        int(memory.covered),
        memory.tokens,
        memory.scope,
        memory.hash,
        of_vector(memory.vector),
    )
    return (*told, of_row(told))


def _of_name(scope: str, key: Any, blob: Any) -> int | None:
    if not isinstance(key, str) or not isinstance(blob, bytes) or len(blob) % 4:
        return None
    return crc32(f"{scope}\0{key}\0".encode("utf-8", "surrogatepass") + blob)


class Sidecar(CacheFile):
    """Reads and writes the cache. Writers are serialised by the caller; any thread may read."""

    def __init__(self, folder: Path | None, dimension: int | None, *, writable: bool = True) -> None:
        super().__init__(folder, writable=writable)
        self.quiet: Callable[[], bool] | None = None
        """For a reader: whether nobody is writing, so that a vector that does not belong to its row is no write under way."""
        self._dimension = dimension
        self._vectors: Rows | None = None
        self._free: list[int] | None = None
        self._next_slot = 0
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        with self._guard():
            if self.writable:
                self._db.executescript(SCHEMA)
            row = self._db.execute("SELECT coalesce(max(slot), -1) + 1 FROM memory").fetchone()
            self._next_slot = int(row[0])
            # Slots are used again only after reopening: a reader may still hold the rows of this session's deletes.
            self._free = None if self.count() < self._next_slot else []

    def _unused_slots(self) -> list[int]:
        used = {slot for (slot,) in self._db.execute("SELECT slot FROM memory")}
        return [slot for slot in range(self._next_slot) if slot not in used]

    def remake(self) -> None:
        """Begin again with empty files. Whoever still reads the old ones keeps them."""
        assert self.folder is not None
        with self._lock:
            self._db.close()
            remove_files(self.folder)
            self._vectors, self._dimension = None, None
            self._db = self._connect()
            self.generation += 1
            self._prepare()

    # --- what the state belongs to -----------------------------------------------------------------------------------

    def whole(self, dimension: int | None) -> bool:
        """Whether tables and settings are as they were made, and both files as long as they must be.

        A copy that broke off or a lost file shows here.
        """
        if self.folder is None:
            return True
        with self._guard():
            if not self._layout_is_ours() or not self.settings_are_sound():
                return False
            if not self.writable:
                return True
            pages, size = (
                int(self._db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size")
            )
            log = self.folder / "cache.sqlite3-wal"
            logged = log.exists() and log.stat().st_size > 0
            if not logged and (self.folder / "cache.sqlite3").stat().st_size < pages * size:
                return False
            if not self._next_slot:
                return True
            rows = None if dimension is None or dimension < 1 else self.vectors(dimension)
            return isinstance(rows, FileRows) and len(rows) >= self._next_slot

    def clear(self) -> None:
        """Forget everything, with the space it took."""
        with self._guard():
            for table in ("memory", "tally", "entity_vector", "meta"):
                self._db.execute(f"DELETE FROM {table}")  # noqa: S608 - four constants
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
        with self.transaction():
            known = {row[0]: row[1:] for row in self._by_ids("id, slot, scope, row_check", [m.id for m in memories])}
            slots = [known[m.id][0] if m.id in known else self._take_slot() for m in memories]
            matrix = np.stack([m.vector for m in memories])
            self.vectors(matrix.shape[1]).put(np.array(slots, dtype=np.intp), matrix)
            rows = [_row(slot, memory) for slot, memory in zip(slots, memories, strict=True)]
            marks = ",".join("?" * len(rows[0]))
            self._db.executemany(f"INSERT OR REPLACE INTO memory ({COLUMNS}) VALUES ({marks})", rows)  # noqa: S608
            self._count([(scope, check) for _, scope, check in known.values()], [(row[9], row[-1]) for row in rows])
        return slots

    def _count(self, gone: Iterable[tuple[Any, int]], come: Iterable[tuple[Any, int]]) -> None:
        """Keep the tally: how many memories each partition has, and the sum of their checksums."""
        changes: dict[str, list[int]] = {}
        for sign, rows in ((-1, gone), (1, come)):
            for scope, check in rows:
                if not isinstance(check, int):
                    raise self._damaged("a row is not as it was written")
                change = changes.setdefault(_OUTSIDE if scope is None else scope, [0, 0])
                change[0] += sign
                change[1] += sign * check
        self._db.executemany(
            "INSERT INTO tally VALUES (?, ?, ?) ON CONFLICT (scope) DO UPDATE SET memories = memories + excluded.memories, "
            "checks = checks + excluded.checks",
            [(scope, memories, checks) for scope, (memories, checks) in changes.items()],
        )
        self._db.executemany(
            "DELETE FROM tally WHERE scope = ? AND memories = 0 AND checks = 0",
            [(scope,) for scope, (memories, _) in changes.items() if memories < 0],
        )

    def _take_slot(self) -> int:
        if self._free is None:
            self._free = self._unused_slots()
        if self._free:
            return self._free.pop()
        self._next_slot += 1
        return self._next_slot - 1

    def remove(self, ids: Sequence[str]) -> None:
        """Forget memories and their vectors. The vectors of names that only they mentioned go with `compact`."""
        with self.transaction():
            rows = self._by_ids("slot, scope, row_check", ids)
            if not rows:
                return
            self._db.executemany("DELETE FROM memory WHERE slot = ?", [(row[0],) for row in rows])
            self._count([(scope, check) for _, scope, check in rows], [])
        if self._vectors is not None or self._dimension is not None:
            self.vectors().wipe(np.array([row[0] for row in rows], dtype=np.intp))

    def slots_of(self, ids: Sequence[str]) -> dict[str, int]:
        """id → slot of those that exist."""
        return {row[0]: row[1] for row in self._by_ids("id, slot", ids)}

    def scopes_of(self, ids: Sequence[str]) -> dict[str, str | None]:
        """id → partition of those that exist."""
        return {row[1]: row[9] for row in self._sound_by_ids(ids)}

    def hashes_of(self, ids: Sequence[str]) -> dict[str, bytes]:
        """id → content hash of those that exist."""
        return {row[0]: row[1] for row in self._by_ids("id, hash", ids)}

    def contents_of(self, ids: Sequence[str]) -> dict[str, tuple[str, dict[str, Any]]]:
        """id → (text, metadata) of those that exist."""
        return {row[1]: (row[2], json.loads(row[3])) for row in self._sound_by_ids(ids)}

    def kept_of(self, ids: Sequence[str]) -> dict[str, tuple[str, NDArray[np.float32], bytes | None]]:
        """id → (text, vector, packed token vectors) of those that exist and are as they were written."""
        out: dict[str, tuple[str, NDArray[np.float32], bytes | None]] = {}
        rows = [row for row in self._by_ids(COLUMNS, ids) if is_sound(row)]
        if rows and self._dimension is not None:
            vectors = self.vectors().take(np.array([row[0] for row in rows], dtype=np.intp))
            for row, vector in zip(rows, vectors, strict=True):
                if of_vector(vector) == row[-2]:
                    out[row[1]] = (row[2], vector, row[8])
        return out

    def vectors_of(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """id → vector of those that exist."""
        slots = self.slots_of(ids)
        if not slots:
            return {}
        matrix = self.vectors().take(np.array(list(slots.values()), dtype=np.intp))
        return dict(zip(slots, matrix, strict=True))

    def _by_ids(self, columns: str, ids: Sequence[str]) -> list[tuple[Any, ...]]:
        out: list[tuple[Any, ...]] = []
        with self._guard():
            for start in range(0, len(ids), _IN_LIST):
                part = list(ids[start : start + _IN_LIST])
                marks = ",".join("?" * len(part))
                out.extend(self._db.execute(f"SELECT {columns} FROM memory WHERE id IN ({marks})", part))  # noqa: S608
        return out

    def _sound_by_ids(self, ids: Sequence[str]) -> list[tuple[Any, ...]]:
        def read() -> list[tuple[Any, ...]]:
            rows = self._by_ids(COLUMNS, ids)
            if self.folder is not None and not all(map(is_sound, rows)):
                raise self._damaged("a row is not as it was written")
            return rows

        return self._mended(read)

    def load(self, scope: str) -> list[tuple[Any, ...]]:
        """The rows of one partition in slot order, as in COLUMNS."""
        return self._mended(lambda: self._sound_rows(scope, most=VECTORS_READ))

    def _sound_rows(self, scope: str | None, *, most: int | None = None) -> list[tuple[Any, ...]]:
        """A partition's rows, all of them as they were written; the vectors, too, if there are not more than `most`."""
        with self._snapshot():
            rows = self._db.execute(
                f"SELECT {COLUMNS} FROM memory WHERE scope IS ? ORDER BY slot",  # noqa: S608
                (scope,),
            ).fetchall()
            if self.folder is None:
                return rows
            tally = self._db.execute(
                "SELECT memories, checks FROM tally WHERE scope = ?", (_OUTSIDE if scope is None else scope,)
            ).fetchone()
            if not all(map(is_sound, rows)):
                raise self._damaged("a row is not as it was written")
            told = (len(rows), sum(row[-1] for row in rows))
            if (tally or (0, 0)) != told or len({row[1] for row in rows}) < len(rows):
                raise self._damaged("rows are missing, or are there twice")
            if self._dimension is not None and rows and (most is None or len(rows) <= most):
                vectors = self.vectors().take(np.array([row[0] for row in rows], dtype=np.intp))
                wrong = any(of_vector(vector) != row[-2] for vector, row in zip(vectors, rows, strict=True))
                # A reader may see a vector that the writer is just replacing.
                if wrong and (self.writable or (self.quiet is not None and self.quiet())):
                    raise self._damaged("a vector is not as it was written")
            return rows

    def damage(self) -> str | None:
        """What is wrong with the files, None where nothing is. Reads all of them."""
        if self.folder is None:
            return None
        try:
            with self._guard():
                if not self.whole(self._dimension):
                    return "its tables or settings are not as they were made"
                said = self._db.execute("PRAGMA integrity_check(1)").fetchone()[0]
                if said != "ok":
                    return str(said)
                scopes = {s for (s,) in self._db.execute("SELECT DISTINCT scope FROM memory")}
                scopes |= {s or None for (s,) in self._db.execute("SELECT scope FROM tally")}
                for scope in scopes:
                    self._sound_rows(scope)
        except CacheDamagedError as error:
            return str(error)
        return None

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

        def read() -> list[tuple[Any, ...]]:
            with self._guard():
                return self._db.execute(
                    "SELECT key, vector, row_check FROM entity_vector WHERE scope = ?", (scope,)
                ).fetchall()

        # What is damaged is embedded again.
        return {
            key: np.frombuffer(blob, dtype=np.float32)
            for key, blob, check in self._mended(read)
            if _of_name(scope, key, blob) == check
        }

    def put_entity_vectors(self, scope: str, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """Keep the vectors of names."""
        if not self.writable:
            return
        blobs = [(key, np.asarray(vector, dtype=np.float32).tobytes()) for key, vector in vectors.items()]

        def write() -> None:
            with self.transaction():
                self._db.executemany(
                    "INSERT OR REPLACE INTO entity_vector VALUES (?, ?, ?, ?)",
                    [(scope, key, blob, _of_name(scope, key, blob)) for key, blob in blobs],
                )

        self._mended(write)

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
