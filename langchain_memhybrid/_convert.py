"""LangChain documents to memories and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from memhybrid.errors import InputError, MetadataError
from memhybrid.records import Hit, Memory

RESERVED = "memhybrid"
"""The one metadata key that results carry: {"score": …, "signals": {…}, "sources": […]}."""

_NODE = "_node_content"
_NODE_KEYS = frozenset({_NODE, "_node_type", "document_id", "doc_id", "ref_doc_id"})
"""What LlamaIndex writes beside the user's metadata; nobody who reads LangChain documents has a use for it."""


def to_memory(text: str, metadata: Mapping[str, Any] | None, identifier: str | None) -> Memory:
    """A memory to be stored. MetadataError where the metadata uses the key that results carry."""
    if isinstance(metadata, Mapping) and RESERVED in metadata:
        raise MetadataError(
            f"document {identifier!r}: the metadata key {RESERVED!r} is kept for scores in results; rename it, or remove it from "
            f"documents that came out of a search with document.metadata.pop({RESERVED!r})"
        )
    return Memory(identifier, text, {} if metadata is None else metadata)


def texts_to_memories(
    texts: Iterable[str], metadatas: Iterable[Mapping[str, Any] | None] | None, ids: Iterable[str | None] | None
) -> list[Memory]:
    """Texts with their metadata and ids, each of which may be missing. InputError where the lengths differ."""
    if isinstance(texts, str):
        raise InputError("texts: expected a list of str, got one str")
    items = list(texts)
    return [
        to_memory(text, metadata, identifier)
        for text, metadata, identifier in zip(
            items, _as_many(metadatas, len(items), "metadatas"), _as_many(ids, len(items), "ids"), strict=True
        )
    ]


def documents_to_memories(documents: Iterable[Document], ids: Iterable[str | None] | None) -> list[Memory]:
    """Documents as memories; `ids`, where given, win over the documents' own. None lets the store make one."""
    items = list(documents)
    given = [document.id for document in items] if ids is None else _as_many(ids, len(items), "ids")
    return [
        to_memory(document.page_content, document.metadata, identifier)
        for document, identifier in zip(items, given, strict=True)
    ]


def _as_many(values: Iterable[Any] | None, n: int, name: str) -> Sequence[Any]:
    if values is None:
        return [None] * n
    if isinstance(values, str):
        raise InputError(f"{name}: expected a list, got one str")
    listed = list(values)
    if len(listed) != n:
        raise InputError(f"{name}: {len(listed)} given for {n} texts")
    return listed


def to_document(memory: Memory, extra: Mapping[str, Any] | None = None) -> Document:
    """A new document with the user's metadata, sharing nothing with the store; `extra` is added to it."""
    metadata = dict(memory.metadata)
    if _NODE in metadata:
        metadata = {key: value for key, value in metadata.items() if key not in _NODE_KEYS}
    metadata = {key: list(value) if isinstance(value, list) else value for key, value in metadata.items()}
    return Document(id=memory.id, page_content=memory.text, metadata={**metadata, **(extra or {})})


def hit_to_document(hit: Hit, *, include_scores: bool, id_key: str | None = None) -> Document:
    """A hit as a document. Scores and signals are plain floats (None: not known) under the reserved key."""
    extra: dict[str, Any] = {}
    if id_key is not None:
        extra[id_key] = hit.memory.id
    if include_scores:
        extra[RESERVED] = {
            "score": float(hit.score),
            "signals": {name: None if value is None else float(value) for name, value in hit.signals.items()},
            "sources": list(hit.sources),
        }
    return to_document(hit.memory, extra)
