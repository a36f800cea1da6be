from __future__ import annotations

from collections.abc import Iterator

import pytest
from langchain_core.embeddings import Embeddings

from memhybrid.embedders import HashEmbedder
from memhybrid.memory import HybridMemory

FACTS = [
    ("f1", "Ana drinks green tea every morning", {"user_id": "ana", "type": "fact", "year": 2023}),
    ("f2", "Ana moved to Lisbon in May", {"user_id": "ana", "type": "event", "year": 2024}),
    ("f3", "The invoice INV-20931 was paid late", {"user_id": "ana", "type": "event", "year": 2024}),
    ("b1", "Ben drinks black coffee", {"user_id": "ben", "type": "fact", "year": 2023}),
    ("b2", "Ben plays the cello on Sundays", {"user_id": "ben", "type": "fact", "year": 2022}),
    ("b3", "Ben forgot the parcel at the office", {"user_id": "ben", "type": "event", "year": 2024}),
]


class Hashing(Embeddings):
    """HashEmbedder as a LangChain embedding, with a name of its own."""

    model = "hashing"

    def __init__(self) -> None:
        self._embedder = HashEmbedder(64)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._embedder.embed_documents(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self._embedder.embed_query([text])[0].tolist()


@pytest.fixture
def embedding() -> Hashing:
    return Hashing()


@pytest.fixture
def memory() -> Iterator[HybridMemory]:
    """Six memories of two users, without scope keys."""
    from memhybrid import Memory

    with HybridMemory.open(embedder=HashEmbedder(64)) as opened:
        opened.add([Memory(*fact) for fact in FACTS])
        yield opened


@pytest.fixture
def tenants() -> Iterator[HybridMemory]:
    """The same, the users kept apart."""
    from memhybrid import Memory

    with HybridMemory.open(embedder=HashEmbedder(64), scope_key="user_id") as opened:
        opened.add([Memory(*fact) for fact in FACTS])
        yield opened
