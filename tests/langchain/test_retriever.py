from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.load import dumps
from langchain_core.runnables import ConfigurableField, RunnableLambda
from pydantic import ValidationError

from langchain_memhybrid import MemHybridRetriever, MemHybridVectorStore
from memhybrid import FilterError, InputError, Memory, MetadataError, Profile, ScopeError
from memhybrid.embedders import HashEmbedder
from memhybrid.memory import HybridMemory
from tests.conftest import make_memory

QUERY = "what does Ana drink"


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


class Recorder(BaseCallbackHandler):
    """Writes down what a retriever tells its callbacks."""

    raise_error = True

    def __init__(self) -> None:
        self.started: list[Any] = []
        self.ended: list[int] = []
        self.errors: list[BaseException] = []
        self.tags: set[str] = set()
        self.metadata: dict[str, Any] = {}

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.started.append(query)
        self.tags.update(kwargs["tags"])
        self.metadata.update(kwargs["metadata"])

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.ended.append(len(documents))

    def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        self.errors.append(error)


# --- the same as the core --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["balanced", "semantic", "bm25", "mem0", "tipsy", "best"])
def test_ids_scores_and_signals_are_those_of_the_core(memory: HybridMemory, profile: str) -> None:
    """One query gives the same through the retriever as through the memory."""
    found = MemHybridRetriever.from_memory(memory, profile=profile).invoke(QUERY, record_usage=False)
    expected = memory.search(QUERY, 5, profile=profile, record_usage=False)
    assert ids(found) == expected.ids
    assert [d.metadata["memhybrid"]["score"] for d in found] == pytest.approx([h.score for h in expected], abs=1e-6)
    assert [set(d.metadata["memhybrid"]["signals"]) for d in found] == [set(h.signals) for h in expected]


def test_documents_carry_id_text_metadata_and_one_key_of_ours(memory: HybridMemory) -> None:
    """Nothing else is added to the user's metadata."""
    document = MemHybridRetriever.from_memory(memory, k=1).invoke("green tea")[0]
    mine = document.metadata.pop("memhybrid")
    assert document == Document(
        id="f1",
        page_content="Ana drinks green tea every morning",
        metadata={"user_id": "ana", "type": "fact", "year": 2023},
    )
    assert set(mine) == {"score", "signals", "sources"}


def test_scores_can_be_left_out_and_the_id_copied(memory: HybridMemory) -> None:
    """include_scores=False keeps the reserved key away; id_key puts the id where other parts look for it."""
    document = MemHybridRetriever.from_memory(memory, k=1, include_scores=False, id_key="key").invoke("green tea")[0]
    assert document.metadata == {"user_id": "ana", "type": "fact", "year": 2023, "key": "f1"}


def test_metadata_of_results_is_plain_json(memory: HybridMemory) -> None:
    """No numpy scalar reaches a document: json, checkpoints and traces can take it."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    memory.add(
        Memory("n", "numbers of Ana", {"f": np.float32(0.5), "i": np.int64(7), "b": np.bool_(True), "l": [1, 2]})
    )
    found = MemHybridRetriever.from_memory(memory, k=7).invoke("numbers of Ana")
    assert json.loads(json.dumps([d.metadata for d in found])) == [d.metadata for d in found]
    serde = JsonPlusSerializer()
    assert serde.loads_typed(serde.dumps_typed(found)) == found


def test_user_keys_named_like_ours_are_kept(memory: HybridMemory) -> None:
    """score, type and importance are the user's words."""
    memory.add(Memory("s", "a scored zebra", {"score": 7, "type": "x", "importance": 3, "signals": "none"}))
    document = MemHybridRetriever.from_memory(memory, k=1).invoke("scored zebra")[0]
    assert {k: document.metadata[k] for k in ("score", "type", "importance", "signals")} == {
        "score": 7,
        "type": "x",
        "importance": 3,
        "signals": "none",
    }


def test_keys_of_llamaindex_do_not_show(memory: HybridMemory) -> None:
    """A collection written by LlamaIndex gives the user's metadata alone."""
    node = {"_node_content": "{}", "_node_type": "TextNode", "document_id": "d", "doc_id": "d", "ref_doc_id": "d"}
    memory.add(Memory("node", "a walrus node", {**node, "page": 3}))
    memory.add(Memory("mine", "a walrus document", {"doc_id": "kept"}))
    retriever = MemHybridRetriever.from_memory(memory, k=2, include_scores=False)
    assert {d.id: d.metadata for d in retriever.invoke("walrus")} == {"node": {"page": 3}, "mine": {"doc_id": "kept"}}


# --- what a call says ------------------------------------------------------------------------------------------------


def test_k_filter_and_scope_of_a_call_are_honoured(memory: HybridMemory) -> None:
    """A call's options go before the fields."""
    retriever = MemHybridRetriever.from_memory(memory, k=5)
    assert len(retriever.invoke(QUERY, k=2)) == 2
    assert set(ids(retriever.invoke(QUERY, filter={"type": "event"}))) == {"f2", "f3", "b3"}
    assert set(ids(retriever.invoke(QUERY, scope={"user_id": "ben"}))) == {"b1", "b2", "b3"}
    assert ids(retriever.invoke(QUERY, filter={"type": "event"}, scope={"user_id": "ben"})) == ["b3"]
    assert len(retriever.invoke(QUERY, min_score=0.99)) == 0
    assert len(retriever.invoke(QUERY, max_tokens=0)) == 0
    assert len(retriever.invoke(QUERY, profile="bm25")[0].metadata["memhybrid"]["signals"]) == 1


async def test_asynchronous_calls_take_the_same_options(memory: HybridMemory) -> None:
    """ainvoke and abatch give what invoke and batch give."""
    retriever = MemHybridRetriever.from_memory(memory)
    options: dict[str, Any] = {
        "k": 2,
        "filter": {"year": {"$gte": 2023}},
        "scope": {"user_id": "ana"},
        "profile": "mem0",
    }
    assert await retriever.ainvoke(QUERY, **options) == retriever.invoke(QUERY, **options)
    assert await retriever.abatch([QUERY, "coffee"], **options) == retriever.batch([QUERY, "coffee"], **options)
    assert [d async for part in retriever.astream(QUERY, **options) for d in part] == retriever.invoke(QUERY, **options)


async def test_an_unknown_option_is_a_type_error(memory: HybridMemory) -> None:
    """Nothing that a call says is ignored."""
    retriever = MemHybridRetriever.from_memory(memory)
    for wrong in ({"top_k": 3}, {"filters": None}):
        with pytest.raises(TypeError, match=next(iter(wrong))):
            retriever.invoke(QUERY, **wrong)
        with pytest.raises(TypeError, match=next(iter(wrong))):
            await retriever.ainvoke(QUERY, **wrong)
        with pytest.raises(TypeError, match=next(iter(wrong))):
            retriever.batch([QUERY, QUERY], **wrong)


def test_an_unknown_field_is_refused(memory: HybridMemory) -> None:
    """A typo in the constructor does not vanish."""
    with pytest.raises(ValidationError, match="top_k"):
        MemHybridRetriever.from_memory(memory, top_k=3)


@pytest.mark.parametrize("k", [0, -1, True, "3", 2.5])
async def test_a_k_that_cannot_be_is_an_error(memory: HybridMemory, k: Any) -> None:
    """At construction, by assignment and at call time, synchronously and not."""
    with pytest.raises(InputError, match="k:"):
        MemHybridRetriever.from_memory(memory, k=k)
    retriever = MemHybridRetriever.from_memory(memory)
    with pytest.raises(InputError, match="k:"):
        retriever.invoke(QUERY, k=k)
    with pytest.raises(InputError, match="k:"):
        await retriever.ainvoke(QUERY, k=k)
    retriever.k = k
    with pytest.raises(InputError, match="k:"):
        retriever.invoke(QUERY)


def test_numpy_numbers_are_taken(memory: HybridMemory) -> None:
    """k may come out of an array."""
    assert len(MemHybridRetriever.from_memory(memory, k=np.int64(3)).invoke(QUERY)) == 3
    assert len(MemHybridRetriever.from_memory(memory).invoke(QUERY, k=np.int32(3))) == 3


def test_k_above_the_number_of_memories_gives_them_all(memory: HybridMemory) -> None:
    """No error where the store is smaller than k."""
    assert len(MemHybridRetriever.from_memory(memory, k=500).invoke(QUERY)) == 6


def test_empty_filter_is_no_filter_and_several_keys_are_anded(memory: HybridMemory) -> None:
    """What raises in stock Chroma works; a call's {} lifts the retriever's filter."""
    retriever = MemHybridRetriever.from_memory(memory, k=10, filter={"type": "fact"})
    assert len(retriever.invoke(QUERY)) == 3
    assert len(retriever.invoke(QUERY, filter={})) == 6
    assert ids(retriever.invoke(QUERY, filter={"user_id": "ben", "type": "event"})) == ["b3"]
    with pytest.raises(FilterError):
        retriever.invoke(QUERY, filter={"year": {"$regex": ".*"}})


@pytest.mark.parametrize("query", ["", "   ", "\n"])
async def test_an_empty_query_finds_nothing(memory: HybridMemory, query: str) -> None:
    """Synchronously and not."""
    retriever = MemHybridRetriever.from_memory(memory)
    assert retriever.invoke(query) == await retriever.ainvoke(query) == []


def test_a_query_that_is_no_text_is_an_error(memory: HybridMemory) -> None:
    """A dict from a prompt does not become a search."""
    for query in (None, {"question": "?"}, 7):
        with pytest.raises(InputError, match="query"):
            MemHybridRetriever.from_memory(memory).invoke(query)  # type: ignore[arg-type]


# --- scope -----------------------------------------------------------------------------------------------------------


async def test_a_call_cannot_change_the_scope(tenants: HybridMemory) -> None:
    """Neither by argument nor by config, nor with a filter, whether the retriever or its memory is bound."""
    for bound in (
        MemHybridRetriever.from_memory(tenants, scope={"user_id": "ana"}),
        MemHybridRetriever.from_memory(tenants.scoped(user_id="ana")),
    ):
        other: Any = {"user_id": "ben"}
        with pytest.raises(ScopeError):
            bound.invoke(QUERY, scope=other)
        with pytest.raises(ScopeError):
            await bound.ainvoke(QUERY, scope=other)
        with pytest.raises(ScopeError):
            bound.invoke(QUERY, config={"configurable": {"scope": other}})
        with pytest.raises(ScopeError):
            bound.batch([QUERY, QUERY], scope=other)
        assert bound.invoke(QUERY, filter=other) == []
        assert set(ids(bound.invoke(QUERY, scope={"user_id": "ana"}))) == {"f1", "f2", "f3"}


def test_a_configurable_scope_cannot_change_the_retrievers_own(tenants: HybridMemory) -> None:
    """Where the retriever has one; it may narrow it, and where there is none it sets it."""
    field = ConfigurableField(id="scope")
    bound = MemHybridRetriever.from_memory(tenants, scope={"user_id": "ana"}).configurable_fields(scope=field)
    assert len(bound.invoke(QUERY)) == 3
    assert ids(bound.invoke(QUERY, config={"configurable": {"scope": {"type": "fact"}}})) == ["f1"]
    with pytest.raises(ScopeError):
        bound.invoke(QUERY, config={"configurable": {"scope": {"user_id": "ben"}}})
    free = MemHybridRetriever.from_memory(tenants).configurable_fields(scope=field)
    assert len(free.invoke(QUERY, config={"configurable": {"scope": {"user_id": "ben"}}})) == 3


def test_scopes_of_config_and_call_add_up(tenants: HybridMemory) -> None:
    """Both are held to; where they disagree, neither is chosen."""
    retriever = MemHybridRetriever.from_memory(tenants)
    config: Any = {"configurable": {"scope": {"user_id": "ana"}}}
    assert ids(retriever.invoke(QUERY, config, scope={"type": "fact"})) == ["f1"]
    with pytest.raises(ScopeError):
        retriever.invoke(QUERY, config, scope={"user_id": "ben"})


def test_a_missing_scope_is_an_error(tenants: HybridMemory) -> None:
    """A store that keeps tenants apart is never searched as a whole."""
    retriever = MemHybridRetriever.from_memory(tenants)
    with pytest.raises(ScopeError, match="user_id"):
        retriever.invoke(QUERY)
    assert set(ids(retriever.invoke(QUERY, filter={"user_id": "ben"}))) == {"b1", "b2", "b3"}


@pytest.mark.parametrize("scope", ["ana", {}, {"user_id": ""}, {"user_id": None}, {"user_id": ["ana"]}, 3])
def test_a_scope_that_cannot_be_is_an_error(tenants: HybridMemory, scope: Any) -> None:
    """By argument and by config: it is never taken for no scope."""
    retriever = MemHybridRetriever.from_memory(tenants)
    with pytest.raises(ScopeError):
        retriever.invoke(QUERY, scope=scope)
    with pytest.raises(ScopeError):
        retriever.invoke(QUERY, config={"configurable": {"memhybrid_scope": scope}})


# --- config ----------------------------------------------------------------------------------------------------------


def test_options_in_the_config_are_honoured(memory: HybridMemory) -> None:
    """k, filter and scope by their names or with the prefix, which goes first; arguments go before both."""
    retriever = MemHybridRetriever.from_memory(memory)

    def found(call: int | None = None, **configurable: Any) -> list[str | None]:
        return ids(retriever.invoke(QUERY, config={"configurable": configurable}, k=call))

    for prefix in ("", "memhybrid_"):
        assert len(found(**{f"{prefix}k": 2})) == 2
        assert set(found(**{f"{prefix}filter": {"type": "event"}})) == {"f2", "f3", "b3"}
        assert set(found(**{f"{prefix}scope": {"user_id": "ben"}})) == {"b1", "b2", "b3"}
    assert found(memhybrid_min_score=0.99) == []
    assert len(found(k=2, memhybrid_k=3)) == 3
    assert len(found(1, memhybrid_k=3)) == 1
    assert len(retriever.with_config(configurable={"k": 2}).invoke(QUERY)) == 2


def test_a_chain_hands_the_config_down(tenants: HybridMemory) -> None:
    """Each request of one chain searches its own user's memories, also inside a function that knows nothing of the config."""
    retriever = MemHybridRetriever.from_memory(tenants)
    piped = RunnableLambda(str.strip) | retriever | ids
    inside = RunnableLambda(lambda question: ids(retriever.invoke(question))) | list
    for chain in (piped, inside):
        for user, expected in (("ana", {"f1", "f2", "f3"}), ("ben", {"b1", "b2", "b3"})):
            assert set(chain.invoke(QUERY, config={"configurable": {"scope": {"user_id": user}}})) == expected
        with pytest.raises(ScopeError):
            chain.invoke(QUERY)


async def test_configurable_fields_work(memory: HybridMemory) -> None:
    """Fields are set for one call and validated again; the others keep their values."""
    retriever = MemHybridRetriever.from_memory(memory, k=4).configurable_fields(
        k=ConfigurableField(id="number"), filter=ConfigurableField(id="where"), scope=ConfigurableField(id="tenant")
    )
    assert len(retriever.invoke(QUERY)) == 4
    assert len(retriever.with_config(configurable={"number": 1}).invoke(QUERY)) == 1
    config: Any = {"configurable": {"where": {"type": "fact"}, "tenant": {"user_id": "ben"}}}
    assert set(ids(retriever.invoke(QUERY, config))) == {"b1", "b2"}
    assert await retriever.ainvoke(QUERY, config) == retriever.invoke(QUERY, config)
    with pytest.raises(InputError):
        retriever.invoke(QUERY, config={"configurable": {"number": 0}})


# --- batch and callbacks ---------------------------------------------------------------------------------------------


def test_a_batch_embeds_its_queries_at_once_and_gives_what_single_calls_give() -> None:
    """Work is shared where all queries have the same options; the answers do not show it."""
    calls: list[int] = []

    class Counting(HashEmbedder):
        def embed_query(self, texts: Any) -> Any:
            calls.append(len(texts))
            return super().embed_query(texts)

    retriever = MemHybridRetriever.from_texts(["a red fox", "a blue whale", "a green frog"], Counting(64))
    queries = ["red", "blue", "", "green frog", "red"]
    found = retriever.batch(queries, k=2)
    assert calls == [4]
    assert found == [retriever.invoke(query, k=2) for query in queries]
    each: Any = [{"configurable": {"k": n + 1}} for n in range(3)]
    assert [len(documents) for documents in retriever.batch(["red", "blue", "green"], each)] == [1, 2, 3]
    assert retriever.batch([]) == []


async def test_one_wrong_query_of_a_batch_fails_alone(memory: HybridMemory) -> None:
    """With return_exceptions the others are answered."""
    retriever = MemHybridRetriever.from_memory(memory)
    wrong: Any = ["coffee", None, "cello"]
    for found in (
        retriever.batch(wrong, return_exceptions=True),
        await retriever.abatch(wrong, return_exceptions=True),
    ):
        assert isinstance(found[1], InputError)
        assert found[0][0].id == "b1"
        assert found[2][0].id == "b2"


async def test_callbacks_hear_of_every_query(memory: HybridMemory) -> None:
    """Start and end, or error, once for each query, whether alone, in a batch or asynchronously; with the tracing parameters."""
    retriever = MemHybridRetriever.from_memory(memory, tags=["memory"], metadata={"team": "blue"})

    async def run(queries: list[Any], *, batch: bool) -> Recorder:
        recorder = Recorder()
        config: Any = {"callbacks": [recorder], "tags": ["mine"]}
        if batch:
            retriever.batch(queries, config, return_exceptions=True)
            await retriever.abatch(queries, config, return_exceptions=True)
        else:
            for query in queries:
                retriever.invoke(query, config)
                await retriever.ainvoke(query, config)
        return recorder

    for batch in (False, True):
        recorder = await run(["tea", "coffee"], batch=batch)
        assert sorted(recorder.started) == ["coffee", "coffee", "tea", "tea"]
        assert recorder.ended == [5, 5, 5, 5]
        assert recorder.errors == []
        assert recorder.tags == {"memory", "mine"}
    assert recorder.metadata["team"] == "blue"
    assert recorder.metadata["ls_retriever_name"] == "memhybrid"
    assert recorder.metadata["ls_vector_store_provider"] == "Chroma"
    assert recorder.metadata["ls_embedding_provider"] == "HashEmbedder"
    failed = await run(["tea", None], batch=True)
    assert [type(error) for error in failed.errors] == [InputError, InputError]


# --- copies ----------------------------------------------------------------------------------------------------------


def test_copies_share_the_memory_and_work(memory: HybridMemory) -> None:
    """copy, deepcopy and model_copy, bound to a scope or not."""
    for retriever in (
        MemHybridRetriever.from_memory(memory),
        MemHybridRetriever.from_memory(memory.scoped(user_id="ana")),
    ):
        expected = retriever.invoke(QUERY)
        for twin in (
            copy.copy(retriever),
            copy.deepcopy(retriever),
            retriever.model_copy(),
            retriever.model_copy(deep=True),
            copy.deepcopy({"inside": [retriever]})["inside"][0],
        ):
            assert twin.memory is retriever.memory
            assert twin.invoke(QUERY) == expected
    assert len(retriever.model_copy(update={"k": 1}).invoke(QUERY)) == 1


def test_pickling_says_why_not(memory: HybridMemory) -> None:
    """And what to do instead."""
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(MemHybridRetriever.from_memory(memory))


def test_text_forms_hold_no_memory(memory: HybridMemory) -> None:
    """repr, dump and LangChain's own dumps show the settings and no stored text."""
    retriever = MemHybridRetriever.from_memory(memory, k=3)
    for text in (repr(retriever), str(retriever.model_dump()), dumps(retriever)):
        assert "green tea" not in text
        assert "HybridMemory object" not in text
    assert "k=3" in repr(retriever)


def test_results_share_nothing(memory: HybridMemory) -> None:
    """Changing a document changes neither the store nor what other calls got or get."""
    memory.add(Memory("l", "a list of lemons", {"tags": ["a", "b"]}))
    retriever = MemHybridRetriever.from_memory(memory, k=1)
    first = retriever.invoke("list of lemons")[0]
    kept = copy.deepcopy(first)
    again = retriever.invoke("list of lemons")[0]
    first.metadata["tags"].append("c")
    first.metadata["memhybrid"]["signals"].clear()
    first.page_content = "changed"
    assert again == kept == retriever.invoke("list of lemons")[0]
    assert memory.get("l")[0].metadata == {"tags": ["a", "b"]}


def test_the_same_text_twice_stays_two_documents(memory: HybridMemory) -> None:
    """Documents are what their ids say, not their text."""
    memory.add([Memory("1", "the same words", {"source": "A"}), Memory("2", "the same words", {"source": "B"})])
    found = MemHybridRetriever.from_memory(memory, k=2).invoke("the same words")
    assert {d.id: d.metadata["source"] for d in found} == {"1": "A", "2": "B"}


# --- constructors ----------------------------------------------------------------------------------------------------


def test_from_documents_and_from_texts(embedding: Any) -> None:
    """Ids given win over the documents' own; missing ones are made; metadata may be missing."""
    documents = [Document(id="d1", page_content="a red fox", metadata={"n": 1}), Document(page_content="a blue whale")]
    retriever = MemHybridRetriever.from_documents(documents, embedding, k=2, include_scores=False)
    fox, whale = retriever.invoke("red fox")
    assert (fox.id, fox.metadata, whale.metadata) == ("d1", {"n": 1}, {})
    assert whale.id
    assert ids(MemHybridRetriever.from_documents(iter(documents), embedding, ids=["a", "b"]).invoke("red fox")) == [
        "a",
        "b",
    ]
    from_texts = MemHybridRetriever.from_texts(
        ("a red fox", "a blue whale"), embedding, [{"n": 1}, None], ids=["x", "y"]
    )
    assert ids(from_texts.invoke("whale", k=1)) == ["y"]
    with pytest.raises(InputError, match="metadatas"):
        MemHybridRetriever.from_texts(["a", "b"], embedding, [{}])
    with pytest.raises(InputError, match="texts"):
        MemHybridRetriever.from_texts("one text", embedding)


def test_from_documents_keeps_a_folder_and_a_scope(tmp_path: Any, embedding: Any) -> None:
    """A second run with the same ids replaces; documents are written into the retriever's scope."""
    for _ in range(2):
        retriever = MemHybridRetriever.from_documents(
            [Document(id="1", page_content="Ana drinks tea")],
            embedding,
            path=tmp_path,
            scope_key="user_id",
            scope={"user_id": "ana"},
        )
        assert retriever.memory.scoped(user_id="ana").count() == 1
    assert ids(retriever.invoke("tea")) == ["1"]
    with pytest.raises(ScopeError):
        MemHybridRetriever.from_documents([Document(page_content="whose?")], embedding, scope_key="user_id")


def test_the_reserved_key_is_refused_when_stored(embedding: Any) -> None:
    """Documents that came out of a search are not written back with their scores."""
    with pytest.raises(MetadataError, match="memhybrid"):
        MemHybridRetriever.from_documents([Document(page_content="x", metadata={"memhybrid": {}})], embedding)


def test_profile_is_a_name_a_file_or_a_profile(memory: HybridMemory, tmp_path: Any) -> None:
    """And a wrong one is an error at construction."""
    file = tmp_path / "mine.json"
    Profile.keywords().to_json(file)
    for profile in ("bm25", file, str(file), Profile.keywords()):
        document = MemHybridRetriever.from_memory(memory, profile=profile, k=1).invoke("green tea")[0]
        assert list(document.metadata["memhybrid"]["signals"]) == ["bm25"]
    with pytest.raises(ValueError, match="profile"):
        MemHybridRetriever.from_memory(memory, profile="bestest")
    with pytest.raises(ValidationError, match="memory"):
        MemHybridRetriever(memory="./folder")


def test_a_retriever_keeps_the_profile_of_its_vector_store() -> None:
    """Both doors of one store find the same; a profile that is given goes first."""
    memory = make_memory()
    memory.add(["tea", "coffee", "the tea pot"])
    store = MemHybridVectorStore.from_memory(memory, profile="bm25")
    found = [document.page_content for document in store.similarity_search("tea", k=3)]
    assert found == ["tea", "the tea pot"]
    assert [d.page_content for d in MemHybridRetriever.from_vectorstore(store, k=3).invoke("tea")] == found
    assert len(MemHybridRetriever.from_vectorstore(store, k=3, profile="balanced").invoke("tea")) == 3


def test_every_option_of_a_search_is_one_of_the_retriever() -> None:
    """The recommended floor, outdated memories and the moment of asking, as fields and in a call; another name is told what there is."""
    memory = make_memory()
    memory.add([Memory("old", "tea time", {"expires_at": "2026-01-01"}), Memory("new", "tea pot")])
    floor = memory.search("tea", min_score="recommended").ids
    assert [d.id for d in MemHybridRetriever(memory=memory, min_score="recommended").invoke("tea")] == floor
    for retriever, options in (
        (MemHybridRetriever(memory=memory, include_outdated=True), {}),
        (MemHybridRetriever(memory=memory), {"include_outdated": True}),
        (MemHybridRetriever(memory=memory, now=1_700_000_000.0), {}),
        (MemHybridRetriever(memory=memory), {"now": 1_700_000_000.0}),
    ):
        assert {d.id for d in retriever.invoke("tea", **options)} == {"old", "new"}
    with pytest.raises(TypeError, match="no option 'where_document'; it has k, filter, scope"):
        MemHybridRetriever(memory=memory).invoke("tea", where_document={"$contains": "tea"})


def test_the_scope_of_another_component_is_set_aside_by_an_empty_one_of_ours() -> None:
    """`scope` in the run's config may be somebody else's word; {} under our own name adds nothing and widens nothing."""
    with make_memory(scope_key="user_id") as memory:
        memory.scoped(user_id="maya").add(["tea"])
        retriever = MemHybridRetriever(memory=memory, scope={"user_id": "maya"})
        config: Any = {"configurable": {"scope": "openid", "memhybrid_scope": {}}}
        assert [d.page_content for d in retriever.invoke("tea", config=config)] == ["tea"]
        with pytest.raises(ScopeError):
            MemHybridRetriever(memory=memory).invoke("tea", config=config)
