from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from langchain_memhybrid import MemHybridRetriever, MemHybridVectorStore
from memhybrid import Memory
from memhybrid.concurrency import MAX_THREADS
from memhybrid.embedders import HashEmbedder
from memhybrid.memory import HybridMemory


class Slow(Embeddings):
    """Sleeps before it embeds, as a call to a server does."""

    def __init__(self) -> None:
        self.delay = 0.0
        self._embedder = HashEmbedder(32)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        time.sleep(self.delay)
        return self._embedder.embed_documents(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


async def ticks_during(work: Any) -> int:
    """How often another coroutine runs while the work is awaited."""
    count = 0

    async def tick() -> None:
        nonlocal count
        while True:
            await asyncio.sleep(0.01)
            count += 1

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(0)
    await work
    ticker.cancel()
    return count


async def test_nothing_asynchronous_blocks_the_event_loop() -> None:
    """With an embedder that sleeps 0.2 s, another coroutine keeps running during every a-method."""
    slow = Slow()
    store = MemHybridVectorStore.from_texts(["a red fox", "a blue whale"], slow)
    retriever = MemHybridRetriever.from_vectorstore(store)
    slow.delay = 0.2
    vector = [1.0] * 32
    for work in (
        retriever.ainvoke("fox"),
        retriever.abatch(["fox", "whale"]),
        store.asimilarity_search("fox"),
        store.asimilarity_search_with_relevance_scores("fox"),
        store.amax_marginal_relevance_search("fox"),
        store.aadd_texts(["a green frog"]),
        store.aadd_documents([Document(page_content="a grey owl")]),
        MemHybridVectorStore.afrom_texts(["a"], slow),
        MemHybridVectorStore.afrom_documents([Document(page_content="a")], slow),
    ):
        assert await ticks_during(work) >= 5
    slow.delay = 0.0
    assert await store.asimilarity_search_by_vector(vector, k=1)


async def test_synchronous_calls_work_inside_a_running_loop(memory: HybridMemory) -> None:
    """As in a notebook: no second event loop is started."""
    retriever = MemHybridRetriever.from_memory(memory, k=2)
    assert retriever.invoke("tea") == await retriever.ainvoke("tea")
    assert MemHybridVectorStore.from_memory(memory).similarity_search("tea", k=1)[0].id == "f1"


@pytest.mark.slow
@pytest.mark.parametrize("where", ["memory", "folder"])
async def test_a_thousand_concurrent_queries_equal_sequential_ones(where: str, tmp_path: Path) -> None:
    """Same documents, and no more threads than the pool has."""
    words = ["amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "jade"]
    with HybridMemory.open(tmp_path if where == "folder" else None, embedder=HashEmbedder(32)) as memory:
        memory.add([Memory(str(i), f"{words[i % 10]} {words[i // 10]} number {i}") for i in range(100)])
        retriever = MemHybridRetriever.from_memory(memory, k=3)
        queries = [f"{words[i % 10]} {words[i % 7]}" for i in range(1000)]
        expected = {query: retriever.invoke(query) for query in set(queries)}
        before = threading.active_count()
        found = await asyncio.gather(*(retriever.ainvoke(query) for query in queries))
        assert threading.active_count() <= before + MAX_THREADS
        assert found == [expected[query] for query in queries]


async def test_concurrent_calls_keep_their_own_options(tenants: HybridMemory) -> None:
    """Two users' requests in one loop do not mix."""
    retriever = MemHybridRetriever.from_memory(tenants)
    users = ["ana", "ben"] * 40
    found = await asyncio.gather(
        *(retriever.ainvoke("what happened?", {"configurable": {"scope": {"user_id": user}}}) for user in users)
    )
    assert all({d.metadata["user_id"] for d in docs} == {user} for docs, user in zip(found, users, strict=True))
