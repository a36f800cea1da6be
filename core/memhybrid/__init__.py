"""Hybrid memory retrieval over Chroma: vectors, BM25, entities and more, fused and explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memhybrid.errors import (
    ConfigError,
    DegradedError,
    EmbedderError,
    FilterError,
    InputError,
    MemHybridError,
    MetadataError,
    MissingExtraError,
    ScopeError,
    StoreDamagedError,
    StoreError,
    StoreLockedError,
)
from memhybrid.records import Hit, Memory, SearchResult, Trace, WriteEvent

if TYPE_CHECKING:
    from memhybrid.memory import HybridMemory, MemoryView
    from memhybrid.profiles import FieldMap, Profile

__version__ = "0.1.0"

_LAZY = {
    "HybridMemory": "memhybrid.memory",
    "MemoryView": "memhybrid.memory",
    "Profile": "memhybrid.profiles",
    "FieldMap": "memhybrid.profiles",
}


def __getattr__(name: str) -> Any:
    """The heavier names are imported when they are first used."""
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'memhybrid' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(module), name)


__all__ = [
    "ConfigError",
    "DegradedError",
    "EmbedderError",
    "FieldMap",
    "FilterError",
    "Hit",
    "HybridMemory",
    "InputError",
    "MemHybridError",
    "Memory",
    "MemoryView",
    "MetadataError",
    "MissingExtraError",
    "Profile",
    "ScopeError",
    "SearchResult",
    "StoreDamagedError",
    "StoreError",
    "StoreLockedError",
    "Trace",
    "WriteEvent",
    "__version__",
]
