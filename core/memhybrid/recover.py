"""Rebuilding a Chroma folder whose vector index is damaged.

A process that is killed while Chroma writes its index may leave a folder in which every call fails, though all texts are intact in
Chroma's SQLite file. They are read from there; vectors come from our own file, else from what Chroma's log still holds, else from
the embedder. The new folder is complete before it takes the old one's place, and the old one is kept beside it.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memhybrid.backends.chroma.clients import recreate_collection
from memhybrid.embedders import as_embedder
from memhybrid.errors import InputError, StoreError
from memhybrid.records import StoredRecord
from memhybrid.state import lock
from memhybrid.state.sidecar import Sidecar

BATCH = 1_000
DOCUMENT = "chroma:document"
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class RecoveredCollection:
    """One collection: how many memories it has, and where their vectors came from."""

    name: str
    memories: int
    vectors_kept: int
    vectors_embedded: int


@dataclass(frozen=True)
class RecoverReport:
    """What was rebuilt, and where the damaged folder lies now."""

    collections: tuple[RecoveredCollection, ...]
    damaged_folder: Path

    def __str__(self) -> str:
        lines = [
            f"{c.name}: {c.memories} memories, {c.vectors_kept} vectors kept, {c.vectors_embedded} embedded again"
            for c in self.collections
        ]
        return "\n".join([*lines, f"the damaged folder is kept in {self.damaged_folder}"])


@dataclass(frozen=True)
class _Collection:
    id: str
    name: str
    metadata: dict[str, Any]
    space: str
    segment: str


def recover(path: str | Path, *, embedder: Any = None, progress: Progress | None = None) -> RecoverReport:
    """Rebuild a Chroma folder from its texts. Nothing may have it open.

    `embedder` is asked only for memories whose vector is lost; InputError says how many these are where none is given.
    StoreLockedError where another process writes to the folder.
    """
    folder = Path(path).expanduser().resolve()
    if not (folder / "chroma.sqlite3").exists():
        raise InputError(f"path: there is no Chroma store in {folder}")
    lock.acquire(folder)
    try:
        return _rebuild(folder, embedder, progress)
    finally:
        lock.release(folder)


def _rebuild(folder: Path, embedder: Any, progress: Progress | None) -> RecoverReport:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    fresh, damaged = folder.with_name(f"{folder.name}.new-{stamp}"), folder.with_name(f"{folder.name}.damaged-{stamp}")
    done: list[RecoveredCollection] = []
    database = sqlite3.connect(f"{(folder / 'chroma.sqlite3').as_uri()}?mode=ro", uri=True)
    try:
        for collection in _collections(database):
            records = list(_texts(database, collection))
            vectors = {**_logged_vectors(database, collection), **_kept_vectors(folder, collection, records)}
            missing = [r for r in records if r.id not in vectors]
            if missing and embedder is None:
                raise InputError(
                    f"{collection.name}: the vectors of {len(missing)} of {len(records)} memories are lost; give the embedder that "
                    "the collection was filled with"
                )
            for start in range(0, len(missing), BATCH):
                part = missing[start : start + BATCH]
                made = as_embedder(embedder).embed_documents([r.text for r in part])
                vectors.update(zip((r.id for r in part), made, strict=True))
            backend = recreate_collection(fresh, collection.name, collection.metadata, collection.space)
            for start in range(0, len(records), BATCH):
                part = records[start : start + BATCH]
                backend.upsert([StoredRecord(r.id, r.text, r.metadata, vectors[r.id]) for r in part], previous={})
                if progress is not None:
                    progress(start + len(part), len(records))
            _keep_ledger(folder, fresh, collection.id, backend.identity)
            backend.close()
            done.append(RecoveredCollection(collection.name, len(records), len(records) - len(missing), len(missing)))
    except sqlite3.Error as error:
        raise StoreError(f"Chroma's database in {folder} cannot be read: {error}") from error
    finally:
        database.close()
    _swap(folder, fresh, damaged)
    return RecoverReport(tuple(done), damaged)


def _swap(folder: Path, fresh: Path, damaged: Path) -> None:
    """The contents change places; the folder itself stays, with the lock that is held on it."""
    fresh.mkdir(exist_ok=True)
    damaged.mkdir()
    for entry in list(folder.iterdir()):
        if entry.name != lock.NAME:
            entry.rename(damaged / entry.name)
    for entry in list(fresh.iterdir()):
        entry.rename(folder / entry.name)
    fresh.rmdir()


def _collections(database: sqlite3.Connection) -> Iterator[_Collection]:
    rows = database.execute(
        "SELECT c.id, c.name, c.config_json_str, c.schema_str, s.id FROM collections c "
        "JOIN segments s ON s.collection = c.id AND s.scope = 'METADATA'"
    ).fetchall()
    for identifier, name, configuration, schema, segment in rows:
        metadata: dict[str, Any] = {}
        for key, text, number, real in database.execute(
            "SELECT key, str_value, int_value, float_value FROM collection_metadata WHERE collection_id = ?",
            (identifier,),
        ):
            value = next((v for v in (text, number, real) if v is not None), None)
            if value is not None:
                metadata[key] = value
        yield _Collection(identifier, name, metadata, _space(configuration, schema, metadata), segment)


def _space(configuration: str | None, schema: str | None, metadata: dict[str, Any]) -> str:
    for text in (configuration, schema):
        found = _find(json.loads(text), "space") if text else None
        if found in ("cosine", "l2", "ip"):
            return str(found)
    return str(metadata.get("hnsw:space", "l2"))


def _find(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        if isinstance(value.get(key), str):
            return value[key]
        return next((found for item in value.values() if (found := _find(item, key)) is not None), None)
    return None


def _texts(database: sqlite3.Connection, collection: _Collection) -> Iterator[StoredRecord]:
    """Every row of the collection, in order of insertion, with its metadata as Chroma would give it."""
    rows = database.execute(
        "SELECT id, embedding_id FROM embeddings WHERE segment_id = ? ORDER BY id", (collection.segment,)
    ).fetchall()
    for number, identifier in rows:
        metadata: dict[str, Any] = {}
        text = ""
        for key, string, whole, real, truth in database.execute(
            "SELECT key, string_value, int_value, float_value, bool_value FROM embedding_metadata WHERE id = ?",
            (number,),
        ):
            if key == DOCUMENT:
                text = string or ""
                continue
            value = _scalar(string, whole, real, truth)
            if value is not None:
                metadata[key] = value
        for key, string, whole, real, truth in database.execute(
            "SELECT key, string_value, int_value, float_value, bool_value FROM embedding_metadata_array WHERE id = ? ORDER BY rowid",
            (number,),
        ):
            metadata.setdefault(key, []).append(_scalar(string, whole, real, truth))
        yield StoredRecord(identifier, text, metadata)


def _scalar(string: Any, whole: Any, real: Any, truth: Any) -> Any:
    if truth is not None:
        return bool(truth)
    return next((v for v in (string, whole, real) if v is not None), None)


def _logged_vectors(database: sqlite3.Connection, collection: _Collection) -> dict[str, NDArray[np.float32]]:
    """Vectors of writes that Chroma's log still holds, the latest for each id."""
    out: dict[str, NDArray[np.float32]] = {}
    rows = database.execute(
        "SELECT id, vector, encoding FROM embeddings_queue WHERE topic LIKE ? AND vector IS NOT NULL ORDER BY seq_id",
        (f"%{collection.id}",),
    )
    for identifier, blob, encoding in rows:
        if encoding == "FLOAT32":
            out[identifier] = np.frombuffer(blob, dtype=np.float32)
    return out


def _kept_vectors(folder: Path, collection: _Collection, records: list[StoredRecord]) -> dict[str, NDArray[np.float32]]:
    """Vectors from our own file, of memories whose text is still the one that they were made for."""
    state = folder / "memhybrid" / collection.id
    if not (state / "cache.sqlite3").exists():
        return {}
    try:
        sidecar = Sidecar(state, None)
    except StoreError:
        return {}
    try:
        dimension = sidecar.get_meta("dimension")
        if dimension is None or not sidecar.whole(int(dimension)):
            return {}
        kept = sidecar.kept_of([r.id for r in records])
        return {
            r.id: kept[r.id][1]
            for r in records
            if r.id in kept and kept[r.id][0] == r.text and np.isfinite(kept[r.id][1]).all()
        }
    except (StoreError, ValueError):
        return {}  # damaged, too
    finally:
        sidecar.close()


def _keep_ledger(old: Path, fresh: Path, old_id: str, new_id: str) -> None:
    source = old / "memhybrid" / old_id
    target = fresh / "memhybrid" / new_id
    for file in source.glob("ledger.sqlite3*"):
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target / file.name)
