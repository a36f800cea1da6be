"""How often each memory was returned, and when last. Not a cache: it cannot be rebuilt, and any process may write it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memhybrid.errors import StoreError
from memhybrid.state.checks import SqliteErrors, is_damage
from memhybrid.state.full import way_out

_SCHEMA = """
CREATE TABLE IF NOT EXISTS usage (
    id TEXT PRIMARY KEY, retrieve_count INTEGER NOT NULL, last_retrieved_at REAL
) WITHOUT ROWID;
"""
_IN_LIST = 500
_PATIENCE_S = 30.0
_DAMAGED = (
    ". It cannot be made again: put back a copy, or close the store and delete ledger.sqlite3* there to count anew"
)


@dataclass(frozen=True)
class UsageEntry:
    """`count` times returned, `last` at (epoch seconds; None: never)."""

    count: int
    last: float | None


class Ledger:
    """Counts in SQLite, each increment one statement inside one transaction: exact under threads and processes."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / "ledger.sqlite3"
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    @contextmanager
    def _connection(self) -> Generator[sqlite3.Connection, None, None]:
        with self._lock:
            try:
                if self._db is None:
                    self._db = self._open()
                yield self._db
            except SqliteErrors as error:
                hint = _DAMAGED if self._path is not None and is_damage(error) else way_out(error)
                raise StoreError(f"the usage ledger {self._path or 'in memory'} failed: {error}{hint}") from error

    def _open(self) -> sqlite3.Connection:
        """The file is made at the first write, so that a store which never counts has none."""
        target = ":memory:" if self._path is None else str(self._path)
        db = sqlite3.connect(target, check_same_thread=False, isolation_level=None, timeout=_PATIENCE_S)
        try:
            if self._path is not None:
                _in_wal_mode(db)
                db.execute("PRAGMA synchronous=NORMAL")
                db.execute("PRAGMA secure_delete=ON")
            db.execute(_SCHEMA)
        except BaseException:
            db.close()
            raise
        return db

    @property
    def _unused(self) -> bool:
        """Whether nothing was ever counted here, so that there is nothing to read."""
        if self._path is None or self._db is not None:
            return False
        try:
            # Of no length: a full disk kept it from being made.
            return not self._path.stat().st_size
        except OSError:
            return True

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        """All or nothing."""
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def record(self, ids: Sequence[str], now: float) -> None:
        """Each id was returned once more, now."""
        if not ids:
            return
        with self._transaction() as db:
            db.executemany(
                "INSERT INTO usage VALUES (?, 1, ?) ON CONFLICT (id) DO UPDATE SET retrieve_count = retrieve_count + 1, "
                "last_retrieved_at = max(coalesce(last_retrieved_at, excluded.last_retrieved_at), excluded.last_retrieved_at)",
                [(i, now) for i in ids],
            )

    def get(self, ids: Sequence[str]) -> dict[str, UsageEntry]:
        """Entries of those of the ids that were ever returned."""
        out: dict[str, UsageEntry] = {}
        if self._unused:
            return out
        with self._connection() as db:
            for start in range(0, len(ids), _IN_LIST):
                part = list(ids[start : start + _IN_LIST])
                marks = ",".join("?" * len(part))
                rows = db.execute(f"SELECT * FROM usage WHERE id IN ({marks})", part)  # noqa: S608
                out.update(self._entry(row) for row in rows)
        return out

    def _entry(self, row: tuple[Any, ...]) -> tuple[str, UsageEntry]:
        identifier, count, last = row
        if not isinstance(identifier, str) or not isinstance(count, int) or not isinstance(last, float | int | None):
            raise StoreError(f"the usage ledger {self._path} has something that was never written{_DAMAGED}")
        return identifier, UsageEntry(count, last)

    def export(self) -> dict[str, UsageEntry]:
        """Every entry."""
        if self._unused:
            return {}
        with self._connection() as db:
            return dict(self._entry(row) for row in db.execute("SELECT * FROM usage ORDER BY id"))

    def set(self, entries: Mapping[str, UsageEntry]) -> None:
        """Put entries as they are, replacing those of the same ids."""
        with self._transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO usage VALUES (?, ?, ?)", [(i, e.count, e.last) for i, e in entries.items()]
            )

    def forget(self, ids: Iterable[str]) -> None:
        """Drop the entries of deleted memories."""
        if self._unused:
            return
        with self._transaction() as db:
            db.executemany("DELETE FROM usage WHERE id = ?", [(i,) for i in ids])

    def reset(self, ids: Sequence[str] | None = None) -> None:
        """Forget the counts of the given memories, or all of them."""
        if ids is not None:
            self.forget(ids)
            return
        if self._unused:
            return
        with self._connection() as db:
            db.execute("DELETE FROM usage")

    def compact(self) -> None:
        """Leave nothing of forgotten entries in the file or its log."""
        if self._path is None or self._unused:
            return
        with self._connection() as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None


def _in_wal_mode(db: sqlite3.Connection) -> None:
    """Readers and the writer do not wait for each other. While another process makes the same change, SQLite does not wait itself."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.005)
