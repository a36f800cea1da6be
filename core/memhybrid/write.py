"""WRITE PATH: memories → checks → vectors → Chroma → cache → indexes → listeners.

Everything that can be refused is refused before anything is written. Vectors are made before the writer's lock is taken, so that
a slow embedder keeps nobody waiting. Chroma comes first; what it accepted is then what the cache and the indexes get. A call that
fails in the middle leaves all of them equal, and its error says which ids were written.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import numpy as np

from memhybrid.errors import EmbedderError, InputError, ScopeError, StoreError
from memhybrid.protocols import Float32
from memhybrid.records import Memory, StoredRecord
from memhybrid.state.sidecar import CachedMemory
from memhybrid.store import Store
from memhybrid.sync import Syncer
from memhybrid.times import parse_time
from memhybrid.values import (
    as_memories,
    clean_id,
    clean_metadata,
    clean_text,
    clean_vector,
    content_hash,
    is_long_float,
)

CHUNK = 2_000
EMBED_BATCH = 256
Progress = Callable[[int, int], None]
Made = dict[str, tuple[Float32, bytes | None]]
"""Vector and packed token vectors by id."""


@dataclass(frozen=True)
class Draft:
    """A memory checked, before it has a vector. `given` is the vector that the user gave."""

    id: str
    text: str
    metadata: dict[str, Any]
    given: Float32 | None


class Writer:
    """Adds, updates and deletes."""

    def __init__(self, store: Store, syncer: Syncer) -> None:
        self._store = store
        self._syncer = syncer

    # --- add ---------------------------------------------------------------------------------------------------------

    def add(self, memories: Any, *, scope: Mapping[str, Any] | None, progress: Progress | None = None) -> list[str]:
        """Store or replace memories; their ids in the order given."""
        store = self._store
        store.check_writable()
        drafts = self._check(as_memories(memories), scope)
        if not drafts:
            return []
        self._syncer.ensure_fresh()
        made = self._vectors(self._changed(drafts), progress)
        with store.writing():
            self._syncer.ensure_fresh()
            self._check_owners([(d.id, d.metadata) for d in drafts], scope or {})
            fresh = self._changed(drafts)
            # What others changed meanwhile.
            made.update(self._vectors([d for d in fresh if d.id not in made], None))
            self._write(fresh, made, progress)
        return [d.id for d in drafts]

    def _check(self, memories: Sequence[Memory], scope: Mapping[str, Any] | None) -> list[Draft]:
        """Every memory made plain, or an error that names the first one that cannot be taken."""
        drafts: list[Draft] = []
        seen: set[str] = set()
        dimension = self._store.sidecar.dimension
        for position, memory in enumerate(memories):
            owner = f"memories[{position}]" if memory.id is None else f"memory {memory.id!r}"
            identifier = uuid.uuid4().hex if memory.id is None else clean_id(memory.id, f"{owner}: id")
            if identifier in seen:
                raise InputError(f"memory {identifier!r} is given twice in one call; keep one of them")
            seen.add(identifier)
            text = clean_text(memory.text, f"{owner}: text")
            cleaned = clean_metadata(memory.metadata, owner)
            for key in self._store.scopes.keys:
                # Made storable, two names of tenants could become one.
                if isinstance(cleaned.get(key), str) and cleaned[key] != memory.metadata[key]:
                    raise ScopeError(
                        f"{owner}: metadata {key!r} is {memory.metadata[key]!r}, which cannot name a tenant"
                    )
            metadata = self._scoped_metadata(cleaned, scope, owner)
            given = (
                None if memory.embedding is None else clean_vector(memory.embedding, f"{owner}: embedding", dimension)
            )
            if given is not None and dimension is None:
                dimension = given.size
            drafts.append(Draft(identifier, text, metadata, given))
        return drafts

    def _scoped_metadata(self, metadata: dict[str, Any], scope: Mapping[str, Any] | None, owner: str) -> dict[str, Any]:
        scopes = self._store.scopes
        for key, value in (scope or {}).items():
            if key in metadata and (metadata[key] != value or type(metadata[key]) is not type(value)):
                raise ScopeError(
                    f"{owner}: metadata {key!r} is {metadata[key]!r}, but this view is bound to another value"
                )
            metadata[key] = value
        if scopes.of_metadata(metadata) is None:
            raise ScopeError(
                f"{owner}: this store keeps tenants apart by {', '.join(map(repr, scopes.keys))}; its metadata needs a non-empty "
                "string or an int for each, or write through memory.scoped(…)"
            )
        return metadata

    def _check_owners(self, items: Sequence[tuple[str, Mapping[str, Any]]], scope: Mapping[str, Any]) -> None:
        """An id belongs to one tenant, and to the view that can see it; nobody else may write it, nor learn whose it is."""
        store = self._store
        ids = [identifier for identifier, _ in items]
        owners = store.sidecar.scopes_of(ids) if store.scopes.keys else {}
        seen = store.sidecar.contents_of(ids) if scope.keys() - set(store.scopes.keys) else {}
        for identifier, metadata in items:
            other = identifier in owners and owners[identifier] != store.scopes.of_metadata(metadata)
            if other or (identifier in seen and not _inside(seen[identifier][1], scope)):
                raise ScopeError(f"memory {identifier!r}: this id is taken; use another one")

    def _changed(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Without those that are stored already just as they are given."""
        # By hash: to Python True, 1 and 1.0 are equal, to a filter they are not.
        stored = self._store.sidecar.hashes_of([d.id for d in drafts if d.given is None])
        return [d for d in drafts if d.given is not None or stored.get(d.id) != content_hash(d.text, d.metadata)]

    # --- vectors -----------------------------------------------------------------------------------------------------

    def _vectors(self, drafts: Sequence[Draft], progress: Progress | None) -> Made:
        """A vector for each draft; the embedder is asked for those that came without. Nothing is written yet if it fails."""
        store = self._store
        missing = [i for i, d in enumerate(drafts) if d.given is None]
        vectors: list[Float32 | None] = [d.given for d in drafts]
        tokens: list[bytes | None] = [None] * len(drafts)
        if missing:
            if store.sidecar.dimension is not None:
                try:
                    store.check_embedder(store.sidecar.dimension)
                except (EmbedderError, StoreError):
                    raise
                except Exception as error:
                    raise _embedder_failed(error) from error
            for start in range(0, len(missing), EMBED_BATCH):
                part = missing[start : start + EMBED_BATCH]
                made, packed = self._embed([drafts[i].text for i in part], [drafts[i].id for i in part])
                for offset, i in enumerate(part):
                    vectors[i] = made[offset]
                    tokens[i] = packed[offset] if packed is not None else None
                if progress is not None:
                    progress(start + len(part), 2 * len(drafts))
        sizes = {v.size for v in vectors if v is not None}
        if len(sizes) > 1:
            raise InputError(f"memories: embeddings of different dimensions {sorted(sizes)} in one call")
        self._add_tokens(drafts, tokens)
        return {d.id: (v, t) for d, v, t in zip(drafts, vectors, tokens, strict=True) if v is not None}

    def _add_tokens(self, drafts: Sequence[Draft], tokens: list[bytes | None]) -> None:
        """Token vectors for what came with a vector of its own, as a cache rebuilt from Chroma would have them."""
        store = self._store
        if not store.late_interaction:
            return
        dimension = store.embedder.fingerprint.dimension
        given = [i for i, d in enumerate(drafts) if d.given is not None and d.given.size == dimension]
        for start in range(0, len(given), EMBED_BATCH):
            part = given[start : start + EMBED_BATCH]
            _, packed = self._embed([drafts[i].text for i in part], [drafts[i].id for i in part])
            for i, made in zip(part, packed or [None] * len(part), strict=True):
                tokens[i] = made

    def _embed(self, texts: Sequence[str], ids: Sequence[str]) -> tuple[Float32, list[bytes | None] | None]:
        try:
            vectors, tokens = self._store.embed_documents(texts)
            vectors = np.asarray(vectors, dtype=np.float32)
        except EmbedderError:
            raise
        except Exception as error:
            raise _embedder_failed(error) from error
        dimension = self._store.sidecar.dimension
        if (
            vectors.ndim != 2
            or vectors.shape[0] != len(texts)
            or (dimension is not None and vectors.shape[1] != dimension)
        ):
            raise EmbedderError(
                f"the embedder gave shape {vectors.shape} for {len(texts)} texts; this store has {dimension} dimensions"
            )
        if not np.isfinite(vectors).all():
            bad = ids[int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])]
            raise EmbedderError(f"memory {bad!r}: the embedder gave NaN or infinite numbers")
        return vectors, tokens

    # --- Chroma, cache, indexes --------------------------------------------------------------------------------------

    def _write(self, drafts: Sequence[Draft], made: Made, progress: Progress | None) -> None:
        """Chunk by chunk: while Chroma takes one, the next is analysed."""
        store = self._store
        chunks = [range(s, min(s + CHUNK, len(drafts))) for s in range(0, len(drafts), CHUNK)]
        if not chunks:
            return
        dimension, size = store.sidecar.dimension, made[drafts[0].id][0].size
        if dimension not in (None, size):
            raise InputError(
                f"memory {drafts[0].id!r}: the embedding has {size} dimensions, this store has {dimension}"
            )
        if any(d.given is None for d in drafts):
            store.remember_embedder()

        def prepare(chunk: range) -> tuple[list[StoredRecord], list[CachedMemory]]:
            records = [StoredRecord(d.id, d.text, d.metadata, made[d.id][0]) for d in (drafts[i] for i in chunk)]
            return records, store.analyse(records, [made[record.id][1] for record in records])

        written: list[str] = []
        if len(chunks) == 1:
            self._commit(*prepare(chunks[0]), written)
        else:
            with ThreadPoolExecutor(1, "memhybrid-analyse") as pool:
                ahead: Future[tuple[list[StoredRecord], list[CachedMemory]]] = pool.submit(prepare, chunks[0])
                for i, chunk in enumerate(chunks):
                    records, cached = ahead.result()
                    if i + 1 < len(chunks):
                        ahead = pool.submit(prepare, chunks[i + 1])
                    try:
                        store.check_open()
                    except StoreError as error:
                        raise _with_written(error, written) from error
                    self._commit(records, cached, written)
                    if progress is not None:
                        progress(len(drafts) + chunk.stop, 2 * len(drafts))
        if progress is not None:
            progress(2 * len(drafts), 2 * len(drafts))

    def _commit(self, records: list[StoredRecord], cached: list[CachedMemory], written: list[str]) -> None:
        store = self._store
        previous = {i: metadata for i, (_, metadata) in store.sidecar.contents_of([r.id for r in records]).items()}
        try:
            try:
                store.backend.upsert(records, previous=previous)
            except StoreError as error:
                # What of this chunk got through is found by reading back; earlier chunks are complete.
                self._recover([r.id for r in records])
                now = store.sidecar.hashes_of([m.id for m in cached])
                through = [m.id for m in cached if now.get(m.id) == m.hash]
                missing = [m.id for m in cached if now.get(m.id) != m.hash]
                raise _with_written(error, [*written, *through], missing) from error
            try:
                self._settle(self._as_stored(cached), [], len(records))
            except StoreError as error:
                raise _with_written(error, written) from error
        except BaseException:
            self._syncer.doubt()
            raise
        written.extend(r.id for r in records)

    def _as_stored(self, cached: list[CachedMemory]) -> list[CachedMemory]:
        """With metadata as Chroma keeps it: a float of more than fifteen digits may come back with another last bit."""
        inexact = [m.id for m in cached if any(is_long_float(v) for v in m.metadata.values())]
        if not inexact:
            return cached
        stored = {r.id: r.metadata for r in self._store.backend.get(inexact, vectors=False)}
        return [
            replace(m, metadata=stored[m.id], hash=content_hash(m.text, stored[m.id])) if m.id in stored else m
            for m in cached
        ]

    def _settle(self, cached: list[CachedMemory], gone: list[str], operations: int) -> None:
        """Cache and indexes; then the change token, unless somebody else wrote since the last one."""
        store = self._store
        self._syncer.apply_cached(cached, gone)
        before, after = self._syncer.known_token(), store.backend.change_token()
        if before is None or after is None or int(after) - int(before) == operations:
            self._syncer.remember(after)
        else:
            # The token is not the one expected: this follows the other writer.
            self._syncer.ensure_fresh()

    def _recover(self, ids: Sequence[str]) -> None:
        try:
            self._syncer.reread(ids)
        except StoreError:
            self._store.warn_once(
                "unread", "Chroma failed and cannot be read back now; the next search or sync() follows it"
            )

    # --- update ------------------------------------------------------------------------------------------------------

    def update(
        self,
        identifier: str,
        *,
        partition: str,
        scope: Mapping[str, Any],
        text: Any = None,
        metadata: Any = None,
        embedding: Any = None,
    ) -> None:
        """Change text, metadata or both. Metadata is merged: given keys are set, None removes a key, others stay."""
        store = self._store
        store.check_writable()
        clean_id(identifier)
        owner = f"memory {identifier!r}"
        changes = clean_metadata(metadata, owner)
        removed = [k for k, v in metadata.items() if v is None] if isinstance(metadata, Mapping) else []
        new_text = None if text is None else clean_text(text, f"{owner}: text")
        self._syncer.ensure_fresh()
        made: Made = {}
        if new_text is not None and embedding is None:
            stored = store.sidecar.contents_of([identifier]).get(identifier)
            if stored is not None and stored[0] != new_text:
                made = self._vectors([Draft(identifier, new_text, {}, None)], None)
        with store.writing():
            self._syncer.ensure_fresh()
            stored = store.sidecar.contents_of([identifier]).get(identifier)
            if (
                stored is None
                or store.sidecar.scopes_of([identifier])[identifier] != partition
                or not _inside(stored[1], scope)
            ):
                raise InputError(f"{owner} does not exist; add it first")
            old_text, old_metadata = stored
            merged = {k: v for k, v in {**old_metadata, **changes}.items() if k not in removed}
            if store.scopes.of_metadata(merged) != partition:
                raise ScopeError(
                    f"{owner}: an update cannot move a memory to another scope; add it there and delete it here"
                )
            if not _inside(merged, scope):
                raise ScopeError(f"{owner}: what this view is bound to cannot be changed through it")
            after = content_hash(old_text if new_text is None else new_text, merged)
            if after == content_hash(old_text, old_metadata) and embedding is None:
                return
            if "updated_at" in old_metadata and "updated_at" not in changes and "updated_at" not in removed:
                merged["updated_at"] = _now_like(old_metadata["updated_at"])
            given = (
                None if embedding is None else clean_vector(embedding, f"{owner}: embedding", store.sidecar.dimension)
            )
            draft = Draft(identifier, old_text if new_text is None else new_text, merged, given)
            if given is None and draft.text == old_text:
                made = {identifier: self._stored_vector(identifier)}
                draft = replace(draft, given=made[identifier][0])
            self._write([draft], made or self._vectors([draft], None), None)

    def _stored_vector(self, identifier: str) -> tuple[Float32, bytes | None]:
        store = self._store
        kept = store.sidecar.kept_of([identifier])
        if not kept:
            raise StoreError(f"memory {identifier!r}: its vector in the cache is damaged; sync() makes it again")
        return kept[identifier][1:]

    # --- delete ------------------------------------------------------------------------------------------------------

    def delete(self, ids: Sequence[str]) -> int:
        """Delete those of the ids that exist; how many did."""
        store = self._store
        store.check_writable()
        with store.writing():
            self._syncer.ensure_fresh()
            existing = list(store.sidecar.slots_of(list(ids)))
            for start in range(0, len(existing), CHUNK):
                part, done = existing[start : start + CHUNK], existing[:start]
                try:
                    store.check_open()
                    try:
                        store.backend.delete(part)
                    except StoreError as error:
                        self._recover(part)
                        left = store.sidecar.slots_of(part)
                        gone = [*done, *(i for i in part if i not in left)]
                        raise _with_written(error, gone, list(left), "deleted") from error
                    try:
                        self._settle([], part, len(part))
                    except StoreError as error:
                        raise _with_written(error, done, what="deleted") from error
                except BaseException:
                    self._syncer.doubt()
                    raise
        return len(existing)


def _embedder_failed(error: Exception) -> EmbedderError:
    return EmbedderError(f"the embedder failed, nothing was written: {type(error).__name__}: {error}")


def _inside(metadata: Mapping[str, Any], scope: Mapping[str, Any]) -> bool:
    """Whether a memory belongs to a view bound to these values."""
    return all(key in metadata and type(metadata[key]) is type(v) and metadata[key] == v for key, v in scope.items())


def _with_written(
    error: StoreError, written: Sequence[str], missing: Sequence[str] = (), what: str = "written"
) -> StoreError:
    """The error with what it left: which memories were written, or deleted, before it, and which were not."""
    parts = [str(error)]
    parts += [f"{len(written)} memories were {what} before that: {_shown(written)}"] if written else []
    parts += [f"{len(missing)} were not: {_shown(missing)}"] if missing else []
    made = type(error)(". ".join(parts))
    made.written = tuple(written)
    return made


def _shown(ids: Sequence[str]) -> str:
    return ", ".join(map(repr, ids[:3])) + (", …" if len(ids) > 3 else "")


def _now_like(old: Any) -> Any:
    """Now, in the form in which the memory kept its time before."""
    now = datetime.now(timezone.utc)
    if isinstance(old, int) and not isinstance(old, bool):
        seconds = parse_time(old)
        return int(now.timestamp() * 1000) if seconds is not None and old and abs(old) > 1e11 else int(now.timestamp())
    return now.timestamp() if isinstance(old, float) else now.isoformat()
