"""The contract of a backend."""

from __future__ import annotations

from typing import Any

import numpy as np

from memhybrid.records import StoredRecord


def record(identifier: str, text: str = "a text", *, seed: int = 0, **metadata: Any) -> StoredRecord:
    """A memory with a random unit vector of 8 dimensions."""
    vector = np.random.default_rng(seed).normal(size=8).astype(np.float32)
    return StoredRecord(identifier, text, metadata, (vector / np.linalg.norm(vector)).astype(np.float32))


class BackendContract:
    """Give a fixture `backend`: an empty Backend for vectors of 8 dimensions."""

    def test_what_was_stored_is_read_back(self, backend: Any) -> None:
        """Text, metadata of every type and the vector's direction come back as they were given."""
        given = record("a", "naïve 文本", seed=3, s="x", i=3, f=2.5, b=True, l=["p", "q"])
        backend.upsert([given], previous={})
        (found,) = backend.get(["a"])
        assert (found.id, found.text, dict(found.metadata)) == (given.id, given.text, dict(given.metadata))
        assert all(type(found.metadata[k]) is type(v) for k, v in given.metadata.items())
        assert float(found.vector @ given.vector) > 0.999

    def test_metadata_is_replaced_and_not_merged(self, backend: Any) -> None:
        """A key that is no longer given is gone, down to no metadata at all."""
        backend.upsert([record("a", x=1, y=2)], previous={})
        backend.upsert([record("a", y=3)], previous={"a": {"x": 1, "y": 2}})
        assert dict(backend.get(["a"])[0].metadata) == {"y": 3}
        backend.upsert([record("a")], previous={"a": {"y": 3}})
        assert dict(backend.get(["a"])[0].metadata) == {}

    def test_unknown_ids_are_left_out(self, backend: Any) -> None:
        """Reading and deleting ids that are not there is no error."""
        backend.upsert([record("a")], previous={})
        backend.delete(["nobody"])
        assert [r.id for r in backend.get(["nobody", "a"])] == ["a"]

    def test_deleted_memories_are_gone_from_every_read(self, backend: Any) -> None:
        """Neither get, nor pages, nor ids, nor count, nor the nearest show a deleted memory's text."""
        backend.upsert([record("a", seed=1), record("b", seed=2)], previous={})
        backend.delete(["a"])
        assert backend.get(["a"]) == []
        assert list(backend.ids()) == ["b"]
        assert [r.id for page in backend.pages() for r in page] == ["b"]
        assert backend.count() == 1
        assert {r.id for r in backend.get(backend.nearest(record("a", seed=1).vector, 2))} == {"b"}

    def test_more_rows_than_a_batch_or_page(self, backend: Any) -> None:
        """Sizes beyond every internal limit are written, read, paged and deleted completely."""
        many = [record(f"r{i}", seed=i % 7, n=i) for i in range(6_001)]
        backend.upsert(many, previous={})
        assert backend.count() == len(many)
        assert {r.id for r in backend.get([r.id for r in many])} == {r.id for r in many}
        assert sorted(r.metadata["n"] for page in backend.pages(vectors=False) for r in page) == list(range(len(many)))
        backend.delete([r.id for r in many])
        assert backend.count() == 0

    def test_the_nearest_are_the_most_similar(self, backend: Any) -> None:
        """Of a few vectors the nearest come in order of cosine, whatever the store's own distance is."""
        many = [record(f"r{i}", seed=i) for i in range(20)]
        backend.upsert(many, previous={})
        query: Any = record("q", seed=99).vector
        expected = sorted(many, key=lambda r: -float(np.dot(np.asarray(r.vector), query)))[:5]
        assert backend.nearest(query, 5) == [r.id for r in expected]

    def test_an_empty_store_answers(self, backend: Any) -> None:
        """Nothing stored is a valid state."""
        assert backend.count() == 0
        assert list(backend.pages()) == []
        assert list(backend.ids()) == []

    def test_the_change_token_moves_with_every_write_and_with_nothing_else(self, backend: Any) -> None:
        """Where there is a token, adds, updates and deletes change it, reads do not, and it tells the ids written since."""
        first = backend.change_token()
        if first is None:
            assert backend.changed_since("0") is None
            return
        backend.upsert([record("a", n=1), record("b")], previous={})
        second = backend.change_token()
        assert second != first
        backend.get(["a"])
        backend.count()
        assert backend.change_token() == second
        backend.upsert([record("a", n=2)], previous={"a": {"n": 1}})
        third = backend.change_token()
        assert third != second
        assert backend.changed_since(second) == ["a"]
        backend.delete(["b"])
        assert backend.change_token() != third
