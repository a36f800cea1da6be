"""Searches and writes inside a bound scope and filter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from typing_extensions import Self

from memhybrid.concurrency import in_thread, in_write_thread
from memhybrid.errors import InputError, ScopeError
from memhybrid.indexes.partition import View
from memhybrid.listing import sort_rows
from memhybrid.options import check_switches
from memhybrid.profiles import Profile, as_profile
from memhybrid.protocols import Embedder
from memhybrid.records import Memory, SearchResult
from memhybrid.request import floor_of, make_request, moment_of
from memhybrid.scope import Filter, Node, compile_filter, is_tenant
from memhybrid.search import Searcher
from memhybrid.signals.context import Request
from memhybrid.store import Store
from memhybrid.sync import Syncer
from memhybrid.validity import still_valid
from memhybrid.values import clean_id, clean_ids, clean_vector, positive
from memhybrid.write import Progress, Writer

if TYPE_CHECKING:
    from memhybrid.diagnose import DiagnoseReport


WhereInput = Mapping[str, Any] | None
Memories = list[Memory]
Ids = list[str]


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
            check_switches(strict=strict)
        chosen = self._profile if profile is None else as_profile(profile)
        request = self._request(
            query,
            k,
            where=where,
            embedding=embedding,
            min_score=floor_of(min_score, chosen),
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
            check_switches(strict=strict)
        chosen = self._profile if profile is None else as_profile(profile)
        moment = moment_of(now)
        requests = [
            self._request(
                query,
                k,
                where=where,
                embedding=None,
                min_score=floor_of(min_score, chosen),
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

    def _request(self, query: Any, k: Any, *, where: WhereInput, embedding: Any = None, **options: Any) -> Request:
        return make_request(
            query,
            k,
            scope=self._partition(where),
            where=self._filter(where),
            embedding=None
            if embedding is None
            else clean_vector(embedding, "embedding", self._store.sidecar.dimension),
            **options,
        )

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
        with self._store.writing():
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
        check_switches(embeddings=embeddings)
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
    ) -> Memories:
        """Memories by filter, in the order in which they were added, or by a metadata key ("-created_at": descending).

        Memories without the key come last. Expired and superseded ones are listed unless include_outdated=False.
        """
        check_switches(include_outdated=include_outdated)
        view, condition = self._view(where)
        if not include_outdated:
            condition = still_valid(view.partition.metadata, self._profile.fields, moment_of(now), condition)
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

        self.update(id, metadata={self._profile.fields.expires_at: iso(moment_of(at, "at"))})

    def supersede(self, id: str, by: str) -> None:
        """The memory `by` says what this one no longer says truly; this one stays out of searches."""
        if clean_id(id) == clean_id(by, "by") or not self.get([by]):
            raise InputError(f"supersede: {by!r} must be another memory that exists")
        later, seen = by, {id}
        while later not in seen:
            seen.add(later)
            found = self.get([later])
            later = str(found[0].metadata.get(self._profile.fields.superseded_by) or later) if found else later
        if later == id:
            raise InputError(f"supersede: {by!r} is superseded by {id!r} itself; clear its superseded_by first")
        self.update(id, metadata={self._profile.fields.superseded_by: by})

    # --- async twins -------------------------------------------------------------------------------------------------

    async def aadd(self, memories: Any, *, progress: Progress | None = None) -> Ids:
        """`add` without blocking the event loop."""
        return await in_write_thread(self.add, memories, progress=progress)

    async def aupdate(
        self, id: str, text: str | None = None, metadata: Mapping[str, Any] | None = None, *, embedding: Any = None
    ) -> None:
        """`update` without blocking the event loop."""
        await in_write_thread(self.update, id, text, metadata, embedding=embedding)

    async def adelete(self, ids: Any = None, *, where: WhereInput = None, all: bool = False) -> int:
        """`delete` without blocking the event loop."""
        return await in_write_thread(self.delete, ids, where=where, all=all)

    async def aget(self, ids: Any, *, embeddings: bool = False) -> Memories:
        """`get` without blocking the event loop."""
        return await in_thread(self.get, ids, embeddings=embeddings)

    async def alist(self, **options: Any) -> Memories:
        """`list` without blocking the event loop; takes the same options."""
        return await in_thread(self.list, **options)

    async def acount(self, where: WhereInput = None) -> int:
        """`count` without blocking the event loop."""
        return await in_thread(self.count, where)

    async def aexpire(self, id: str, at: datetime | float | str | None = None) -> None:
        """`expire` without blocking the event loop."""
        await in_write_thread(self.expire, id, at)

    async def asupersede(self, id: str, by: str) -> None:
        """`supersede` without blocking the event loop."""
        await in_write_thread(self.supersede, id, by)
