"""MemHybridVectorStore: hybrid memory as a LangChain vector store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from typing_extensions import Self, override

from langchain_memhybrid._convert import documents_to_memories, hit_to_document, texts_to_memories, to_document
from langchain_memhybrid._mmr import diversify
from langchain_memhybrid._open import attach, bind, split_options
from langchain_memhybrid._options import SearchOptions
from langchain_memhybrid._twins import AsyncTwins
from memhybrid.errors import ConfigError
from memhybrid.memory import HybridMemory, MemoryView
from memhybrid.profiles import Profile, as_profile
from memhybrid.records import Hit, SearchResult
from memhybrid.values import positive

Where = dict[str, Any] | None
Scored = list[tuple[Document, float]]


class MemHybridVectorStore(AsyncTwins):
    """A memory to which documents are added and in which they are found by vectors, words, names and more.

    Setup:
        store = MemHybridVectorStore.from_memory(HybridMemory.open("./memory", embedder=embedding))
        store = MemHybridVectorStore.from_documents(documents, embedding)  # path="./memory" keeps it
        store = MemHybridVectorStore.from_vectorstore(chroma)              # a langchain_chroma.Chroma that you have

    Use:
        store.add_documents([Document(id="1", page_content="Ana drinks tea", metadata={"type": "fact"})])
        store.similarity_search("what does Ana drink?", k=3, filter={"type": "fact"})
        store.as_retriever(search_kwargs={"k": 3})

    An id that exists is replaced, text and metadata. Scores lie in [0, 1] and **higher is better**, in every method. Documents come
    back with the metadata that they were stored with, and nothing else unless `include_scores` is on. All methods stay inside
    `scope`. Searches also take `scope`, `profile`, `min_score`, `max_tokens`, `record_usage`, `include_outdated` and `now`; an unknown
    option is a TypeError.
    `as_retriever` gives LangChain's own retriever; `MemHybridRetriever.from_vectorstore(store)` also reads the run's config.
    """

    def __init__(
        self,
        memory: MemoryView,
        *,
        scope: dict[str, Any] | None = None,
        profile: Any = None,
        include_scores: bool = False,
    ) -> None:
        if not isinstance(memory, MemoryView):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"memory: expected a HybridMemory, got {type(memory).__name__}")
        self.memory = bind(memory, scope)
        self._opened = memory
        self._defaults = SearchOptions(profile=None if profile is None else as_profile(profile))
        self._include_scores = include_scores

    @property
    def profile(self) -> Profile | None:
        """The profile that searches here use; None is the memory's own."""
        return self._defaults.profile if isinstance(self._defaults.profile, Profile) else None

    @property
    @override
    def embeddings(self) -> Embeddings | None:
        """The LangChain embeddings that the memory was opened with, if they are that."""
        embedder = getattr(self._opened, "embedder", None)
        wrapped = getattr(embedder, "wrapped", embedder)
        return wrapped if isinstance(wrapped, Embeddings) else None

    # --- constructors ------------------------------------------------------------------------------------------------

    @classmethod
    def from_memory(cls, memory: MemoryView, **options: Any) -> Self:
        """From a HybridMemory or a view of one."""
        return cls(memory, **options)

    @classmethod
    def from_vectorstore(cls, vectorstore: Any, *, embedding: Any = None, **options: Any) -> Self:
        """Over the collection of a langchain_chroma.Chroma; `options` also take those of `HybridMemory.attach`."""
        door, mine = split_options(HybridMemory.attach, options)
        return cls(attach(vectorstore, embedding, door), **mine)

    @classmethod
    @override
    def from_texts(
        cls,
        texts: Iterable[str],
        embedding: Any = None,
        metadatas: Iterable[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """A new store with these texts; `kwargs` also take the options of `HybridMemory.open` (path, collection, scope_key, …)."""
        memories = texts_to_memories(texts, metadatas, ids)
        door, mine = split_options(HybridMemory.open, kwargs)
        made = cls(HybridMemory.open(embedder=embedding, **door), **mine)
        made.memory.add(memories)
        return made

    @classmethod
    @override
    def from_documents(cls, documents: Iterable[Document], embedding: Any = None, **kwargs: Any) -> Self:
        """A new store with these documents; see `from_texts`."""
        items = list(documents)
        ids = kwargs.pop("ids", None)
        return cls.from_texts(
            [d.page_content for d in items],
            embedding,
            [d.metadata for d in items],
            ids=[d.id for d in items] if ids is None else ids,
            **kwargs,
        )

    # --- documents ---------------------------------------------------------------------------------------------------

    @override
    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Iterable[dict[str, Any]] | None = None,
        *,
        ids: Iterable[str | None] | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Store texts; an id that exists is replaced, None lets the store make one. `batch_size` is not needed: batches are ours."""
        _refuse("add_texts", kwargs)
        return self.memory.add(texts_to_memories(texts, metadatas, ids))

    @override
    def add_documents(
        self,
        documents: Iterable[Document],
        *,
        ids: Iterable[str | None] | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Store documents; `ids` win over the documents' own. See `add_texts`."""
        _refuse("add_documents", kwargs)
        return self.memory.add(documents_to_memories(documents, ids))

    def update_document(self, document_id: str, document: Document) -> None:
        """Replace one document, as langchain_chroma's method of this name."""
        self.update_documents([document_id], [document])

    def update_documents(self, ids: Sequence[str], documents: Sequence[Document]) -> None:
        """Replace documents: as many ids as documents. One that does not exist is added."""
        self.memory.add(documents_to_memories(documents, ids))

    @override
    def delete(self, ids: Sequence[str] | None = None, *, filter: Where = None, **kwargs: Any) -> bool:
        """Delete by ids (unknown ones are fine), by filter, or, where neither is given, **everything inside the scope**."""
        _refuse("delete", kwargs)
        self.memory.delete(ids, where=filter, all=ids is None and filter is None)
        return True

    @override
    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids, in this order; unknown ones are left out."""
        return [to_document(memory) for memory in self.memory.get(ids)]

    # --- search ------------------------------------------------------------------------------------------------------

    def _search(self, query: str, k: int, where: Where, *, embedding: Any = None, **options: Any) -> SearchResult:
        said = SearchOptions.of({"k": k, "filter": where, **options})
        return bind(self.memory, said.scope).search(query, embedding=embedding, **said.arguments(self._defaults))

    def _document(self, hit: Hit) -> Document:
        return hit_to_document(hit, include_scores=self._include_scores)

    @override
    def similarity_search(self, query: str, k: int = 4, filter: Where = None, **kwargs: Any) -> list[Document]:
        """The k best documents, best first."""
        return [self._document(hit) for hit in self._search(query, k, filter, **kwargs)]

    @override
    def similarity_search_with_score(self, query: str, k: int = 4, filter: Where = None, **kwargs: Any) -> Scored:
        """The k best documents, each with its score in [0, 1]; higher is better."""
        return [(self._document(hit), float(hit.score)) for hit in self._search(query, k, filter, **kwargs)]

    @override
    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return float

    @override
    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Where = None, **kwargs: Any
    ) -> list[Document]:
        """The k documents whose vectors are most similar to a vector; words and names play no part."""
        return [self._document(hit) for hit in self._by_vector(embedding, k, filter, **kwargs)]

    def _by_vector(self, embedding: list[float], k: int, where: Where, **kwargs: Any) -> SearchResult:
        options: dict[str, Any] = {"profile": Profile.semantic(), **kwargs}
        return self._search("", k, where, embedding=embedding, **options)

    @override
    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Where = None,
        **kwargs: Any,
    ) -> list[Document]:
        """k of the `fetch_k` best documents, chosen for their score (`lambda_mult` 1) and for being unlike each other (0)."""
        hits = self._search(query, max(fetch_k, positive(k, "k")), filter, **kwargs).hits
        return [self._document(hit) for hit in self._diverse(hits, k, lambda_mult)]

    @override
    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Where = None,
        **kwargs: Any,
    ) -> list[Document]:
        """`max_marginal_relevance_search` for a vector."""
        hits = self._by_vector(embedding, max(fetch_k, positive(k, "k")), filter, **kwargs).hits
        return [self._document(hit) for hit in self._diverse(hits, k, lambda_mult)]

    def _diverse(self, hits: Sequence[Hit], k: int, lambda_mult: float) -> list[Hit]:
        stored = {m.id: m.embedding for m in self.memory.get([hit.memory.id for hit in hits], embeddings=True)}
        known = [hit for hit in hits if stored.get(hit.memory.id) is not None]
        order = diversify([hit.score for hit in known], [stored[hit.memory.id] for hit in known], k, lambda_mult)
        return [known[i] for i in order]

    # --- copies ------------------------------------------------------------------------------------------------------

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a MemHybridVectorStore holds an open memory and cannot be pickled; pickle the memory's path, and make the store again "
            "with from_memory(HybridMemory.open(path))"
        )


def _refuse(method: str, unknown: dict[str, Any]) -> None:
    """An option that would be ignored is an error."""
    if unknown:
        raise TypeError(f"{method}() got an unexpected keyword argument {next(iter(unknown))!r}")
