"""The retriever: the core's search behind LlamaIndex's `retrieve` and `aretrieve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle

from llamaindex_memhybrid._convert import checked_memory, embedder_of, query_text, query_vector, to_scored_node
from llamaindex_memhybrid._filters import Filters, to_where
from llamaindex_memhybrid.embedding import core_embedder
from llamaindex_memhybrid.vector_store import MemHybridVectorStore
from memhybrid.concurrency import in_thread
from memhybrid.errors import InputError
from memhybrid.memory import HybridMemory, MemoryView
from memhybrid.profiles import Profile, as_profile
from memhybrid.values import positive

if TYPE_CHECKING:
    from llama_index.core.indices.vector_store.base import VectorStoreIndex
    from llama_index.core.vector_stores.types import BasePydanticVectorStore

DEFAULT_TOP_K = 5
OPTIONS = (
    "similarity_top_k",
    "filters",
    "profile",
    "min_score",
    "max_tokens",
    "record_usage",
    "include_outdated",
    "now",
)


class MemHybridRetriever(BaseRetriever):
    """Hybrid retrieval from a HybridMemory. Ids, scores and order are those of `memory.search` for the same query.

    Each node carries `metadata["memhybrid"]` with `score`, `signals` and `sources`, which is kept from embedding models and LLMs.
    `scope` binds metadata values that no filter and no option can change or widen. `with_options` is what differs for one request:

        retriever.with_options(similarity_top_k=10, filters=filters, scope={"user_id": "u1"}).retrieve("…")

    Copies share the memory; pickling is a TypeError.
    """

    def __init__(
        self,
        memory: MemoryView,
        *,
        similarity_top_k: int = DEFAULT_TOP_K,
        filters: Filters | None = None,
        scope: Mapping[str, Any] | None = None,
        profile: str | Path | Profile | None = None,
        min_score: float | Literal["recommended"] | None = None,
        max_tokens: int | None = None,
        record_usage: bool | None = None,
        include_outdated: bool = False,
        now: datetime | float | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        checked_memory(memory)
        super().__init__(callback_manager=callback_manager, object_map=object_map, objects=objects, verbose=verbose)
        self._memory = memory  # kept beside the view: the store closes when its HybridMemory is let go
        self._view = memory.scoped(**scope) if scope else memory
        self.similarity_top_k = positive(similarity_top_k, "similarity_top_k")
        self.filters = filters
        self.profile = None if profile is None else as_profile(profile)
        self.min_score: float | Literal["recommended"] | None = min_score
        self.max_tokens = max_tokens
        self.record_usage = record_usage
        self.include_outdated = include_outdated
        self.now = now
        to_where(filters)

    # --- constructors ------------------------------------------------------------------------------------------------

    @classmethod
    def from_memory(cls, memory: MemoryView, **options: Any) -> MemHybridRetriever:
        """From a HybridMemory or a scoped view. Options are those of the class."""
        return cls(memory, **options)

    @classmethod
    def from_vector_store(
        cls,
        vector_store: BasePydanticVectorStore,
        embed_model: Any = None,
        *,
        scope_key: str | Sequence[str] | None = None,
        state_path: str | Path | None = None,
        **options: Any,
    ) -> MemHybridRetriever:
        """From LlamaIndex's own ChromaVectorStore (or a MemHybridVectorStore).

        From now on what is written through that store reaches the indexes at once. `embed_model` is the one that filled it;
        without it LlamaIndex's Settings are asked, then it is the packaged one.
        """
        if isinstance(vector_store, MemHybridVectorStore):
            bound: dict[str, Any] = {"scope": vector_store.scope, **options}
            return cls(vector_store.memory, **bound)
        collection = getattr(vector_store, "_collection", None)
        if collection is None:
            raise InputError(
                f"vector_store: {type(vector_store).__name__} is not over Chroma; give a ChromaVectorStore or a MemHybridVectorStore"
            )
        memory = HybridMemory.attach(
            collection, embedder=core_embedder(embed_model), scope_key=scope_key, state_path=state_path
        )
        vector_store._collection = memory.collection  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
        return cls(memory, **options)

    @classmethod
    def from_nodes(
        cls,
        nodes: Sequence[BaseNode],
        embed_model: Any = None,
        *,
        path: str | Path | None = None,
        collection: str = "memories",
        scope_key: str | Sequence[str] | None = None,
        scope: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> MemHybridRetriever:
        """From nodes, stored in a folder or, where `path` is None, in memory. Nodes that are stored already are replaced."""
        memory = HybridMemory.open(path, collection, embedder=core_embedder(embed_model), scope_key=scope_key)
        MemHybridVectorStore.from_memory(memory, scope=scope).add(nodes)
        return cls(memory, scope=scope, **options)

    @classmethod
    def from_index(cls, index: VectorStoreIndex, **options: Any) -> MemHybridRetriever:
        """From a VectorStoreIndex over a ChromaVectorStore or a MemHybridVectorStore, with the index's own embedding model."""
        store = getattr(index, "vector_store", None)
        if store is None:
            raise InputError(f"index: expected a VectorStoreIndex, got {type(index).__name__}")
        given: dict[str, Any] = {
            "object_map": index._object_map,  # pyright: ignore[reportPrivateUsage] - what as_retriever passes on
            "callback_manager": index._callback_manager,  # pyright: ignore[reportPrivateUsage]
            **options,
        }
        if not isinstance(store, MemHybridVectorStore):
            given.setdefault("embed_model", index._embed_model)  # pyright: ignore[reportPrivateUsage]
        return cls.from_vector_store(store, **given)

    # --- retrieval ---------------------------------------------------------------------------------------------------

    @property
    def memory(self) -> MemoryView:
        """The memory that is searched, without this retriever's scope."""
        return self._memory

    @property
    def scope(self) -> dict[str, Any]:
        """The metadata values that everything here is bound to."""
        return self._view.scope

    def with_options(self, *, scope: Mapping[str, Any] | None = None, **changes: Any) -> MemHybridRetriever:
        """A cheap copy with other options, for one request. `scope` adds to the scope here; a bound value cannot be changed."""
        unknown = sorted(set(changes) - set(OPTIONS))
        if unknown:
            raise TypeError(f"with_options: unknown options {unknown}; known: {['scope', *OPTIONS]}")
        return type(self)(
            self._memory,
            **{name: getattr(self, name) for name in OPTIONS} | changes,
            scope={**self.scope, **self._view.scoped(**scope).scope} if scope else self.scope,
            callback_manager=self.callback_manager,
            object_map=self.object_map,
            verbose=self._verbose,
        )

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        result = self._view.search(
            query_text(query_bundle.query_str),
            self.similarity_top_k,
            where=to_where(self.filters),
            embedding=query_vector(query_bundle, embedder_of(self._view)),
            profile=self.profile,
            min_score=self.min_score,
            max_tokens=self.max_tokens,
            record_usage=self.record_usage,
            include_outdated=self.include_outdated,
            now=self.now,
        )
        return [to_scored_node(hit, annotate=True) for hit in result.hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await in_thread(self._retrieve, query_bundle)

    # --- copies ------------------------------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> MemHybridRetriever:
        return self.with_options()

    def __copy__(self) -> MemHybridRetriever:
        return self.with_options()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a MemHybridRetriever holds open files and cannot be pickled; pickle the path of its memory and make it again there"
        )
