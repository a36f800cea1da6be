"""The memory behind an adapter: opened for documents, or attached to a stock LangChain Chroma store."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from memhybrid.errors import InputError, ScopeError
from memhybrid.memory import HybridMemory, MemoryView


def split_options(door: Callable[..., Any], options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options that belong to a door of HybridMemory, and the rest. The embedder and the profile are the adapter's."""
    names = set(inspect.signature(door).parameters) - {"embedder", "profile"}
    return {k: v for k, v in options.items() if k in names}, {k: v for k, v in options.items() if k not in names}


def attach(store: Any, embedding: Any, options: Mapping[str, Any]) -> HybridMemory:
    """The memory over a LangChain Chroma store's collection. From now on the store writes through the observed collection."""
    collection = getattr(store, "_collection", None)
    if collection is None:
        raise InputError(f"vectorstore: expected a langchain_chroma.Chroma, got {type(store).__name__}")
    embedder = embedding if embedding is not None else getattr(store, "embeddings", None)
    if embedder is None:
        raise InputError("embedding: the Chroma store has none; give the one that its collection was filled with")
    memory = HybridMemory.attach(collection, embedder=embedder, **options)
    # `_collection` is a property over this attribute since langchain-chroma 1.0; it was the attribute itself before.
    name = "_chroma_collection" if hasattr(store, "_chroma_collection") else "_collection"
    setattr(store, name, memory.collection)
    return memory


def bind(memory: MemoryView, *scopes: Mapping[str, Any] | None) -> MemoryView:
    """The view bound to every scope given. ScopeError where one of them would change what is bound already."""
    for scope in scopes:
        if scope is None:
            continue
        if not isinstance(scope, Mapping) or not scope:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ScopeError(f"scope: expected a dict such as {{'user_id': 'u1'}}, got {scope!r}")
        memory = memory.scoped(**scope)
    return memory
