"""A store that cannot be read is a failing store, whoever asked it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memhybrid import HybridMemory, Memory, StoreError
from tests.conftest import make_memory


@pytest.mark.parametrize("call", [lambda m: m.add("pear"), lambda m: m.search("apple")], ids=["add", "search"])
def test_a_store_that_fails_while_the_embedder_is_checked_is_not_the_embedders_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[HybridMemory], object]
) -> None:
    """The error is a StoreError: neither an EmbedderError nor an answer without the semantic half."""
    with make_memory(tmp_path) as memory:
        # With its vector: whose it is, is compared at the first use of the embedder.
        memory.add(Memory("a", "apple", {}, memory.store.embedder.embed_documents(["apple"])[0]))
    with make_memory(tmp_path) as memory:
        memory.count()

        def fails(*_: object, **__: object) -> None:
            raise StoreError("reading from Chroma: out of order")

        monkeypatch.setattr(type(memory.store.backend), "pages", fails)
        with pytest.raises(StoreError, match="out of order"):
            call(memory)
        monkeypatch.undo()
        assert memory.search("apple").hits[0].memory.text == "apple"
