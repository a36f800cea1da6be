"""A stock langchain_chroma.Chroma that exists already."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path
from typing import Any

import chromadb
import pytest
from langchain_chroma import Chroma
from langchain_core.documents import Document

from langchain_memhybrid import MemHybridRetriever, MemHybridVectorStore
from memhybrid import EmbedderError, InputError, ScopeError
from memhybrid.embedders import HashEmbedder

TEXTS = ["Ana drinks green tea", "The invoice INV-20931 was paid late", "Ben plays the cello"]


@pytest.fixture(params=["folder", "memory"])
def chroma(request: pytest.FixtureRequest, tmp_path: Path, embedding: Any) -> Chroma:
    """Three documents written by stock LangChain, in a folder and in memory."""
    where = (
        {"persist_directory": str(tmp_path)} if request.param == "folder" else {"client": chromadb.EphemeralClient()}
    )
    store = Chroma(collection_name=f"c-{uuid.uuid4().hex}", embedding_function=embedding, **where)
    store.add_texts(TEXTS, [{"user_id": u} for u in ("ana", "ana", "ben")], ids=["1", "2", "3"])
    return store


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def test_what_the_store_holds_is_found(chroma: Chroma) -> None:
    """Without writing anything again, with ids and metadata."""
    retriever = MemHybridRetriever.from_vectorstore(chroma, k=1, include_scores=False)
    assert retriever.invoke("INV-20931") == [Document(id="2", page_content=TEXTS[1], metadata={"user_id": "ana"})]
    store = MemHybridVectorStore.from_vectorstore(chroma)
    assert store.get_by_ids(["2"]) == chroma.get_by_ids(["2"])
    assert store.embeddings is chroma.embeddings


def test_writes_through_the_stock_store_can_be_found_at_once(chroma: Chroma) -> None:
    """Add, update, delete by id and by filter; and the stock store goes on working."""
    retriever = MemHybridRetriever.from_vectorstore(chroma, k=10)
    chroma.add_documents([Document(id="4", page_content="order ZX-77 has left", metadata={"user_id": "ben"})])
    assert retriever.invoke("ZX-77", k=1)[0].id == "4"
    chroma.update_document("4", Document(page_content="order QY-88 has left", metadata={"user_id": "ben"}))
    assert retriever.invoke("QY-88", k=1)[0].metadata["memhybrid"]["signals"]["bm25"] is not None
    assert "ZX-77" not in {d.page_content for d in retriever.invoke("ZX-77")}
    chroma.delete(["4"])
    assert set(ids(retriever.invoke("order"))) == {"1", "2", "3"}
    chroma.delete(where={"user_id": "ana"})
    assert ids(retriever.invoke("order")) == ["3"]
    assert ids(chroma.similarity_search("order")) == ["3"]
    assert retriever.memory.verify().ok  # type: ignore[attr-defined]


def test_the_stock_store_sees_what_is_written_through_ours(chroma: Chroma) -> None:
    """One collection, two doors."""
    store = MemHybridVectorStore.from_vectorstore(chroma)
    store.add_texts(["Ana bought a kayak"], [{"user_id": "ana"}], ids=["5"])
    assert ids(chroma.similarity_search("kayak", k=1)) == ["5"]
    store.delete(["1"])
    assert chroma.get_by_ids(["1"]) == []


def test_several_retrievers_over_one_store(chroma: Chroma) -> None:
    """They share one memory, also after the first one is gone."""
    first = MemHybridRetriever.from_vectorstore(chroma)
    second = MemHybridRetriever.from_vectorstore(chroma)
    del first
    chroma.add_texts(["order ZX-77 has left"], [{"user_id": "ben"}], ids=["4"])
    assert second.invoke("ZX-77", k=1)[0].id == "4"


def test_a_stock_store_with_scope_keys(chroma: Chroma) -> None:
    """Metadata that was there before keeps tenants apart from now on."""
    retriever = MemHybridRetriever.from_vectorstore(chroma, scope_key="user_id", k=9)
    with pytest.raises(ScopeError):
        retriever.invoke("tea")
    chroma.add_texts(["Ben drinks tea too"], [{"user_id": "ben"}], ids=["4"])
    assert set(ids(retriever.invoke("tea", scope={"user_id": "ben"}))) == {"3", "4"}
    assert set(ids(retriever.invoke("tea", scope={"user_id": "ana"}))) == {"1", "2"}


def test_a_retriever_that_is_thrown_away_leaves_the_stock_store_working(chroma: Chroma) -> None:
    """Its observed collection keeps what it needs."""
    MemHybridRetriever.from_vectorstore(chroma)
    chroma.add_texts(["still here"], ids=["6"])
    assert chroma.get(["6"])["ids"] == ["6"]
    assert ids(MemHybridRetriever.from_vectorstore(chroma).invoke("still here", k=1)) == ["6"]


def test_rows_without_metadata_or_text(chroma: Chroma) -> None:
    """Written past LangChain: no metadata is {}, no text is ""."""
    vectors = HashEmbedder(64).embed_documents(["bare words", "a vector alone"])
    chroma._collection.add(ids=["bare"], documents=["bare words"], embeddings=vectors[:1])
    chroma._collection.add(ids=["blank"], embeddings=vectors[1:])
    retriever = MemHybridRetriever.from_vectorstore(chroma, k=9, include_scores=False)
    found = {d.id: d for d in retriever.invoke("bare words")}
    assert found["bare"] == Document(id="bare", page_content="bare words", metadata={})
    assert found["blank"] == Document(id="blank", page_content="", metadata={})


def test_the_wrong_embedder_is_an_error(chroma: Chroma) -> None:
    """Not a silent search in another vector space."""
    with pytest.raises(EmbedderError):
        MemHybridRetriever.from_vectorstore(chroma, embedding=HashEmbedder(32)).invoke("tea")


def test_a_store_without_embeddings_needs_one(tmp_path: Path) -> None:
    """No default model is assumed; anything but a Chroma store is refused."""
    bare = Chroma(collection_name="bare", persist_directory=str(tmp_path))
    with pytest.raises(InputError, match="embedding"):
        MemHybridRetriever.from_vectorstore(bare)
    assert MemHybridRetriever.from_vectorstore(bare, embedding=HashEmbedder(8)).invoke("x") == []
    with pytest.raises(InputError, match="Chroma"):
        MemHybridRetriever.from_vectorstore(object())


def test_pickling_still_says_why_not(chroma: Chroma) -> None:
    """Also over a stock store."""
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(MemHybridRetriever.from_vectorstore(chroma))
