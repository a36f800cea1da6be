"""Inside LangChain's own retrievers, tools and agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever, MultiQueryRetriever
from langchain_classic.retrievers.document_compressors import EmbeddingsFilter
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnablePassthrough
from langchain_core.tools import create_retriever_tool

from langchain_memhybrid import MemHybridRetriever
from memhybrid import Memory
from memhybrid.memory import HybridMemory


def ids(documents: Sequence[Document]) -> list[str | None]:
    return [document.id for document in documents]


async def test_ensemble_keeps_documents_with_the_same_text_apart(memory: HybridMemory) -> None:
    """With id_key; plain, it merges them by text, as it does for every retriever."""
    memory.add([Memory("1", "the same words", {"source": "A"}), Memory("2", "the same words", {"source": "B"})])
    words = MemHybridRetriever.from_memory(memory, profile="bm25", id_key="id", k=2)
    vectors = MemHybridRetriever.from_memory(memory, profile="semantic", id_key="id", k=2)
    ensemble = EnsembleRetriever(retrievers=[words, vectors], id_key="id")
    assert {d.id: d.metadata["source"] for d in ensemble.invoke("the same words")} == {"1": "A", "2": "B"}
    assert ids(await ensemble.ainvoke("the same words")) == ids(ensemble.invoke("the same words"))


async def test_compression_and_ensemble_take_configurable_fields(memory: HybridMemory, embedding: Any) -> None:
    """The configurable form is no BaseRetriever, and yet goes where a RetrieverLike does."""
    configurable = MemHybridRetriever.from_memory(memory).configurable_fields(k=ConfigurableField(id="number"))
    for base in (configurable, MemHybridRetriever.from_memory(memory)):
        compression = ContextualCompressionRetriever(
            base_retriever=base, base_compressor=EmbeddingsFilter(embeddings=embedding, k=2)
        )
        # The filter makes documents of its own, without ids, from ours.
        found = compression.invoke("Ana drinks green tea")
        assert (found[0].page_content, found[0].metadata["user_id"]) == ("Ana drinks green tea every morning", "ana")
        assert len(await compression.ainvoke("Ana drinks green tea")) == len(found) == 2
        assert EnsembleRetriever(retrievers=[base, base]).invoke("green tea")[0].id == "f1"


async def test_multi_query(memory: HybridMemory) -> None:
    """Several phrasings, one union."""
    model = FakeListChatModel(responses=["green tea\nblack coffee"])
    retriever = MultiQueryRetriever.from_llm(MemHybridRetriever.from_memory(memory, k=1, include_scores=False), model)
    assert set(ids(retriever.invoke("drinks?"))) == {"f1", "b1"}
    assert set(ids(await retriever.ainvoke("drinks?"))) == {"f1", "b1"}


def test_the_users_scope_reaches_wrapped_retrievers_in_a_chain(tenants: HybridMemory) -> None:
    """Ensemble inside a chain: the request's config is still seen."""
    ensemble = EnsembleRetriever(retrievers=[MemHybridRetriever.from_memory(tenants)])
    chain = RunnablePassthrough() | ensemble | ids
    assert set(chain.invoke("coffee", config={"configurable": {"scope": {"user_id": "ben"}}})) == {"b1", "b2", "b3"}


async def test_a_question_answering_chain(memory: HybridMemory) -> None:
    """Prompt, model and parser around the retriever, synchronously and not."""
    chain = (
        {
            "context": MemHybridRetriever.from_memory(memory, k=1) | (lambda d: d[0].page_content),
            "q": RunnablePassthrough(),
        }
        | ChatPromptTemplate.from_template("{context}\n{q}")
        | FakeListChatModel(responses=["tea"])
        | StrOutputParser()
    )
    assert chain.invoke("what does Ana drink?") == await chain.ainvoke("what does Ana drink?") == "tea"
    assert chain.batch(["what does Ana drink?", "and Ben?"]) == ["tea", "tea"]


class Scripted(GenericFakeChatModel):
    """Says what it is given, and takes tools."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_retriever_tool_in_an_agent_searches_the_users_own_memories(
    tenants: HybridMemory, asynchronous: bool
) -> None:
    """The scope comes from the run's config, the model knows nothing of it; the artifact carries ids and scores."""
    tool = create_retriever_tool(
        MemHybridRetriever.from_memory(tenants, k=1), "recall", "Recalls", response_format="content_and_artifact"
    )
    for user, expected in (("ana", "f1"), ("ben", "b1")):
        call = {"name": "recall", "args": {"query": "what does she or he drink?"}, "id": "c1", "type": "tool_call"}
        model = Scripted(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("done")]))
        agent = create_agent(model, [tool])
        asked: Any = {"messages": [("user", "what do I drink?")]}
        config: Any = {"configurable": {"memhybrid_scope": {"user_id": user}}}
        state = await agent.ainvoke(asked, config) if asynchronous else agent.invoke(asked, config)
        answer = next(m for m in state["messages"] if isinstance(m, ToolMessage))
        assert ids(answer.artifact) == [expected]
        assert answer.artifact[0].metadata["memhybrid"]["score"] > 0


class Scoring(BaseDocumentCompressor):
    """Gives each document the relevance of its last word's length, best first, and at most top_n."""

    top_n: int = 100

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> Sequence[Document]:
        scored = [
            Document(page_content=d.page_content, metadata={**d.metadata, "relevance_score": len(d.page_content) / 100})
            for d in documents
        ]
        return sorted(scored, key=lambda d: -d.metadata["relevance_score"])[: self.top_n]


class Scoreless(BaseDocumentCompressor):
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> Sequence[Document]:
        return documents


def test_a_compressor_reranks(memory: HybridMemory) -> None:
    """Its scores come back in the order of the texts, whatever order it returns; it takes part in a search."""
    from langchain_memhybrid import as_reranker
    from memhybrid import Profile

    rerank = as_reranker(Scoring())
    assert rerank("q", ["a" * 10, "b" * 30, "c" * 20]) == [0.1, 0.3, 0.2]
    assert rerank("q", []) == []
    profile = Profile.balanced().with_reranker(rerank, rerank_margin=None, rerank_blend=1.0, deadline_s=30.0)
    retriever = MemHybridRetriever.from_memory(memory, profile=profile)
    assert retriever.invoke("what does Ana drink")[0].id == max(memory.list(), key=lambda m: len(m.text)).id
    assert any("reranked" in note for note in memory.search("what does Ana drink", profile=profile).trace.notes)


def test_a_compressor_that_keeps_back_documents_fails_open(memory: HybridMemory) -> None:
    """Fewer documents, or none with a score, is an error of the reranker: the first order stays and the trace says so."""
    from langchain_memhybrid import as_reranker
    from memhybrid import ConfigError, Profile

    for compressor, said in ((Scoring(top_n=1), "top_n"), (Scoreless(), "relevance_score")):
        with pytest.raises(ValueError, match=said):
            as_reranker(compressor)("q", ["a", "b"])
        profile = Profile.balanced().with_reranker(as_reranker(compressor), rerank_margin=None, deadline_s=30.0)
        result = memory.search("what does Ana drink", profile=profile)
        assert result.ids == memory.search("what does Ana drink").ids
        assert any(said in sentence for sentence in result.trace.degraded)
    with pytest.raises(ConfigError):
        as_reranker(object())  # type: ignore[arg-type]
