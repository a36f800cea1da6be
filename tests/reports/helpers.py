"""What several of these tests need: a Chroma that fails on demand, and short ways to compare answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chromadb

from memhybrid import HybridMemory, SearchResult


def raw_collection(folder: Path, name: str, space: str = "cosine") -> Any:
    """A plain Chroma collection in a folder, as anybody else would have it."""
    client = chromadb.PersistentClient(str(folder))
    return client.get_or_create_collection(name, embedding_function=None, configuration={"hnsw": {"space": space}})


class Chroma:
    """Makes a store's collection fail: at the n-th upsert, before or after Chroma took the rows, or at every delete."""

    def __init__(
        self,
        memory: HybridMemory,
        *,
        fail_upsert_at: int = 0,
        fail_delete: bool = False,
        after: bool = False,
        error: BaseException | None = None,
    ) -> None:
        self._backend = memory.store.backend
        self._real = self._backend.collection
        self._calls = 0
        self._fail_upsert_at, self._fail_delete, self._after = fail_upsert_at, fail_delete, after
        self._error = error or OSError("disk failure")
        self._backend.collection = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def upsert(self, **rows: Any) -> None:
        """Chroma's, or the failure."""
        self._calls += 1
        if self._calls != self._fail_upsert_at:
            self._real.upsert(**rows)
            return
        if self._after:
            self._real.upsert(**rows)
        raise self._error

    def delete(self, **what: Any) -> None:
        """Chroma's, or the failure."""
        if self._fail_delete:
            raise self._error
        self._real.delete(**what)

    def restore(self) -> None:
        """The real collection again."""
        self._backend.collection = self._real


def found(result: SearchResult) -> list[tuple[str, float]]:
    """Ids and scores, best first."""
    return [(hit.memory.id or "", hit.score) for hit in result.hits]


def indexed_words(memory: HybridMemory, *words: str) -> tuple[list[str], ...]:
    """The ids that each word leads to by keywords alone."""
    return tuple(memory.search(word, profile="bm25", k=20).ids for word in words)


def word(number: int) -> str:
    """A word of letters alone, another for each number: digits are terms of their own."""
    letters = ""
    while True:
        letters = "bcdfghjklmnpqrst"[number % 16] + letters
        number //= 16
        if not number:
            return f"q{letters}x"
