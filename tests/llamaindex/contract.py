"""What every LlamaIndex vector store that keeps text must do, synchronously and asynchronously.

For LlamaIndex what langchain-tests is for LangChain, which has nothing of the kind. Subclass it and give a fixture `store`: an empty
store whose nodes get embeddings by `embed`.
"""

from __future__ import annotations

import pytest
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery

from memhybrid.embedders import HashEmbedder

EMBEDDER = HashEmbedder(64)


def embed(text: str) -> list[float]:
    return EMBEDDER.embed_query([text])[0].tolist()


def make_node(identifier: str, text: str, source: str = "doc", **metadata: object) -> TextNode:
    node = TextNode(id_=identifier, text=text, metadata=metadata, embedding=embed(text))
    node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=source)
    return node


def ask(text: str, k: int = 10, **more: object) -> VectorStoreQuery:
    return VectorStoreQuery(query_str=text, query_embedding=embed(text), similarity_top_k=k, **more)  # type: ignore[arg-type]


def plain(nodes: list[BaseNode] | None) -> list[tuple[str, str, dict[str, object], str | None]]:
    return [(n.node_id, n.get_content(), dict(n.metadata), n.ref_doc_id) for n in nodes or []]


class VectorStoreContract:
    """Twelve behaviours, each in both worlds. A subclass has the fixture `store`, a new store for each test."""

    @pytest.fixture
    def nodes(self) -> list[TextNode]:
        return [make_node("a", "foo", "d1", id=1), make_node("b", "bar", "d1", id=2), make_node("c", "baz", "d2", id=3)]

    def test_is_empty_at_first(self, store: BasePydanticVectorStore) -> None:
        """A new store finds nothing."""
        assert store.query(ask("foo")).ids == []
        assert store.get_nodes() == []

    def test_add_stores_nodes(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """Nodes come back from a query as they were added, without embeddings."""
        assert store.add(nodes) == ["a", "b", "c"]
        found = store.query(ask("bar", 2))
        assert plain(found.nodes)[0] == ("b", "bar", {"id": 2}, "d1")
        assert len(found.nodes or []) == len(found.similarities or []) == len(found.ids or []) == 2

    def test_is_empty_again_in_the_next_test(self, store: BasePydanticVectorStore) -> None:
        """Stores of different tests share nothing."""
        assert store.query(ask("foo")).ids == []

    def test_delete_removes_a_document(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """Deleting a source document deletes all of its nodes and no others."""
        store.add(nodes)
        store.delete("d1")
        assert store.query(ask("foo")).ids == ["c"]

    def test_delete_nodes_removes_several(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """Nodes are deleted by their ids."""
        store.add(nodes)
        store.delete_nodes(["a", "c"])
        assert store.query(ask("foo")).ids == ["b"]

    def test_delete_of_what_is_missing_is_no_error(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """Unknown documents and nodes can be deleted."""
        store.add(nodes)
        store.delete("nobody")
        store.delete_nodes(["nobody"])
        assert len(store.get_nodes()) == 3

    def test_add_is_idempotent(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """Adding the same nodes twice keeps one of each."""
        store.add(nodes)
        assert store.add(nodes) == ["a", "b", "c"]
        assert sorted(store.query(ask("foo")).ids or []) == ["a", "b", "c"]

    def test_add_replaces_by_id(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """A node with a known id replaces the old one: text, metadata, source and embedding."""
        store.add(nodes)
        store.add([make_node("a", "entirely new", "d9", other="x")])
        assert plain(store.get_nodes(["a"])) == [("a", "entirely new", {"other": "x"}, "d9")]
        assert (store.query(ask("entirely new", 1)).ids or [])[0] == "a"

    def test_get_nodes_by_id(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """Nodes are found by their ids, in the order of the ids."""
        store.add(nodes)
        assert plain(store.get_nodes(["c", "a"])) == [("c", "baz", {"id": 3}, "d2"), ("a", "foo", {"id": 1}, "d1")]

    def test_get_nodes_leaves_out_the_missing(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """Unknown ids are no error and bring nothing."""
        store.add(nodes)
        assert [n.node_id for n in store.get_nodes(["a", "nobody"])] == ["a"]

    def test_get_nodes_without_ids_brings_all(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """Everything can be listed, and everything can be cleared, also twice."""
        store.add(nodes)
        assert sorted(plain(store.get_nodes())) == sorted(plain(list(nodes)))
        store.clear()
        store.clear()
        assert store.get_nodes() == []

    def test_add_of_old_and_new_together(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """One call may replace some nodes and add others."""
        store.add(nodes[:2])
        assert store.add([make_node("b", "changed"), nodes[2]]) == ["b", "c"]
        assert [n.get_content() for n in store.get_nodes(["a", "b", "c"])] == ["foo", "changed", "baz"]

    # --- the same, asynchronously --------------------------------------------------------------------------------------

    async def test_is_empty_at_first_async(self, store: BasePydanticVectorStore) -> None:
        """A new store finds nothing."""
        assert (await store.aquery(ask("foo"))).ids == []
        assert await store.aget_nodes() == []

    async def test_add_stores_nodes_async(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """Nodes come back from a query as they were added."""
        assert await store.async_add(nodes) == ["a", "b", "c"]
        assert plain((await store.aquery(ask("bar", 1))).nodes) == [("b", "bar", {"id": 2}, "d1")]

    async def test_is_empty_again_in_the_next_test_async(self, store: BasePydanticVectorStore) -> None:
        """Stores of different tests share nothing."""
        assert (await store.aquery(ask("foo"))).ids == []

    async def test_delete_removes_a_document_async(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """Deleting a source document deletes all of its nodes and no others."""
        await store.async_add(nodes)
        await store.adelete("d1")
        assert (await store.aquery(ask("foo"))).ids == ["c"]

    async def test_delete_nodes_removes_several_async(
        self, store: BasePydanticVectorStore, nodes: list[TextNode]
    ) -> None:
        """Nodes are deleted by their ids."""
        await store.async_add(nodes)
        await store.adelete_nodes(["a", "c"])
        assert (await store.aquery(ask("foo"))).ids == ["b"]

    async def test_delete_of_what_is_missing_is_no_error_async(
        self, store: BasePydanticVectorStore, nodes: list[TextNode]
    ) -> None:
        """Unknown documents and nodes can be deleted."""
        await store.async_add(nodes)
        await store.adelete("nobody")
        await store.adelete_nodes(["nobody"])
        assert len(await store.aget_nodes()) == 3

    async def test_add_is_idempotent_async(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """Adding the same nodes twice keeps one of each."""
        await store.async_add(nodes)
        assert await store.async_add(nodes) == ["a", "b", "c"]
        assert len(await store.aget_nodes()) == 3

    async def test_add_replaces_by_id_async(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """A node with a known id replaces the old one."""
        await store.async_add(nodes)
        await store.async_add([make_node("a", "entirely new", "d9", other="x")])
        assert plain(await store.aget_nodes(["a"])) == [("a", "entirely new", {"other": "x"}, "d9")]

    async def test_get_nodes_by_id_async(self, store: BasePydanticVectorStore, nodes: list[TextNode]) -> None:
        """Nodes are found by their ids, in the order of the ids."""
        await store.async_add(nodes)
        assert [n.node_id for n in await store.aget_nodes(["c", "a"])] == ["c", "a"]

    async def test_get_nodes_leaves_out_the_missing_async(
        self, store: BasePydanticVectorStore, nodes: list[TextNode]
    ) -> None:
        """Unknown ids are no error and bring nothing."""
        await store.async_add(nodes)
        assert [n.node_id for n in await store.aget_nodes(["a", "nobody"])] == ["a"]

    async def test_get_nodes_without_ids_brings_all_async(
        self, store: BasePydanticVectorStore, nodes: list[TextNode]
    ) -> None:
        """Everything can be listed, and everything can be cleared, also twice."""
        await store.async_add(nodes)
        assert len(await store.aget_nodes()) == 3
        await store.aclear()
        await store.aclear()
        assert await store.aget_nodes() == []

    async def test_add_of_old_and_new_together_async(
        self, store: BasePydanticVectorStore, nodes: list[TextNode]
    ) -> None:
        """One call may replace some nodes and add others."""
        await store.async_add(nodes[:2])
        assert await store.async_add([make_node("b", "changed"), nodes[2]]) == ["b", "c"]
        assert [n.get_content() for n in await store.aget_nodes(["a", "b", "c"])] == ["foo", "changed", "baz"]
