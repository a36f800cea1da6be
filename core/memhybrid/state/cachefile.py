"""The SQLite file of the cache: opening it, transactions, its settings, and what to do where it is damaged.

What is damaged is made again (`mend`), never believed.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from memhybrid.errors import StoreError
from memhybrid.state.checks import CacheDamagedError, SqliteErrors, is_damage, of_settings
from memhybrid.state.full import way_out

_T = TypeVar("_T")
FILES = ("cache.sqlite3", "cache.sqlite3-wal", "cache.sqlite3-shm", "cache.sqlite3-journal", "vectors.f32")
_CHECK = "check"
_PAUSES_S = (0.02, 0.1)

SCHEMA = """
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
    tokens BLOB,
    vector_check INTEGER NOT NULL,
    row_check INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS memory_scope ON memory (scope, slot);
CREATE TABLE IF NOT EXISTS tally (
    scope TEXT PRIMARY KEY, memories INTEGER NOT NULL, checks INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entity_vector (
    scope TEXT NOT NULL, key TEXT NOT NULL, vector BLOB NOT NULL, row_check INTEGER NOT NULL, PRIMARY KEY (scope, key)
) WITHOUT ROWID;
"""


def _layout(db: sqlite3.Connection) -> list[tuple[str, ...]]:
    return db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()


@cache
def _expected_layout() -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        return _layout(db)


def remove_files(folder: Path) -> None:
    """Delete the cache in a folder; anything else there stays."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)


class CacheFile:
    """One SQLite file with the schema, or a database in memory. Writers are serialised by the caller; any thread may read."""

    def __init__(self, folder: Path | None, *, writable: bool) -> None:
        self.folder = folder
        self.writable = writable
        self.mend: Callable[[int], None] | None = None
        """Makes the cache again where it is damaged; told the `generation` that is. Without it CacheDamagedError is raised."""
        self.generation = 0
        self._lock = threading.RLock()
        self._db = self._connect()

    def _connect(self) -> sqlite3.Connection:
        try:
            if self.folder is None:
                return sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            path = self.folder / "cache.sqlite3"
            if not self.writable:
                return sqlite3.connect(
                    f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False, isolation_level=None
                )
            db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=10)
            try:
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("PRAGMA synchronous=NORMAL")
                db.execute("PRAGMA secure_delete=ON")
                db.execute("PRAGMA mmap_size=268435456")
            except BaseException:
                db.close()
                raise
            return db
        except SqliteErrors as error:
            if is_damage(error):
                raise self._damaged(str(error)) from error
            raise StoreError(f"cannot open the state in {self.folder}: {error}{way_out(error)}") from error

    @contextmanager
    def _guard(self) -> Generator[None, None, None]:
        with self._lock:
            try:
                yield
            except SqliteErrors as error:
                if is_damage(error) and self.folder is not None:
                    raise self._damaged(str(error)) from error
                raise StoreError(f"the state in {self.folder or 'memory'} failed: {error}{way_out(error)}") from error

    def _damaged(self, what: str) -> CacheDamagedError:
        return CacheDamagedError(
            f"the cache in {self.folder} is damaged ({what}). Open the store for writing once, or close it and delete "
            "cache.sqlite3* there: it is made again from Chroma"
        )

    def _mended(self, read: Callable[[], _T]) -> _T:
        """What `read` gives, after the cache was made again if it is damaged."""
        generation = self.generation
        try:
            return read()
        except CacheDamagedError:
            if not self.writable:
                return self._again(read)
            if self.mend is None or self._db.in_transaction:
                raise
            self.mend(generation)
            return read()

    @staticmethod
    def _again(read: Callable[[], _T]) -> _T:
        """A reader may have looked in the middle of a write: only what stays damaged is."""
        for pause in _PAUSES_S:
            time.sleep(pause)
            with suppress(CacheDamagedError):
                return read()
        return read()

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

    def _layout_is_ours(self) -> bool:
        """Whether the tables are as they were made."""
        return _layout(self._db) == _expected_layout()

    def _settings(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT key, value FROM meta WHERE key <> ?", (_CHECK,)).fetchall())

    def settings_are_sound(self) -> bool:
        """Whether the values about the whole cache are as they were set."""
        with self._guard():
            settings = self._settings()
        return self.get_meta(_CHECK) == (of_settings(settings) if settings else None)

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
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_CHECK, of_settings(self._settings())))

    @contextmanager
    def _snapshot(self) -> Generator[None, None, None]:
        """Several queries on one state, whatever another process writes meanwhile."""
        with self._guard():
            if self._db.in_transaction:
                yield
                return
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
