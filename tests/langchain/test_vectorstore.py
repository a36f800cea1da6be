from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index

from langchain_memhybrid import MemHybridRetriever, MemHybridVectorStore
from memhybrid import InputError, MetadataError, ScopeError
from memhybrid.embedders import HashEmbedder
from memhybrid.memory import HybridMemory

QUERY = "what does Ana drink"


@pytest.fixture
def store(memory: HybridMemory) -> MemHybridVectorStore:
    return MemHybridVectorStore.from_memory(memory)


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


# --- writing ---------------------------------------------------------------------------------------------------------


def test_an_existing_id_is_replaced_with_its_metadata(store: MemHybridVectorStore) -> None:
    """Nothing of the old metadata stays, also where the new document has none."""
    store.add_documents([Document(id="f1", page_content="Ana drinks cocoa", metadata={"new": 1})])
    assert store.get_by_ids(["f1"]) == [Document(id="f1", page_content="Ana drinks cocoa", metadata={"new": 1})]
    store.add_texts(["Ana drinks cocoa"], ids=["f1"])
    assert store.get_by_ids(["f1"])[0].metadata == {}


def test_ids_given_win_and_missing_ones_are_made(store: MemHybridVectorStore) -> None:
    """The ids argument goes before Document.id; None anywhere lets the store make one."""
    documents = [Document(id="mine", page_content="one"), Document(page_content="two")]
    assert store.add_documents(documents, ids=["x", "y"]) == ["x", "y"]
    first, second = store.add_documents(documents)
    assert first == "mine"
    assert second not in ("", "None")
    third, fourth = store.add_texts(["three", "four"], ids=["z", None])
    assert (third, len(store.get_by_ids([fourth]))) == ("z", 1)
    assert [d.id for d in documents] == ["mine", None]


def test_generators_are_taken(store: MemHybridVectorStore) -> None:
    """Texts, metadata, ids and documents may be read once only."""
    made = store.add_texts((t for t in ("one", "two")), ({"n": n} for n in range(2)), ids=(i for i in "ab"))
    assert made == ["a", "b"]
    assert store.add_documents(Document(page_content=t, id=t) for t in "cd") == ["c", "d"]
    assert [d.metadata for d in store.get_by_ids(["a", "b"])] == [{"n": 0}, {"n": 1}]


def test_nothing_to_add_is_fine(store: MemHybridVectorStore) -> None:
    """Empty lists write nothing."""
    assert store.add_texts([]) == store.add_documents([]) == []
    assert len(store.similarity_search(QUERY, k=50)) == 6


def test_what_cannot_be_added_is_an_error_and_writes_nothing(store: MemHybridVectorStore) -> None:
    """Lengths that differ, one text for many, the reserved key, values that Chroma loses, unknown options."""
    document = Document(page_content="x")
    for attempt, error in (
        (lambda: store.add_texts(["a", "b"], [{}]), InputError),
        (lambda: store.add_texts(["a", "b"], ids=["1"]), InputError),
        (lambda: store.add_texts("text"), InputError),
        (lambda: store.add_texts(["a", "a"], ids=["1", "1"]), InputError),
        (lambda: store.add_documents([document], ids="1"), InputError),
        (lambda: store.add_texts(["a"], [{"memhybrid": 1}]), MetadataError),
        (lambda: store.add_texts(["a"], [{"deep": {"a": 1}}]), MetadataError),
        (lambda: store.add_texts(["a"], namespace="n"), TypeError),
        (lambda: store.add_documents([document], namespace="n"), TypeError),
        (lambda: store.delete(["f1"], where={"a": 1}), TypeError),
    ):
        with pytest.raises(error):
            attempt()
    assert store.memory.count() == 6


def test_metadata_comes_back_as_it_was(store: MemHybridVectorStore) -> None:
    """Every kind of value, exactly, and no key more."""
    metadata = {"s": "x", "i": 7, "f": 0.5, "b": True, "z": False, "e": "", "l": ["a", "b"], "n": [1, 2], "score": 9}
    document = Document(id="m", page_content="metadata of a monkey", metadata=metadata)
    store.add_documents([document])
    for found in (store.get_by_ids(["m"])[0], store.similarity_search("metadata of a monkey", k=1)[0]):
        assert found == document
        assert [type(v) for v in found.metadata.values()] == [type(metadata[k]) for k in found.metadata]


def test_scores_are_shown_when_asked_for(memory: HybridMemory) -> None:
    """include_scores adds the reserved key to what is found, not to what is read by id."""
    store = MemHybridVectorStore.from_memory(memory, include_scores=True)
    assert store.similarity_search(QUERY, k=1)[0].metadata["memhybrid"]["score"] > 0
    assert "memhybrid" not in store.get_by_ids(["f1"])[0].metadata


# --- deleting and reading --------------------------------------------------------------------------------------------


def test_delete_by_ids_filter_or_everything(store: MemHybridVectorStore) -> None:
    """Unknown ids are fine, no ids delete nothing, an empty filter is refused, nothing given deletes all."""
    assert store.delete(["f1", "nobody"])
    assert store.delete([])
    assert store.memory.count() == 5
    assert store.delete(filter={"type": "fact"})
    assert {m.id for m in store.memory.list()} == {"f2", "f3", "b3"}
    with pytest.raises(InputError, match="all"):
        store.delete(filter={})
    assert store.memory.count() == 3
    assert store.delete()
    assert store.memory.count() == 0


def test_get_by_ids_leaves_out_what_is_missing(store: MemHybridVectorStore) -> None:
    """In the order asked for."""
    assert ids(store.get_by_ids(["b1", "nobody", "f1"])) == ["b1", "f1"]
    assert store.get_by_ids([]) == []


def test_a_scoped_store_stays_in_its_scope(tenants: HybridMemory) -> None:
    """Reading, searching, adding and deleting everything: the other tenant is neither seen nor touched."""
    store = MemHybridVectorStore.from_memory(tenants, scope={"user_id": "ana"})
    assert set(ids(store.similarity_search(QUERY, k=50))) == {"f1", "f2", "f3"}
    assert ids(store.get_by_ids(["f1", "b1"])) == ["f1"]
    assert set(ids(store.max_marginal_relevance_search(QUERY, k=50))) == {"f1", "f2", "f3"}
    store.add_texts(["Ana has a bicycle"], ids=["f4"])
    assert store.get_by_ids(["f4"])[0].metadata == {"user_id": "ana"}
    with pytest.raises(ScopeError):
        store.add_texts(["mine now"], ids=["b1"])
    with pytest.raises(ScopeError):
        store.similarity_search(QUERY, scope={"user_id": "ben"})
    store.delete(["b1"])
    store.delete()
    assert tenants.scoped(user_id="ana").count() == 0
    assert tenants.scoped(user_id="ben").count() == 3
    unbound = MemHybridVectorStore.from_memory(tenants)
    for attempt in (unbound.delete, lambda: unbound.similarity_search(QUERY), lambda: unbound.get_by_ids(["b1"])):
        with pytest.raises(ScopeError):
            attempt()
    assert len(unbound.similarity_search(QUERY, scope={"user_id": "ben"})) == 3


# --- searching -------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_core_and_lie_in_0_to_1(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """Both scored searches give the same numbers, higher is better, best first; the threshold is one of them."""
    expected = [(h.memory.id, pytest.approx(h.score, abs=1e-6)) for h in memory.search(QUERY, 6)]
    found = store.similarity_search_with_score(QUERY, k=6)
    assert [(d.id, score) for d, score in found] == expected
    assert store.similarity_search_with_relevance_scores(QUERY, k=6) == [
        (d, pytest.approx(s, abs=1e-6)) for d, s in found
    ]
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert all(type(score) is float and 0.0 <= score <= 1.0 for score in scores)
    assert [
        d.id for d, _ in store.similarity_search_with_relevance_scores(QUERY, k=6, score_threshold=scores[1])
    ] == ids([d for d, _ in found[:2]])
    assert ids(store.similarity_search(QUERY, k=6)) == ids([d for d, _ in found])


def test_a_search_by_vector_is_the_semantic_one(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """The vector of a text finds what the semantic profile finds for the text."""
    vector = memory.embedder.embed_query([QUERY])[0].tolist()
    expected = memory.search(QUERY, 4, profile="semantic").ids
    assert ids(store.similarity_search_by_vector(vector)) == expected
    assert (
        ids(store.similarity_search_by_vector(vector, 2, {"user_id": "ben"}))
        == memory.search(QUERY, 2, profile="semantic", where={"user_id": "ben"}).ids
    )
    with pytest.raises(InputError, match="dimensions"):
        store.similarity_search_by_vector([1.0, 2.0])


def test_marginal_relevance_avoids_what_is_alike(embedding: Any) -> None:
    """With λ = 1 it is the order of the scores; with less, near-copies come later."""
    texts = ["Ana drinks green tea", "Ana drinks green tea daily", "Ana drinks green tea always", "Ben drinks tea too"]
    store = MemHybridVectorStore.from_texts(texts, embedding, ids=list("abcd"))
    query = "Ana drinks green tea"
    assert ids(store.max_marginal_relevance_search(query, k=4, lambda_mult=1.0)) == ids(store.similarity_search(query))
    assert ids(store.max_marginal_relevance_search(query, k=2, lambda_mult=0.2)) == ["a", "d"]
    vector = embedding.embed_query(query)
    assert ids(store.max_marginal_relevance_search_by_vector(vector, k=2, lambda_mult=0.2)) == ["a", "d"]
    assert len(store.max_marginal_relevance_search(query, k=10)) == 4
    assert store.max_marginal_relevance_search("", k=2) == []
    with pytest.raises(InputError):
        store.max_marginal_relevance_search(query, k=0)
    with pytest.raises(InputError, match="lambda_mult"):
        store.max_marginal_relevance_search(query, lambda_mult=2)


def test_filters_and_options_reach_every_search(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """Two keys, an empty filter, and options of ours; an unknown one is a TypeError, k below 1 an InputError."""
    vector = memory.embedder.embed_query([QUERY])[0].tolist()
    searches: list[Any] = [
        lambda **o: store.similarity_search(QUERY, **o),
        lambda **o: [d for d, _ in store.similarity_search_with_score(QUERY, **o)],
        lambda **o: [d for d, _ in store.similarity_search_with_relevance_scores(QUERY, **o)],
        lambda **o: store.similarity_search_by_vector(vector, **o),
        lambda **o: store.max_marginal_relevance_search(QUERY, **o),
        lambda **o: store.max_marginal_relevance_search_by_vector(vector, **o),
    ]
    for search in searches:
        assert ids(search(filter={"user_id": "ben", "type": "event"})) == ["b3"]
        assert len(search(k=10, filter={})) == 6
        assert set(ids(search(k=10, scope={"user_id": "ana"}))) == {"f1", "f2", "f3"}
        assert search(min_score=1.0) == []
        with pytest.raises(TypeError, match="where"):
            search(where={})
        for k in (0, -3, "4", None):
            with pytest.raises(InputError, match="k:"):
                search(k=k)


def test_as_retriever_keeps_langchains_search_types(store: MemHybridVectorStore) -> None:
    """similarity, mmr and similarity_score_threshold, with search_kwargs and call-time k and filter."""
    assert len(store.as_retriever(search_kwargs={"k": 2}).invoke(QUERY)) == 2
    retriever = store.as_retriever(search_kwargs={"k": 5, "filter": {"type": "fact"}})
    assert set(ids(retriever.invoke(QUERY))) == {"f1", "b1", "b2"}
    assert len(retriever.invoke(QUERY, k=1)) == 1
    assert ids(retriever.invoke(QUERY, filter={"user_id": "ben", "type": "event"})) == ["b3"]
    with pytest.raises(TypeError):
        retriever.invoke(QUERY, top_k=1)
    assert len(store.as_retriever(search_type="mmr", search_kwargs={"k": 3, "fetch_k": 5}).invoke(QUERY)) == 3
    best = store.similarity_search_with_score(QUERY, k=1)[0][1]
    threshold = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": best - 1e-6}
    )
    assert ids(threshold.invoke(QUERY)) == ["f1"]


def test_retriever_over_the_store_sees_the_same(tenants: HybridMemory) -> None:
    """MemHybridRetriever.from_vectorstore takes our own store too, with its scope."""
    store = MemHybridVectorStore.from_memory(tenants, scope={"user_id": "ben"})
    retriever = MemHybridRetriever.from_vectorstore(store, k=2, include_scores=False)
    assert retriever.invoke(QUERY) == store.similarity_search(QUERY, k=2)


async def test_asynchronous_methods_give_the_same(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """Every a-method, with options."""
    vector = memory.embedder.embed_query([QUERY])[0].tolist()
    options: dict[str, Any] = {"k": 2, "filter": {"type": "fact"}}
    assert await store.asimilarity_search(QUERY, **options) == store.similarity_search(QUERY, **options)
    assert await store.asimilarity_search_with_score(QUERY, **options) == store.similarity_search_with_score(
        QUERY, **options
    )
    assert await store.asimilarity_search_with_relevance_scores(
        QUERY, **options
    ) == store.similarity_search_with_relevance_scores(QUERY, **options)
    assert await store.asimilarity_search_by_vector(vector, **options) == store.similarity_search_by_vector(
        vector, **options
    )
    assert await store.amax_marginal_relevance_search(QUERY, **options) == store.max_marginal_relevance_search(
        QUERY, **options
    )
    assert await store.amax_marginal_relevance_search_by_vector(
        vector, **options
    ) == store.max_marginal_relevance_search_by_vector(vector, **options)
    assert await store.asearch(QUERY, "mmr", **options) == store.search(QUERY, "mmr", **options)
    assert await store.aadd_texts(["one"], [{"n": 1}], ids=["1"]) == ["1"]
    assert await store.aadd_documents([Document(page_content="two")], ids=["2"]) == ["2"]
    assert ids(await store.aget_by_ids(["1", "2"])) == ["1", "2"]
    assert await store.adelete(["1"])
    assert await store.adelete()
    assert memory.count() == 0


# --- constructors, copies, indexing ----------------------------------------------------------------------------------


async def test_constructors(embedding: Any, tmp_path: Path) -> None:
    """From texts and documents, also asynchronously; ids, folder and scope reach the memory; embeddings are kept."""
    documents = [Document(id="1", page_content="a red fox", metadata={"n": 1}), Document(page_content="a blue whale")]
    for store in (
        MemHybridVectorStore.from_documents(documents, embedding),
        await MemHybridVectorStore.afrom_documents(documents, embedding),
        MemHybridVectorStore.from_texts(["a red fox", "a blue whale"], embedding, [{"n": 1}, {}], ids=["1", "2"]),
        await MemHybridVectorStore.afrom_texts(
            ["a red fox", "a blue whale"], embedding, [{"n": 1}, {}], ids=["1", "2"]
        ),
    ):
        assert store.similarity_search("fox", k=1) == documents[:1]
        assert store.memory.count() == 2
        assert store.embeddings is embedding
    for _ in range(2):
        kept = MemHybridVectorStore.from_documents(
            documents, embedding, ids=["1", "2"], path=tmp_path, scope_key="user", scope={"user": "u1"}
        )
    assert kept.memory.count() == 2
    assert MemHybridVectorStore.from_memory(HybridMemory.open(embedder=HashEmbedder(8))).embeddings is None
    with pytest.raises(ValueError, match="HybridMemory"):
        MemHybridVectorStore("./folder")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        MemHybridVectorStore.from_texts(["a"], embedding, persist_directory="x")


def test_copies_share_and_pickling_says_why_not(store: MemHybridVectorStore) -> None:
    """As for the retriever; also inside LangChain's own retriever."""
    for twin in (copy.copy(store), copy.deepcopy(store), copy.deepcopy(store.as_retriever()).vectorstore):
        assert twin.memory is store.memory
        assert twin.similarity_search(QUERY) == store.similarity_search(QUERY)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(store)


@pytest.mark.parametrize("cleanup", ["incremental", "full", "scoped_full"])
def test_the_indexing_api_adds_replaces_and_deletes(embedding: Any, cleanup: Any) -> None:
    """`index` skips what it knows, replaces what changed, and in full mode deletes what is gone."""
    store = MemHybridVectorStore.from_texts([], embedding)
    records = InMemoryRecordManager(namespace="test")
    records.create_schema()

    def run(*texts: str) -> dict[str, int]:
        documents = [Document(page_content=t, metadata={"source": t.split()[0]}) for t in texts]
        return dict(index(documents, records, store, cleanup=cleanup, source_id_key="source", key_encoder="sha256"))

    assert run("a one", "b two") == {"num_added": 2, "num_updated": 0, "num_skipped": 0, "num_deleted": 0}
    assert run("a one", "b two") == {"num_added": 0, "num_updated": 0, "num_skipped": 2, "num_deleted": 0}
    assert run("a new", "b two") == {"num_added": 1, "num_updated": 0, "num_skipped": 1, "num_deleted": 1}
    assert {d.page_content for d in store.similarity_search("one two new", k=9)} == {"a new", "b two"}
    assert run("b two")["num_deleted"] == (1 if cleanup == "full" else 0)
    assert store.memory.verify().ok  # type: ignore[attr-defined]


async def test_the_indexing_api_works_asynchronously(embedding: Any) -> None:
    """`aindex` too."""
    store = MemHybridVectorStore.from_texts([], embedding)
    records = InMemoryRecordManager(namespace="test")
    await records.acreate_schema()
    documents = [Document(page_content=t, metadata={"source": "s"}) for t in ("one", "two")]
    for added in (2, 0):
        done = await aindex(documents, records, store, cleanup="full", source_id_key="source", key_encoder="sha256")
        assert done["num_added"] == added
    assert store.memory.count() == 2


def test_a_lost_vector_does_not_stop_marginal_relevance() -> None:
    """NaN counts as unlike everything."""
    from langchain_memhybrid._mmr import diversify

    assert diversify([0.9, 0.8, 0.7], [[1.0, 0.0], [1.0, 0.0], [np.nan, np.nan]], 3, 0.5) == [0, 2, 1]
    assert diversify([], [], 3, 0.5) == []


def test_documents_are_replaced_by_the_names_that_chroma_has(memory: HybridMemory) -> None:
    """`update_document` and `update_documents`: text and metadata of these ids, and of no others."""
    store = MemHybridVectorStore.from_memory(memory)
    store.add_documents([Document("tea", id="1"), Document("milk", id="2"), Document("oats", id="3")])
    store.update_document("1", Document("green tea", metadata={"hot": True}))
    store.update_documents(["2", "3"], [Document("oat milk"), Document("rye")])
    found = {d.id: (d.page_content, d.metadata) for d in store.get_by_ids(["1", "2", "3"])}
    assert found == {"1": ("green tea", {"hot": True}), "2": ("oat milk", {}), "3": ("rye", {})}
