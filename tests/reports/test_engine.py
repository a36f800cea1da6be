"""Chroma's engine: shared with others of the process, started once, ended with the last store on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import chromadb
import pytest

from memhybrid import HybridMemory, Memory
from memhybrid.embedders import HashEmbedder
from tests.conftest import make_memory

BESIDE_OTHERS = """
import sys, chromadb
from memhybrid import HybridMemory
from memhybrid.embedders import HashEmbedder

def ours(path=None):
    memory = HybridMemory.open(path, embedder=HashEmbedder(16), analyzer="fast")
    memory.add(["tea"])
    return memory

def theirs(path=None, **settings):
    settings = {"settings": chromadb.Settings(**settings)} if settings else {}
    return chromadb.PersistentClient(path, **settings) if path else chromadb.EphemeralClient(**settings)

first, folder = sys.argv[1], sys.argv[2] or None
if first == "ours":
    memory, client = ours(folder), theirs(folder)
else:
    client = theirs(folder, **({"anonymized_telemetry": False} if first == "theirs, other settings" else {}))
    memory = ours(folder)
collection = client.get_or_create_collection("notes", embedding_function=None)
collection.add(ids=["a"], embeddings=[[1.0, 0.0]], documents=["a"])
assert memory.search("tea").hits[0].memory.text == "tea"
memory.close()
assert collection.count() == 1, "the engine of the others ended with our store"
"""


@pytest.mark.parametrize("first", ["ours", "theirs", "theirs, other settings"])
@pytest.mark.parametrize("where", ["folder", "memory"])
def test_plain_chroma_works_beside_a_store_in_either_order(tmp_path: Path, first: str, where: str) -> None:
    """Our settings are those of the engine that runs, or Chroma's own, as everybody's; what others have open stays open."""
    environment = {k: v for k, v in os.environ.items() if k != "ANONYMIZED_TELEMETRY"}
    done = subprocess.run(
        [sys.executable, "-c", BESIDE_OTHERS, first, str(tmp_path / "store") if where == "folder" else ""],
        capture_output=True,
        text=True,
        timeout=120,
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("where", ["folder", "memory"])
def test_many_threads_may_open_the_first_store(tmp_path: Path, where: str) -> None:
    """Each gets the store: Chroma's own start is not made for several at once."""
    for turn in range(5):
        together, errors = threading.Barrier(6), list[Exception]()

        def go(turn: int = turn, together: threading.Barrier = together, errors: list[Exception] = errors) -> None:
            together.wait(60)
            try:
                with make_memory(tmp_path / f"store{turn}" if where == "folder" else None) as memory:
                    memory.add(["tea"])
                    assert memory.search("tea").hits
            except Exception as error:  # noqa: BLE001 - of another thread
                errors.append(error)

        threads = [threading.Thread(target=go) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert errors == []


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files in /proc")
def test_a_closed_store_leaves_no_files_and_threads_behind(tmp_path: Path) -> None:
    """A folder for each user works for any number of users."""

    def use(name: str) -> tuple[int, int]:
        with make_memory(tmp_path / name) as memory, make_memory(tmp_path / name) as again:
            memory.add(["tea"])
            assert again.count() == 1
        return len(list(Path("/proc/self/fd").iterdir())), len(list(Path("/proc/self/task").iterdir()))

    warm = [use(f"warm{i}") for i in range(3)][-1]
    after = [use(f"user{i}") for i in range(12)][-1]
    assert after[0] <= warm[0] + 3
    assert after[1] <= warm[1] + 3


def test_a_folder_that_was_moved_away_is_a_new_store(tmp_path: Path) -> None:
    """Nothing of the old one is there, and what is written stays."""
    folder = tmp_path / "store"
    with make_memory(folder) as memory:
        memory.add([Memory("old", "secret")])
    folder.rename(tmp_path / "moved")
    with make_memory(folder) as memory:
        assert memory.list() == []
        memory.add([Memory("new", "tea")])
    with make_memory(folder) as memory, make_memory(tmp_path / "moved") as moved:
        assert [m.id for m in memory.list()] == ["new"]
        assert [m.id for m in moved.list()] == ["old"]
        assert memory.verify().ok
        assert moved.verify().ok


def test_a_folder_put_back_from_a_backup_is_read_and_written_as_it_is(tmp_path: Path) -> None:
    """A copy of the folder of a closed store, put back in the same process."""
    folder, backup = tmp_path / "store", tmp_path / "backup"
    with make_memory(folder) as memory:
        memory.add([Memory("kept", "tea")])
    shutil.copytree(folder, backup)
    with make_memory(folder) as memory:
        memory.add([Memory("later", "coffee")])
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)
    with make_memory(folder) as memory:
        assert [m.id for m in memory.list()] == ["kept"]
        assert memory.verify().ok
        memory.add([Memory("new", "milk")])
        assert sorted(memory.search("tea coffee milk", 5).ids) == ["kept", "new"]


GARBAGE = """
import gc, sys, tempfile
from memhybrid import HybridMemory
from memhybrid.embedders import HashEmbedder

class Holder:
    def __init__(self, path):
        self.memory = HybridMemory.open(path, embedder=HashEmbedder(16), analyzer="fast")
        self.itself = self

gc.set_threshold(50, 2, 2)
folders = [tempfile.mkdtemp(dir=sys.argv[1]) for _ in range(5)]
for turn in range(60):
    holder = Holder(folders[turn % 5])
holder.memory.add(["tea"])
assert holder.memory.search("tea").hits
"""


def test_stores_that_are_garbage_are_closed_whatever_is_being_opened(tmp_path: Path) -> None:
    """Python may collect a store that was never closed in the middle of opening another one, with every lock held."""
    done = subprocess.run(
        [sys.executable, "-c", GARBAGE, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_store_outlives_the_client_of_another_who_attached_the_same_collection(tmp_path: Path) -> None:
    """Who opened the folder by its path goes on when the attached store and its client are closed."""
    client = chromadb.PersistentClient(str(tmp_path))
    collection = client.get_or_create_collection("notes", embedding_function=None)
    attached = HybridMemory.attach(collection, embedder=HashEmbedder(64), analyzer="fast")
    with make_memory(tmp_path, collection="notes") as opened:
        attached.close()
        client.close()
        opened.add(["tea"])
        assert opened.search("tea").hits
        with make_memory(tmp_path, collection="notes") as again:
            assert again.count() == 1


def test_stores_in_memory_are_not_ended_by_each_other() -> None:
    """The engine in memory is one for all; closing one store leaves the others' data."""
    first, second = make_memory(), make_memory()
    first.add(["tea"])
    second.add(["coffee"])
    first.close()
    del first
    assert isinstance(second, HybridMemory)
    assert [m.text for m in second.list()] == ["coffee"]
    second.add(["milk"])
    assert second.verify().ok
    second.close()
