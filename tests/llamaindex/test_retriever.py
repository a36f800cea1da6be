"""The retriever: the core's answers in LlamaIndex's shape."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import sys
import time
from typing import Any

import pytest
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import IndexNode, MetadataMode, QueryBundle, TextNode
from llama_index.core.tools import RetrieverTool
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

import llamaindex_memhybrid
from llamaindex_memhybrid import MemHybridEmbedding, MemHybridRetriever, MemHybridVectorStore
from memhybrid import InputError, Memory, ScopeError
from memhybrid.embedders import HashEmbedder
from memhybrid.memory import HybridMemory
from tests.conftest import make_memory

QUERY = "what does Ana drink"


def answer(nodes: list[Any]) -> list[tuple[str, float | None]]:
    return [(n.node_id, n.score) for n in nodes]


def test_class() -> None:
    """It is a LlamaIndex retriever."""
    assert issubclass(MemHybridRetriever, BaseRetriever)


def test_public_names_exist_and_are_sorted() -> None:
    """What the package promises can be imported."""
    assert llamaindex_memhybrid.__all__ == sorted(llamaindex_memhybrid.__all__)
    assert all(hasattr(llamaindex_memhybrid, name) for name in llamaindex_memhybrid.__all__)


@pytest.mark.parametrize("profile", ["semantic", "bm25", "balanced", "mem0", "tipsy", None])
def test_ids_and_scores_are_the_cores(store: MemHybridVectorStore, memory: HybridMemory, profile: str | None) -> None:
    """The same ids, scores and order as the core, every time."""
    retriever = MemHybridRetriever.from_memory(memory, similarity_top_k=4, profile=profile, record_usage=False)
    retriever.retrieve(QUERY)
    hits = memory.search(QUERY, 4, profile=profile, record_usage=False).hits
    wanted = [(hit.memory.id, hit.score) for hit in hits]
    assert wanted
    assert answer(retriever.retrieve(QUERY)) == wanted
    assert answer(retriever.retrieve(QUERY)) == answer(retriever.retrieve(QueryBundle(QUERY)))


async def test_aretrieve_is_retrieve(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """Asynchronously the answer is the same, also fifty times at once."""
    retriever = MemHybridRetriever.from_memory(memory)
    wanted = answer(retriever.retrieve(QUERY))
    many = await asyncio.gather(*(retriever.aretrieve(QUERY) for _ in range(50)))
    assert all(answer(nodes) == wanted for nodes in many)


async def test_aretrieve_never_blocks_the_loop(nodes: list[TextNode]) -> None:
    """While a slow embedder works, other tasks go on."""

    class Slow(HashEmbedder):
        slow = False

        def embed_query(self, texts: Any) -> Any:
            if self.slow:
                time.sleep(0.4)
            return super().embed_query(texts)

    embedder = Slow(64)
    with make_memory(embedder=embedder) as memory:
        store = MemHybridVectorStore.from_memory(memory)
        store.add(nodes)
        retriever = MemHybridRetriever.from_memory(memory, profile="semantic")
        retriever.retrieve(QUERY)
        embedder.slow = True
        ticks = 0

        async def ticker() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        task = asyncio.create_task(ticker())
        await retriever.aretrieve(QUERY)
        task.cancel()
    assert ticks >= 10


async def test_retrieve_works_inside_a_running_loop(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """The synchronous way starts no event loop, so notebooks can use it."""
    assert MemHybridRetriever.from_memory(memory).retrieve(QUERY)


# --- what comes back ---------------------------------------------------------------------------------------------------


def test_results_carry_score_signals_and_sources(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """One reserved key tells why a node came back, in plain values, and the user's own metadata is untouched."""
    node = MemHybridRetriever.from_memory(memory).retrieve(QUERY)[0]
    hit = memory.search(QUERY).hits[0]
    assert set(node.metadata) == {"user_id", "type", "year", "memhybrid"}
    details = node.metadata["memhybrid"]
    assert details == {"score": hit.score, "signals": dict(hit.signals), "sources": list(hit.sources)}
    assert json.loads(json.dumps(node.metadata)) == node.metadata
    assert type(node.score) is float
    assert 0.0 <= node.score <= 1.0


def test_the_reserved_key_reaches_neither_llm_nor_embedder(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """Models see the metadata that the user wrote and nothing else."""
    node = MemHybridRetriever.from_memory(memory).retrieve(QUERY)[0].node
    stored = store.get_nodes([node.node_id])[0]
    for mode in (MetadataMode.EMBED, MetadataMode.LLM, MetadataMode.NONE):
        assert node.get_content(mode) == stored.get_content(mode)
    assert node.hash == stored.hash


def test_a_users_score_key_is_kept(memory: HybridMemory) -> None:
    """A key named score in the user's metadata stays the user's."""
    MemHybridVectorStore.from_memory(memory).add([TextNode(id_="a", text="a cello", metadata={"score": 7})])
    node = MemHybridRetriever.from_memory(memory).retrieve("cello")[0]
    assert node.metadata["score"] == 7


def test_changing_results_changes_nothing(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """Results are fresh objects: what a postprocessor does to them is gone at the next search."""
    memory.update("n1", metadata={"tags": ["a", "b"]})
    retriever = MemHybridRetriever.from_memory(memory)
    first = retriever.retrieve(QUERY)
    kept = json.dumps([(n.node_id, n.score, n.text, n.metadata) for n in first])
    for n in first:
        n.score = 99.0
        n.node.set_content("gone")
        n.metadata.get("tags", []).append("c")
        n.metadata["memhybrid"]["signals"].clear()
        n.metadata.clear()
    assert json.dumps([(n.node_id, n.score, n.text, n.metadata) for n in retriever.retrieve(QUERY)]) == kept


def test_results_can_be_added_again(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """Nodes that came out of a search go into a store without what the search added."""
    found = MemHybridRetriever.from_memory(memory).retrieve(QUERY)
    store.add([n.node for n in found])
    assert "memhybrid" not in store.get_nodes([found[0].node_id])[0].metadata


def test_same_text_different_ids_are_both_kept(memory: HybridMemory) -> None:
    """Identity is the node's id, not its text."""
    store = MemHybridVectorStore.from_memory(memory)
    store.add([TextNode(id_=i, text="the same words", metadata={"source": i}) for i in ("a", "b")])
    found = MemHybridRetriever.from_memory(memory).retrieve("same words")
    assert {(n.node_id, n.metadata["source"]) for n in found} == {("a", "a"), ("b", "b")}


# --- options -----------------------------------------------------------------------------------------------------------


def test_constructor_options_are_honoured(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """Top k, filters, min_score and max_tokens do what they do in the core."""
    filters = MetadataFilters(filters=[MetadataFilter(key="type", value="event")])
    assert len(MemHybridRetriever.from_memory(memory, similarity_top_k=2).retrieve(QUERY)) == 2
    found = MemHybridRetriever.from_memory(memory, filters=filters).retrieve(QUERY)
    assert found
    assert {n.metadata["type"] for n in found} == {"event"}
    assert MemHybridRetriever.from_memory(memory, min_score=0.999).retrieve(QUERY) == []
    assert MemHybridRetriever.from_memory(memory, max_tokens=0).retrieve(QUERY) == []


def test_options_for_one_request(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """with_options gives a copy; the retriever itself stays as it was."""
    retriever = MemHybridRetriever.from_memory(memory)
    narrow = retriever.with_options(similarity_top_k=1, filters={"user_id": "ben"}, profile="bm25")
    assert [n.node_id for n in narrow.retrieve("drinks coffee")] == ["n4"]
    assert len(retriever.retrieve(QUERY)) == 5
    assert retriever.filters is None
    retriever.similarity_top_k = 3
    assert len(retriever.retrieve(QUERY)) == 3


def test_unknown_options_are_errors(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """Nothing that is asked for is ignored."""
    with pytest.raises(TypeError, match="top_k"):
        MemHybridRetriever.from_memory(memory).with_options(top_k=3)
    with pytest.raises(TypeError):
        MemHybridRetriever.from_memory(memory, top_k=3)
    with pytest.raises(InputError, match="similarity_top_k"):
        MemHybridRetriever.from_memory(memory, similarity_top_k=0)
    with pytest.raises(InputError, match="memory"):
        MemHybridRetriever.from_memory("./memory")  # type: ignore[arg-type]


def test_a_scope_cannot_be_widened(tenants: HybridMemory) -> None:
    """Neither filters nor options reach another tenant, and without a scope a search is refused."""
    retriever = MemHybridRetriever.from_memory(tenants, scope={"user_id": "ana"})
    for filters in (None, {"user_id": "ben"}, {"$or": [{"user_id": "ana"}, {"user_id": "ben"}]}):
        found = retriever.with_options(filters=filters).retrieve("Ben drinks coffee")
        assert all(n.metadata["user_id"] == "ana" for n in found)
    with pytest.raises(ScopeError):
        retriever.with_options(scope={"user_id": "ben"})
    with pytest.raises(ScopeError):
        MemHybridRetriever.from_memory(tenants).retrieve("tea")
    assert retriever.with_options(scope={"type": "fact"}).scope == {"user_id": "ana", "type": "fact"}


def test_a_filter_may_name_the_tenant(tenants: HybridMemory) -> None:
    """Where nothing is bound an equality in the filter says whose memories are meant."""
    filters = MetadataFilters(filters=[MetadataFilter(key="user_id", value="ben")])
    found = MemHybridRetriever.from_memory(tenants).with_options(filters=filters).retrieve("drinks")
    assert found
    assert {n.metadata["user_id"] for n in found} == {"ben"}


# --- queries -----------------------------------------------------------------------------------------------------------


def test_a_given_embedding_is_used(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """QueryBundle.embedding replaces the query's own."""
    vector = memory.embedder.embed_query(["Ben plays the cello on Sundays"])[0].tolist()
    retriever = MemHybridRetriever.from_memory(memory, profile="semantic", similarity_top_k=1)
    assert retriever.retrieve(QueryBundle("tea", embedding=vector))[0].node_id == "n5"


def test_custom_embedding_strings_are_embedded(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """Made-up answers (HyDE) are embedded in place of the question."""
    retriever = MemHybridRetriever.from_memory(memory, profile="semantic", similarity_top_k=1)
    bundle = QueryBundle("tea", custom_embedding_strs=["Ben plays the cello", "cello on Sundays"])
    assert retriever.retrieve(bundle)[0].node_id == "n5"


@pytest.mark.parametrize("call", [{"input": QUERY}, {"query": QUERY}])
def test_what_a_retriever_tool_adds_is_taken_off(
    store: MemHybridVectorStore, memory: HybridMemory, call: dict[str, str]
) -> None:
    """RetrieverTool asks for "\\ninput is …\\n"; the search is for the text itself."""
    retriever = MemHybridRetriever.from_memory(memory, profile="bm25")
    wanted = answer(retriever.retrieve(QUERY))
    tool = RetrieverTool.from_defaults(retriever)
    assert answer(tool.call(**call).raw_output) == wanted
    assert answer(tool.call(QUERY).raw_output) == wanted


def test_a_question_that_reads_like_a_tool_call_is_kept(memory: HybridMemory) -> None:
    """Only the exact shape is taken off."""
    MemHybridVectorStore.from_memory(memory).add([TextNode(id_="a", text="input voltage")])
    assert MemHybridRetriever.from_memory(memory, profile="bm25").retrieve("input is what?")


# --- constructors ------------------------------------------------------------------------------------------------------


def test_from_nodes(nodes: list[TextNode], embed_model: MemHybridEmbedding) -> None:
    """Nodes are stored and found; ids are the nodes' own."""
    retriever = MemHybridRetriever.from_nodes(nodes, embed_model, similarity_top_k=2)
    assert retriever.retrieve("cello on Sundays")[0].node_id == "n5"
    bound = MemHybridRetriever.from_nodes(nodes[:3], embed_model, scope_key="user_id", scope={"user_id": "ana"})
    assert bound.retrieve("tea")[0].node_id == "n1"


def test_from_nodes_in_a_folder(nodes: list[TextNode], embed_model: MemHybridEmbedding, tmp_path: Any) -> None:
    """A folder keeps the nodes for the next time."""
    first = MemHybridRetriever.from_nodes(nodes, embed_model, path=tmp_path / "m", collection="notes")
    wanted = answer(first.retrieve(QUERY))
    del first
    with HybridMemory.open(tmp_path / "m", "notes", embedder=HashEmbedder(64)) as again:
        assert answer(MemHybridRetriever.from_memory(again).retrieve(QUERY)) == wanted


def test_from_index_over_our_store(
    store: MemHybridVectorStore, memory: HybridMemory, embed_model: MemHybridEmbedding
) -> None:
    """An index over our store gives the store's memory and scope."""
    index = VectorStoreIndex.from_vector_store(store, embed_model=embed_model)
    wanted = answer(MemHybridRetriever.from_memory(memory).retrieve(QUERY))
    assert answer(MemHybridRetriever.from_index(index).retrieve(QUERY)) == wanted
    bound = VectorStoreIndex.from_vector_store(store.scoped(user_id="ben"), embed_model=embed_model)
    assert MemHybridRetriever.from_index(bound).scope == {"user_id": "ben"}


def test_from_index_over_another_store_is_refused(nodes: list[TextNode], embed_model: MemHybridEmbedding) -> None:
    """Only Chroma can be followed, and the error says so."""
    index = VectorStoreIndex(nodes, embed_model=embed_model)
    with pytest.raises(InputError, match="ChromaVectorStore"):
        MemHybridRetriever.from_index(index)
    with pytest.raises(InputError, match="index"):
        MemHybridRetriever.from_index("index")  # type: ignore[arg-type]


def test_records_of_others_become_nodes(memory: HybridMemory) -> None:
    """What the core or LangChain wrote is a TextNode with that text and metadata."""
    memory.add([Memory("m1", "the cello stands in the hall", {"room": "hall", "doc_id": "x"})])
    node = MemHybridRetriever.from_memory(memory).retrieve("cello")[0].node
    assert isinstance(node, TextNode)
    assert (node.node_id, node.text) == ("m1", "the cello stands in the hall")
    assert {k: v for k, v in node.metadata.items() if k != "memhybrid"} == {"room": "hall", "doc_id": "x"}


def test_settings_name_the_embedder(nodes: list[TextNode], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an embedding model the one in LlamaIndex's Settings is taken, if one was set."""
    monkeypatch.setattr(Settings, "_embed_model", MockEmbedding(embed_dim=8))
    for node in nodes:
        node.embedding = None
    assert MemHybridRetriever.from_nodes(nodes).memory.stats()["embedder"].startswith("MockEmbedding")  # type: ignore[attr-defined]


# --- inside LlamaIndex -------------------------------------------------------------------------------------------------


class _Events(BaseEventHandler):
    seen: list[Any] = []  # noqa: RUF012 - a pydantic field

    def handle(self, event: Any, **kwargs: Any) -> None:
        self.seen.append(event)


async def test_retrieval_events_fire(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """Instrumentation sees start and end with the nodes, and the callback manager its retrieve event."""
    debug = LlamaDebugHandler(print_trace_on_end=False)
    retriever = MemHybridRetriever.from_memory(memory, callback_manager=CallbackManager([debug]))
    handler = _Events()
    dispatcher = get_dispatcher()
    dispatcher.add_event_handler(handler)
    try:
        nodes = retriever.with_options(similarity_top_k=2).retrieve(QUERY)
        await retriever.aretrieve(QUERY)
    finally:
        dispatcher.event_handlers.remove(handler)
    assert [type(e) for e in handler.seen] == [RetrievalStartEvent, RetrievalEndEvent] * 2
    assert answer(handler.seen[1].nodes) == answer(nodes)
    assert len(debug.get_event_pairs(CBEventType.RETRIEVE)) == 2


async def test_query_engine(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """A query engine answers from the nodes."""
    engine = RetrieverQueryEngine.from_args(MemHybridRetriever.from_memory(memory, similarity_top_k=2), llm=MockLLM())
    for response in (engine.query(QUERY), await engine.aquery(QUERY)):
        assert response.source_nodes[0].node_id == "n1"
        assert "green tea" in str(response)
        assert "memhybrid" not in str(response)


@pytest.mark.parametrize("mode", ["simple", "reciprocal_rerank", "relative_score", "dist_based_score"])
def test_fusion_with_another_retriever(
    store: MemHybridVectorStore, memory: HybridMemory, embed_model: MemHybridEmbedding, mode: str
) -> None:
    """In a fusion a node found by us and by another retriever is one node, with the sum of both."""
    ours = MemHybridRetriever.from_memory(memory, similarity_top_k=3)
    index = VectorStoreIndex.from_vector_store(store, embed_model=embed_model)
    fusion = QueryFusionRetriever(
        [ours, index.as_retriever(similarity_top_k=3)],
        llm=MockLLM(),
        num_queries=1,
        mode=mode,  # type: ignore[arg-type]
        use_async=False,
        similarity_top_k=6,
    )
    found = fusion.retrieve(QUERY)
    assert len({n.node_id for n in found}) == len(found)
    if mode == "reciprocal_rerank":
        assert (found[0].score or 0.0) > 1 / 60 + 1 / 70


def test_index_nodes_lead_to_their_objects(memory: HybridMemory) -> None:
    """An IndexNode is followed to what it stands for, with its own score, which is never taken for 1 where it is 0."""
    MemHybridVectorStore.from_memory(memory).add([IndexNode(id_="i", text="about tea", index_id="tea")])
    memory.add([Memory("m", "cello", {})])
    full = TextNode(id_="full", text="the whole chapter")
    retriever = MemHybridRetriever.from_memory(memory, object_map={"tea": full})
    assert [n.node_id for n in retriever.retrieve("tea")] == ["full", "m"]
    against = QueryBundle("tea", embedding=(-memory.embedder.embed_query(["about tea"])[0]).tolist())
    zero = MemHybridRetriever.from_memory(memory, object_map={"tea": full}, profile="semantic").retrieve(against)
    assert {n.node_id: n.score for n in zero}["full"] == pytest.approx(0.0)


# --- copies ------------------------------------------------------------------------------------------------------------


def test_copies_share_the_memory(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """copy and deepcopy give retrievers that work, with the same options, over the same memory."""
    retriever = MemHybridRetriever.from_memory(memory, similarity_top_k=2, scope={"type": "fact"})
    for twin in (copy.copy(retriever), copy.deepcopy(retriever), copy.deepcopy({"r": retriever})["r"]):
        assert twin is not retriever
        assert twin.memory is memory
        assert answer(twin.retrieve(QUERY)) == answer(retriever.retrieve(QUERY))


def test_pickling_says_why_not(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """Open files cannot be pickled, and nothing is lost silently."""
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(MemHybridRetriever.from_memory(memory))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(store)


def test_a_view_keeps_its_store_open(nodes: list[TextNode]) -> None:
    """The memory lives as long as a retriever over a view of it."""
    view = make_memory(scope_key="user_id").scoped(user_id="ana")
    MemHybridVectorStore.from_memory(view).add(nodes[:3])
    assert MemHybridRetriever.from_memory(view).retrieve("tea")


def test_a_missing_llama_index_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without llama-index-core the import says what to install."""
    for name in [n for n in sys.modules if n.split(".")[0] in ("llama_index", "llamaindex_memhybrid")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "llama_index", None)
    with pytest.raises(ImportError, match=r"memhybrid\[llamaindex\]"):
        import llamaindex_memhybrid as again  # noqa: F401


def test_outdated_memories_and_the_moment_of_asking_are_options() -> None:
    """As in the core; for one request too."""
    with make_memory() as memory:
        memory.add([Memory("old", "tea time", {"expires_at": "2026-01-01"}), Memory("new", "tea pot")])
        retriever = MemHybridRetriever.from_memory(memory)
        assert [n.node.node_id for n in retriever.retrieve("tea")] == ["new"]
        for changed in (retriever.with_options(include_outdated=True), retriever.with_options(now=1_700_000_000.0)):
            assert {n.node.node_id for n in changed.retrieve("tea")} == {"old", "new"}
