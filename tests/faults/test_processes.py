"""A store and the start methods of processes: spawn and fork, readers and writers."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from memhybrid import Memory, StoreError, StoreLockedError
from tests.conftest import make_memory
from tests.faults.server import Server

SPAWN = multiprocessing.get_context("spawn")


def read(folder: str) -> tuple[list[str], int, str]:
    """In a child: answers of a reader, and what it says to a write."""
    with make_memory(Path(folder), read_only=True) as reader:
        try:
            reader.add("x")
            refused = ""
        except StoreError as error:
            refused = str(error)
        return reader.search("apple", profile="bm25").ids, reader.count(), refused


def write(folder: str, name: str) -> str:
    """In a child: a write; what it says where it may not."""
    try:
        with make_memory(Path(folder)) as memory:
            memory.add(Memory(name, "apple"))
            return "written"
    except StoreLockedError as error:
        return str(error)


def test_spawned_processes_read_what_is_open_here_and_write_when_it_is_closed(tmp_path: Path) -> None:
    """Two spawned readers answer while this process writes, a spawned writer is told its number, and may write after it has closed."""
    folder = str(tmp_path)
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        with make_memory(tmp_path) as memory:
            memory.add([Memory("a", "apple"), Memory("b", "banana")])
            with pytest.raises(TypeError, match="open it again"):
                pickle.dumps(memory)
            for ids, count, refused in pool.map(read, [folder, folder]):
                assert (ids, count) == (["a"], 2)
                assert "read_only=True" in refused
            said = pool.submit(write, folder, "c").result()
            assert f"process {os.getpid()} " in said
            assert memory.count() == 2
        assert pool.submit(write, folder, "c").result() == "written"
        with make_memory(tmp_path) as memory:
            assert memory.search("apple", profile="bm25").ids == ["a", "c"]
            assert memory.verify().ok


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_before_the_store_was_opened_may_open_it(tmp_path: Path) -> None:
    """As a server does that forks its workers first: one of them writes, the others read, each on its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver")) as pool:
        assert pool.submit(write, str(tmp_path), "a").result() == "written"
        ids, count, _ = pool.submit(read, str(tmp_path)).result()
        assert (ids, count) == (["a"], 1)
    with make_memory(tmp_path) as memory:
        assert memory.search("apple", profile="bm25").ids == ["a"]


def over_http(port: int, name: str) -> list[str]:
    """In a child: a write and a search on a server that the parent uses, too."""
    from memhybrid import HybridMemory
    from memhybrid.embedders import HashEmbedder

    options = {"embedder": HashEmbedder(64), "analyzer": "fast", "staleness": 0.0}
    with HybridMemory.connect("127.0.0.1", port, "notes", **options) as memory:
        memory.add(Memory(name, "apple"))
        return sorted(memory.search("apple", k=20, profile="bm25").ids)


def test_processes_write_together_through_a_server(tmp_path: Path) -> None:
    """What the error for a second writer advises: three processes on one server lose nothing and see each other's writes."""
    with Server(tmp_path) as server, ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        here = over_http(server.port, "here")
        there = list(pool.map(over_http, [server.port] * 4, ["c0", "c1", "c2", "c3"]))
        assert here == ["here"]
        for number, ids in enumerate(there):
            assert {"here", f"c{number}"} <= set(ids)
        assert over_http(server.port, "last") == ["c0", "c1", "c2", "c3", "here", "last"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("where", ["memory", "folder"])
def test_a_forked_child_that_lets_go_of_the_parents_store_neither_hangs_nor_takes_it_away(
    tmp_path: Path, where: str
) -> None:
    """Garbage collection in a child must not call Chroma's engine, whose threads are not there, nor close the parent's files."""
    code = """
import gc, os, sys, warnings
from tests.conftest import make_memory
warnings.simplefilter("ignore")
memory = make_memory(None if sys.argv[1] == "memory" else sys.argv[2])
memory.add("apple")
child = os.fork()
if not child:
    del memory
    gc.collect()
    os._exit(0)
ended = os.waitpid(child, 0)[1]
memory.add("pear")
print(ended, memory.count(), memory.search("apple", profile="bm25").hits[0].memory.text, memory.verify().ok)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, where, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.split() == ["0", "2", "apple", "True"], done.stderr
