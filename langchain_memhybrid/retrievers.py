"""MemHybridRetriever: hybrid memory as a LangChain retriever."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NoReturn

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import get_config_list
from pydantic import ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator
from typing_extensions import Self, override

from langchain_memhybrid._convert import documents_to_memories, hit_to_document, texts_to_memories
from langchain_memhybrid._open import attach, bind, split_options
from langchain_memhybrid._options import SearchOptions, with_config
from memhybrid.concurrency import in_thread
from memhybrid.embedders.adapt import describe
from memhybrid.errors import MemHybridError
from memhybrid.memory import HybridMemory, MemoryView
from memhybrid.profiles import as_profile
from memhybrid.records import Memory, SearchResult
from memhybrid.values import optional_number, positive


class MemHybridRetriever(BaseRetriever):
    """Searches a memory by vectors, words, names and more. Documents carry their id, and scores under `metadata["memhybrid"]`.

    Setup:
        retriever = MemHybridRetriever.from_vectorstore(chroma)                  # a langchain_chroma.Chroma that you have
        retriever = MemHybridRetriever.from_documents(documents, embedding)      # new; path="./memory" keeps it
        retriever = MemHybridRetriever.from_memory(memory, k=8, scope={"user_id": "u1"})

    Call:
        retriever.invoke("what does Ana drink?", k=3, filter={"type": "fact"}, scope={"user_id": "u1"})
        chain.invoke(question, config={"configurable": {"scope": {"user_id": "u1"}}})

    A call's options replace the fields of the same name, except `scope`, which a call can only add to: ScopeError where it
    would change a value. Options are keyword arguments (an unknown one is a TypeError), or `k`, `filter` and `scope` in the
    run's `configurable`; where another part of the chain uses such a name, `memhybrid_k` and so on, which go first (there also
    `profile`, `min_score`, `max_tokens`, `record_usage`, `include_outdated`, `now`). An empty query finds nothing. Thread-safe;
    copies share the memory.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memory: MemoryView = Field(exclude=True, repr=False)
    """The memory, or a view of it bound to a scope."""
    k: int = 5
    """How many documents at most; as many as there are where the store has fewer."""
    filter: dict[str, Any] | None = None
    """Chroma's `where`; {} is no filter. A call's filter replaces it: what must always hold belongs into `scope`."""
    scope: dict[str, Any] | None = None
    """Metadata values that every search is bound to, such as {"user_id": "u1"}."""
    profile: Any = Field(default=None, repr=False)
    """A profile's name, JSON file or Profile; None is the memory's own."""
    min_score: float | Literal["recommended"] | None = None
    """Documents below this score are left out; None is the profile's, "recommended" its calibrated floor."""
    max_tokens: int | None = None
    """Documents are packed into so many tokens; None is the profile's."""
    record_usage: bool | None = None
    """Whether returned memories count as used; None is the profile's."""
    include_outdated: bool = False
    """Whether expired and superseded memories are found too."""
    now: datetime | float | None = None
    """The moment that ages and relative dates count from; None is the moment of the call."""
    include_scores: bool = True
    """Whether documents carry {"score", "signals", "sources"} under `metadata["memhybrid"]`."""
    id_key: str | None = None
    """Copies the id into this metadata key, for EnsembleRetriever(id_key=…), which does not look at Document.id."""

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            for problem in error.errors():
                mine = problem.get("ctx", {}).get("error")
                if isinstance(mine, MemHybridError):
                    raise mine from None
            raise

    @field_validator("k", "min_score", "profile", mode="before")
    @classmethod
    def _check(cls, value: Any, info: ValidationInfo) -> Any:
        if info.field_name == "k":
            return positive(value, "k")
        if info.field_name == "min_score":
            return value if isinstance(value, str) and value == "recommended" else optional_number(value, "min_score")
        return None if value is None else as_profile(value)

    @model_validator(mode="after")
    def _check_scope(self) -> Self:
        self._view()
        return self

    # --- constructors ------------------------------------------------------------------------------------------------

    @classmethod
    def from_memory(cls, memory: MemoryView, **fields: Any) -> Self:
        """From a HybridMemory or a view of one."""
        return cls(memory=memory, **fields)

    @classmethod
    def from_vectorstore(cls, vectorstore: Any, *, embedding: Any = None, **options: Any) -> Self:
        """Over the collection of a langchain_chroma.Chroma, or over a MemHybridVectorStore.

        `embedding` is needed where the store has none. `options` are fields of the retriever and those of `HybridMemory.attach`
        (scope_key, state_path, …). What is written through the Chroma object afterwards can be found at once.
        """
        from langchain_memhybrid.vectorstores import MemHybridVectorStore

        if isinstance(vectorstore, MemHybridVectorStore):
            return cls(memory=vectorstore.memory, **{"profile": vectorstore.profile, **options})
        door, fields = split_options(HybridMemory.attach, options)
        return cls(memory=attach(vectorstore, embedding, door), **fields)

    @classmethod
    def from_documents(
        cls, documents: Iterable[Document], embedding: Any = None, *, ids: Sequence[str] | None = None, **options: Any
    ) -> Self:
        """Store documents in a memory and search it. `embedding` None is the packaged English model.

        `options` are fields of the retriever and those of `HybridMemory.open` (path, collection, scope_key, …). Documents without
        an id get a new one: with a `path`, give ids, so that a second run replaces them.
        """
        return cls._from(documents_to_memories(documents, ids), embedding, options)

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        embedding: Any = None,
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        *,
        ids: Sequence[str] | None = None,
        **options: Any,
    ) -> Self:
        """As `from_documents`, from texts."""
        return cls._from(texts_to_memories(texts, metadatas, ids), embedding, options)

    @classmethod
    def _from(cls, memories: list[Memory], embedding: Any, options: dict[str, Any]) -> Self:
        door, fields = split_options(HybridMemory.open, options)
        made = cls(memory=HybridMemory.open(embedder=embedding, **door), **fields)
        made._view().add(memories)
        return made

    # --- search ------------------------------------------------------------------------------------------------------

    def _view(self) -> MemoryView:
        return bind(self.memory, self.scope)

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        _found: Mapping[str, SearchResult] | None = None,
        **options: Any,
    ) -> list[Document]:
        result = _found.get(query) if _found else None
        if result is None:
            said = SearchOptions.of(options)
            result = bind(self._view(), said.scope).search(query, **said.arguments(self))
        return [hit_to_document(hit, include_scores=self.include_scores, id_key=self.id_key) for hit in result]

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return await in_thread(self._get_relevant_documents, query, run_manager=run_manager.get_sync(), **options)

    @override
    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """The best documents for a query; options as keyword arguments or in the config."""
        return super().invoke(input, config, **with_config(config, kwargs, self._view()))

    @override
    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """`invoke` without blocking the event loop."""
        return await super().ainvoke(input, config, **with_config(config, kwargs, self._view()))

    def _search_at_once(
        self, queries: list[str], config: RunnableConfig | list[RunnableConfig] | None, given: dict[str, Any]
    ) -> dict[str, dict[str, SearchResult]]:
        """The results of a batch whose queries have the same options, with the work shared; {} for any other batch."""
        if len(queries) < 2:
            return {}
        try:
            said = [
                SearchOptions.of(with_config(c, given, self._view())) for c in get_config_list(config, len(queries))
            ]
            if any(other != said[0] for other in said):
                return {}
            results = bind(self._view(), said[0].scope).search_many(queries, **said[0].arguments(self))
            return {"_found": dict(zip(queries, results, strict=True))}
        except Exception:  # noqa: BLE001 - each query then meets the problem by itself, inside its own callbacks
            return {}

    @override
    def batch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """`invoke` for several queries with the work shared."""
        found = self._search_at_once(inputs, config, kwargs)
        return super().batch(inputs, config, return_exceptions=return_exceptions, **kwargs, **found)

    @override
    async def abatch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """`batch` without blocking the event loop."""
        found = await in_thread(self._search_at_once, inputs, config, kwargs)
        return await super().abatch(inputs, config, return_exceptions=return_exceptions, **kwargs, **found)

    @override
    def configurable_fields(self, **kwargs: Any) -> RunnableSerializable[str, list[Document]]:
        """As for any Runnable. A configurable `scope` can, like a call's, only add to the retriever's own."""
        keeps = "scope" in kwargs and self.scope is not None
        bound = self.model_copy(update={"memory": self._view()}) if keeps else self
        return super(MemHybridRetriever, bound).configurable_fields(**kwargs)

    # --- tracing, copies ---------------------------------------------------------------------------------------------

    @override
    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        params = super()._get_ls_params(**kwargs)
        params["ls_vector_store_provider"] = "Chroma"
        embedder = getattr(self.memory, "embedder", None)
        if embedder is not None:
            wrapped = getattr(embedder, "wrapped", embedder)
            params["ls_embedding_provider"] = type(wrapped).__name__
            params["ls_embedding_model"] = describe(wrapped)
        return params

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return super().__deepcopy__({**(memo or {}), id(self.memory): self.memory})

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a MemHybridRetriever holds an open memory and cannot be pickled; pickle the memory's path and the retriever's fields, "
            "and make it again with from_memory(HybridMemory.open(path))"
        )
