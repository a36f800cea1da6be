"""`as_embedder`: what users already have, as an embedder. Frameworks are told by their methods, never imported."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, cast

from memhybrid.embedders._common import text_list
from memhybrid.embedders._vectors import checked_vectors
from memhybrid.embedders.minilm import LocalEmbedder
from memhybrid.embedders.multilingual import MultilingualEmbedder
from memhybrid.errors import EmbedderError
from memhybrid.protocols import Embedder, Fingerprint, Float32

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PACKAGED: Final = {"local": LocalEmbedder, "local-multilingual": MultilingualEmbedder}
# Where embedders of the frameworks keep the name of their model, the likeliest first.
_MODEL_ATTRIBUTES: Final = ("model", "model_name", "_model_name", "model_id", "repo_id", "deployment")
_WANTED: Final = (
    'None, "local", "local-multilingual", an embedder of LangChain, LlamaIndex or Chroma, '
    "or a function from a list of texts to a list of vectors"
)


def as_embedder(obj: object = None, *, name: str | None = None, dimension: int | None = None) -> Embedder:
    """An `Embedder` from what the user has.

    - None or "local": `LocalEmbedder`; "local-multilingual": `MultilingualEmbedder`;
    - an object that is an `Embedder` already: itself;
    - LangChain `Embeddings`, LlamaIndex `BaseEmbedding`, Chroma `EmbeddingFunction`;
    - a function from a list of str to as many vectors.

    The last two groups are wrapped. The wrapper checks what comes back: as many vectors as texts, all of one dimension,
    all numbers finite; anything else is an EmbedderError that names the text by its position. Vectors are not
    normalised. `fingerprint` embeds one word if nothing has been embedded yet and `dimension` is not given.

    Args:
        obj: the embedder.
        name: the fingerprint's name, for a wrapped embedder whose own name does not tell its model.
        dimension: the length of its vectors, if known.

    Raises EmbedderError if `obj` is none of these, is asynchronous or is a class, MissingExtraError if a packaged
    model is asked for and not installed.
    """
    if obj is None:
        obj = "local"
    if isinstance(obj, str):
        if obj not in _PACKAGED:
            raise EmbedderError(f"there is no packaged embedder {obj!r}; give {_WANTED}")
        obj = _PACKAGED[obj]()
    if isinstance(obj, type):
        raise EmbedderError(f"{obj.__name__} is a class; give an instance of it")
    if _is_ours(obj):
        if name is not None or dimension is not None:
            raise EmbedderError(f"{_class(obj)} has a fingerprint of its own: name and dimension cannot be given")
        return cast("Embedder", obj)
    return _wrapper(obj)(obj, name=name, dimension=dimension)


class AdaptedEmbedder(ABC):
    """Another library's embedder behind the protocol; made by `as_embedder`. `wrapped` is the object itself.

    Thread-safe if that object is; can be pickled if that can be.
    """

    def __init__(self, wrapped: Any, *, name: str | None = None, dimension: int | None = None) -> None:
        if dimension is not None and dimension < 1:
            raise EmbedderError(f"dimension must be at least 1, not {dimension}")
        self.wrapped = wrapped
        self._name = name or describe(wrapped)
        # Set once. Two threads may learn it at the same time: each compares with what is there afterwards.
        self._dimension = dimension

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name})"

    @property
    def fingerprint(self) -> Fingerprint:
        """Name and dimension; embeds one word to learn the dimension if nothing has told it yet."""
        if self._dimension is None:
            self.embed_documents(["dimension"])
        return Fingerprint(self._name, self._dimension or 0)

    def covers(self, text: str) -> bool:
        """Always true: which scripts the model knows cannot be told from outside."""
        del text
        return True

    def embed_documents(self, texts: Sequence[str]) -> Float32:
        """Vectors (n, d), float32, as the wrapped embedder made them; shape (d,) for a single str."""
        return self._checked(self._documents, texts)

    def embed_query(self, texts: Sequence[str]) -> Float32:
        """Vectors (n, d) of queries, by the wrapped embedder's own method for queries where it has one."""
        return self._checked(self._queries, texts)

    @abstractmethod
    def _documents(self, texts: list[str]) -> object: ...

    @abstractmethod
    def _queries(self, texts: list[str]) -> object: ...

    def _checked(self, embed: Callable[[list[str]], object], texts: Sequence[str]) -> Float32:
        if isinstance(texts, str):
            return self._checked(embed, [texts]).reshape(-1)
        given = text_list(texts)
        if not given:  # not every embedder can take an empty list, but an array of shape (0, d) needs d
            return self._checked(embed, ["dimension"])[:0]
        try:
            raw = embed(list(given))
        except (AttributeError, TypeError) as error:
            # What a function written for one str, or for other arguments, raises.
            raise EmbedderError(
                f"{self._name} failed on a list of {len(given)} texts ({type(error).__name__}: {error}); "
                "it must take a list of str and return a vector for each"
            ) from error
        vectors = checked_vectors(raw, len(given), self._name)
        if self._dimension is None:
            self._dimension = vectors.shape[1]
        if vectors.shape[1] != self._dimension:
            raise EmbedderError(
                f"{self._name} returned vectors of {vectors.shape[1]} dimensions, not {self._dimension} as before"
            )
        return vectors


class _LangChain(AdaptedEmbedder):
    def _documents(self, texts: list[str]) -> object:
        return self.wrapped.embed_documents(texts)

    def _queries(self, texts: list[str]) -> object:
        return [self.wrapped.embed_query(text) for text in texts]


class _LlamaIndex(AdaptedEmbedder):
    def _documents(self, texts: list[str]) -> object:
        return self.wrapped.get_text_embedding_batch(texts)

    def _queries(self, texts: list[str]) -> object:
        return [self.wrapped.get_query_embedding(text) for text in texts]


class _Chroma(AdaptedEmbedder):
    def _documents(self, texts: list[str]) -> object:
        return self.wrapped(input=texts)

    def _queries(self, texts: list[str]) -> object:
        # Embedding functions written before Chroma 1.0 have no method of their own for queries.
        embed = getattr(self.wrapped, "embed_query", None)
        return embed(input=texts) if callable(embed) else self.wrapped(input=texts)


class _Function(AdaptedEmbedder):
    def _documents(self, texts: list[str]) -> object:
        return self.wrapped(texts)

    def _queries(self, texts: list[str]) -> object:
        return self.wrapped(texts)


def _wrapper(obj: object) -> type[AdaptedEmbedder]:
    # The order matters: a LlamaIndex embedding is callable (on nodes), and Chroma's wrapper of a LangChain embedding
    # has the methods of both, of which LangChain's are the ones with a meaning of their own.
    if _has(obj, "get_text_embedding_batch", "get_query_embedding"):
        _refuse_async(obj, "get_text_embedding_batch", "get_query_embedding")
        return _LlamaIndex
    if _has(obj, "embed_documents", "embed_query"):
        _refuse_async(obj, "embed_documents", "embed_query")
        return _LangChain
    if not callable(obj):
        hint = ""
        if _has(obj, "aembed_documents") or _has(obj, "aget_text_embedding_batch"):
            hint = " has asynchronous methods only;"
        elif _has(obj, "encode"):
            hint = " has encode(): give that method;"
        raise EmbedderError(f"{_class(obj)} is not an embedder;{hint} give {_WANTED}")
    _refuse_async(obj, "__call__")
    if _has(obj, "encode") and _has(obj, "get_sentence_embedding_dimension"):
        raise EmbedderError(f"{_class(obj)} is a model, not a function of texts: give its method encode")
    if not inspect.isroutine(obj) and (_has(obj, "embed_query") or "input" in _parameters(obj)):
        _refuse_async(obj, "embed_query")
        return _Chroma
    return _Function


def _refuse_async(obj: object, *methods: str) -> None:
    for method in methods:
        function = _unwrapped(obj if method == "__call__" else getattr(obj, method, None))
        if method == "__call__" and not inspect.isroutine(function):
            function = getattr(function, "__call__", None)  # noqa: B004 - whether it is a coroutine function is asked
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            what = describe(obj) if method == "__call__" else f"{_class(obj)}.{method}"
            raise EmbedderError(f"{what} is asynchronous; give a synchronous one: memhybrid runs it in threads")


def _is_ours(obj: object) -> bool:
    # Not isinstance(obj, Embedder): on Python 3.10 and 3.11 that would evaluate `fingerprint`.
    if not _has(obj, "embed_documents", "embed_query", "covers"):
        return False
    try:
        inspect.getattr_static(obj, "fingerprint")
    except AttributeError:
        return False
    return True


def _has(obj: object, *methods: str) -> bool:
    return all(callable(getattr(obj, method, None)) for method in methods)


def _parameters(obj: Callable[..., object]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(obj).parameters)
    except (TypeError, ValueError):
        return ()


def _class(obj: object) -> str:
    return type(obj).__name__


def _unwrapped(obj: Any) -> Any:
    while isinstance(obj, functools.partial):
        obj = cast("functools.partial[object]", obj).func
    return obj


def describe(obj: Any) -> str:
    """A name for an embedder that stays the same between processes: a function's module and name, or the class of an
    object with the name of its model, as far as that can be told.
    """
    obj = _unwrapped(obj)
    if inspect.isroutine(obj):
        owner = getattr(obj, "__self__", None)
        if owner is not None and not inspect.ismodule(owner) and not isinstance(owner, type):
            return f"{describe(owner)}.{obj.__name__}"
        return f"{getattr(obj, '__module__', None) or 'builtins'}.{obj.__qualname__}"
    inner = getattr(obj, "underlying_embeddings", None)  # LangChain's cache around another embedder
    if inner is not None and inner is not obj:
        return describe(inner)
    for attribute in _MODEL_ATTRIBUTES:
        model = getattr(obj, attribute, None)
        if isinstance(model, str) and model and model != "unknown":
            return f"{_class(obj)}:{model}"
    own = getattr(obj, "name", None)
    if callable(own):
        try:
            own = own()
        except TypeError:
            own = None
    return f"{_class(obj)}:{own}" if isinstance(own, str) and own else _class(obj)
