"""Writing, deleting and following: what went wrong in other libraries, held to the right behaviour here."""

from __future__ import annotations

import enum
import subprocess
import sys
import warnings
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest

from memhybrid import EmbedderError, HybridMemory, InputError, Memory, MetadataError, StoreError
from memhybrid.embedders import HashEmbedder
from memhybrid.memory import MemoryView
from tests.conftest import make_memory
from tests.reports.helpers import Chroma, found, indexed_words, raw_collection, word

EVERY_LEG = ("semantic", "bm25", "balanced", "tipsy", "mem0")


# --- delete ----------------------------------------------------------------------------------------------------------


def test_a_process_that_only_deletes_removes_the_memory_from_every_index(tmp_path: Path) -> None:
    """Report 1: the index that a deleting process never wrote to forgets the memory all the same."""
    with make_memory(tmp_path) as first:
        first.add([Memory("a", "Dana moved to Paris"), Memory("b", "Dana plays chess")])
    with make_memory(tmp_path) as second:
        assert second.delete(["a"]) == 1
    with make_memory(tmp_path) as third:
        for leg in EVERY_LEG:
            assert "a" not in third.search("Paris", profile=leg, k=10).ids
        partition = third.store.partitions.get("[]")
        assert not len(partition.view().linked("paris"))
        assert len(partition.view().linked("dana")) == 1
        assert third.verify().ok


def test_a_delete_is_seen_by_the_next_search_of_the_same_process(memory: HybridMemory) -> None:
    """Report 3: nothing that was searched before is served from a cache after a write."""
    memory.add([Memory("a", "the launch code is mango"), Memory("b", "the sky is blue")])
    for leg in EVERY_LEG:
        assert "a" in memory.search("launch code mango", profile=leg).ids
    assert memory.delete(all=True) == 2
    for leg in EVERY_LEG:
        assert not memory.search("launch code mango", profile=leg).hits
    memory.add(Memory("c", "the launch code is papaya"))
    assert memory.search("launch code mango").ids == ["c"]


def test_a_deleted_memory_is_found_by_no_path(memory: HybridMemory) -> None:
    """Report 4: neither by vector, keyword, entity, id, filter, listing nor count."""
    memory.add([Memory("a", "Joanna keeps ZX-4471", {"kind": "x"}), Memory("b", "nothing of the sort", {"kind": "x"})])
    vector = memory.get("a", embeddings=True)[0].embedding
    assert memory.delete("a") == 1
    for leg in EVERY_LEG:
        for query in ("ZX-4471", "Joanna", "joanna keeps"):
            assert "a" not in memory.search(query, profile=leg, k=10).ids
        assert "a" not in memory.search("", embedding=vector, profile=leg, k=10).ids
    assert memory.get("a") == []
    assert [m.id for m in memory.list(where={"kind": "x"})] == ["b"]
    assert memory.count() == 1
    assert memory.collection.get(ids=["a"])["ids"] == []


def test_deleting_an_unknown_id_says_that_nothing_was_deleted(memory: HybridMemory) -> None:
    """Report 4: the number is what existed, not what was asked for."""
    memory.add(Memory("a", "text"))
    assert memory.delete(["unknown", "other"]) == 0
    assert memory.delete(["a", "unknown", "a"]) == 1
    assert memory.delete(["a"]) == 0


def test_an_empty_list_deletes_nothing_and_no_argument_is_an_error(memory: HybridMemory) -> None:
    """Report 29: an empty list never means everything."""
    memory.add([Memory("a", "x"), Memory("b", "y")])
    assert memory.delete([]) == 0
    assert memory.get([]) == []
    assert memory.get(["b", "unknown", "a"])[0].id == "b"
    for call in ({}, {"where": {}}, {"where": {"$and": []}}, {"where": {"$or": []}}):
        with pytest.raises(InputError):
            memory.delete(**call)
    assert memory.count() == 2


@pytest.mark.parametrize("n", [99, 100, 101, 2_001])
def test_delete_all_removes_everything_whatever_the_page_size(n: int) -> None:
    """Report 13: the number returned is the number that was there, and nothing is left."""
    with make_memory(scope_key="user") as memory:
        mine = memory.scoped(user="u")
        mine.add([Memory(str(i), f"note {i}") for i in range(n)])
        memory.scoped(user="v").add(Memory("other", "note"))
        assert mine.delete(all=True) == n
        assert mine.count() == 0
        assert not mine.search("note", k=10).hits
        assert memory.collection.count() == 1


def test_deleting_one_users_memories_leaves_the_others_as_they_were() -> None:
    """Report 14: a scoped delete is no reset."""
    with make_memory(scope_key="user") as memory:
        a, b = memory.scoped(user="a"), memory.scoped(user="b")
        a.add([Memory(f"a{i}", f"Dana reads book {i}") for i in range(5)])
        b.add([Memory(f"b{i}", f"Dana reads book {i}") for i in range(5)])

        def answers() -> list[list[tuple[str, float]]]:
            return [found(b.search("Dana book 3", profile=leg, record_usage=False)) for leg in EVERY_LEG]

        before = answers()
        collection = memory.collection.id
        assert a.delete(all=True) == 5
        assert memory.collection.id == collection
        assert answers() == before
        assert memory.verify().ok


def test_8300_rows_are_deleted_by_one_filter() -> None:
    """Report 27: no filter is turned into more variables than the store takes."""
    n = 8_300
    with make_memory(profile="bm25") as memory:
        rows = np.eye(64, dtype=np.float32)
        memory.add([Memory(str(i), f"w{i % 7}", {"workspace": 7 if i < n else 8}, rows[i % 64]) for i in range(n + 10)])
        assert len(memory.get([str(i) for i in range(n + 10)] + [f"no{i}" for i in range(32_000)])) == n + 10
        assert memory.delete(where={"workspace": 7}) == n
        assert memory.count() == memory.collection.count() == 10


# --- failing in the middle -------------------------------------------------------------------------------------------


def test_a_refused_write_changes_no_index(memory: HybridMemory) -> None:
    """Report 5: the indexes change after Chroma has accepted, never before."""
    memory.add(Memory("a", "apple"))
    chroma = Chroma(memory, fail_upsert_at=1)
    with pytest.raises(StoreError, match="disk"):
        memory.add([Memory("b", "banana"), Memory("a", "cherry")])
    chroma.restore()
    assert memory.search("banana cherry", profile="bm25").ids == []
    assert memory.search("apple", profile="bm25").ids == ["a"]
    assert memory.verify().ok


@pytest.mark.parametrize("after", [False, True])
def test_a_batch_that_breaks_in_the_middle_leaves_indexes_and_store_equal(after: bool) -> None:
    """Report 5, 145: what was stored is indexed and named in the error, the rest is in neither."""
    with make_memory(profile="bm25") as memory:
        rows = np.eye(64, dtype=np.float32)
        chroma = Chroma(memory, fail_upsert_at=2, after=after)
        with pytest.raises(StoreError, match="were written before") as caught:
            memory.add([Memory(f"{i:05}", word(i), embedding=rows[i % 64]) for i in range(4_500)])
        chroma.restore()
        stored = set(memory.collection.get(limit=5_000, include=[])["ids"])
        assert set(caught.value.written) == stored
        assert len(stored) == (4_000 if after else 2_000)
        assert memory.count() == len(stored)
        assert memory.search(word(1999)).ids == ["01999"]
        assert memory.search(word(4100)).ids == []
        assert memory.verify().ok


def test_a_failed_delete_leaves_indexes_and_store_equal(memory: HybridMemory) -> None:
    """Report 4: an error while deleting hides nothing that is still stored."""
    memory.add([Memory("a", "apple"), Memory("b", "banana")])
    chroma = Chroma(memory, fail_delete=True)
    with pytest.raises(StoreError, match="disk"):
        memory.delete(["a"])
    chroma.restore()
    assert memory.search("apple").hits[0].memory.id == "a"
    assert memory.verify().ok


def test_an_interrupted_write_is_made_good_by_the_next_look(memory: HybridMemory) -> None:
    """Ctrl-C between Chroma and the indexes loses nothing that Chroma took."""
    memory.add(Memory("a", "apple"))
    chroma = Chroma(memory, fail_upsert_at=1, after=True, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        memory.add(Memory("b", "banana"))
    chroma.restore()
    assert memory.search("banana", profile="bm25").ids == ["b"]
    assert memory.verify().ok


class Moody(HashEmbedder):
    """Raises from the given call on."""

    def __init__(self, fail_from: int) -> None:
        super().__init__(64)
        self.calls, self.fail_from = 0, fail_from

    def embed_documents(self, texts: Any) -> Any:
        self.calls += 1
        if self.calls >= self.fail_from:
            raise TimeoutError("the model is away")
        return super().embed_documents(texts)


def test_the_old_version_stays_searchable_when_the_new_one_cannot_be_embedded() -> None:
    """Report 6: an update that fails changes nothing."""
    with make_memory(embedder=Moody(2)) as memory:
        memory.add(Memory("a", "lives in Rome", {"k": 1}))
        for call in (
            lambda: memory.update("a", "lives in Oslo", {"k": 2}),
            lambda: memory.add(Memory("a", "lives in Oslo", {"k": 2})),
        ):
            with pytest.raises(EmbedderError, match="nothing was written"):
                call()
        assert memory.get("a") == [Memory("a", "lives in Rome", {"k": 1})]
        assert memory.search("Rome", profile="bm25").ids == ["a"]
        assert memory.search("Oslo", profile="bm25").ids == []


def test_an_embedder_that_fails_in_its_second_batch_leaves_nothing_behind() -> None:
    """Report 145: all vectors are there before the first row is written."""
    with make_memory(embedder=Moody(2)) as memory:
        with pytest.raises(EmbedderError, match="nothing was written: TimeoutError"):
            memory.add([f"note {i}" for i in range(600)])
        assert memory.count() == memory.collection.count() == 0


# --- identity --------------------------------------------------------------------------------------------------------


def test_chunks_of_one_source_are_all_kept(memory: HybridMemory) -> None:
    """Report 7: what a memory is, its id says, not its source."""
    memory.add([Memory(f"c{i}", f"chunk number {i}", {"source": "doc-1", "ref_doc_id": "doc-1"}) for i in range(10)])
    assert memory.count({"source": "doc-1"}) == 10
    assert len(memory.search("chunk number", k=20, profile="bm25").ids) == 10
    assert memory.search("chunk 7", profile="bm25").ids[0] == "c7"


def test_an_id_twice_in_one_call_is_refused_before_anything_is_written(memory: HybridMemory) -> None:
    """Report 10: which of the two was meant cannot be told."""
    with pytest.raises(InputError, match="'a' is given twice"):
        memory.add([Memory("b", "first"), Memory("a", "old"), Memory("a", "new")])
    assert memory.count() == memory.collection.count() == 0


def test_adding_an_id_again_replaces_the_memory_in_every_index(memory: HybridMemory) -> None:
    """Report 11: never ignored in silence."""
    memory.add(Memory("1", "cats", {"old": 1}))
    memory.add(Memory("1", "dogs", {"new": 2}))
    assert memory.search("dogs", profile="bm25").ids == ["1"]
    assert memory.search("cats", profile="bm25").ids == []
    assert memory.get("1") == [Memory("1", "dogs", {"new": 2})]
    assert memory.collection.get(ids=["1"])["metadatas"] == [{"new": 2}]


def test_an_add_that_chroma_ignores_is_not_indexed(memory: HybridMemory) -> None:
    """Report 11: on the raw collection a second add is silently dropped, and the index mirrors what is stored."""
    collection = memory.collection
    vectors = HashEmbedder(64).embed_documents(["cats", "dogs"])
    collection.add(ids=["1"], documents=["cats"], embeddings=vectors[:1])
    collection.add(ids=["1"], documents=["dogs"], embeddings=vectors[1:])
    assert memory.search("cats", profile="bm25").ids == ["1"]
    assert memory.search("dogs", profile="bm25").ids == []


# --- metadata --------------------------------------------------------------------------------------------------------


def test_none_in_metadata_is_left_out_and_spoils_no_batch(memory: HybridMemory) -> None:
    """Report 12: one None among a hundred is no reason to refuse a hundred."""
    memory.add([Memory(str(i), "text", {"author": None if i == 50 else "x", "n": i}) for i in range(100)])
    assert memory.count() == 100
    assert memory.get("50")[0].metadata == {"n": 50}


class Colour(enum.Enum):
    """An enum with a plain value."""

    RED = "red"


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (["a", "b"], ["a", "b"]),
        (("a", "b"), ["a", "b"]),
        ({"b", "a"}, ["a", "b"]),
        (np.array([1, 2]), [1, 2]),
        (np.array(3), [3]),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (Colour.RED, "red"),
        (date(2024, 8, 20), "2024-08-20"),
        (datetime(2024, 8, 20, 1, 2, tzinfo=timezone.utc), "2024-08-20T01:02:00+00:00"),
        (-0.0, 0.0),
        (2**63 - 1, 2**63 - 1),
    ],
)
def test_metadata_values_come_back_as_documented(memory: HybridMemory, value: Any, stored: Any) -> None:
    """Report 21: lists stay lists, scalars become plain Python, dates ISO text; what comes back has the type stated."""
    memory.add(Memory("a", "text", {"k": value}))
    got = memory.get("a")[0].metadata["k"]
    assert got == stored
    assert type(got) is type(stored)
    assert str(got) == str(stored)
    assert memory.verify().ok


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        [1, "a"],
        [1, True],
        {1, "a"},
        object(),
        b"x",
        2**63,
        float("nan"),
        float("inf"),
        [float("nan")],
        [[1]],
        1j,
    ],
)
def test_metadata_that_would_lose_something_is_refused_by_name(memory: HybridMemory, value: Any) -> None:
    """Report 21: the error names the memory and the key, and nothing of the batch is written."""
    with pytest.raises(MetadataError, match=r"memory 'bad': metadata 'key'"):
        memory.add([Memory("good", "text"), Memory("bad", "text", {"key": value})])
    assert memory.count() == memory.collection.count() == 0


def test_an_update_of_the_text_recomputes_everything_made_of_it(memory: HybridMemory) -> None:
    """Report 15: old words and old names are gone."""
    memory.add([Memory("a", "Dana moved from Rome to Oslo"), Memory("b", "filler about nothing")])
    memory.update("a", "Dana lives in Oslo")
    assert memory.search("Rome", profile="bm25").ids == []
    assert memory.search("Oslo", profile="bm25").ids == ["a"]
    view = memory.store.partitions.get("[]").view()
    assert not len(view.linked("rome"))
    assert len(view.linked("oslo")) == 1
    fresh = HashEmbedder(64).embed_documents(["Dana lives in Oslo"])[0]
    assert memory.get("a", embeddings=True)[0].embedding == pytest.approx(fresh.tolist(), abs=1e-6)


def test_an_update_of_the_text_keeps_the_metadata(memory: HybridMemory) -> None:
    """Report 16: what is not named keeps its value; created_at stays and updated_at moves on."""
    old = {
        "type": "preference",
        "importance": 0.9,
        "custom": "c",
        "created_at": "2020-01-01T00:00:00+00:00",
        "updated_at": "2020-01-01T00:00:00+00:00",
    }
    memory.add(Memory("a", "likes tea", old))
    memory.update("a", "likes green tea")
    new = dict(memory.get("a")[0].metadata)
    assert new.pop("updated_at") > "2025"
    assert new == {k: v for k, v in old.items() if k != "updated_at"}
    memory.update("a", metadata={"importance": 0.1, "custom": None})
    assert "custom" not in memory.get("a")[0].metadata
    assert "custom" not in memory.collection.get(ids=["a"])["metadatas"][0]
    assert memory.get("a")[0].metadata["importance"] == 0.1


def test_an_old_metadata_value_is_not_matched_after_an_update(memory: HybridMemory) -> None:
    """Report 28: only the new value is found, in every leg."""
    memory.add([Memory("a", "apple tree", {"type": "a"}), Memory("b", "apple pie", {"type": "b"})])
    memory.update("a", metadata={"type": "b"})
    for leg in EVERY_LEG:
        assert memory.search("apple", where={"type": "a"}, profile=leg).ids == []
        assert sorted(memory.search("apple", where={"type": "b"}, profile=leg).ids) == ["a", "b"]
    assert memory.count({"type": "a"}) == 0


def test_a_value_of_another_type_is_a_change(memory: HybridMemory) -> None:
    """1, 1.0 and True are equal to Python and different to a filter, so writing one over the other must not be skipped."""
    memory.add(Memory("a", "text", {"flag": 1}))
    memory.add(Memory("a", "text", {"flag": True}))
    assert memory.get("a")[0].metadata["flag"] is True
    memory.update("a", metadata={"flag": 1.0})
    assert isinstance(memory.get("a")[0].metadata["flag"], float)
    assert memory.count({"flag": True}) == 0


# --- following the collection ----------------------------------------------------------------------------------------


def test_keyword_results_follow_every_write_without_a_rebuild(memory: HybridMemory) -> None:
    """Report 8: the keyword index is live."""
    memory.add([f"note number {i}" for i in range(20)])
    memory.add(Memory("rare", "the word is xylograph"))
    assert memory.search("xylograph", profile="bm25").ids == ["rare"]
    memory.delete("rare")
    assert memory.search("xylograph", profile="bm25").ids == []


def test_indexes_are_made_from_the_collection_alone(tmp_path: Path) -> None:
    """Report 9: a collection filled elsewhere is all that is needed, and it may be empty."""
    collection = raw_collection(tmp_path, "notes")
    with HybridMemory.attach(collection, embedder=HashEmbedder(64), analyzer="fast") as empty:
        assert empty.search("anything").hits == ()
        assert empty.list() == []
        assert empty.sync().changed == 0
        texts = ["Dana lives in Oslo", "the ticket is ZX-4471"]
        collection.add(ids=["a", "b"], documents=texts, embeddings=HashEmbedder(64).embed_documents(texts))
        assert empty.search("ZX-4471", profile="bm25").ids == ["b"]
    with HybridMemory.open(tmp_path, "notes", embedder=HashEmbedder(64), analyzer="fast") as again:
        assert again.search("Oslo", profile="bm25").ids == ["a"]


def test_sync_says_what_was_added_updated_removed_and_unchanged(tmp_path: Path) -> None:
    """Report 17: deletions at the source are noticed, and nothing is added twice."""
    embed = HashEmbedder(64).embed_documents
    collection = raw_collection(tmp_path, "notes")
    texts = [f"document {i}" for i in range(5)]
    collection.add(ids=list("abcde"), documents=texts, embeddings=embed(texts))
    with HybridMemory.attach(collection, embedder=HashEmbedder(64), analyzer="fast") as memory:
        first = memory.sync()
        assert (first.added, first.updated, first.removed, first.unchanged) == (5, 0, 0, 0)
        collection.delete(ids=["d", "e"])
        collection.upsert(ids=["a", "f"], documents=["mango", "papaya"], embeddings=embed(["mango", "papaya"]))
        second = memory.sync()
        assert (second.added, second.updated, second.removed, second.unchanged) == (1, 1, 2, 2)
        assert memory.sync().unchanged == 4
        assert sorted(memory.search("document mango papaya", k=10, profile="bm25").ids) == ["a", "b", "c", "f"]


def test_writes_straight_on_the_collection_are_followed(tmp_path: Path) -> None:
    """Report 19, 114: update, upsert, delete and a change that leaves the count as it was, each before the next search."""
    embed = HashEmbedder(64).embed_documents
    with make_memory(tmp_path) as memory:
        memory.add([Memory(str(i), word(i), {"n": i}) for i in range(10)])
        raw = raw_collection(tmp_path, "memories")
        raw.update(ids=["1"], documents=["pineapple"], embeddings=embed(["pineapple"]))
        assert indexed_words(memory, word(1), "pineapple") == ([], ["1"])
        raw.upsert(ids=["2"], documents=["mango"], metadatas=[{"n": 22}], embeddings=embed(["mango"]))
        assert indexed_words(memory, word(2), "mango") == ([], ["2"])
        assert memory.count({"n": 22}) == 1
        raw.delete(ids=["3"])
        raw.add(ids=["new"], documents=["papaya"], embeddings=embed(["papaya"]))
        assert memory.count() == 10
        assert indexed_words(memory, word(3), "papaya") == ([], ["new"])
        raw.update(ids=["4"], metadatas=[{"n": 44}])
        assert memory.count({"n": 4}) == 0
        assert memory.verify().ok


def test_a_write_on_the_collection_while_ours_is_under_way_is_followed(tmp_path: Path) -> None:
    """Report 114: what somebody writes while we embed is not mistaken for our own write."""
    rows = HashEmbedder(64).embed_documents(["intruder word"])

    class Intruding(HashEmbedder):
        """Writes to the collection in the middle of our add."""

        raw: Any = None

        def embed_documents(self, texts: Any) -> Any:
            if self.raw is not None:
                raw, self.raw = self.raw, None
                raw.add(ids=["raw"], documents=["intruder word"], embeddings=rows)
                raw.delete(ids=["gone"])
            return super().embed_documents(texts)

    embedder = Intruding(64)
    with make_memory(tmp_path, embedder=embedder) as memory:
        memory.add([Memory("a", "first"), Memory("gone", "vanishing")])
        embedder.raw = raw_collection(tmp_path, "memories")
        memory.add(Memory("b", "second"))
        assert memory.search("intruder", profile="bm25").ids == ["raw"]
        assert memory.search("vanishing", profile="bm25").ids == []
        assert memory.verify().ok


@pytest.mark.parametrize("how", ["observed", "strong", "sync"])
def test_a_change_that_keeps_the_count_is_followed_in_memory_too(how: str) -> None:
    """Report 114: without a file to look into, through the observed collection, by consistency="strong", or by sync()."""
    client = chromadb.EphemeralClient()
    raw = client.get_or_create_collection(f"same-count-{how}", embedding_function=None)
    embed = HashEmbedder(64).embed_documents
    with HybridMemory.attach(
        raw,
        embedder=HashEmbedder(64),
        analyzer="fast",
        consistency="strong" if how == "strong" else "bounded",
    ) as memory:
        memory.add([Memory(str(i), word(i)) for i in range(10)])
        collection = memory.collection if how == "observed" else raw
        collection.delete(ids=["3"])
        collection.add(ids=["new"], documents=["papaya"], embeddings=embed(["papaya"]))
        if how == "sync":
            report = memory.sync()
            assert report.changed == 2, (report, memory.verify())
        assert indexed_words(memory, word(3), "papaya") == ([], ["new"])
    client.delete_collection(f"same-count-{how}")


def test_rows_without_text_or_metadata_are_memories_with_none(tmp_path: Path) -> None:
    """Report 20, 129: never a document that is None; the text is empty and the metadata a dict."""
    raw = raw_collection(tmp_path, "memories")
    vector = HashEmbedder(64).embed_documents(["hello"])
    raw.add(ids=["a"], embeddings=vector)
    with make_memory(tmp_path) as memory:
        hit = memory.search("hello", profile="semantic").hits[0]
        assert (hit.memory.id, hit.memory.text, dict(hit.memory.metadata)) == ("a", "", {})
        assert memory.search("hello", profile="bm25").hits == ()


_DELETER = """
import sys, chromadb
client = chromadb.PersistentClient(sys.argv[1])
client.get_collection("memories", embedding_function=None).delete(ids=["a"])
"""


def test_ids_deleted_by_another_process_are_never_returned(tmp_path: Path) -> None:
    """Report 20, 116: Chroma's own index still returns them, without a text."""
    with make_memory(tmp_path) as memory:
        memory.add([Memory("a", "apple"), Memory("b", "banana")])
        memory.search("apple")
        memory.store.backend.nearest(HashEmbedder(64).embed_query(["apple"])[0], 2)
        subprocess.run([sys.executable, "-c", _DELETER, str(tmp_path)], check=True, timeout=60)
        for leg in EVERY_LEG:
            hits = memory.search("apple", profile=leg, k=5).hits
            assert all(h.memory.id == "b" and h.memory.text == "banana" for h in hits)


# --- odd texts and many links ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [["", "   "], ["", "!!! ...", "🎉🎉"], ["", "apple", "\n\t"]])
def test_texts_without_words_are_stored_and_break_no_search(memory: HybridMemory, texts: list[str]) -> None:
    """Report 23: an average length of 0 divides nothing."""
    ids = memory.add(texts)
    assert memory.count() == len(texts)
    assert [m.text for m in memory.get(ids)] == texts
    for leg in EVERY_LEG:
        result = memory.search("apple", profile=leg)
        assert all(np.isfinite(h.score) for h in result.hits)
    assert memory.search("apple", profile="bm25").hits == () or "apple" in texts
    assert memory.verify().ok


def test_a_name_that_was_deleted_takes_no_living_names_place(memory: HybridMemory) -> None:
    """A store that deleted answers like one that never had it."""
    memory.add([Memory("gone", "we met Joanna there"), Memory("stays", "we met Joana there")])
    memory.delete("gone")
    with make_memory() as fresh:
        fresh.add(Memory("stays", "we met Joana there"))
        for leg in ("balanced", "mem0"):
            one, two = (m.search("where is Joanna", profile=leg) for m in (memory, fresh))
            assert found(one) == found(two)
            assert one.trace.candidates == two.trace.candidates


def test_a_view_may_be_bound_to_any_metadata(memory: HybridMemory) -> None:
    """Report 14: also without scope keys a bound view deletes only what it can see."""
    a, b = memory.scoped(agent="a"), memory.scoped(agent="b")
    assert isinstance(a, MemoryView)
    a.add([Memory("a1", "x"), Memory("a2", "y")])
    b.add(Memory("b1", "x"))
    assert a.delete(where={"$or": [{"agent": "a"}, {"agent": "b"}]}) == 2
    assert b.count() == 1


def test_warnings_name_no_tenant(memory: HybridMemory) -> None:
    """Adding is quiet."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory.add(Memory("a", "Dana"))
        memory.search("Dana")


def test_a_template_that_is_stored_is_filled_in_and_not_run() -> None:
    """A node's templates come from the disk: they reach no attribute and no width that would fill the memory."""
    from memhybrid.embedded import embedded_text
    from memhybrid.records import StoredRecord

    content = '{"metadata": {"k": "v"}, "text_template": "{content:>2000000000} {content.__class__} {metadata_str} {content}"}'
    record = StoredRecord("a", "text", {"_node_content": content})
    assert embedded_text(record) == "{content:>2000000000} {content.__class__} k: v text"
