"""What both paths share: backend, cache, indexes, analyzer, embedder, listeners. One per collection and process."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from memhybrid.embedded import embedded_text
from memhybrid.errors import EmbedderError, StoreError
from memhybrid.indexes.cache import Partitions
from memhybrid.indexes.postings import PackedTerms
from memhybrid.late import pack_tokens
from memhybrid.protocols import Analysis, Analyzer, Embedder, Fingerprint, Float32, TokenEmbedder, WriteListener
from memhybrid.records import StoredRecord, WriteEvent
from memhybrid.scope import Scopes
from memhybrid.state import lock
from memhybrid.state.cachefile import remove_files
from memhybrid.state.checks import CacheDamagedError
from memhybrid.state.ledger import Ledger
from memhybrid.state.sidecar import FORMAT, CachedMemory, Sidecar
from memhybrid.values import content_hash

log = logging.getLogger("memhybrid")
SAMPLE = 3
SAME_EMBEDDER_COSINE = 0.99
CLOSE_PATIENCE_S = 30.0


class Store:
    """Holds the parts and what ties them to each other: fingerprints, the writer's lock, listeners."""

    def __init__(
        self,
        backend: Any,
        *,
        embedder: Embedder,
        analyzer: Analyzer,
        scopes: Scopes,
        state: Path | None,
        lock_folder: Path | None,
        read_only: bool,
        private: bool,
        memory_budget: int | None,
        staleness: float,
        late_interaction: bool,
        bm25: str,
    ) -> None:
        self.backend = backend
        self.embedder = embedder
        self.analyzer = analyzer
        self.scopes = scopes
        self.read_only = read_only
        self.private = private
        self.staleness = staleness
        self.late_interaction = late_interaction and isinstance(embedder, TokenEmbedder)
        self._pid = os.getpid()
        self._lock_folder = None if read_only else lock_folder
        self._listeners: list[WriteListener] = []
        self._warned: set[str] = set()
        self._checked_embedder = False
        self.syncer: Any = None
        self.settings: Mapping[str, str] = {}
        self.closed = False
        self._closing = False
        self._second: Any = None
        others_wrote = self._lock_folder is not None and lock.acquire(self._lock_folder)
        try:
            if others_wrote and hasattr(backend, "start_again"):
                backend.start_again()
            if state is not None and not read_only:
                state.mkdir(parents=True, exist_ok=True)
            usable = state is None or not read_only or (state / "cache.sqlite3").exists()
            self.sidecar = self._open_sidecar(state if usable else None, writable=not read_only or not usable)
            # Counts stay where they are also without a cache to read beside them.
            counted = state is not None and (state / "ledger.sqlite3").exists()
            self.ledger = Ledger(state if usable or counted else None)
            try:
                self._check_fingerprints()
            except CacheDamagedError:
                if read_only:
                    raise
                self.sidecar.remake()
                self.sidecar.set_meta(format=FORMAT)
                self._check_fingerprints()
        except OSError as error:
            self._unlock()
            raise StoreError(f"cannot use the state folder {state}: {error}") from error
        except BaseException:
            self._unlock()
            raise
        self.partitions = Partitions(self.sidecar, scoped=bool(scopes.keys), budget=memory_budget, bm25=bm25)
        self.write_lock = self.partitions.write_lock

    def _open_sidecar(self, folder: Path | None, *, writable: bool) -> Sidecar:
        made: Sidecar | None = None
        try:
            made = Sidecar(folder, None, writable=writable)
            known = made.get_meta("format")
            if known not in (None, FORMAT) and not writable:
                raise StoreError(
                    f"the state in {folder} has format {known}, this version reads {FORMAT}; open it for writing once"
                )
            stored = made.get_meta("dimension")
            dimension = int(stored) if stored else None
            if known in (None, FORMAT) and made.whole(dimension):
                if dimension is not None:
                    made.vectors(dimension)
                if writable:
                    made.set_meta(format=FORMAT)
                return made
            problem: Exception = CacheDamagedError(f"the cache in {folder} is damaged; open it for writing once")
        except (StoreError, ValueError) as error:
            problem = error
        if made is not None:
            made.close()
        if folder is None or not writable or type(problem) is StoreError:
            raise (
                problem
                if isinstance(problem, StoreError)
                else StoreError(f"the cache in {folder} is damaged: {problem}")
            )
        # A cache that is damaged or from another version is made again from Chroma; it holds nothing else.
        warnings.warn(f"the cache in {folder} cannot be used and is rebuilt from Chroma", UserWarning, stacklevel=4)
        remove_files(folder)
        made = Sidecar(folder, None)
        made.set_meta(format=FORMAT)
        return made

    def rebuild_cache(self) -> None:
        """Empty files in place of damaged ones, for the same collection; the caller fills them."""
        embedder = None
        with suppress(CacheDamagedError):
            embedder = self.sidecar.get_meta("embedder") if self.sidecar.settings_are_sound() else None
        self.sidecar.remake()
        self.sidecar.set_meta(format=FORMAT, embedder=embedder, **self._belongs())
        self.partitions.drop()

    # --- fingerprints ------------------------------------------------------------------------------------------------

    @property
    def scope_id(self) -> str:
        """The scope keys as they are kept with the cache."""
        return json.dumps(self.scopes.keys)

    def _belongs(self) -> dict[str, str]:
        return {
            "collection": self.backend.identity,
            "analyzer": self.analyzer.fingerprint,
            "scope": self.scope_id,
            "late": str(self.late_interaction),
        }

    def _check_fingerprints(self) -> None:
        """The cache must be of this collection, analyzer and scope; otherwise it is emptied. Another embedder is an error."""
        belongs = self._belongs()
        stored = self.sidecar.get_meta("embedder")
        if stored is not None and self.sidecar.get_meta("collection") == belongs["collection"]:
            self._compare_embedders(Fingerprint(*json.loads(stored)))
        if any(self.sidecar.get_meta(key) not in (None, value) for key, value in belongs.items()):
            if self.read_only:
                raise StoreError(
                    "this store was last written with another analyzer, scope key or collection; open it for writing once to rebuild it"
                )
            self.sidecar.clear()
            self.sidecar.set_meta(format=FORMAT)
            if stored is not None and belongs["collection"] == self.backend.identity:
                self.sidecar.set_meta(embedder=stored)
        if self.sidecar.writable:
            self.sidecar.set_meta(**belongs)

    def _compare_embedders(self, stored: Fingerprint) -> None:
        try:
            mine = self.embedder.fingerprint
        except Exception as error:  # noqa: BLE001 - an embedder that is out of reach now must not keep the store shut
            self.warn_once("embedder", f"the embedder cannot be asked for its fingerprint now: {error}")
            return
        if stored != mine:
            raise EmbedderError(
                f"this store holds vectors of {stored}, the embedder given is {mine}. Open it with the former, or add the "
                "memories to a new collection with the latter"
            )

    def check_embedder(self, dimension: int) -> None:
        """Before the first use of the embedder on vectors that came without a fingerprint: are they its own?"""
        if self._checked_embedder:
            return
        mine = self.embedder.fingerprint
        if mine.dimension != dimension:
            raise EmbedderError(
                f"this store holds vectors of {dimension} dimensions, the embedder {mine} makes {mine.dimension}; give the "
                "embedder that the collection was filled with"
            )
        if self.sidecar.get_meta("embedder") is None:
            self._compare_samples(mine)
            if self.sidecar.writable:
                self.sidecar.set_meta(embedder=json.dumps([mine.name, mine.dimension, mine.revision]))
        self._checked_embedder = True

    def _compare_samples(self, mine: Fingerprint) -> None:
        """Three stored texts embedded again must give the stored vectors (cosine of at least 0.99)."""
        samples = self.sample(SAMPLE)
        if not samples:
            return
        # Whoever fills a collection through LlamaIndex may embed a text with its metadata or alone.
        texts = [text for r in samples for text in (r.text, embedded_text(r))]
        again = self.embedder.embed_documents(texts).reshape(len(samples), 2, -1)
        for record, vectors in zip(samples, again, strict=True):
            assert record.vector is not None
            norms = np.linalg.norm(record.vector) * np.linalg.norm(vectors, axis=1)
            cosine = float((vectors @ record.vector / np.where(norms > 0, norms, 1.0)).max())
            if cosine < SAME_EMBEDDER_COSINE:
                raise EmbedderError(
                    f"the vectors of this collection were not made by {mine}: memory {record.id!r} embedded again has cosine "
                    f"{cosine:.2f} to its stored vector. Give the embedder that the collection was filled with"
                )

    def sample(self, n: int) -> list[StoredRecord]:
        """A few stored memories with text and vector."""
        page: list[StoredRecord] = next(iter(self.backend.pages()), [])
        return [r for r in page if r.text.strip() and r.vector is not None][:n]

    def remember_embedder(self) -> None:
        """Vectors made by this embedder are about to be stored."""
        if self.sidecar.get_meta("embedder") is None:
            mine = self.embedder.fingerprint
            self.sidecar.set_meta(embedder=json.dumps([mine.name, mine.dimension, mine.revision]))
            self._checked_embedder = True

    # --- analysis and embedding --------------------------------------------------------------------------------------

    def analyse(
        self,
        records: Sequence[StoredRecord],
        tokens: Sequence[bytes | None] | None = None,
        analyses: Sequence[Analysis] | None = None,
    ) -> list[CachedMemory]:
        """Records, which have vectors, as the cache keeps them."""
        done = list(analyses) if analyses is not None else self.analyzer.analyze([r.text for r in records])
        out: list[CachedMemory] = []
        for i, (record, analysis) in enumerate(zip(records, done, strict=True)):
            vector = record.vector
            if vector is None:
                vector = np.full(
                    self.sidecar.dimension or self.embedder.fingerprint.dimension, np.nan, dtype=np.float32
                )
            out.append(
                CachedMemory(
                    id=record.id,
                    scope=self.scopes.of_metadata(record.metadata),
                    hash=content_hash(record.text, record.metadata),
                    text=record.text,
                    metadata=record.metadata,
                    terms=PackedTerms.of(analysis.terms),
                    entities=tuple(e.key for e in analysis.entities),
                    covered=self.covers(record.text),
                    vector=vector,
                    tokens=None if tokens is None else tokens[i],
                )
            )
        return out

    def covers(self, text: str) -> bool:
        """Whether the embedder is meant for the text's script; says so once where it is not."""
        covered = self.embedder.covers(text)
        if not covered:
            self.warn_once(
                "script",
                f"the embedder {self.embedder.fingerprint.name} is not meant for the script of some texts; their semantic signal "
                "counts as missing. For Chinese and other languages open the store with embedder='local-multilingual'",
            )
        return covered

    def embed_documents(self, texts: Sequence[str]) -> tuple[Float32, list[bytes | None] | None]:
        """Vectors, and packed token vectors where the embedder has them and they mean something."""
        if self.late_interaction and isinstance(self.embedder, TokenEmbedder):
            vectors, tokens = self.embedder.encode(texts)
            packed = [
                pack_tokens(t) if self.embedder.covers(text) else None for t, text in zip(tokens, texts, strict=True)
            ]
            return vectors, packed
        return self.embedder.embed_documents(texts), None

    # --- listeners ---------------------------------------------------------------------------------------------------

    def subscribe(self, listener: WriteListener) -> Callable[[], None]:
        """Tell a listener after each write; returns a function that ends it."""
        self._listeners.append(listener)

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return end

    def notify(self, event: WriteEvent) -> None:
        """Tell every listener, in the order in which they came. What one raises is logged and keeps nobody else from hearing."""
        for listener in list(self._listeners):
            try:
                listener(event)
            except Exception:
                log.exception("a write listener failed; the write itself is done")

    # --- life --------------------------------------------------------------------------------------------------------

    def warn_once(self, what: str, text: str) -> None:
        """A warning of this store, once."""
        if what not in self._warned:
            self._warned.add(what)
            warnings.warn(text, UserWarning, stacklevel=3)

    def check_open(self) -> None:
        """StoreError for a closed store, or one that was opened before a fork."""
        if self.closed or self._closing:
            raise StoreError("this store is closed; open it again")
        if os.getpid() != self._pid:
            raise StoreError(
                "this store was opened before the process forked; open it in the child (or use the spawn start method)"
            )

    def check_writable(self) -> None:
        """StoreError where nothing may be written."""
        self.check_open()
        if self.read_only:
            raise StoreError("this store was opened with read_only=True")

    def check_indexable(self) -> None:
        """StoreError where the indexes are somebody else's to keep."""
        self.check_open()
        if not self.sidecar.writable:
            raise StoreError("this store was opened with read_only=True; the process that writes keeps its indexes")

    @contextmanager
    def writing(self) -> Generator[None, None, None]:
        """The writer's lock, of a store that is still open."""
        with self.write_lock:
            self.check_open()
            yield

    def close(self) -> None:
        """Let go of files and locks. A write under way ends at its next chunk; those that wait find the store closed."""
        if os.getpid() != self._pid:
            self.closed = True
            return
        self._closing = True
        if not self.write_lock.acquire(timeout=CLOSE_PATIENCE_S):
            log.warning(
                "a write did not end within %s s; its store's files stay open until the process ends", CLOSE_PATIENCE_S
            )
            return
        try:
            if self.closed:
                return
            self.closed = True
            self.sidecar.close()
            self.ledger.close()
            self.backend.close()
            if self._second is not None:
                self._second.close()
            self._unlock()
        finally:
            self.write_lock.release()

    def keep(self, backend: Any) -> None:
        """A second client of the same collection: closed now, or, where this store lives on a client of the user's, with the store.

        The user may close theirs while somebody who opened the folder by its path still works.
        """
        if self.backend.owned or self._second is not None:
            backend.close()
        else:
            self._second = backend

    def _unlock(self) -> None:
        if self._lock_folder is not None:
            lock.release(self._lock_folder)
