"""Short runs of `benchmarks/fuzz.py`, and what its long runs have found."""

from __future__ import annotations

import json
import shutil
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memhybrid import HybridMemory, Memory, StoreError
from memhybrid.embedders import HashEmbedder
from memhybrid.recover import recover
from memhybrid.signals.identifier import identifiers
from memhybrid.text import FastAnalyzer, normalise
from memhybrid.text.dates import dates_in
from memhybrid.text.tokens import MAX_TERM
from memhybrid.times import EARLIEST, LATEST
from tests.conftest import make_memory
from tests.faults.fuzzing.common import Target, fuzz
from tests.reports.helpers import raw_collection

ENOUGH_S = 60.0


def run(target: Target, executions: int) -> None:
    """The same executions each time."""
    try:
        report = fuzz(target, ENOUGH_S, seed=20, last=executions - 1)
    finally:
        target.close()
    assert report.findings == []
    assert report.executions == executions


def test_filters_mean_what_is_documented_or_are_refused() -> None:
    """Three hundred filters, half of them mutated: as the definition says, as Chroma says, or FilterError."""
    from tests.faults.fuzzing.filters import Filters

    run(Filters(), 300)


@pytest.mark.filterwarnings("ignore::memhybrid.text.MissingPieceWarning")
def test_any_text_is_analysed() -> None:
    """Two hundred texts and inputs for the clock: no error, one answer, time in proportion to the length."""
    from tests.faults.fuzzing.analyzers import Analyzers

    run(Analyzers(), 200)


def test_damaged_files_give_the_same_answers_or_an_error() -> None:
    """Twenty stores whose cache, vectors, ledger or logs were damaged: mended or refused, never believed."""
    from tests.faults.fuzzing.sidecar import Sidecars

    run(Sidecars(), 20)


# --- found in texts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["last year", "last month", "去年", "上个月", "yesterday", "last week", "999 years ago"]
)
@pytest.mark.parametrize("now", [EARLIEST, LATEST])
def test_days_before_the_first_are_no_dates(text: str, now: float) -> None:
    """A question asked in the year 1 about the year before."""
    for mention in dates_in(text, now):
        assert mention.days_from(1) >= 0


@pytest.mark.parametrize("piece", ["CVE", "İLake", "1@", "12'", "1234 ", "a_", "x."])
def test_a_token_of_a_megabyte_is_looked_at_once(piece: str) -> None:
    """Looking for letters and digits behind each of its characters took a minute for a hundred thousand."""
    assert len(identifiers(FastAnalyzer().analyze_query(piece * (1_000_000 // len(piece))))) <= 1


def test_rare_characters_are_no_endless_term() -> None:
    """What the Chinese segmenter does not know is one word to it, however long."""
    analysis = FastAnalyzer().analyze(["\U00020000" * 5_000])[0]
    assert max(map(len, analysis.terms)) <= MAX_TERM


def test_normalised_text_stays_as_it_is() -> None:
    """For every character: an entity's key and its name's key are one."""
    for start in range(0, 0x110000, 0x1000):
        for char in map(chr, range(start, start + 0x1000)):
            once = normalise(char)
            assert normalise(once) == once, hex(ord(char))


# --- found in files --------------------------------------------------------------------------------------------------

TEXTS = {f"m{i}": f"Joanna wrote sentence number{i} about walnuts" for i in range(30)}


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A closed store of thirty memories."""
    folder = tmp_path / "store"
    with make_memory(folder) as memory:
        memory.add([Memory(i, text, {"n": int(i[1:])}) for i, text in TEXTS.items()])
        memory.search("Joanna", record_usage=True)
    return folder


def state(folder: Path) -> Path:
    """The folder of the cache."""
    return next(p for p in (folder / "memhybrid").iterdir() if p.is_dir())


def sql(said: str, file: str = "cache.sqlite3") -> Callable[[Path], None]:
    """Damage through SQLite, which leaves the file well formed."""

    def damage(folder: Path) -> None:
        with closing(sqlite3.connect(state(folder) / file, isolation_level=None)) as db:
            db.execute(said)

    return damage


def other_vectors(folder: Path) -> None:
    """Another vector for one memory."""
    path = state(folder) / "vectors.f32"
    vectors = np.fromfile(path, dtype=np.float32)
    vectors[64:128] = vectors[128:192]
    vectors.tofile(path)


def flipped(folder: Path) -> None:
    """One bit of a text."""
    path = state(folder) / "cache.sqlite3"
    data = bytearray(path.read_bytes())
    data[data.index(b"number7 ")] ^= 1
    path.write_bytes(data)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "a bit of a text": flipped,
    "a vector": other_vectors,
    "a text": sql("UPDATE memory SET text = 'something else' WHERE id = 'm7'"),
    "metadata": sql("""UPDATE memory SET metadata = '{"n": 9}' WHERE id = 'm7'"""),
    "terms": sql("UPDATE memory SET terms = zeroblob(length(terms)) WHERE id = 'm7'"),
    "types": sql("UPDATE memory SET terms = 'text', counts = 5, text = x'00ff' WHERE id = 'm7'"),
    "a missing row": sql("DELETE FROM memory WHERE id = 'm7'"),
    "another id": sql("UPDATE memory SET id = 'm99' WHERE id = 'm7'"),
    "another scope": sql("""UPDATE memory SET scope = '["x"]' WHERE id = 'm7'"""),
    "a slot beyond everything": sql("UPDATE memory SET slot = 4611686018427387904 WHERE id = 'm7'"),
    "a slot below zero": sql("UPDATE memory SET slot = -5 WHERE id = 'm7'"),
    "half the dimension": sql("UPDATE meta SET value = '32' WHERE key = 'dimension'"),
    "no dimension": sql("UPDATE meta SET value = '0' WHERE key = 'dimension'"),
    "the embedder's name": sql("UPDATE meta SET value = '[\"hash-\"' WHERE key = 'embedder'"),
    "settings of other types": sql("UPDATE meta SET key = x'00' WHERE key = 'token'"),
    "no table": sql("DROP TABLE memory"),
    "another column": sql("ALTER TABLE memory RENAME COLUMN text TO words"),
    "a trigger": sql("CREATE TRIGGER t AFTER INSERT ON memory BEGIN DELETE FROM meta; END"),
}


@pytest.mark.filterwarnings("ignore:the cache in")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_row_is_made_again_before_anything_is_answered(filled: Path, damage: str) -> None:
    """The cache is as it was written, or it is read from Chroma again."""
    with make_memory(filled) as memory:
        before = {hit.memory.id: hit.score for hit in memory.search("Joanna number7", k=30, record_usage=False).hits}
    DAMAGE[damage](filled)
    with make_memory(filled) as memory:
        after = {hit.memory.id: hit.score for hit in memory.search("Joanna number7", k=30, record_usage=False).hits}
        assert after == pytest.approx(before, abs=1e-6)
        assert {m.id: m.text for m in memory.list()} == TEXTS
        assert memory.verify().ok


def no_page_of_names(folder: Path) -> None:
    """Garbage where the vectors of names are kept."""
    path = state(folder) / "cache.sqlite3"
    with closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'entity_vector'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    data = bytearray(path.read_bytes())
    data[(page - 1) * size : page * size] = b"\x7f" * size
    path.write_bytes(data)


@pytest.mark.filterwarnings("ignore:the cache in")
def test_vectors_of_names_that_cannot_be_read_are_made_again(filled: Path) -> None:
    """They are read by some profiles alone, long after the store was opened."""
    with make_memory(filled) as memory:
        before = memory.search("Joanna", profile="mem0").ids
    no_page_of_names(filled)
    with make_memory(filled) as memory:
        assert memory.search("Joanna", profile="mem0").ids == before
        assert memory.verify().ok


@pytest.mark.filterwarnings("ignore:the cache in")
def test_an_update_never_writes_damage_into_chroma(filled: Path) -> None:
    """The parts of a memory that an update leaves as they are come from a cache that is whole."""
    sql("UPDATE memory SET text = 'something else' WHERE id = 'm7'")(filled)
    other_vectors(filled)
    with make_memory(filled) as memory:
        memory.update("m7", metadata={"pinned": True})
        memory.update("m1", metadata={"pinned": True})
        got = memory.collection.get(ids=["m7", "m1"], include=["documents", "metadatas"])
        assert dict(zip(got["ids"], got["documents"], strict=True)) == {"m7": TEXTS["m7"], "m1": TEXTS["m1"]}
        assert memory.verify().ok


@pytest.mark.filterwarnings("ignore:the cache in")
def test_verify_names_the_damage_and_sync_mends_it(filled: Path) -> None:
    """Also of what is in memory already and would not be read again."""
    with make_memory(filled) as memory:
        memory.search("Joanna")
        assert memory.verify().ok
        sql("UPDATE memory SET text = 'something else' WHERE id = 'm7'")(filled)
        report = memory.verify()
        assert "a row is not as it was written" in report.problems[0]
        assert not memory.verify().ok
        memory.sync()
        assert memory.verify().ok


def test_an_export_has_no_damaged_vector(filled: Path, tmp_path: Path) -> None:
    """A vector that is not as it was written comes from Chroma instead."""
    other_vectors(filled)
    with make_memory(filled) as memory:
        assert memory.export(tmp_path / "all.jsonl") == len(TEXTS)
    lines = map(json.loads, (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines())
    vectors = {line["id"]: line["embedding"] for line in lines if "id" in line}
    expected = HashEmbedder(64).embed_documents([TEXTS["m1"]])[0]
    assert vectors["m1"] == pytest.approx(expected.tolist(), abs=1e-6)


def test_a_reader_refuses_a_damaged_cache(filled: Path) -> None:
    """It may not mend it, and says who does."""
    sql("UPDATE memory SET text = 'something else' WHERE id = 'm7'")(filled)
    with make_memory(filled, read_only=True) as reader, pytest.raises(StoreError, match="for writing once"):
        reader.search("Joanna", profile="bm25")
    other_vectors(filled)
    with make_memory(filled, read_only=True) as reader, pytest.raises(StoreError, match="for writing once"):
        reader.search("Joanna", profile="semantic")


def test_a_reader_takes_a_vector_that_is_just_being_written(filled: Path) -> None:
    """As long as the cache is behind Chroma, a vector that is newer than its row is no damage."""
    raw_collection(filled, "memories").update(ids=["m1"], metadatas=[{"n": 100}])
    other_vectors(filled)
    with make_memory(filled, read_only=True) as reader:
        result = reader.search("Joanna number7", profile="semantic")
        assert len(result.hits) == 5
        assert "stale" in result.trace.degraded[0]


@pytest.mark.parametrize("column", ["retrieve_count", "last_retrieved_at"])
def test_a_damaged_ledger_says_what_can_be_done(filled: Path, column: str) -> None:
    """It cannot be made again; what is read from it is a number or an error."""
    sql(f"UPDATE usage SET {column} = 'x'", "ledger.sqlite3")(filled)
    with make_memory(filled) as memory, pytest.raises(StoreError, match=r"ledger.*put back a copy"):
        memory.usage()


def test_a_ledger_whose_names_are_no_text_is_damaged(filled: Path) -> None:
    """Python itself fails while it words what SQLite says."""
    path = state(filled) / "ledger.sqlite3"
    before = path.read_bytes()
    path.write_bytes(before.replace(b"retrieve_count", b"retrieve_coun\xa0"))
    with make_memory(filled) as memory, pytest.raises(StoreError, match=r"ledger"):
        memory.usage()
    path.write_bytes(before)
    sql("UPDATE usage SET id = CAST(x'a0' || id AS TEXT)", "ledger.sqlite3")(filled)
    with make_memory(filled) as memory, pytest.raises(StoreError, match=r"ledger.*put back a copy"):
        memory.usage()


def test_a_reader_without_a_cache_counts_all_the_same(filled: Path) -> None:
    """The cache can be missed, the counts cannot."""
    with make_memory(filled) as memory:
        expected = memory.usage()
    (state(filled) / "cache.sqlite3").unlink()
    with make_memory(filled, read_only=True) as reader:
        assert expected
        assert reader.usage() == expected


def test_recover_takes_no_vector_from_a_damaged_cache(filled: Path) -> None:
    """What is not as it was written is embedded again."""
    other_vectors(filled)
    sql("UPDATE memory SET text = 'something else' WHERE id = 'm7'")(filled)
    with make_memory(filled) as memory, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memory.store.backend.close()
    with closing(sqlite3.connect(filled / "chroma.sqlite3", isolation_level=None)) as db:
        db.execute("DELETE FROM embeddings_queue")
    other_vectors(filled)
    report = recover(filled, embedder=HashEmbedder(64))
    assert report.collections[0].vectors_embedded >= 1
    shutil.rmtree(report.damaged_folder)
    with HybridMemory.open(filled, embedder=HashEmbedder(64), analyzer="fast") as memory:
        assert {m.id: m.text for m in memory.list()} == TEXTS
        vectors: Any = {m.id: m.embedding for m in memory.get(list(TEXTS), embeddings=True)}
        again = HashEmbedder(64).embed_documents([TEXTS["m1"]])[0]
        assert float(np.dot(vectors["m1"], again)) == pytest.approx(1.0, abs=1e-5)
