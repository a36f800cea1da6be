"""The vector store: for VectorStoreIndex, IngestionPipeline, and whatever else takes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery, VectorStoreQueryResult

from llamaindex_memhybrid._convert import NO_SOURCE, SOURCE_KEY, checked_memory, embedder_of, to_memories, to_node
from llamaindex_memhybrid._filters import Filters, all_of, to_where
from llamaindex_memhybrid._query import run_query
from llamaindex_memhybrid.embedding import MemHybridEmbedding, core_embedder
from memhybrid.concurrency import in_thread, in_write_thread
from memhybrid.errors import InputError
from memhybrid.memory import HybridMemory, MemoryView


class MemHybridVectorStore(BasePydanticVectorStore):
    """A HybridMemory as LlamaIndex vector store. A node's id is its identity: adding it again replaces it.

    Query modes: `default` by vectors; `sparse` and `text_search` by keywords; `hybrid` and `semantic_hybrid` by the memory's
    profile, or with `alpha` by vectors (1) and keywords (0) alone; `mmr`. Scores lie in [0, 1] and are the core's. `annotate` adds
    `metadata["memhybrid"]` with score, signals and sources to the nodes that a query finds.

    With a `scope` everything here happens inside it. Copies share the memory; pickling is a TypeError.
    """

    stores_text: bool = True
    flat_metadata: bool = False
    annotate: bool = False
    scope: dict[str, Any] | None = None
    memory: Any = Field(exclude=True, repr=False)
    view: Any = Field(default=None, exclude=True, repr=False)

    def __init__(
        self, memory: MemoryView, *, scope: Mapping[str, Any] | None = None, annotate: bool = False, **kwargs: Any
    ) -> None:
        checked_memory(memory)
        bound = dict(scope) if scope else None
        view = memory.scoped(**bound) if bound else memory
        given: dict[str, Any] = {**kwargs, "memory": memory, "view": view, "scope": bound, "annotate": annotate}
        super().__init__(**given)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised components."""
        return "MemHybridVectorStore"

    @classmethod
    def from_memory(
        cls, memory: MemoryView, *, scope: Mapping[str, Any] | None = None, annotate: bool = False
    ) -> MemHybridVectorStore:
        """Over a HybridMemory or a scoped view."""
        return cls(memory, scope=scope, annotate=annotate)

    @classmethod
    def from_params(
        cls,
        path: str | Path | None = None,
        collection: str = "memories",
        *,
        embed_model: Any = None,
        scope_key: str | Sequence[str] | None = None,
        scope: Mapping[str, Any] | None = None,
        annotate: bool = False,
        **options: Any,
    ) -> MemHybridVectorStore:
        """Over a folder, made if it is not there; in memory where `path` is None. Further options are HybridMemory.open's."""
        memory = HybridMemory.open(
            path, collection, embedder=core_embedder(embed_model), scope_key=scope_key, **options
        )
        return cls(memory, scope=scope, annotate=annotate)

    def scoped(self, **values: Any) -> MemHybridVectorStore:
        """The same store bound to these metadata values as well."""
        return type(self)(self.memory, scope=self.view.scoped(**values).scope, annotate=self.annotate)

    @property
    def client(self) -> Any:
        """The Chroma collection, observed; of a view, the view."""
        return self.memory.collection if isinstance(self.memory, HybridMemory) else self.memory

    @property
    def embed_model(self) -> MemHybridEmbedding:
        """The memory's embedder for an index or a pipeline."""
        return MemHybridEmbedding(embedder_of(self.view))

    # --- nodes -------------------------------------------------------------------------------------------------------

    def add(self, nodes: Sequence[BaseNode], **add_kwargs: Any) -> list[str]:
        """Store nodes; those that exist are replaced, text, metadata and all. Nodes without an embedding get the memory's own."""
        _none("add", add_kwargs)
        return self.view.add(to_memories(nodes, embedder_of(self.view)))

    def get_nodes(self, node_ids: list[str] | None = None, filters: Filters | None = None) -> list[BaseNode]:
        """The nodes with these ids, in their order, or those that satisfy the filter, or both; without either, all."""
        where = to_where(filters)
        if node_ids is None:
            return [to_node(memory) for memory in self.view.list(where=where)]
        found = self.view.get(node_ids)
        if where is not None:
            allowed = {memory.id for memory in self.view.list(where=where)}
            found = [memory for memory in found if memory.id in allowed]
        return [to_node(memory) for memory in found]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete all nodes of a source document; a document that was stored whole is its own."""
        _none("delete", delete_kwargs)
        self.view.delete(where={SOURCE_KEY: ref_doc_id})
        own = self.view.get([ref_doc_id])
        if own and own[0].metadata.get(SOURCE_KEY, NO_SOURCE) == NO_SOURCE:
            self.view.delete([ref_doc_id])

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: Filters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete the nodes with these ids, or those that satisfy the filter, or those that do both. Unknown ids are fine."""
        _none("delete_nodes", delete_kwargs)
        where = to_where(filters)
        if node_ids is None and where is None:
            raise InputError("delete_nodes: give node_ids or filters; clear() deletes everything")
        self.view.delete(node_ids, where=where)

    def clear(self) -> None:
        """Delete everything in this store's scope."""
        self.view.delete(all=True)

    # --- queries -----------------------------------------------------------------------------------------------------

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The best nodes with their scores.

        Further options: `where` (the core's filter, ANDed), `profile`, `min_score`, `max_tokens`, `record_usage`,
        `include_outdated`, `mmr_threshold`, `mmr_prefetch_factor`; any other is a TypeError.
        """
        where = all_of(to_where(query.filters), to_where(kwargs.pop("where", None)))
        return run_query(self.view, query, where, annotate=self.annotate, **kwargs)

    # --- async twins -------------------------------------------------------------------------------------------------

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """`add` without blocking the event loop."""
        return await in_write_thread(self.add, nodes, **kwargs)

    async def aget_nodes(self, node_ids: list[str] | None = None, filters: Filters | None = None) -> list[BaseNode]:
        """`get_nodes` without blocking the event loop."""
        return await in_thread(self.get_nodes, node_ids, filters)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """`delete` without blocking the event loop."""
        await in_write_thread(self.delete, ref_doc_id, **delete_kwargs)

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: Filters | None = None, **delete_kwargs: Any
    ) -> None:
        """`delete_nodes` without blocking the event loop."""
        await in_write_thread(self.delete_nodes, node_ids, filters, **delete_kwargs)

    async def aclear(self) -> None:
        """`clear` without blocking the event loop."""
        await in_write_thread(self.clear)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """`query` without blocking the event loop."""
        return await in_thread(self.query, query, **kwargs)

    # --- copies ------------------------------------------------------------------------------------------------------

    def __copy__(self) -> MemHybridVectorStore:
        return type(self)(self.memory, scope=self.scope, annotate=self.annotate)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> MemHybridVectorStore:
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a MemHybridVectorStore holds open files and cannot be pickled; pickle its path and make it again with from_params"
        )


def _none(method: str, options: Mapping[str, Any]) -> None:
    """Nothing that a caller asks for is ignored."""
    if options:
        raise TypeError(f"{method}: unknown options {sorted(options)}")
