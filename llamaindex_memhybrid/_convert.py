"""Nodes as memories and back, hits as scored nodes, and what a query says.

A record is stored as LlamaIndex's own Chroma store does it: the node's text as document, its metadata flat, and the rest of the
node as JSON under `_node_content`. Either store reads what the other wrote.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode, IndexNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from memhybrid.errors import EmbedderError, InputError, MetadataError
from memhybrid.memory import MemoryView
from memhybrid.protocols import Embedder
from memhybrid.records import Hit, Memory
from memhybrid.values import clean_metadata

RESERVED_KEY = "memhybrid"
"""The one metadata key that results of the retriever have beyond the node's own."""
SOURCE_KEY = "ref_doc_id"
NO_SOURCE = "None"
"""What LlamaIndex writes under `ref_doc_id` for a node without a source."""
_HIDDEN = ("_node_content", "_node_type", "document_id", "doc_id", SOURCE_KEY)
_TOOL_CALL = re.compile(r"\n[^\W\d]\w* is (.+)\n", re.DOTALL)


class ResultMetadata(dict[str, Any]):
    """A result's metadata. As text (`str`, not `repr`) it is without our key.

    `TextNode.hash` is made of that text, and QueryFusionRetriever takes nodes of one hash for the same: a node must have the
    hash that it has in every other retriever, whatever its score.
    """

    def __str__(self) -> str:
        return str({key: value for key, value in self.items() if key != RESERVED_KEY})


# --- writing ---------------------------------------------------------------------------------------------------------


def embedder_of(view: MemoryView) -> Embedder:
    """The embedder of the store behind a memory or a view of it."""
    return view._store.embedder  # pyright: ignore[reportPrivateUsage] - a view does not show it


def checked_memory(memory: Any) -> MemoryView:
    """The argument, if it is a HybridMemory or a view of one."""
    if not isinstance(memory, MemoryView):
        raise InputError(f"memory: expected a HybridMemory or a view of one, got {type(memory).__name__}")
    return memory


def to_memories(given: Any, embedder: Embedder) -> list[Memory]:
    """Nodes as memories. The ids are the nodes' own; a node without an embedding is embedded together with its metadata."""
    if not isinstance(given, Iterable) or isinstance(given, BaseNode | str | Mapping):
        raise InputError(f"nodes: expected a list of nodes, got {type(given).__name__}")
    nodes: list[BaseNode] = []
    for position, node in enumerate(given):
        if not isinstance(node, BaseNode):
            raise InputError(f"nodes[{position}]: expected a node, got {type(node).__name__}")
        nodes.append(node)
    cleaned = [_own_metadata(node) for node in nodes]
    vectors = _vectors(nodes, embedder)
    return [_to_memory(*parts) for parts in zip(nodes, cleaned, vectors, strict=True)]


def _own_metadata(node: BaseNode) -> dict[str, Any]:
    """The node's metadata in values that can be stored, without what an earlier search added to it."""
    owner = f"node {node.node_id!r}"
    if not isinstance(node.metadata.get(RESERVED_KEY, {}), dict):
        raise MetadataError(f"{owner}: the metadata key {RESERVED_KEY!r} is kept for scores in results; rename it")
    return clean_metadata({key: value for key, value in node.metadata.items() if key != RESERVED_KEY}, owner)


def _vectors(nodes: Sequence[BaseNode], embedder: Embedder) -> list[Any]:
    """A vector for each node: its own, or of its text with the metadata that it wants embedded."""
    vectors: list[Any] = [node.embedding for node in nodes]
    missing = [i for i, vector in enumerate(vectors) if vector is None]
    if missing:
        texts = [nodes[i].get_content(metadata_mode=MetadataMode.EMBED) for i in missing]
        try:
            made = embedder.embed_documents(texts)
        except EmbedderError:
            raise
        except Exception as error:
            raise EmbedderError(f"the embedder failed, nothing was written: {type(error).__name__}: {error}") from error
        for i, vector in zip(missing, made, strict=True):
            vectors[i] = vector
    return vectors


def _to_memory(node: BaseNode, metadata: dict[str, Any], vector: Any) -> Memory:
    plain = node.model_copy(update={"metadata": metadata})
    stored = node_to_metadata_dict(plain, remove_text=True, flat_metadata=False)
    return Memory(node.node_id, node.get_content(metadata_mode=MetadataMode.NONE), stored, vector)


# --- reading ---------------------------------------------------------------------------------------------------------


def to_node(memory: Memory) -> BaseNode:
    """A fresh node. Text and metadata are what the store holds now, even where they were changed without LlamaIndex."""
    flat = {key: list(v) if isinstance(v, list) else v for key, v in memory.metadata.items()}
    content = flat.get("_node_content")
    if not isinstance(content, str):
        return TextNode(id_=memory.id or "", text=memory.text, metadata=flat)
    try:
        node = metadata_dict_to_node(flat, text=memory.text)
    except Exception:  # noqa: BLE001 - a record that another version wrote is still a text with metadata
        return TextNode(id_=memory.id or "", text=memory.text, metadata=_visible(flat))
    node.id_ = memory.id or node.id_
    node.metadata = _merged(node.metadata, flat)
    return node


def _visible(flat: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in flat.items() if key not in _HIDDEN}


def _merged(written: Mapping[str, Any], flat: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata in the order in which the node was written. The flat values win; keys that are gone there are gone."""
    merged: dict[str, Any] = {}
    for key, value in written.items():
        if key in _HIDDEN or value is None:
            # The flat keys of these names are LlamaIndex's own, and None cannot be stored flat ("" in its Chroma store).
            merged[key] = value if key in _HIDDEN or flat.get(key, "") == "" else flat[key]
        elif key in flat:
            merged[key] = flat[key]
    return {**merged, **{key: value for key, value in _visible(flat).items() if key not in merged}}


def to_scored_node(hit: Hit, *, annotate: bool) -> NodeWithScore:
    """A hit as a fresh scored node; with its score, signals and sources under the reserved key where that is asked for."""
    node = to_node(hit.memory)
    if annotate:
        _annotate(node, hit)
    score = float(hit.score)
    if score == 0.0 and isinstance(node, IndexNode):
        # LlamaIndex expands an IndexNode with `score or 1.0`: nothing would become everything.
        score = sys.float_info.min
    return NodeWithScore(node=node, score=score)


def _annotate(node: BaseNode, hit: Hit) -> None:
    details = {
        "score": float(hit.score),
        "signals": {name: None if value is None else float(value) for name, value in hit.signals.items()},
        "sources": list(hit.sources),
    }
    # Assigned past pydantic, which would make a plain dict of it.
    vars(node)["metadata"] = ResultMetadata({**node.metadata, RESERVED_KEY: details})
    for hidden in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys"):
        setattr(node, hidden, [*(key for key in getattr(node, hidden) if key != RESERVED_KEY), RESERVED_KEY])


# --- queries ---------------------------------------------------------------------------------------------------------


def query_text(text: str) -> str:
    """The query without what RetrieverTool puts around it: the text itself in place of "\\ninput is <text>\\n"."""
    call = _TOOL_CALL.fullmatch(text)
    if call:
        return call.group(1)
    return text.removesuffix("\n\n")


def query_vector(bundle: QueryBundle, embedder: Embedder) -> Any:
    """The embedding that a query brings: its own, or the mean over its custom texts to embed; else None."""
    if bundle.embedding is not None or not bundle.custom_embedding_strs:
        return bundle.embedding
    return np.asarray(embedder.embed_query(bundle.custom_embedding_strs)).mean(axis=0)
