"""HybridMemory: the door to both paths."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from memhybrid.concurrency import afterwards, in_this_process, in_write_thread, settle
from memhybrid.errors import InputError
from memhybrid.opened import let_go, shared
from memhybrid.options import (
    Options,
    check_name,
    check_switches,
    checked_folder,
    drop_collection,
    make_folder,
    seconds,
    state_folder,
    state_key,
)
from memhybrid.profiles import Profile, as_profile
from memhybrid.records import WriteEvent
from memhybrid.state import lock
from memhybrid.store import Store
from memhybrid.sync import SyncReport, VerifyReport
from memhybrid.values import clean_ids
from memhybrid.view import MemoryView
from memhybrid.write import Progress

if TYPE_CHECKING:
    pass


class HybridMemory(MemoryView):
    """A store of memories with hybrid search. Made by `open`, `attach` or `connect`; use it as a context manager or `close` it.

    Thread-safe. Two objects on the same collection in one process share everything but their profile. Copies share it too; it
    cannot be pickled (open it again from its path instead), nor used across a fork.
    """

    def __init__(
        self, store: Store, profile: Profile, *, key: tuple[str, ...] | None, consistency: str, strict: bool
    ) -> None:
        super().__init__(store, profile, {}, consistency=consistency, strict=strict)
        self._finalizer = weakref.finalize(self, in_this_process(afterwards), let_go, key, store)

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

        settle()
        options = Options.of(embedder, profile, scope_key, analyzer, bm25, consistency, strict, memory_budget)
        check_name(collection)
        check_switches(read_only=read_only, late_interaction=late_interaction)
        if path is None:
            backend = chroma.open_memory(collection)
            store = options.store(backend, private=True, late_interaction=late_interaction)
            memory = cls(store, options.profile, key=None, consistency=consistency, strict=strict)
            weakref.finalize(store, in_this_process(afterwards), drop_collection, backend)
            return memory
        folder = checked_folder(path, "path")
        if read_only and not (folder / "chroma.sqlite3").exists():
            raise InputError(f"path: there is no store in {folder} to be read")
        if not read_only:
            make_folder(folder)

        others_wrote = not read_only and lock.acquire(folder)
        try:
            backend = chroma.open_folder(folder, collection, renew=others_wrote)
            state = folder / "memhybrid" / backend.identity

            def make() -> Store:
                return options.store(
                    backend, state=state, lock_folder=folder, read_only=read_only, late_interaction=late_interaction
                )

            key = state_key(state, read_only=read_only)
            store = shared(key, make, options.embedder, options.settings(late_interaction), backend)
            return cls(store, options.profile, key=key, consistency=consistency, strict=strict)
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

        settle()
        options = Options.of(embedder, profile, scope_key, analyzer, bm25, consistency, strict, memory_budget)
        backend, folder = chroma.attach_collection(collection)
        state = state_folder(state_path, folder, backend.identity)

        def make() -> Store:
            return options.store(
                backend,
                state=state,
                lock_folder=folder or state,
                staleness=seconds(staleness),
                late_interaction=late_interaction,
            )

        settings = options.settings(late_interaction)
        key = ("attached", backend.identity, str(id(backend.client)), *settings.values())
        if state is not None:
            key = state_key(state)
        store = shared(key, make, options.embedder, settings, backend)
        return cls(store, options.profile, key=key, consistency=consistency, strict=strict)

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

        settle()
        options = Options.of(embedder, profile, scope_key, analyzer, bm25, consistency, strict, memory_budget)
        backend = chroma.connect_server(
            host, port, collection, tenant=tenant, database=database, headers=headers, ssl=ssl
        )
        state = state_folder(state_path, None, backend.identity)
        settings = options.settings(late_interaction)
        key = ("server", host, str(port), backend.identity, *settings.values())
        if state is not None:
            key = state_key(state)

        def make() -> Store:
            return options.store(
                backend,
                state=state,
                lock_folder=state,
                staleness=seconds(staleness),
                late_interaction=late_interaction,
            )

        store = shared(key, make, options.embedder, settings, backend)
        return cls(store, options.profile, key=key, consistency=consistency, strict=strict)

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

    def import_(self, path: str | Path, *, reembed: bool = False, progress: Progress | None = None) -> int:
        """Add everything from an exported file; ids that exist are replaced. How many memories.

        `reembed` makes the vectors anew: how a store changes its embedder is to be exported, and imported into a new folder.
        """
        from memhybrid.transfer import import_store

        check_switches(reembed=reembed)
        return import_store(self, path, progress, reembed=reembed)

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
        with self._store.writing():
            self._store.sidecar.compact()
            self._store.ledger.compact()
            # Loaded again without the dead, whose names would otherwise be kept anew.
            self._store.partitions.drop()

    def subscribe(self, listener: Callable[[WriteEvent], object]) -> Callable[[], None]:
        """Call `listener(WriteEvent)` after each write, whoever made it; returns a function that ends the subscription."""
        if not callable(listener):
            raise InputError(f"listener: expected a function, got {type(listener).__name__}")
        if inspect.iscoroutinefunction(listener):
            raise InputError("listener: expected a plain function; an async one would never be awaited")
        return self._store.subscribe(listener)

    def usage(self, ids: Any = None) -> dict[str, Any]:
        """How often memories were returned and when last: id → UsageEntry."""
        return self._store.ledger.export() if ids is None else self._store.ledger.get(clean_ids(ids))

    def reset_usage(self, ids: Any = None) -> None:
        """Forget usage counts, of the given memories or all."""
        self._store.ledger.reset(None if ids is None else clean_ids(ids))

    def scopes(self) -> list[dict[str, Any]]:
        """The tenants that have memories: for each the values of the scope keys, as `scoped(**values)` takes them."""
        self._syncer.ensure_fresh()
        scopes = self._store.scopes
        return [scopes.as_dict(scope) for scope in self._store.sidecar.scopes()] if scopes.keys else []

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
        mine = self._finalizer.detach()
        if mine is not None:
            let_go(*mine[2][1:])

    def __enter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_write_thread(self.close)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


__all__ = ["HybridMemory", "MemoryView"]
