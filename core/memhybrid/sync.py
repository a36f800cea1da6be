"""Following what others write to the collection: find it, mend it, prove it.

Identity is id and content hash, never a count. On a local folder Chroma's own counter tells exactly whether, and which, rows were
written; elsewhere the number of rows is looked at every `staleness` seconds, and `sync()` compares everything.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memhybrid.errors import StoreError
from memhybrid.records import Memory, StoredRecord, WriteEvent
from memhybrid.state.checks import CacheDamagedError
from memhybrid.state.sidecar import CachedMemory
from memhybrid.store import Store
from memhybrid.values import content_hash

CHUNK = 1_000
SAME_COSINE = 1.0 - 1e-6


@dataclass(frozen=True)
class SyncReport:
    """How many memories a sync added, updated, removed, and found as they were."""

    added: int = 0
    updated: int = 0
    removed: int = 0
    unchanged: int = 0

    @property
    def changed(self) -> int:
        """Added, updated and removed together."""
        return self.added + self.updated + self.removed


@dataclass(frozen=True)
class VerifyReport:
    """Every difference between Chroma, the cache and the indexes; `ok` when there is none."""

    memories: int
    problems: tuple[str, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether all agree."""
        return not self.problems

    def __str__(self) -> str:
        head = f"{self.memories} memories, {len(self.problems)} problems"
        return "\n".join([head, *self.problems])


class Syncer:
    """Keeps cache and indexes equal to the collection."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looked_at = 0.0
        self._ready = False
        self._unsettled = False
        self._token: str | None = None
        store.sidecar.mend = self.mend
        store.sidecar.quiet = self._nobody_writes

    @classmethod
    def of(cls, store: Store) -> Syncer:
        """The store's one syncer."""
        if store.syncer is None:
            with store.write_lock:
                if store.syncer is None:
                    store.syncer = cls(store)
        return store.syncer

    # --- before a search ---------------------------------------------------------------------------------------------

    def ensure_fresh(self, *, strong: bool = False) -> str | None:
        """Bring everything up to date where a cheap look says that something changed. A sentence where that was not possible."""
        generation = self._store.sidecar.generation
        try:
            return self._ensure_fresh(strong=strong)
        except CacheDamagedError:
            if not self._store.sidecar.writable:
                raise
            self.mend(generation)
            return None

    def _ensure_fresh(self, *, strong: bool) -> str | None:
        store = self._store
        store.check_open()
        if not self._ready:
            store.backend.settle()
        token = store.backend.change_token()
        if token is not None:
            if self._ready and not self._unsettled and token == self.known_token():
                return None
            if not store.sidecar.writable:
                return self._refresh_reader(token)
            # Whoever holds the lock is bringing the indexes up to date; a search does not wait for a long write.
            if not store.write_lock.acquire(blocking=strong or not self._ready):
                return None
            try:
                return self._catch_up(token, strong=strong)
            finally:
                store.write_lock.release()
        if self._ready and store.private:
            return None
        if not self._ready or strong:
            self.sync()
            return None
        now = time.monotonic()
        if now - self._looked_at >= store.staleness:
            self._looked_at = now
            if store.backend.count() != store.sidecar.count():
                self.sync()
        return None

    def _catch_up(self, token: str, *, strong: bool) -> str | None:
        """Follow a local folder. After a write that failed, searches go on with what they have until Chroma can be asked again.

        What is in Chroma's log then may come into effect yet.
        """
        try:
            if self._unsettled:
                self._store.backend.settle()
                token = self._store.backend.change_token() or token
            self._follow(token)
        except StoreError as error:
            if strong or not self._unsettled or type(error) is not StoreError:
                raise
            return f"Chroma cannot be asked for changes now: {error}"
        self._unsettled = False
        return None

    def known_token(self) -> str | None:
        """The change token up to which the cache holds everything."""
        if self._token is None:
            self._token = self._store.sidecar.get_meta("token")
        return self._token

    def remember(self, token: str | None) -> None:
        """The cache now holds everything up to this change token."""
        if token is not None:
            self._store.sidecar.set_meta(token=token)
        self._token = token
        self._ready = True

    def doubt(self) -> None:
        """A write ended in the middle. Where no counter says so, everything is compared before the next search."""
        self._unsettled = True
        if self._store.backend.change_token() is None:
            self._ready = False

    def _refresh_reader(self, token: str) -> str | None:
        """A reader follows the writer's cache; it cannot follow Chroma beyond that."""
        store = self._store
        stored = store.sidecar.get_meta("token")
        if stored != self._token or not self._ready:
            self._token, self._ready = stored, True
            stored_dimension = store.sidecar.get_meta("dimension")
            if stored_dimension is not None and store.sidecar.dimension is None:
                store.sidecar.vectors(int(stored_dimension))
            store.partitions.drop()
        return (
            None
            if stored == token
            else "this reader is stale: the writer has not indexed the collection's last changes yet"
        )

    def _follow(self, token: str) -> None:
        """Catch up with a local folder, by the rows written since the last token where that is known."""
        store = self._store
        known = self.known_token()
        if known == token:
            self._ready = True
            return
        written = store.backend.changed_since(known) if known is not None else None
        if known is None or written is None:
            self.sync()
            return
        gone = self._missing_from_chroma()
        self.reread([*written, *gone])
        self.remember(token)

    def _missing_from_chroma(self) -> list[str]:
        """Cached ids that the collection no longer has. Where both count the same after the rows written are in, still compared."""
        present = set(self._store.backend.ids())
        return [i for i in self._store.sidecar.all_hashes() if i not in present]

    # --- reading back ------------------------------------------------------------------------------------------------

    def reread(self, ids: Iterable[str]) -> SyncReport:
        """Read these ids from Chroma and bring cache and indexes to what is there; tell the listeners."""
        store = self._store
        store.check_indexable()
        wanted = list(dict.fromkeys(ids))
        added = updated = removed = unchanged = 0
        with store.writing():
            for start in range(0, len(wanted), CHUNK):
                part = wanted[start : start + CHUNK]
                found = store.backend.get(part)
                known = store.sidecar.hashes_of(part)
                changed = self._differing(found, known)
                present = {r.id for r in found}
                gone = [i for i in part if i in known and i not in present]
                self.apply(changed, gone)
                added += sum(1 for r in changed if r.id not in known)
                updated += sum(1 for r in changed if r.id in known)
                removed += len(gone)
                unchanged += len(found) - len(changed)
        return SyncReport(added, updated, removed, unchanged)

    def _differing(self, records: Sequence[StoredRecord], known: Mapping[str, bytes]) -> list[StoredRecord]:
        """Those whose text, metadata or vector is not what the cache holds."""
        vectors = self._store.sidecar.vectors_of([r.id for r in records if r.id in known])
        return [
            r
            for r in records
            if known.get(r.id) != content_hash(r.text, r.metadata) or not same_direction(r.vector, vectors.get(r.id))
        ]

    def apply(self, changed: Sequence[StoredRecord], gone: Sequence[str]) -> None:
        """Cache and indexes after Chroma has accepted something that was not analysed on the way."""
        tokens = self._tokens(changed)
        self.apply_cached(self._store.analyse(changed, tokens) if changed else [], gone)

    def _tokens(self, records: Sequence[StoredRecord]) -> list[bytes | None] | None:
        """Token vectors for texts that came with vectors of the packaged model."""
        store = self._store
        if not records or not store.late_interaction:
            return None
        try:
            return store.embed_documents([r.text for r in records])[1]
        except Exception as error:  # noqa: BLE001 - following the collection must not depend on the embedder
            store.warn_once(
                "tokens", f"the embedder failed on memories written elsewhere, which have no token vectors: {error}"
            )
            return None

    def apply_cached(self, changed: Sequence[CachedMemory], gone: Sequence[str]) -> None:
        """Cache first, then the resident indexes, then the listeners. The caller holds the write lock."""
        store = self._store
        if not changed and not gone:
            return
        before = store.sidecar.scopes_of([*gone, *(m.id for m in changed)])
        if changed and store.sidecar.dimension is None:
            store.sidecar.set_meta(dimension=str(len(changed[0].vector)))
        with store.sidecar.transaction():
            if gone:
                store.sidecar.remove(gone)
            slots = store.sidecar.put(changed)
        scopes = {m.scope for m in changed} | set(before.values())
        for scope in scopes:
            if scope is None:
                continue
            inside = [i for i, m in enumerate(changed) if m.scope == scope]
            left = [i for i in gone if before.get(i) == scope]
            # A memory whose scope changed leaves the old partition.
            left += [m.id for m in changed if before.get(m.id) == scope and m.scope != scope]
            try:
                store.partitions.apply(scope, [changed[i] for i in inside], [slots[i] for i in inside], left)
            except BaseException:
                # Half changed: it is loaded again from the cache, which has all of it.
                store.partitions.drop(scope)
                raise
        if gone:
            store.ledger.forget(gone)
        store.notify(WriteEvent(tuple(Memory(m.id, m.text, dict(m.metadata)) for m in changed), tuple(gone)))

    def _nobody_writes(self) -> bool:
        """For a reader: whether the cache holds all that Chroma does. Chroma is written to first."""
        token = self._store.backend.change_token()
        return token is not None and token == self._store.sidecar.get_meta("token")

    # --- damage ------------------------------------------------------------------------------------------------------

    def mend(self, generation: int) -> None:
        """The cache is not what was written to it: make it again from Chroma, unless another thread did since this generation."""
        with self._store.writing():
            if self._store.sidecar.generation == generation:
                self._rebuild()
                self.sync()

    def _rebuild(self) -> None:
        store = self._store
        store.check_indexable()
        warnings.warn(
            f"the cache in {store.sidecar.folder} is damaged and is rebuilt from Chroma", UserWarning, stacklevel=4
        )
        store.rebuild_cache()
        self._token, self._ready = None, False

    # --- everything --------------------------------------------------------------------------------------------------

    def sync(self) -> SyncReport:
        """Compare the whole collection with the cache and mend what differs."""
        store = self._store
        store.check_indexable()
        with store.writing():
            token = store.backend.change_token()
            if store.sidecar.damage() is not None:
                self._rebuild()
            identity = store.sidecar.get_meta("collection")
            if identity is not None and identity != store.backend.identity:
                store.sidecar.clear()
                store.partitions.drop()
            known = store.sidecar.all_hashes()
            seen: set[str] = set()
            added = updated = unchanged = 0
            for page in store.backend.pages():
                store.check_open()
                changed = self._differing(page, known)
                seen.update(r.id for r in page)
                for start in range(0, len(changed), CHUNK):
                    self.apply(changed[start : start + CHUNK], [])
                fresh = sum(1 for r in changed if r.id not in known)
                added, updated, unchanged = (
                    added + fresh,
                    updated + len(changed) - fresh,
                    unchanged + len(page) - len(changed),
                )
            gone = [i for i in known if i not in seen]
            # Rows may shift between pages while others delete: only what really is gone counts.
            present = {r.id for r in store.backend.get(gone, vectors=False)} if gone else set()
            gone = [i for i in gone if i not in present]
            self.apply([], gone)
            self.remember(token)
            self._looked_at = time.monotonic()
            return SyncReport(added, updated, len(gone), unchanged)

    def verify(self) -> VerifyReport:
        """Compare ids, contents, postings, entity links and vectors of Chroma, the cache and the indexes. Changes nothing."""
        store = self._store
        store.check_open()
        problems: list[str] = []
        with store.writing():
            damage = store.sidecar.damage()
            if damage is not None:
                return VerifyReport(store.backend.count(), (f"the cache is damaged: {damage}",))
            hashes = store.sidecar.all_hashes()
            seen: set[str] = set()
            for page in store.backend.pages():
                differing = {r.id for r in self._differing(page, hashes)}
                for record in page:
                    seen.add(record.id)
                    if record.vector is None:
                        problems.append(f"{record.id!r}: Chroma has no vector for it")
                    if record.id not in hashes:
                        problems.append(f"{record.id!r}: in Chroma, not in the cache")
                    elif record.id in differing:
                        problems.append(f"{record.id!r}: the cache holds another text, metadata or vector than Chroma")
            problems.extend(f"{i!r}: in the cache, not in Chroma" for i in hashes if i not in seen)
            outside = store.sidecar.count_outside()
            if outside:
                problems.append(f"{outside} memories lack a scope key {store.scopes.keys} and cannot be found")
            for scope in store.sidecar.scopes():
                problems.extend(self._verify_scope(scope))
            counted = () if store.read_only else store.ledger.export()
            problems.extend(f"{i!r}: in the usage ledger, not in Chroma" for i in counted if i not in hashes)
        return VerifyReport(len(seen), tuple(problems))

    def _verify_scope(self, scope: str) -> list[str]:
        """Compare one partition's indexes with a fresh analysis of the texts in the cache."""
        store = self._store
        partition = store.partitions.get(scope)
        view = partition.view()
        rows = store.sidecar.load(scope)
        problems: list[str] = []
        by_id = {row[1]: row for row in rows}
        for row in view.living().tolist():
            identifier = view.id(row)
            cached = by_id.get(identifier)
            if cached is None:
                problems.append(f"{identifier!r}: in the index, not in the cache")
                continue
            if view.text(row) != cached[2]:
                problems.append(f"{identifier!r}: the index holds another text")
            if partition.metadata.get(row) != json.loads(cached[3]):
                problems.append(f"{identifier!r}: the index holds other metadata")
            if set(partition.entities.keys_of(row)) != set(json.loads(cached[6])):
                problems.append(f"{identifier!r}: the index holds other entities")
            hashes = np.frombuffer(cached[4], dtype=np.uint64)
            counts = np.frombuffer(cached[5], dtype=np.uint16)
            for term, count in zip(hashes.tolist(), counts.tolist(), strict=True):
                found, times = view.lexical.postings(term)
                at = int(np.searchsorted(found, row))
                if at == len(found) or found[at] != row or times[at] != count:
                    problems.append(f"{identifier!r}: a keyword posting is missing")
                    break
            problems.extend(
                f"{identifier!r}: the entity {key!r} does not lead to it"
                for key in partition.entities.keys_of(row)
                if row not in view.linked(key)
            )
            if partition.vectors is None or not np.isfinite(partition.vectors.take(np.array([row]))).all():
                problems.append(f"{identifier!r}: its vector cannot be read")
        total = sum(int(np.frombuffer(row[5], dtype=np.uint16).sum(dtype=np.int64)) for row in rows)
        if not problems and (view.count, view.lexical.total_length) != (len(rows), total):
            problems.append(
                f"the keyword statistics count {view.count} memories of {view.lexical.total_length} terms, the cache "
                f"{len(rows)} of {total}"
            )
        missing = set(by_id) - {view.id(r) for r in view.living().tolist()}
        problems.extend(f"{i!r}: in the cache, not in the index" for i in sorted(missing))
        return problems


def same_direction(one: NDArray[np.float32] | None, other: NDArray[np.float32] | None) -> bool:
    """Whether two vectors point the same way, to the precision that Chroma keeps; lost vectors (None, NaN) are alike."""
    lost = [v is None or bool(np.isnan(v).any()) for v in (one, other)]
    if one is None or other is None or any(lost):
        return all(lost)
    if one.shape != other.shape:
        return False
    a, b = one.astype(np.float64), other.astype(np.float64)
    lengths = float(np.sqrt((a @ a) * (b @ b)))
    return lengths == 0.0 if not (a.any() and b.any()) else float(a @ b) >= SAME_COSINE * lengths


def require_sync(report: VerifyReport) -> None:
    """StoreError where a verification found differences."""
    if not report.ok:
        raise StoreError(str(report))
