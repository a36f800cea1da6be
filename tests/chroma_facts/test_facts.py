"""What the code relies on in chromadb 1.5: a new version that behaves otherwise must fail here first."""

from __future__ import annotations

import gc
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest

from memhybrid.backends.chroma.changes import ChromaChanges

DIMENSION = 4


def vectors(n: int, start: int = 0) -> list[list[float]]:
    """Different unit vectors."""
    made = np.random.default_rng(start).normal(size=(n, DIMENSION))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).tolist()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for one Chroma store."""
    yield tmp_path / "chroma"
    gc.collect()


@pytest.fixture
def collection(folder: Path) -> Any:
    """An empty collection in a folder."""
    client = chromadb.PersistentClient(str(folder))
    return client.create_collection("facts", embedding_function=None, configuration={"hnsw": {"space": "cosine"}})


def sequence(folder: Path, collection: Any) -> int:
    """The counter of the collection's last write."""
    changes = ChromaChanges(folder, str(collection.id))
    try:
        found = changes.sequence()
        assert found is not None
        return found
    finally:
        changes.close()


def test_the_change_counter_grows_with_every_write_operation_and_with_nothing_else(
    folder: Path, collection: Any
) -> None:
    """`max_seq_id` moves by the number of rows sent by add, update, upsert and delete; reading and renaming leave it."""
    collection.add(ids=["a", "b", "c"], documents=["x", "y", "z"], embeddings=vectors(3))
    first = sequence(folder, collection)
    collection.get()
    collection.query(query_embeddings=vectors(1), n_results=2)
    collection.count()
    collection.modify(metadata={"seen": 1})
    assert sequence(folder, collection) == first
    collection.update(ids=["a"], metadatas=[{"k": 1}])
    assert sequence(folder, collection) == first + 1
    collection.upsert(ids=["a", "d"], documents=["x2", "w"], embeddings=vectors(2))
    assert sequence(folder, collection) == first + 3
    collection.delete(ids=["a", "b"])
    assert sequence(folder, collection) == first + 5


def test_writes_that_change_nothing_move_the_counter_too(folder: Path, collection: Any) -> None:
    """Adding an id that exists, updating or deleting one that does not: no effect but a number."""
    collection.add(ids=["a"], documents=["cats"], embeddings=vectors(1))
    first = sequence(folder, collection)
    collection.add(ids=["a"], documents=["dogs"], embeddings=vectors(1, 1))
    collection.update(ids=["missing"], documents=["ghost"], embeddings=vectors(1, 2))
    collection.delete(ids=["missing"])
    assert sequence(folder, collection) == first + 3
    assert collection.get()["documents"] == ["cats"]


def test_a_row_carries_the_number_of_its_last_write(folder: Path, collection: Any) -> None:
    """Rows written after a number are found by it, in the order of writing; deleted ones are not among them."""
    collection.add(ids=["a", "b", "c", "d"], documents=list("wxyz"), embeddings=vectors(4))
    before = sequence(folder, collection)
    collection.update(ids=["c"], metadatas=[{"k": 1}])
    collection.upsert(ids=["a", "e"], documents=["w2", "v"], embeddings=vectors(2))
    collection.delete(ids=["b", "e"])
    changes = ChromaChanges(folder, str(collection.id))
    assert changes.written_since(before) == ["c", "a"]
    assert changes.ids() == ["a", "c", "d"]
    changes.close()


def test_the_counters_of_two_collections_in_one_folder_are_apart(folder: Path, collection: Any) -> None:
    """A write to one collection is no change of the other."""
    collection.add(ids=["a"], documents=["x"], embeddings=vectors(1))
    first = sequence(folder, collection)
    client = chromadb.PersistentClient(str(folder))
    neighbour = client.create_collection("other", embedding_function=None)
    neighbour.add(ids=["a", "b"], documents=["x", "y"], embeddings=vectors(2))
    assert sequence(folder, collection) == first
    assert sequence(folder, neighbour) >= 2


def test_where_the_tables_are_not_as_expected_the_counters_say_so(tmp_path: Path) -> None:
    """A file that is no Chroma database, or has other tables, answers None instead of something wrong."""
    assert ChromaChanges(tmp_path, "none").sequence() is None
    with sqlite3.connect(tmp_path / "chroma.sqlite3") as db:
        db.execute("CREATE TABLE something (id)")
    changes = ChromaChanges(tmp_path, "none")
    assert (changes.sequence(), changes.ids(), changes.written_since(0)) == (None, None, None)


def test_the_counter_file_is_only_read(folder: Path, collection: Any) -> None:
    """Our connection cannot write to Chroma's database."""
    collection.add(ids=["a"], documents=["x"], embeddings=vectors(1))
    changes = ChromaChanges(folder, str(collection.id))
    changes.sequence()
    assert changes._db is not None
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        changes._db.execute("DELETE FROM embeddings")
    changes.close()


def test_upsert_merges_metadata_and_none_removes_a_key(collection: Any) -> None:
    """Keys that are not sent stay; keys sent as None go, down to no metadata at all."""
    collection.add(ids=["a"], documents=["x"], metadatas=[{"one": 1, "two": 2}], embeddings=vectors(1))
    collection.upsert(ids=["a"], documents=["x"], metadatas=[{"three": 3}], embeddings=vectors(1))
    assert collection.get()["metadatas"] == [{"one": 1, "two": 2, "three": 3}]
    collection.upsert(
        ids=["a"], documents=["x"], metadatas=[{"one": None, "two": None, "three": None}], embeddings=vectors(1)
    )
    assert not collection.get()["metadatas"][0]
    collection.upsert(ids=["new"], documents=["y"], metadatas=[{"one": None, "two": 2}], embeddings=vectors(1))
    assert collection.get(ids=["new"])["metadatas"] == [{"two": 2}]


def test_upsert_without_metadata_keeps_all_of_it(collection: Any) -> None:
    """Sending no metadata removes none."""
    collection.add(ids=["a"], documents=["x"], metadatas=[{"one": 1}], embeddings=vectors(1))
    collection.upsert(ids=["a"], documents=["y"], embeddings=vectors(1))
    got = collection.get()
    assert (got["documents"], got["metadatas"]) == (["y"], [{"one": 1}])


def test_none_in_metadata_is_refused_by_add_for_the_whole_batch(collection: Any) -> None:
    """Which is why our own add leaves None out and goes through upsert."""
    with pytest.raises(TypeError):
        collection.add(ids=["a", "b"], documents=["x", "y"], metadatas=[{"k": None}, {"k": 1}], embeddings=vectors(2))
    assert collection.count() == 0


def test_duplicate_ids_in_one_call_are_refused(collection: Any) -> None:
    """In add, upsert and get alike, and nothing is written."""
    for call in (collection.add, collection.upsert):
        with pytest.raises(chromadb.errors.DuplicateIDError):
            call(ids=["a", "a"], documents=["old", "new"], embeddings=vectors(2))
    assert collection.count() == 0
    with pytest.raises(chromadb.errors.DuplicateIDError):
        collection.get(ids=["a", "a"])


def test_an_empty_list_of_ids_is_refused_by_delete_and_get(collection: Any) -> None:
    """So an empty list must never reach Chroma from us."""
    with pytest.raises(ValueError, match="non-empty list"):
        collection.delete(ids=[])
    with pytest.raises(ValueError, match="non-empty list"):
        collection.get(ids=[])


def test_deleting_counts_what_was_asked_for_not_what_existed(collection: Any) -> None:
    """Chroma's own number cannot be passed on."""
    assert collection.delete(ids=["unknown"]) == {"deleted": 1}


def test_rows_come_in_the_order_of_insertion_and_keep_their_place_when_replaced(collection: Any) -> None:
    """`get` by ids follows the collection's order, not that of the request."""
    collection.add(ids=["c", "a", "b"], documents=list("xyz"), embeddings=vectors(3))
    collection.upsert(ids=["c"], documents=["x2"], embeddings=vectors(1))
    assert collection.get()["ids"] == ["c", "a", "b"]
    assert collection.get(ids=["b", "c"])["ids"] == ["c", "b"]


def test_rows_without_document_or_metadata_come_back_as_none(collection: Any) -> None:
    """Embedding-only rows are legal in Chroma."""
    collection.add(ids=["a"], embeddings=vectors(1))
    got = collection.get()
    assert (got["documents"], got["metadatas"]) == ([None], [None])


def test_values_that_lose_something_in_chroma(collection: Any) -> None:
    """NaN becomes nothing, 2**63 a float, -0.0 becomes 0.0: all are refused or made plain before they get there."""
    collection.add(
        ids=["a"],
        documents=["x"],
        metadatas=[{"nan": float("nan"), "big": 2**63, "zero": -0.0, "exact": 2**63 - 1}],
        embeddings=vectors(1),
    )
    got = collection.get()["metadatas"][0]
    assert got["exact"] == 2**63 - 1
    assert got.get("nan") is None
    assert isinstance(got["big"], float)
    assert str(got["zero"]) == "0.0"


@pytest.mark.parametrize("value", [[], [1, "a"], {}, {"a": 1}, np.float32(1), object()])
def test_values_that_chroma_refuses(collection: Any, value: Any) -> None:
    """Empty or mixed lists, dicts and numpy scalars raise for the whole call."""
    with pytest.raises((ValueError, TypeError)):
        collection.add(ids=["a"], documents=["x"], metadatas=[{"k": value}], embeddings=vectors(1))


def test_batches_above_the_limit_fail_and_the_limit_can_be_asked_for(collection: Any) -> None:
    """`get_max_batch_size` is the number; one more is an error and nothing is stored."""
    limit = collection._client.get_max_batch_size()
    assert 100 <= limit <= 100_000
    ids = [str(i) for i in range(limit + 1)]
    with pytest.raises(Exception, match="atch size"):
        collection.upsert(ids=ids, embeddings=np.zeros((len(ids), DIMENSION), dtype=np.float32) + 1)
    assert collection.count() == 0


def test_reading_everything_at_once_fails_above_32766_rows_and_pages_do_not() -> None:
    """The reason why everything here reads in pages."""
    client = chromadb.EphemeralClient()
    collection = client.create_collection("many-rows", embedding_function=None)
    n = 33_000
    for start in range(0, n, 5_000):
        ids = [str(i) for i in range(start, min(start + 5_000, n))]
        collection.add(ids=ids, embeddings=np.ones((len(ids), 2), dtype=np.float32), metadatas=[{"k": 1}] * len(ids))
    with pytest.raises(Exception, match="too many SQL variables"):
        collection.get(include=["metadatas"])
    with pytest.raises(Exception, match="too many SQL variables"):
        collection.get(ids=[str(i) for i in range(n)], include=["metadatas"])
    page = collection.get(limit=5_000, offset=30_000, include=["metadatas"])
    assert len(page["ids"]) == 3_000
    client.delete_collection("many-rows")


def test_queries_return_no_more_than_there_is_and_refuse_unknown_ids(collection: Any) -> None:
    """n above the count is fine, an unknown id in `ids` is an error, another dimension as well."""
    assert collection.query(query_embeddings=vectors(1), n_results=3)["ids"] == [[]]
    collection.add(ids=["a", "b"], documents=["x", "y"], embeddings=vectors(2))
    assert len(collection.query(query_embeddings=vectors(1), n_results=10)["ids"][0]) == 2
    with pytest.raises(Exception, match="Error finding id"):
        collection.query(query_embeddings=vectors(1), ids=["a", "unknown"], n_results=2)
    with pytest.raises(Exception, match="dimension"):
        collection.query(query_embeddings=[[1.0, 2.0]], n_results=1)


def test_distances_by_space() -> None:
    """Cosine 1 - cos, l2 the squared distance, ip 1 - dot."""
    client = chromadb.EphemeralClient()
    expected = {"cosine": [0.0, 1.0, 2.0], "l2": [0.0, 2.0, 4.0], "ip": [0.0, 1.0, 2.0]}
    for space, distances in expected.items():
        made = client.create_collection(
            f"space-{space}", embedding_function=None, configuration={"hnsw": {"space": space}}
        )
        made.add(ids=["same", "orthogonal", "opposite"], embeddings=[[1, 0], [0, 1], [-1, 0]])
        got = made.query(query_embeddings=[[1.0, 0.0]], n_results=3)
        assert got["ids"] == [["same", "orthogonal", "opposite"]]
        assert got["distances"][0] == pytest.approx(distances, abs=1e-5)
        client.delete_collection(f"space-{space}")


def test_the_space_is_fixed_when_the_collection_is_made(folder: Path, collection: Any) -> None:
    """Asking again with another space silently gives the old one, so the space is read, never assumed."""
    client = chromadb.PersistentClient(str(folder))
    again = client.get_or_create_collection("facts", embedding_function=None, configuration={"hnsw": {"space": "l2"}})
    assert again.configuration["hnsw"]["space"] == "cosine"


def test_a_collection_made_again_has_another_id(folder: Path, collection: Any) -> None:
    """The id tells a recreated collection from the old one, whose handles stop working."""
    client = chromadb.PersistentClient(str(folder))
    client.delete_collection("facts")
    again = client.create_collection("facts", embedding_function=None)
    assert again.id != collection.id
    with pytest.raises(chromadb.errors.NotFoundError):
        collection.get()


_WRITER = """
import sys, chromadb
client = chromadb.PersistentClient(sys.argv[1])
collection = client.get_collection("facts", embedding_function=None)
collection.add(ids=["new"], documents=["by another"], embeddings=[[0.0, 1.0, 0.0, 0.0]])
collection.delete(ids=["old"])
"""


def test_another_process_is_seen_by_get_and_by_the_counter_but_not_by_query(folder: Path, collection: Any) -> None:
    """Chroma caches its vector index in each process: deleted ids still come back, with document None."""
    collection.add(ids=["old", "stays"], documents=["x", "y"], embeddings=[[1.0, 0, 0, 0], [0, 0, 1.0, 0]])
    collection.query(query_embeddings=[[1.0, 0, 0, 0]], n_results=2)
    before = sequence(folder, collection)
    subprocess.run([sys.executable, "-c", _WRITER, str(folder)], check=True, timeout=60)
    assert sequence(folder, collection) == before + 2
    assert sorted(collection.get()["ids"]) == ["new", "stays"]
    got = collection.query(query_embeddings=[[1.0, 0, 0, 0]], n_results=5, include=["documents"])
    assert "new" not in got["ids"][0]
    assert dict(zip(got["ids"][0], got["documents"][0], strict=True)).get("old") is None


def test_update_of_a_document_alone_wants_an_embedding_function(collection: Any) -> None:
    """Without one Chroma would fetch its default model, so every write of ours carries vectors."""
    collection.add(ids=["a"], documents=["x"], embeddings=vectors(1))
    with pytest.raises(Exception):  # noqa: B017 - it differs between versions and with what is reachable
        collection.update(ids=["a"], documents=["y"])
    assert collection.get()["documents"] == ["x"]


def test_lists_of_a_deleted_collection_reappear_in_another(folder: Path, collection: Any) -> None:
    """A defect of Chroma 1.5: `delete_collection` leaves list metadata behind, and the next row of that number inherits it.

    Deleting the rows first leaves nothing. If this fails, Chroma has mended it, and `ChromaBackend.drop` may be simplified.
    """
    client = chromadb.PersistentClient(str(folder))
    collection.add(ids=["a"], documents=["x"], metadatas=[{"tags": ["secret"], "n": 1}], embeddings=vectors(1))
    client.delete_collection("facts")
    heir = client.create_collection("heir", embedding_function=None)
    heir.add(ids=["b"], documents=["y"], embeddings=vectors(1))
    assert heir.get()["metadatas"] == [{"tags": ["secret"]}]
    heir.delete(ids=["b"])
    client.delete_collection("heir")
    clean = client.create_collection("clean", embedding_function=None)
    clean.add(ids=["c"], documents=["z"], embeddings=vectors(1))
    assert clean.get()["metadatas"] == [None]
