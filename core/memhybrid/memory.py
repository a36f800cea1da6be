"""HybridMemory: the door to both paths."""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import Self

from memhybrid.concurrency import in_thread
from memhybrid.embedders import as_embedder
from memhybrid.errors import ConfigError, FilterError, InputError, ScopeError
from memhybrid.indexes.partition import View
from memhybrid.listing import sort_rows
from memhybrid.profiles import Profile, as_profile
from memhybrid.protocols import Embedder
from memhybrid.records import Memory, SearchResult, WriteEvent
from memhybrid.scope import Filter, Node, Scopes, compile_filter, is_tenant
from memhybrid.search import Searcher
from memhybrid.signals.context import Request
from memhybrid.state import lock
from memhybrid.store import Store, let_go, shared
from memhybrid.sync import Syncer, SyncReport, VerifyReport
from memhybrid.text import default_analyzer
from memhybrid.times import EARLIEST, LATEST, parse_time
from memhybrid.validity import still_valid
from memhybrid.values import check_query, clean_id, clean_ids, clean_vector, optional_number, positive
from memhybrid.write import Progress, Writer

if TYPE_CHECKING:
    from memhybrid.diagnose import DiagnoseReport

WhereInput = Mapping[str, Any] | None
MAX_K = 100_000


class MemoryView:
    """Searches and writes inside a bound scope and filter. Both are ANDed with whatever a call says, and cannot be widened.

    Made by `HybridMemory.scoped(…)`; a HybridMemory is itself a view without bounds.
    """

    _parent: MemoryView | None = None
    """What this view was made of: the store closes when nobody holds its HybridMemory, so a view does."""

    def __init__(
        self, store: Store, profile: Profile, bound: Mapping[str, Any], *, consistency: str, strict: bool
    ) -> None:
        self._store = store
        self._profile = profile
        self._bound = dict(bound)
        self._consistency = consistency
        self._strict = strict
        self._syncer = Syncer.of(store)
        self._writer = Writer(store, self._syncer)
        self._searcher = Searcher(store, self._syncer)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            f"a {type(self).__name__} holds open files and cannot be pickled; pickle its path and open it again"
        )

    @property
    def embedder(self) -> Embedder:
        """The embedder in use."""
        return self._store.embedder

    # --- what a call is about ----------------------------------------------------------------------------------------

    @property
    def scope(self) -> dict[str, Any]:
        """The bound metadata values of this view."""
        return dict(self._bound)

    @property
    def profile(self) -> Profile:
        """The profile that searches use unless they name another."""
        return self._profile

    @property
    def scope_keys(self) -> tuple[str, ...]:
        """The metadata keys that keep tenants apart; empty where there are none."""
        return self._store.scopes.keys

    def _partition(self, where: WhereInput) -> str:
        return self._store.scopes.resolve(self._bound, where)

    def _filter(self, where: WhereInput) -> Filter | None:
        """The caller's filter under the bound values."""
        mine = compile_filter(where)
        bound = compile_filter(self._bound or None)
        if mine is None or bound is None:
            return mine if bound is None else bound
        return Node("$and", (bound, mine))

    def _view(self, where: WhereInput) -> tuple[View, Filter | None]:
        partition, condition = self._partition(where), self._filter(where)
        self._syncer.ensure_fresh(strong=self._consistency == "strong")
        return self._store.partitions.get(partition).view(), condition

    def scoped(self, **values: Any) -> MemoryView:
        """A view bound to these metadata values as well. Values that this view is bound to already cannot be changed."""
        if not values:
            raise ScopeError("scoped: give at least one value, as in memory.scoped(user_id='u1')")
        for key, value in values.items():
            plain = value.item() if isinstance(value, np.generic) else value
            values[key] = plain
            if not is_tenant(plain):
                raise ScopeError(f"scoped: {key!r} is {plain!r}; give a non-empty string or an int")
            if key in self._bound and self._bound[key] != plain:
                raise ScopeError(f"scoped: {key!r} is bound already and cannot be changed")
        view = MemoryView(
            self._store, self._profile, {**self._bound, **values}, consistency=self._consistency, strict=self._strict
        )
        view._parent = self
        return view

    # --- search ------------------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        k: int = 5,
        *,
        where: WhereInput = None,
        embedding: Any = None,
        profile: str | Path | Profile | None = None,
        min_score: float | Literal["recommended"] | None = None,
        max_tokens: int | None = None,
        record_usage: bool | None = None,
        min_msg_id: float | None = None,
        max_msg_id: float | None = None,
        prefix_only: bool = False,
        include_outdated: bool = False,
        now: datetime | float | None = None,
        strict: bool | None = None,
    ) -> SearchResult:
        """The k best memories for a query, with every signal and the trace of how they were found.

        An empty query finds nothing by itself (`tipsy` then goes by importance). `where` narrows; `embedding` (d numbers) spares
        the embedder; `min_score` in [0, 1], or "recommended" for the profile's calibrated
        floor, may leave fewer than k, or nothing; `max_tokens` packs hits into a budget. `include_outdated` brings
        expired and superseded memories too. `now` is the moment that ages and relative dates count from. `strict` raises
        DegradedError where a part failed or is missing instead of going on without it.
        """
        if strict is not None:
            _check_switches(strict=strict)
        chosen = self._profile if profile is None else as_profile(profile)
        request = self._request(
            query,
            k,
            where=where,
            embedding=embedding,
            min_score=_floor(min_score, chosen),
            max_tokens=max_tokens,
            record_usage=record_usage,
            min_msg_id=min_msg_id,
            max_msg_id=max_msg_id,
            prefix_only=prefix_only,
            include_outdated=include_outdated,
            now=now,
        )
        return self._searcher.search(
            request, chosen, strict=self._strict if strict is None else strict, strong=self._consistency == "strong"
        )

    def search_many(
        self,
        queries: Sequence[str],
        k: int = 5,
        *,
        where: WhereInput = None,
        profile: str | Path | Profile | None = None,
        min_score: float | Literal["recommended"] | None = None,
        max_tokens: int | None = None,
        record_usage: bool | None = None,
        include_outdated: bool = False,
        now: datetime | float | None = None,
        strict: bool | None = None,
    ) -> list[SearchResult]:
        """`search` for several queries with the work shared; the same hits and scores, in the order of the queries."""
        if isinstance(queries, str) or not isinstance(queries, Iterable):
            raise InputError(f"queries: expected a list of str, got {type(queries).__name__}")
        if strict is not None:
            _check_switches(strict=strict)
        chosen = self._profile if profile is None else as_profile(profile)
        moment = self._moment(now)
        requests = [
            self._request(
                query,
                k,
                where=where,
                embedding=None,
                min_score=_floor(min_score, chosen),
                max_tokens=max_tokens,
                record_usage=record_usage,
                min_msg_id=None,
                max_msg_id=None,
                prefix_only=False,
                include_outdated=include_outdated,
                now=moment,
            )
            for query in queries
        ]
        if not requests:
            return []
        return self._searcher.search_many(
            requests, chosen, strict=self._strict if strict is None else strict, strong=self._consistency == "strong"
        )

    async def asearch(self, query: str, k: int = 5, **options: Any) -> SearchResult:
        """`search` without blocking the event loop; takes the same options."""
        return await in_thread(self.search, query, k, **options)

    async def asearch_many(self, queries: Sequence[str], k: int = 5, **options: Any) -> list[SearchResult]:
        """`search_many` without blocking the event loop."""
        return await in_thread(self.search_many, queries, k, **options)

    def diagnose(
        self,
        queries: Sequence[str] | None = None,
        where: WhereInput = None,
        rounds: int = 10,
        k: int = 10,
        profile: str | Path | Profile | None = None,
    ) -> DiagnoseReport:
        """Whether results follow the query, now and after rounds of use, in numbers; see `memhybrid.diagnose`. Writes nothing."""
        from memhybrid.diagnose import diagnose

        return diagnose(self, queries=queries, where=where, rounds=rounds, k=k, profile=profile)

    def _request(
        self,
        query: Any,
        k: Any,
        *,
        where: WhereInput,
        embedding: Any,
        min_score: Any,
        max_tokens: Any,
        record_usage: Any,
        min_msg_id: Any,
        max_msg_id: Any,
        prefix_only: Any,
        include_outdated: Any,
        now: Any,
    ) -> Request:
        tokens = optional_number(max_tokens, "max_tokens")
        if tokens is not None and (tokens < 0 or tokens != int(tokens)):
            raise InputError(f"max_tokens: expected a whole number of at least 0, got {max_tokens!r}")
        for name, value in (("prefix_only", prefix_only), ("include_outdated", include_outdated)):
            if not isinstance(value, bool):
                raise InputError(f"{name}: expected True or False, got {value!r}")
        if record_usage is not None and not isinstance(record_usage, bool):
            raise InputError(f"record_usage: expected True, False or None, got {record_usage!r}")
        return Request(
            query=check_query(query),
            k=positive(k, "k", most=MAX_K),
            scope=self._partition(where),
            where=self._filter(where),
            embedding=None
            if embedding is None
            else clean_vector(embedding, "embedding", self._store.sidecar.dimension),
            min_score=optional_number(min_score, "min_score"),
            max_tokens=None if tokens is None else int(tokens),
            record_usage=record_usage,
            min_msg_id=optional_number(min_msg_id, "min_msg_id"),
            max_msg_id=optional_number(max_msg_id, "max_msg_id"),
            prefix_only=prefix_only,
            include_outdated=include_outdated,
            now=self._moment(now),
        )

    @staticmethod
    def _moment(now: Any, name: str = "now") -> float:
        if now is None:
            return time.time()
        moment = parse_time(now) if isinstance(now, datetime | date | int | float | str) else None
        if moment is None or not EARLIEST <= moment <= LATEST:
            raise InputError(f"{name}: expected a datetime, epoch seconds or ISO 8601 text, got {now!r}")
        return moment

    # --- write -------------------------------------------------------------------------------------------------------

    def add(self, memories: Any, *, progress: Progress | None = None) -> list[str]:
        """Store memories: str, Memory or (text, metadata), one or many. An id that exists is replaced. Returns the ids in order.

        `progress(done, total)` is called as the work goes on.
        """
        return self._writer.add(memories, scope=self._bound, progress=progress)

    def update(
        self, id: str, text: str | None = None, metadata: Mapping[str, Any] | None = None, *, embedding: Any = None
    ) -> None:
        """Change a memory. Metadata is merged (None removes a key); `updated_at`, where a memory has it, becomes now."""
        self._writer.update(
            id, partition=self._partition(None), scope=self._bound, text=text, metadata=metadata, embedding=embedding
        )

    def delete(self, ids: Any = None, *, where: WhereInput = None, all: bool = False) -> int:
        """Delete by ids, by filter, or, with `all=True`, everything in this view. Returns how many existed and are gone.

        An empty list deletes nothing; nothing given, or an empty filter, is an error.
        """
        if ids is None and where is None and not all:
            raise InputError("delete: give ids, where, or all=True")
        wanted = None if ids is None else clean_ids(ids)
        self._store.check_writable()
        with self._store.write_lock:
            view, condition = self._view(where)
            if wanted is None and not all and compile_filter(where) is None:
                raise InputError("delete: an empty filter means everything; say all=True if that is meant")
            if wanted is None:
                mask = view.mask(condition)
                rows = view.living() if mask is None else np.flatnonzero(mask)
            else:
                rows = self._matching(view, view.rows_of(wanted), condition)
            return self._writer.delete([view.id(int(row)) for row in rows])

    # --- read --------------------------------------------------------------------------------------------------------

    @staticmethod
    def _matching(view: View, rows: Any, condition: Filter | None) -> Any:
        mask = view.mask(condition)
        return rows if mask is None else rows[mask[rows]]

    def _rows(self, ids: Sequence[str]) -> tuple[View, Any]:
        view, condition = self._view(None)
        return view, self._matching(view, view.rows_of(clean_ids(ids)), condition)

    def get(self, ids: Any, *, embeddings: bool = False) -> list[Memory]:
        """The memories with these ids, in this order; unknown ones are left out."""
        _check_switches(embeddings=embeddings)
        view, rows = self._rows(ids)
        return [self._with_vector(view, int(row), embeddings) for row in rows]

    @staticmethod
    def _with_vector(view: View, row: int, wanted: bool) -> Memory:
        memory = view.memory(row)
        vectors = view.partition.vectors
        if not wanted or vectors is None:
            return memory
        return Memory(memory.id, memory.text, memory.metadata, vectors.take(np.array([row], dtype=np.intp))[0].tolist())

    def list(
        self,
        *,
        where: WhereInput = None,
        order_by: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        include_outdated: bool = True,
        now: datetime | float | None = None,
    ) -> list[Memory]:
        """Memories by filter, in the order in which they were added, or by a metadata key ("-created_at": descending).

        Memories without the key come last. Expired and superseded ones are listed unless include_outdated=False.
        """
        _check_switches(include_outdated=include_outdated)
        view, condition = self._view(where)
        if not include_outdated:
            condition = still_valid(view.partition.metadata, self._profile.fields, self._moment(now), condition)
        mask = view.mask(condition)
        rows = view.living() if mask is None else np.flatnonzero(mask)
        ordered = sort_rows(view, rows, order_by)
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            raise InputError(f"offset: expected a whole number of at least 0, got {offset!r}")
        stop = None if limit is None else offset + positive(limit, "limit")
        return [view.memory(int(row)) for row in ordered[offset:stop]]

    def count(self, where: WhereInput = None) -> int:
        """How many memories there are in this view, or satisfy the filter."""
        view, condition = self._view(where)
        mask = view.mask(condition)
        return view.count if mask is None else int(mask.sum())

    # --- validity ----------------------------------------------------------------------------------------------------

    def expire(self, id: str, at: datetime | float | str | None = None) -> None:
        """From `at` (default: now) on the memory stays out of searches, unless they ask for outdated ones."""
        from memhybrid.times import iso

        self.update(id, metadata={self._profile.fields.expires_at: iso(self._moment(at, "at"))})

    def supersede(self, id: str, by: str) -> None:
        """The memory `by` says what this one no longer says truly; this one stays out of searches."""
        if clean_id(id) == clean_id(by, "by") or not self.get([by]):
            raise InputError(f"supersede: {by!r} must be another memory that exists")
        self.update(id, metadata={self._profile.fields.superseded_by: by})

    # --- async twins -------------------------------------------------------------------------------------------------

    async def aadd(self, memories: Any, *, progress: Progress | None = None) -> list[str]:
        """`add` without blocking the event loop."""
        return await in_thread(self.add, memories, progress=progress)

    async def aupdate(self, id: str, text: str | None = None, metadata: Mapping[str, Any] | None = None) -> None:
        """`update` without blocking the event loop."""
        await in_thread(self.update, id, text, metadata)

    async def adelete(self, ids: Any = None, *, where: WhereInput = None, all: bool = False) -> int:
        """`delete` without blocking the event loop."""
        return await in_thread(self.delete, ids, where=where, all=all)

    async def aget(self, ids: Any) -> list[Memory]:  # pyright: ignore[reportInvalidTypeForm] - `list` is a method here
        """`get` without blocking the event loop."""
        return await in_thread(self.get, ids)


class HybridMemory(MemoryView):
    """A store of memories with hybrid search. Made by `open`, `attach` or `connect`; use it as a context manager or `close` it.

    Thread-safe. Two objects on the same collection in one process share everything but their profile. Copies share it too; it
    cannot be pickled (open it again from its path instead), nor used across a fork.
    """

    def __init__(
        self, store: Store, profile: Profile, *, key: tuple[str, ...] | None, consistency: str, strict: bool
    ) -> None:
        super().__init__(store, profile, {}, consistency=consistency, strict=strict)
        self._finalizer = weakref.finalize(self, let_go, key, store)

    # --- doors -------------------------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        collection: str = "memories",
        *,
        embedder: Any = None,
        profile: str | Path | Profile = "balanced",
        scope_key: str | Sequence[str] | None = None,
        analyzer: Any = "auto",
        bm25: str = "memhybrid",
        read_only: bool = False,
        memory_budget: int | None = None,
        consistency: str = "bounded",
        strict: bool = False,
        late_interaction: bool = True,
    ) -> HybridMemory:
        """A store in a folder, made if it is not there; in memory and private to this object where `path` is None.

        `embedder` None is the packaged English model; also "local-multilingual", a LangChain, LlamaIndex or Chroma embedder, or a
        function of a list of texts. `scope_key` names the metadata that keeps tenants apart. `memory_budget` bounds the bytes of
        resident indexes. StoreLockedError where another process writes to the folder: open it with read_only=True, or use a server.
        """
        from memhybrid.backends import chroma

        options = _Options.of(embedder, profile, scope_key, analyzer, bm25, consistency, strict, memory_budget)
        _check_name(collection)
        _check_switches(read_only=read_only, late_interaction=late_interaction)
        if path is None:
            backend = chroma.open_memory(collection)
            store = options.store(backend, private=True, late_interaction=late_interaction)
            memory = cls(store, options.profile, key=None, consistency=consistency, strict=strict)
            weakref.finalize(store, _drop_collection, backend)
            return memory
        folder = _folder(path, "path")
        if read_only and not (folder / "chroma.sqlite3").exists():
            raise InputError(f"path: there is no store in {folder} to be read")
        if not read_only:
            _make_folder(folder)

        if not read_only:
            lock.acquire(folder)
        try:
            backend = chroma.open_folder(folder, collection)
            state = folder / "memhybrid" / backend.identity

            def make() -> Store:
                return options.store(
                    backend, state=state, lock_folder=folder, read_only=read_only, late_interaction=late_interaction
                )

            key = _state_key(state, read_only=read_only)
            settings = options.settings(late_interaction)
            return cls(
                shared(key, make, options.embedder, settings),
                options.profile,
                key=key,
                consistency=consistency,
                strict=strict,
            )
        finally:
            if not read_only:
                lock.release(folder)

    @classmethod
    def attach(
        cls,
        collection: Any,
        *,
        embedder: Any = None,
        profile: str | Path | Profile = "balanced",
        scope_key: str | Sequence[str] | None = None,
        state_path: str | Path | None = None,
        analyzer: Any = "auto",
        bm25: str = "memhybrid",
        memory_budget: int | None = None,
        consistency: str = "bounded",
        staleness: float = 5.0,
        strict: bool = False,
        late_interaction: bool = True,
    ) -> HybridMemory:
        """A Chroma collection that you already have. What it holds is read once; later changes are followed.

        `embedder` must be the one that the collection was filled with. State lies beside a local folder, in `state_path`, or in
        memory. Without a local folder, writes that do not go through us are looked for every `staleness` seconds by their number.
        """
        from memhybrid.backends import chroma

        options = _Options.of(embedder, profile, scope_key, analyzer, bm25, consistency, strict, memory_budget)
        backend, folder = chroma.attach_collection(collection)
        state = _state_folder(state_path, folder, backend.identity)

        def make() -> Store:
            return options.store(
                backend,
                state=state,
                lock_folder=folder or state,
                staleness=_seconds(staleness),
                late_interaction=late_interaction,
            )

        settings = options.settings(late_interaction)
        key = ("attached", backend.identity, str(id(backend.client)), *settings.values())
        if state is not None:
            key = _state_key(state)
        return cls(
            shared(key, make, options.embedder, settings),
            options.profile,
            key=key,
            consistency=consistency,
            strict=strict,
        )

    @classmethod
    def connect(
        cls,
        host: str = "localhost",
        port: int = 8000,
        collection: str = "memories",
        *,
        tenant: str | None = None,
        database: str | None = None,
        headers: dict[str, str] | None = None,
        ssl: bool = False,
        embedder: Any = None,
        profile: str | Path | Profile = "balanced",
        scope_key: str | Sequence[str] | None = None,
        state_path: str | Path | None = None,
        analyzer: Any = "auto",
        bm25: str = "memhybrid",
        memory_budget: int | None = None,
        consistency: str = "bounded",
        staleness: float = 5.0,
        strict: bool = False,
        late_interaction: bool = True,
    ) -> HybridMemory:
        """A collection on a Chroma server (`chroma run`). `state_path` keeps the indexes and usage counts; without it they are
        in memory. Writes by others are looked for every `staleness` seconds by their number; `sync()` compares everything.
        """
        from memhybrid.backends import chroma

        options = _Options.of(embedder, profile, scope_key, analyzer, bm25, consistency, strict, memory_budget)
        backend = chroma.connect_server(
            host, port, collection, tenant=tenant, database=database, headers=headers, ssl=ssl
        )
        state = _state_folder(state_path, None, backend.identity)
        settings = options.settings(late_interaction)
        key = ("server", host, str(port), backend.identity, *settings.values())
        if state is not None:
            key = _state_key(state)

        def make() -> Store:
            return options.store(
                backend,
                state=state,
                lock_folder=state,
                staleness=_seconds(staleness),
                late_interaction=late_interaction,
            )

        return cls(
            shared(key, make, options.embedder, settings),
            options.profile,
            key=key,
            consistency=consistency,
            strict=strict,
        )

    # --- upkeep ------------------------------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The parts behind this object, for tools; not a stable interface."""
        return self._store

    def refresh(self) -> None:
        """Look for changes made elsewhere, as every search does."""
        self._syncer.ensure_fresh()

    def export(self, path: str | Path) -> int:
        """Write everything, with vectors and usage, to a JSON Lines file; how many memories. See memhybrid.transfer."""
        from memhybrid.transfer import export_store

        return export_store(self, path)

    def import_(self, path: str | Path, *, progress: Progress | None = None) -> int:
        """Add everything from an exported file; ids that exist are replaced. How many memories."""
        from memhybrid.transfer import import_store

        return import_store(self, path, progress)

    @property
    def collection(self) -> Any:
        """The Chroma collection, observed: what is written through it reaches the indexes at once."""
        from memhybrid.backends.chroma import observe

        return observe(self._store.backend.collection, self.touched)

    def touched(self, ids: Iterable[str]) -> SyncReport:
        """Tell the store that these ids were written or deleted elsewhere: they are read back from Chroma."""
        return self._syncer.reread(ids)

    def sync(self) -> SyncReport:
        """Compare the whole collection with the indexes and mend what differs."""
        return self._syncer.sync()

    def verify(self) -> VerifyReport:
        """Every difference between Chroma, the cache and the indexes; changes nothing."""
        self._syncer.ensure_fresh()
        return self._syncer.verify()

    def compact(self) -> None:
        """Give back the space of deleted memories in our files, so that nothing of their text is left there."""
        self._store.check_writable()
        with self._store.write_lock:
            self._store.sidecar.compact()
            # Loaded again without the dead, whose names would otherwise be kept anew.
            self._store.partitions.drop()

    def subscribe(self, listener: Callable[[WriteEvent], object]) -> Callable[[], None]:
        """Call `listener(WriteEvent)` after each write, whoever made it; returns a function that ends the subscription."""
        if not callable(listener):
            raise InputError(f"listener: expected a function, got {type(listener).__name__}")
        return self._store.subscribe(listener)

    def usage(self, ids: Any = None) -> dict[str, Any]:
        """How often memories were returned and when last: id → UsageEntry."""
        return self._store.ledger.export() if ids is None else self._store.ledger.get(clean_ids(ids))

    def reset_usage(self, ids: Any = None) -> None:
        """Forget usage counts, of the given memories or all."""
        self._store.ledger.reset(None if ids is None else clean_ids(ids))

    def stats(self) -> dict[str, Any]:
        """Counts, sizes, fingerprints, and what is missing."""
        store = self._store
        self._syncer.ensure_fresh()
        return {
            "memories": store.sidecar.count(),
            "without_scope": store.sidecar.count_outside(),
            "partitions": len(store.sidecar.scopes()),
            "resident_partitions": store.partitions.resident,
            "cold_loads": store.partitions.cold_loads,
            "resident_bytes": store.partitions.sizes(),
            "embedder": str(store.embedder.fingerprint),
            "analyzer": store.analyzer.fingerprint,
            "missing": list(store.analyzer.missing),
            "late_interaction": store.late_interaction,
            "scope_keys": list(store.scopes.keys),
            "space": store.backend.space,
        }

    def with_profile(self, profile: str | Path | Profile) -> MemoryView:
        """The same store with another default profile."""
        view = MemoryView(
            self._store, as_profile(profile), self._bound, consistency=self._consistency, strict=self._strict
        )
        view._parent = self
        return view

    def close(self) -> None:
        """Let go of the store; it is closed when nobody uses it any more."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _floor(min_score: Any, profile: Profile) -> Any:
    """The floor that is meant: "recommended" is the profile's own."""
    if not isinstance(min_score, str) or min_score != "recommended":
        return min_score
    if profile.recommended_min_score is None:
        raise InputError(f"min_score: the profile {profile.name!r} has no recommended value; give a number")
    return profile.recommended_min_score


class _Options:
    """The arguments that all three doors share, checked."""

    def __init__(
        self, embedder: Any, profile: Profile, scopes: Scopes, analyzer: Any, bm25: str, budget: int | None
    ) -> None:
        self.embedder = embedder
        self.profile = profile
        self.scopes = scopes
        self.analyzer = analyzer
        self.bm25 = bm25
        self.budget = budget

    @classmethod
    def of(
        cls,
        embedder: Any,
        profile: Any,
        scope_key: Any,
        analyzer: Any,
        bm25: str,
        consistency: str,
        strict: bool,
        budget: int | None,
    ) -> _Options:
        if not isinstance(consistency, str) or consistency not in ("bounded", "strong"):
            raise ConfigError(f"consistency: expected 'bounded' or 'strong', got {consistency!r}")
        if not isinstance(strict, bool):
            raise ConfigError(f"strict: expected True or False, got {strict!r}")
        if isinstance(analyzer, str) and not analyzer.strip():
            raise ConfigError(f"analyzer: expected 'auto', 'spacy', 'fast' or a pipeline, got {analyzer!r}")
        if not isinstance(bm25, str) or bm25 not in ("memhybrid", "rank-bm25"):
            raise ConfigError(f"bm25: expected 'memhybrid' or 'rank-bm25', got {bm25!r}")
        if budget is not None:
            budget = positive(budget, "memory_budget", most=2**62)
        return cls(
            as_embedder(embedder), as_profile(profile), Scopes.of(scope_key), default_analyzer(analyzer), bm25, budget
        )

    def settings(self, late_interaction: bool) -> dict[str, str]:
        """What two objects on one store must have in common, beside the embedder."""
        return {
            "scope_key": str(self.scopes.keys or None),
            "analyzer": self.analyzer.fingerprint,
            "bm25": self.bm25,
            "late_interaction": str(late_interaction),
        }

    def store(self, backend: Any, **options: Any) -> Store:
        defaults: dict[str, Any] = {
            "state": None,
            "lock_folder": None,
            "read_only": False,
            "private": False,
            "staleness": 5.0,
            "late_interaction": True,
        }
        return Store(
            backend,
            embedder=self.embedder,
            analyzer=self.analyzer,
            scopes=self.scopes,
            memory_budget=self.budget,
            bm25=self.bm25,
            **{**defaults, **options},
        )


def _state_key(state: Path, *, read_only: bool = False) -> tuple[str, ...]:
    """Whichever door it came through: who shares state must share the store."""
    return ("state", str(state), "read" if read_only else "write")


def _state_folder(state_path: str | Path | None, folder: Path | None, identity: str) -> Path | None:
    if state_path is not None:
        path = _folder(state_path, "state_path") / identity
        _make_folder(path)
        return path
    return None if folder is None else folder / "memhybrid" / identity


def _folder(path: Any, name: str) -> Path:
    if not isinstance(path, str | Path) or not str(path).strip() or "\x00" in str(path) or not is_tenant(str(path)):
        raise InputError(f"{name}: expected the path of a folder, got {path!r}")
    try:
        folder = Path(path).expanduser().resolve()
        is_file = folder.exists() and not folder.is_dir()
    except (OSError, RuntimeError) as error:  # a name that is too long, a loop of links, a home that is not known
        raise InputError(f"{name}: {str(path)[:200]!r} is no path of a folder: {error}"[:500]) from error
    if is_file:
        raise InputError(f"{name}: {folder} is a file, expected a folder")
    return folder


_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]")


def _check_name(collection: Any) -> None:
    """Chroma's rule, before a folder is made."""
    if not isinstance(collection, str) or not _NAME.fullmatch(collection):
        raise InputError(
            f"collection: expected a name of 3 to 512 characters from a-z, A-Z, 0-9, '.', '_' and '-' that begins and ends "
            f"with a letter or a digit, got {collection!r}"
        )


def _check_switches(**switches: Any) -> None:
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise ConfigError(f"{name}: expected True or False, got {value!r}")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"path: cannot make the folder {folder}: {error.strerror}") from error


def _seconds(value: Any) -> float:
    number = optional_number(value, "staleness")
    if number is None or number < 0:
        raise ConfigError(f"staleness: expected seconds of at least 0, got {value!r}")
    return number


def _drop_collection(backend: Any) -> None:
    """An in-memory collection goes with its object."""
    with suppress(Exception):  # at interpreter exit Chroma may be gone already
        backend.drop()


__all__ = ["FilterError", "HybridMemory", "MemoryView"]
