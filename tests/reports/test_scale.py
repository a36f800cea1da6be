"""Sizes at which others fail, as behaviour; times are for the benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from memhybrid import HybridMemory, Memory
from memhybrid.embedders import HashEmbedder
from tests.conftest import make_memory
from tests.reports.helpers import raw_collection, word


def test_a_collection_of_33000_rows_is_attached_listed_and_filtered(tmp_path: Path) -> None:
    """Report 144: reading is done in pages wherever it may be long."""
    n = 33_000
    raw = raw_collection(tmp_path, "many")
    rows = np.eye(8, dtype=np.float32)
    for start in range(0, n, 5_000):
        part = range(start, min(start + 5_000, n))
        raw.add(
            ids=[f"{i:05}" for i in part],
            documents=[word(i) for i in part],
            metadatas=[{"all": 1}] * len(part),
            embeddings=rows[[i % 8 for i in part]],
        )
    with HybridMemory.attach(raw, embedder=HashEmbedder(8), analyzer="fast", profile="bm25") as memory:
        assert memory.search(word(32_999)).ids == ["32999"]
        assert memory.count() == memory.count({"all": 1}) == n
        assert len(memory.list(where={"all": 1})) == n
        assert memory.list(limit=2, offset=32_998)[-1].id == "32999"
        assert len(memory.get([f"{i:05}" for i in range(n)])) == n
        raw.delete(ids=["32999"])
        assert memory.search(word(32_999)).ids == []


def test_more_than_chroma_takes_in_one_call_is_added_in_one_call() -> None:
    """Report 145: by the store's own limit, also where that is small."""
    with make_memory() as memory:
        memory.store.backend._batch = 166
        ids = memory.add([Memory(f"{i:04}", word(i)) for i in range(1_000)])
        assert memory.count() == memory.collection.count() == len(ids) == 1_000
        assert memory.delete(ids[:500]) == 500
        assert memory.verify().ok


def test_a_failing_leg_loads_no_collection(memory: HybridMemory) -> None:
    """Report 147: the search goes on without it, says so, and reads nothing from Chroma."""
    memory.add([Memory(str(i), word(i)) for i in range(50)])
    memory.search(word(3))
    memory.store.embedder = Away()
    real = memory.store.backend.collection
    memory.store.backend.collection = None
    try:
        result = memory.search(word(3))
    finally:
        memory.store.backend.collection = real
    assert result.ids[0] == "3"
    assert any("embedder" in text for text in result.trace.degraded)


class Away(HashEmbedder):
    """Has gone."""

    def __init__(self) -> None:
        super().__init__(64)

    def embed_query(self, texts: Any) -> Any:
        raise ConnectionError("the model is away")


def test_single_adds_merge_their_postings(memory: HybridMemory) -> None:
    """Report 148, 149: each add costs its own postings, and a query looks into a handful of segments."""
    for i in range(500):
        memory.add(Memory(str(i), f"apple {word(i)}"))
    state = memory.store.partitions.get("[]").view().lexical
    assert len(state.segments) <= 12
    assert memory.search(word(432), profile="bm25").ids == ["432"]
    assert memory.count() == 500
