"""Files, processes and threads: what survives, what is refused, and what is made again."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memhybrid import (
    ConfigError,
    EmbedderError,
    HybridMemory,
    InputError,
    Memory,
    StoreError,
    StoreLockedError,
)
from memhybrid.embedders import HashEmbedder
from tests.conftest import make_memory
from tests.reports.helpers import found, raw_collection, word

ROOT = Path(__file__).parents[2]


def run(code: str, *arguments: str) -> str:
    """What another Python process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=90,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'core'}{os.pathsep}{ROOT}"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- two processes ---------------------------------------------------------------------------------------------------

_SECOND_WRITER = """
import os, sys
from memhybrid import StoreLockedError
from tests.conftest import make_memory
try:
    make_memory(sys.argv[1])
except StoreLockedError as error:
    print(error)
"""


def test_a_second_writer_is_refused_at_once_and_told_who_writes(tmp_path: Path) -> None:
    """Report 116, 119: no waiting, the holder's process number, and the three ways out."""
    with make_memory(tmp_path) as memory:
        memory.add(Memory("a", "apple"))
        said = run(_SECOND_WRITER, str(tmp_path))
        assert f"process {os.getpid()}" in said
        for way in ("close the other one", "read_only=True", "chroma run"):
            assert way in said
        memory.add(Memory("b", "banana"))
        assert memory.verify().ok
    assert run(_SECOND_WRITER, str(tmp_path)) == ""


_READER = """
import sys
from tests.conftest import make_memory
with make_memory(sys.argv[1], read_only=True) as memory:
    for line in sys.stdin:
        result = memory.search(line.strip(), profile="bm25", k=9)
        near = memory.search(line.strip(), profile="semantic", k=9)
        print(sorted(result.ids), len(near.hits), list(result.trace.degraded), flush=True)
"""


def test_a_reader_in_another_process_follows_the_writer(tmp_path: Path) -> None:
    """Report 116: by keywords and by vectors, without being opened again, and it is told where it is behind."""
    with make_memory(tmp_path) as memory:
        memory.add(Memory("a", "apple"))
        reader = subprocess.Popen(
            [sys.executable, "-c", _READER, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'core'}{os.pathsep}{ROOT}"},
        )

        def ask(query: str) -> str:
            assert reader.stdin is not None
            assert reader.stdout is not None
            reader.stdin.write(query + "\n")
            reader.stdin.flush()
            return reader.stdout.readline().strip()

        try:
            assert ask("apple") == "['a'] 1 []"
            memory.add(Memory("b", "apple banana"))
            assert ask("apple") == "['a', 'b'] 2 []"
            memory.delete("a")
            assert ask("apple") == "['b'] 1 []"
            raw_collection(tmp_path, "memories").delete(ids=["b"])
            assert "this reader is stale" in ask("apple")
            memory.count()
            assert ask("apple") == "[] 0 []"
        finally:
            reader.stdin.close()  # type: ignore[union-attr]
            reader.wait(30)


def test_a_reader_writes_nothing_and_says_why(tmp_path: Path) -> None:
    """Every write is refused, and the folder of a store that is not there is not made."""
    with make_memory(tmp_path / "s") as memory:
        memory.add(Memory("a", "apple"))
    with make_memory(tmp_path / "s", read_only=True) as reader:
        for call in (
            lambda: reader.add("x"),
            lambda: reader.update("a", "x"),
            lambda: reader.delete("a"),
            lambda: reader.delete(all=True),
            reader.sync,
            reader.compact,
        ):
            with pytest.raises(StoreError, match="read_only=True"):
                call()
        assert reader.search("apple").ids == ["a"]
        assert reader.count() == 1
    with pytest.raises(InputError, match="no store"):
        make_memory(tmp_path / "nowhere", read_only=True)
    assert not (tmp_path / "nowhere").exists()


def test_a_reader_of_a_folder_that_we_never_indexed_reads_it_all_the_same(tmp_path: Path) -> None:
    """Report 9: the index is then made in memory, and the folder stays as it was."""
    raw = raw_collection(tmp_path, "memories")
    raw.add(ids=["a"], documents=["apple"], embeddings=HashEmbedder(64).embed_documents(["apple"]))
    with make_memory(tmp_path, read_only=True) as reader:
        assert reader.search("apple").ids == ["a"]
        raw.add(ids=["b"], documents=["banana"], embeddings=HashEmbedder(64).embed_documents(["banana"]))
        assert reader.search("banana", profile="bm25").ids == ["b"]
    assert not (tmp_path / "memhybrid").exists()


# --- one process -----------------------------------------------------------------------------------------------------


def test_all_doors_to_one_folder_lead_to_one_store(tmp_path: Path) -> None:
    """Report 117, 157: two opens, another spelling of the path and an attached collection see each other's writes."""
    with make_memory(tmp_path) as one, make_memory(tmp_path / ".." / tmp_path.name) as two:
        three = HybridMemory.attach(raw_collection(tmp_path, "memories"), embedder=HashEmbedder(64), analyzer="fast")
        for name, writer in (("a", one), ("b", two), ("c", three)):
            writer.add(Memory(name, f"apple {name}"))
        for reader in (one, two, three):
            assert sorted(reader.search("apple", profile="bm25").ids) == ["a", "b", "c"]
            assert reader.verify().ok
        one.close()
        assert two.count() == 3
        three.close()


@pytest.mark.parametrize("options", [{"scope_key": "user"}, {"bm25": "rank-bm25"}], ids=str)
def test_two_doors_with_other_settings_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    """Each would throw away the other's indexes; the error names the setting."""
    with make_memory(tmp_path) as memory:
        memory.add(Memory("a", "apple", {"user": "u"}))
        with pytest.raises(ConfigError, match=next(iter(options))):
            make_memory(tmp_path, **options)
        assert memory.search("apple").ids == ["a"]
    with make_memory(tmp_path, **options) as again:
        assert again.search("apple", where={"user": "u"}).ids == ["a"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_is_told_what_to_do_and_never_hangs(tmp_path: Path) -> None:
    """Report 152: no deadlock on a lock or an engine of the parent; the parent's lock is free when the parent lets go."""
    code = """
import os, sys
from memhybrid import StoreError, StoreLockedError
from tests.conftest import make_memory
memory = make_memory(sys.argv[1]); memory.add("apple")
pipe, back = os.pipe(), os.pipe()
child = os.fork()
if not child:
    os.close(pipe[1])
    said = []
    for call in (lambda: memory.search("apple"), lambda: memory.add("x"), lambda: make_memory(sys.argv[1], read_only=True)):
        try: call()
        except StoreError as error: said.append("fork" in str(error))
    try: make_memory(sys.argv[1])
    except StoreLockedError: said.append("locked")
    os.write(back[1], b"x")
    os.read(pipe[0], 1)
    try: make_memory(sys.argv[1])
    except StoreError as error: said.append("spawn" in str(error))
    with make_memory(sys.argv[2]) as own: own.add("pear"); said.append(own.count())
    print(said, flush=True)
    os._exit(0)
os.close(back[1])
os.read(back[0], 1)
memory.close()
with make_memory(sys.argv[1]) as again: again.add("plum")
os.write(pipe[1], b"x")
assert os.waitpid(child, 0)[1] == 0
with make_memory(sys.argv[1]) as again: print(again.count(), again.verify().ok)
"""
    said = run(code, str(tmp_path / "one"), str(tmp_path / "two")).splitlines()
    assert said == ["[True, True, True, 'locked', True, 1]", "2 True"]


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """Every call after close."""
    memory = make_memory(tmp_path)
    memory.add("apple")
    memory.close()
    for call in (lambda: memory.search("apple"), lambda: memory.add("x"), memory.count, memory.verify):
        with pytest.raises(StoreError, match="closed"):
            call()


def test_opening_and_adding_again_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Report 157: running a notebook's cell three times, also from another directory."""
    rows = [Memory("a", "apple", {"n": 1}), Memory("b", "banana")]
    for folder in (tmp_path, tmp_path / "elsewhere", tmp_path):
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        with make_memory(tmp_path / "store") as memory:
            before = memory.collection.count()
            token = memory.store.backend.change_token()
            memory.add(rows)
            assert memory.count() == 2
            assert before == 0 or memory.store.backend.change_token() == token
            assert memory.verify().ok


def test_a_folder_removed_and_made_again_is_a_new_store_in_a_new_process(tmp_path: Path) -> None:
    """Report 120: in the same process Chroma's cached engine fails with an error, and nothing is made up."""
    code = """
import shutil, sys
from pathlib import Path
from memhybrid import MemHybridError
from tests.conftest import make_memory
folder = Path(sys.argv[1])
with make_memory(folder) as memory: memory.add("apple")
shutil.rmtree(folder)
try:
    with make_memory(folder) as memory: memory.add("pear")
except MemHybridError as error: print(type(error).__name__)
else: print("fine")
"""
    folder = tmp_path / "s"
    assert run(code, str(folder)) in ("StoreError", "StoreDamagedError", "fine")
    shutil.rmtree(folder, ignore_errors=True)
    with make_memory(folder) as memory:
        memory.add("plum")
        assert memory.count() == 1


def test_a_collection_that_was_dropped_is_an_error_not_an_empty_answer(tmp_path: Path) -> None:
    """A live handle to a deleted collection must not say that there is nothing."""
    with make_memory(tmp_path) as memory:
        memory.add("apple")
        memory.search("apple")
        raw_collection(tmp_path, "memories")._client.delete_collection(
            "memories", tenant="default_tenant", database="default_database"
        )
        with pytest.raises(StoreError, match="NotFoundError"):
            memory.search("apple")


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """The folder of a store of 300 memories, closed."""
    folder = tmp_path / "s"
    with make_memory(folder) as memory:
        memory.add([Memory(str(i), f"{word(i)} apple Joanna", {"n": i}) for i in range(300)])
        memory.search("apple", record_usage=True)
    return folder


def state(folder: Path) -> Path:
    """The folder of our own files."""
    return next((folder / "memhybrid").iterdir())


def cut(path: Path, share: float) -> None:
    """Keep the first part of a file."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def other_format(path: Path) -> None:
    """As a later version would leave it."""
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = '999' WHERE key = 'format'")
    db.close()


def other_collection(path: Path) -> None:
    """As if the folder had been copied from another store."""
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = 'another' WHERE key = 'collection'")
        db.execute("UPDATE memory SET text = 'foreign text'")
    db.close()


DAMAGE = {
    "no state": lambda s: shutil.rmtree(s),
    "no cache": lambda s: (s / "cache.sqlite3").unlink(),
    "empty cache": lambda s: (s / "cache.sqlite3").write_bytes(b""),
    "garbage cache": lambda s: (s / "cache.sqlite3").write_bytes(os.urandom(40_000)),
    "half a cache": lambda s: cut(s / "cache.sqlite3", 0.5),
    "a page of a cache": lambda s: cut(s / "cache.sqlite3", 0.05),
    "later format": lambda s: other_format(s / "cache.sqlite3"),
    "another collection": lambda s: other_collection(s / "cache.sqlite3"),
    "no vectors": lambda s: (s / "vectors.f32").unlink(),
    "empty vectors": lambda s: (s / "vectors.f32").write_bytes(b""),
    "half the vectors": lambda s: cut(s / "vectors.f32", 0.3),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cache_is_made_again_from_chroma(filled: Path, damage: str) -> None:
    """Whatever is missing, cut off, garbage, of a later version or of another collection: the same answers afterwards."""
    with make_memory(filled) as memory:
        before = memory.search(f"{word(7)} Joanna", k=300, record_usage=False)
    DAMAGE[damage](state(filled))
    with make_memory(filled) as memory:
        after = memory.search(f"{word(7)} Joanna", k=300, record_usage=False)
        # Chroma gives vectors back with other last bits than it was given.
        assert dict(found(after)) == pytest.approx(dict(found(before)), abs=1e-6)
        assert after.ids[0] == before.ids[0] == "7"
        assert memory.count({"n": {"$gte": 0}}) == 300
        assert memory.verify().ok


def test_a_reader_refuses_a_format_that_it_does_not_know(filled: Path) -> None:
    """It must not write, so it says what to do."""
    other_format(state(filled) / "cache.sqlite3")
    with pytest.raises(StoreError, match="format 999"):
        make_memory(filled, read_only=True)


def test_an_earlier_copy_of_chromas_folder_is_followed(filled: Path, tmp_path: Path) -> None:
    """A backup put back under a newer cache: the indexes go back with it."""
    backup = tmp_path / "backup"
    shutil.copytree(filled, backup)
    code = """
import sys
from tests.conftest import make_memory
with make_memory(sys.argv[1]) as memory:
    memory.update("3", "a later version"); memory.delete("4"); memory.add("one more")
"""
    run(code, str(filled))
    shutil.copytree(state(filled), state(backup), dirs_exist_ok=True)
    with make_memory(backup) as memory:
        assert memory.search("later version", profile="bm25").ids == []
        assert memory.get("4")[0].text.startswith(word(4))
        assert memory.count() == 300
        assert memory.verify().ok


def test_keywords_survive_when_the_vectors_of_chroma_are_lost(filled: Path) -> None:
    """Report 121: opening an unchanged store reads nothing from Chroma's own index."""
    for segment in (p for p in filled.iterdir() if p.is_dir() and p.name != "memhybrid"):
        shutil.rmtree(segment)
    with make_memory(filled) as memory:
        assert memory.search(word(7), profile="bm25").ids == ["7"]
        assert memory.search(word(7), profile="semantic").ids[0] == "7"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_says_so(filled: Path) -> None:
    """The error names the folder and the way out."""
    filled.chmod(0o500)
    try:
        with pytest.raises(StoreError, match=r"cannot write to .*copy it"):
            make_memory(filled)
    finally:
        filled.chmod(0o700)


def test_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    """Not a folder: nothing is made."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="path"):
        make_memory(tmp_path / "file")
    with pytest.raises(InputError, match="path"):
        make_memory(tmp_path / "file" / "below")


# --- settings kept with the index ------------------------------------------------------------------------------------


def test_another_embedder_is_refused_with_both_dimensions(tmp_path: Path) -> None:
    """Report 123: at opening, or at the first use where the collection came without a fingerprint."""
    with make_memory(tmp_path) as memory:
        memory.add("apple")
    with pytest.raises(EmbedderError, match=r"64.*32"):
        make_memory(tmp_path, embedder=HashEmbedder(32))
    raw = raw_collection(tmp_path / "raw", "notes")
    raw.add(ids=["a"], documents=["apple"], embeddings=[[1.0, 0.0, 0.0]])
    with HybridMemory.attach(raw, embedder=HashEmbedder(64), analyzer="fast") as attached:
        with pytest.raises(EmbedderError, match=r"3 dimensions.*64"):
            attached.search("apple")
        with pytest.raises(EmbedderError, match=r"3 dimensions.*64"):
            attached.add("pear")
        with pytest.raises(InputError, match=r"4 dimensions.*3"):
            attached.search("", embedding=[1.0, 2.0, 3.0, 4.0])


def test_vectors_of_another_model_of_the_same_size_are_noticed(tmp_path: Path) -> None:
    """Report 123: three texts embedded again must give what is stored."""
    raw = raw_collection(tmp_path, "notes")
    rows = np.random.default_rng(0).normal(size=(5, 64))
    raw.add(ids=list("abcde"), documents=["apple", "pear", "plum", "fig", "kiwi"], embeddings=rows)
    with HybridMemory.attach(raw, embedder=HashEmbedder(64), analyzer="fast") as attached:
        with pytest.raises(EmbedderError, match="were not made by"):
            attached.search("apple")
        assert attached.search("apple", profile="bm25").ids == ["a"]


def test_another_analyser_makes_the_keyword_index_anew(tmp_path: Path) -> None:
    """Report 124: terms of a query are always compared with terms that the same analyser made."""
    from memhybrid.protocols import Analysis, QueryAnalysis

    class Letters:
        """Each letter is a term."""

        fingerprint = "letters/1"
        missing = ()

        def analyze(self, texts: Any) -> list[Analysis]:
            return [Analysis(tuple(t.replace(" ", ""))) for t in texts]

        def analyze_query(self, text: str) -> QueryAnalysis:
            return QueryAnalysis(tuple(text.replace(" ", "")))

    with make_memory(tmp_path) as memory:
        memory.add([Memory("a", "apple"), Memory("b", "zoo")])
        assert memory.search("z", profile="bm25").ids == []
    with make_memory(tmp_path, analyzer=Letters()) as memory:
        assert memory.search("z", profile="bm25").ids == ["b"]
        assert memory.verify().ok
    with make_memory(tmp_path) as memory:
        assert memory.search("z", profile="bm25").ids == []
        assert memory.search("zoo", profile="bm25").ids == ["b"]


# --- threads ---------------------------------------------------------------------------------------------------------


def test_a_memory_added_during_a_rebuild_is_found() -> None:
    """Report 115: whichever comes first."""
    with make_memory(profile="bm25") as memory:
        memory.add([Memory(str(i), word(i)) for i in range(2_000)])
        stop = threading.Event()
        failed: list[BaseException] = []

        def rebuild() -> None:
            try:
                while not stop.is_set():
                    memory.sync()
                    memory.store.partitions.drop()
                    memory.search(word(1))
            except BaseException as error:  # noqa: BLE001 - reported by the test
                failed.append(error)

        thread = threading.Thread(target=rebuild)
        thread.start()
        try:
            for i in range(15):
                memory.add(Memory(f"new{i}", word(10_000 + i)))
                assert memory.search(word(10_000 + i)).ids == [f"new{i}"]
        finally:
            stop.set()
            thread.join(60)
        assert not thread.is_alive()
        assert not failed
        assert memory.verify().ok


def test_searches_see_one_state_while_others_write() -> None:
    """Report 114: a memory that is being replaced is there in one version or the other, never in none or both."""
    with make_memory() as memory:
        memory.add([Memory(str(i), f"apple {word(i)} zero") for i in range(40)])
        stop = threading.Event()
        failed: list[Any] = []

        def read() -> None:
            try:
                while not stop.is_set():
                    assert len(memory.get([str(i) for i in range(40)])) == 40
                    assert memory.count() == 40
                    hits = memory.search("apple", k=50, profile="bm25").hits
                    assert len({h.memory.id for h in hits}) == len(hits) == 40
                    texts = {h.memory.text.rsplit(" ", 1)[1] for h in memory.search(word(7), k=1, profile="bm25").hits}
                    assert len(texts) == 1
            except BaseException as error:  # noqa: BLE001 - reported by the test
                failed.append(error)

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for n in range(12):
                memory.add([Memory(str(i), f"apple {word(i)} {word(100 + n)}") for i in range(40)])
                memory.update("7", metadata={"n": n})
        finally:
            stop.set()
            for thread in threads:
                thread.join(60)
        assert not failed
        assert memory.verify().ok


def test_a_search_does_not_wait_for_a_long_write(tmp_path: Path) -> None:
    """A writer in the middle of a call keeps nobody from searching what was there before."""
    inside, go_on = threading.Event(), threading.Event()

    class Waiting(HashEmbedder):
        """Stops in the second batch."""

        wait = False

        def embed_documents(self, texts: Any) -> Any:
            if self.wait:
                inside.set()
                assert go_on.wait(60)
            return super().embed_documents(texts)

    embedder = Waiting(64)
    with make_memory(tmp_path, embedder=embedder) as memory:
        memory.add(Memory("a", "apple"))
        embedder.wait = True
        thread = threading.Thread(target=memory.add, args=([Memory("b", "banana")],))
        thread.start()
        try:
            assert inside.wait(60)
            raw_collection(tmp_path, "memories").add(
                ids=["raw"], documents=["cherry"], embeddings=HashEmbedder(64).embed_documents(["cherry"])
            )
            assert memory.search("apple", profile="bm25").ids == ["a"]
        finally:
            embedder.wait = False
            go_on.set()
            thread.join(60)
        assert memory.search("banana cherry", profile="bm25", k=9).ids in (["b", "raw"], ["raw", "b"])
        assert memory.verify().ok


def test_a_broken_listener_keeps_nobody_from_writing(memory: HybridMemory) -> None:
    """It is logged; the others still hear."""
    heard: list[Any] = []

    def broken(event: Any) -> None:
        raise RuntimeError("listener")

    memory.subscribe(broken)
    end = memory.subscribe(heard.append)
    memory.add(Memory("a", "apple"))
    memory.delete("a")
    end()
    memory.add(Memory("b", "banana"))
    assert [([m.id for m in e.put], list(e.removed)) for e in heard] == [(["a"], []), ([], ["a"])]


def test_nothing_of_a_deleted_memory_is_in_our_files_after_compaction(tmp_path: Path) -> None:
    """Erasure: neither its text, nor a name in it, nor its vector."""
    with make_memory(tmp_path) as memory:
        memory.add([Memory("a", "Zerlina knows quetzalcoatl", {"secret": "hushhush"}), Memory("b", "Dana plays chess")])
        memory.search("Zerlina", profile="mem0", record_usage=True)
        vector = np.asarray(memory.get("a", embeddings=True)[0].embedding, dtype=np.float32).tobytes()
        memory.delete("a")
        memory.compact()
        memory.search("Zerlina", profile="mem0")
    data = b"".join(p.read_bytes() for p in state(tmp_path).rglob("*") if p.is_file())
    for trace in (b"quetzalcoatl", b"hushhush", b"zerlina", b"Zerlina", vector):
        assert trace not in data
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with make_memory(tmp_path) as memory:
            assert memory.count() == 1


def test_locked_error_is_a_store_error() -> None:
    """One except clause is enough."""
    assert issubclass(StoreLockedError, StoreError)
