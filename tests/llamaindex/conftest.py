from __future__ import annotations

from collections.abc import Iterator

import pytest
from llama_index.core.schema import TextNode

from llamaindex_memhybrid import MemHybridEmbedding, MemHybridVectorStore
from memhybrid.embedders import HashEmbedder
from memhybrid.memory import HybridMemory
from tests.conftest import make_memory
from tests.llamaindex.contract import make_node

NOTES = [
    ("n1", "Ana drinks green tea every morning", {"user_id": "ana", "type": "fact", "year": 2023}),
    ("n2", "Ana moved to Lisbon in May", {"user_id": "ana", "type": "event", "year": 2024}),
    ("n3", "The invoice INV-20931 was paid late", {"user_id": "ana", "type": "event", "year": 2024}),
    ("n4", "Ben drinks black coffee", {"user_id": "ben", "type": "fact", "year": 2023}),
    ("n5", "Ben plays the cello on Sundays", {"user_id": "ben", "type": "fact", "year": 2022}),
    ("n6", "Ben forgot the parcel at the office", {"user_id": "ben", "type": "event", "year": 2024}),
]


@pytest.fixture
def embed_model() -> MemHybridEmbedding:
    return MemHybridEmbedding(HashEmbedder(64))


@pytest.fixture
def nodes() -> list[TextNode]:
    """Six notes of two users, from two documents, with embeddings of their texts."""
    return [make_node(i, text, f"doc-{m['user_id']}", **m) for i, text, m in NOTES]


@pytest.fixture
def store(memory: HybridMemory, nodes: list[TextNode]) -> MemHybridVectorStore:
    """The six notes, without scope keys. Embedded by the store: with their metadata."""
    made = MemHybridVectorStore.from_memory(memory)
    for node in nodes:
        node.embedding = None
    made.add(nodes)
    return made


@pytest.fixture
def tenants(nodes: list[TextNode]) -> Iterator[HybridMemory]:
    """The six notes, the users kept apart."""
    with make_memory(scope_key="user_id") as memory:
        MemHybridVectorStore.from_memory(memory).add(nodes)
        yield memory
