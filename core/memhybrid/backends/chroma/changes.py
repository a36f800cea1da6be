"""What Chroma's own SQLite file says about changes: read-only, private tables, all in this one place.

`max_seq_id` of a collection's metadata segment grows with every add, upsert, update and delete, and with nothing else; a row of
`embeddings` carries the sequence number of its last write. tests/chroma_facts holds Chroma to this. Where the tables are not as
expected, everything here answers None, and the caller falls back to a full comparison.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any


class ChromaChanges:
    """Change counters of one collection in one local Chroma folder."""

    def __init__(self, folder: Path, collection_id: str) -> None:
        self.folder = folder
        self._path = folder.resolve() / "chroma.sqlite3"
        self._collection_id = collection_id
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._segment: str | None = None
        self._broken = False

    def _connection(self) -> sqlite3.Connection | None:
        if self._broken:
            return None
        if self._db is None:
            try:
                self._db = sqlite3.connect(
                    f"{self._path.as_uri()}?mode=ro", uri=True, check_same_thread=False, isolation_level=None, timeout=5
                )
                row = self._db.execute(
                    "SELECT id FROM segments WHERE collection = ? AND scope = 'METADATA'", (self._collection_id,)
                ).fetchone()
                if row is None:
                    raise sqlite3.DatabaseError("no metadata segment")
                self._segment = str(row[0])
            except sqlite3.Error:
                self._broken = True
                self._let_go()
                return None
        return self._db

    def _ask(self, sql: str, **also: int) -> list[tuple[Any, ...]] | None:
        """What a query gives, None where it cannot be told. It may name the `:segment` and the `:topic` of the collection."""
        with self._lock:
            db = self._connection()
            if db is None:
                return None
            known = {"segment": self._segment, "topic": f"%{self._collection_id}", **also}
            try:
                return db.execute(sql, known).fetchall()
            except sqlite3.Error:
                return None

    def sequence(self) -> int | None:
        """The number of the collection's last write; 0 before the first; None where it cannot be told."""
        rows = self._ask("SELECT seq_id FROM max_seq_id WHERE segment_id = :segment")
        if rows is None:
            return None
        return int(rows[0][0]) if rows else 0

    def pending(self) -> bool:
        """Whether Chroma's log has writes that are not in its tables yet, as after a kill; they appear at its next read."""
        rows = self._ask(
            "SELECT 1 FROM embeddings_queue WHERE topic LIKE :topic AND seq_id > "
            "coalesce((SELECT seq_id FROM max_seq_id WHERE segment_id = :segment), 0) LIMIT 1"
        )
        # Where the file cannot be read at all, the caller compares everything anyway.
        return not self._broken if rows is None else bool(rows)

    def written_since(self, sequence: int) -> list[str] | None:
        """Ids of existing rows whose last write came after the given number; None where it cannot be told."""
        rows = self._ask(
            "SELECT embedding_id FROM embeddings WHERE segment_id = :segment AND seq_id > :after ORDER BY seq_id",
            after=sequence,
        )
        return None if rows is None else [str(row[0]) for row in rows]

    def ids(self) -> list[str] | None:
        """Every id, in order of insertion; None where it cannot be told."""
        rows = self._ask("SELECT embedding_id FROM embeddings WHERE segment_id = :segment ORDER BY id")
        return None if rows is None else [str(row[0]) for row in rows]

    def close(self) -> None:
        """Close the file; from now on nothing can be told."""
        with self._lock:
            self._broken = True
            self._let_go()

    def _let_go(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
