"""The contract, kept in memory and in a folder, with tenants and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llamaindex_memhybrid import MemHybridVectorStore
from tests.conftest import make_memory
from tests.llamaindex.contract import VectorStoreContract


class TestInMemory(VectorStoreContract):
    @pytest.fixture
    def store(self) -> Iterator[MemHybridVectorStore]:  # type: ignore[override]
        with make_memory() as memory:
            yield MemHybridVectorStore.from_memory(memory)


class TestInAFolder(VectorStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[MemHybridVectorStore]:  # type: ignore[override]
        with make_memory(tmp_path / "store") as memory:
            yield MemHybridVectorStore.from_memory(memory)


class _Bound(MemHybridVectorStore):
    """Adds the scope to no node by itself: the core does, and the contract compares without it."""

    def get_nodes(self, *args: Any, **kwargs: Any) -> Any:
        return [_without_scope(node) for node in super().get_nodes(*args, **kwargs)]

    def query(self, *args: Any, **kwargs: Any) -> Any:
        found = super().query(*args, **kwargs)
        for node in found.nodes or []:
            _without_scope(node)
        return found


def _without_scope(node: Any) -> Any:
    assert node.metadata.pop("user_id") == "u1"
    return node


class TestInsideAScope(VectorStoreContract):
    @pytest.fixture
    def store(self) -> Iterator[MemHybridVectorStore]:  # type: ignore[override]
        with make_memory(scope_key="user_id") as memory:
            yield _Bound(memory, scope={"user_id": "u1"})
