"""Closing in the middle, waiting for others, and where a store may lie."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memhybrid import HybridMemory, Memory, Profile
from memhybrid.concurrency import MAX_THREADS
from memhybrid.embedders import HashEmbedder
from memhybrid.errors import ConfigError, InputError, MetadataError, StoreError
from tests.conftest import make_memory

CLOSE_WHILE_WRITING = """
import sys, threading, time
from memhybrid import HybridMemory, Memory, StoreError
from memhybrid.embedders import HashEmbedder

def open_it():
    return HybridMemory.open(sys.argv[1], embedder=HashEmbedder(32), analyzer="fast")

acknowledged, odd = [], []

def write(memory, name):
    for i in range(200):
        try:
            acknowledged.extend(memory.add([Memory(f"{name}-{i}", "tea")]))
        except StoreError as error:
            if "closed" not in str(error):
                odd.append(str(error))
            return

for turn in range(6):
    memory = open_it()
    writers = [threading.Thread(target=write, args=(memory, f"{turn}-{n}")) for n in range(4)]
    for writer in writers:
        writer.start()
    time.sleep(0.05)
    memory.close()
    for writer in writers:
        writer.join()
with open_it() as memory:
    assert memory.verify().ok
    assert sorted(m.id for m in memory.list()) == sorted(acknowledged), "not what was acknowledged"
assert not odd, odd
"""


class Waiting(HashEmbedder):
    """Embeds documents only once it is let."""

    def __init__(self) -> None:
        super().__init__(32)
        self.go = threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """After the sign."""
        assert self.go.wait(60)
        return super().embed_documents(texts)

    def embed_query(self, texts: Sequence[str]) -> Any:
        """At once."""
        return HashEmbedder(32).embed_query(texts)


def test_closing_while_others_write_ends_their_writes_and_loses_none(tmp_path: Path) -> None:
    """Whoever writes is told that the store is closed; what was acknowledged is there, and nothing else."""
    # In a process of its own: the engine under an open file that is closed may take the process with it.
    done = subprocess.run(
        [sys.executable, "-c", CLOSE_WHILE_WRITING, str(tmp_path / "store")],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["notes #1", "a?b", "100%41", "über tea", "a&b=c"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    """What others delete is followed at once, and a reader can open it: the name is no part of an address."""
    folder = tmp_path / name
    with make_memory(folder) as memory:
        memory.add([Memory("a", "secret tea"), Memory("b", "coffee")])
        memory.store.backend.collection.delete(ids=["a"])
        assert memory.search("secret tea", 5).ids == ["b"]
        with make_memory(folder, read_only=True) as reader:
            assert reader.count() == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("key", ["$ref", "#document", "$", "#"])
@pytest.mark.parametrize("write", ["add", "update"])
def test_a_metadata_key_that_chroma_refuses_is_refused_before_anything_is_written(
    memory: HybridMemory, key: str, write: str
) -> None:
    """The error names the memory and the key; nothing of a large batch is stored."""
    memory.add([Memory("m", "tea")])
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: memory.add([Memory(str(i), "t") for i in range(2_100)] + [Memory("m2", "x", {key: "a"})]),
        "update": lambda: memory.update("m", metadata={key: "a"}),
    }
    with pytest.raises(MetadataError, match=f"'m2?'.*{re.escape(key)}"):
        calls[write]()
    assert memory.count() == 1


async def test_searches_do_not_wait_for_writes_that_wait_for_the_embedder(tmp_path: Path) -> None:
    """However many writes are pending, in this store or another, a search is answered before any of them is."""
    embedder = Waiting()
    embedder.go.set()
    with make_memory(tmp_path / "a", embedder=embedder) as memory, make_memory(tmp_path / "b") as other:
        memory.add([Memory("tea", "tea")])
        other.add([Memory("tea", "tea")])
        embedder.go.clear()
        pending = [asyncio.ensure_future(memory.aadd(f"note {i}")) for i in range(2 * MAX_THREADS)]
        await asyncio.sleep(0)
        try:
            for searched in (memory, other):
                assert (await asyncio.wait_for(searched.asearch("tea"), 60)).ids == ["tea"]
            assert not any(task.done() for task in pending)
            # Nor do writes that need no embedder.
            await asyncio.wait_for(asyncio.to_thread(memory.delete, ["tea"]), 60)
        finally:
            embedder.go.set()
            await asyncio.gather(*pending)
        assert memory.count() == 2 * MAX_THREADS


def test_writes_of_several_threads_are_embedded_at_the_same_time() -> None:
    """One slow answer of the embedder does not hold up the others."""
    together = threading.Barrier(4)

    class Meeting(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> Any:
            together.wait(60)
            return super().embed_documents(texts)

    with make_memory(embedder=Meeting(32)) as memory:
        threads = [threading.Thread(target=memory.add, args=([Memory(str(i), f"note {i}")],)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert memory.count() == 4


def test_vectors_of_other_dimensions_lose_the_race_for_an_empty_store() -> None:
    """Two first writes of different dimensions: one is stored, the other refused with its memory's id, whichever comes first."""
    with make_memory(embedder=HashEmbedder(8)) as memory:
        real, outcome = memory._writer._write, []

        def slower(*arguments: Any) -> None:
            if not outcome:
                outcome.append("other")
                memory.add([Memory("other", "b", embedding=np.ones(8))])
            real(*arguments)

        memory._writer._write = slower  # type: ignore[method-assign]
        with pytest.raises(InputError, match=r"memory 'mine'.*4 dimensions.*has 8"):
            memory.add([Memory("mine", "a", embedding=np.ones(4))])
        assert [m.id for m in memory.list()] == ["other"]


def test_a_delete_that_fails_in_the_middle_says_what_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """`written` of the error has exactly the ids that were deleted, and the message counts those that were not."""
    with make_memory() as memory:
        memory.add([Memory(str(i), "tea") for i in range(4_500)])
        real: Callable[[Sequence[str]], None] = memory.store.backend.delete
        calls: list[int] = []

        def fails_later(ids: Sequence[str]) -> None:
            calls.append(len(ids))
            if len(calls) > 1:
                raise StoreError("no more")
            real(ids)

        monkeypatch.setattr(memory.store.backend, "delete", fails_later)
        with pytest.raises(StoreError, match="2000 memories were deleted before that") as caught:
            memory.delete(all=True)
        left = {m.id for m in memory.list()}
        assert len(left) == 2_500
        assert set(caught.value.written) == {str(i) for i in range(4_500)} - left


def test_two_memories_cannot_supersede_each_other(memory: HybridMemory) -> None:
    """A circle would hide all of them; the link that closes it is refused."""
    memory.add([Memory(name, f"Dana works at {name}") for name in "abc"])
    memory.supersede("a", "b")
    memory.supersede("b", "c")
    with pytest.raises(InputError, match="'a' is superseded by 'c' itself"):
        memory.supersede("c", "a")
    assert memory.search("Dana works", 5).ids == ["c"]


def test_tenants_can_be_listed() -> None:
    """Each as `scoped` takes it, and those that look alike apart."""
    with make_memory(scope_key=("user_id", "agent")) as memory:
        assert memory.scopes() == []
        tenants = [{"user_id": "a", "agent": 1}, {"user_id": "a ", "agent": 1}, {"user_id": "a", "agent": "1"}]
        for tenant in tenants:
            memory.scoped(**tenant).add(["tea"])
        listed = memory.scopes()
        assert sorted(map(repr, listed)) == sorted(map(repr, tenants))
        assert all(memory.scoped(**tenant).count() == 1 for tenant in listed)


async def test_everything_has_an_async_twin_and_a_store_closes_asynchronously(tmp_path: Path) -> None:
    """The twins give what the plain calls give; a listener that nobody would await is refused."""
    async with make_memory(tmp_path / "store") as memory:
        await memory.aadd([Memory("a", "tea"), Memory("b", "coffee"), Memory("c", "milk")])
        await memory.aupdate("a", embedding=np.ones(64))
        await memory.aexpire("b")
        await memory.asupersede("c", "a")
        assert await memory.acount() == memory.count() == 3
        assert await memory.alist(include_outdated=False) == memory.list(include_outdated=False)
        assert [m.id for m in await memory.alist(include_outdated=False)] == ["a"]
        assert (await memory.aget("a", embeddings=True))[0].embedding == [1.0] * 64

        async def listener(event: object) -> None: ...

        with pytest.raises(InputError, match="async"):
            memory.subscribe(listener)
    with pytest.raises(StoreError, match="closed"):
        memory.count()


def test_a_store_changes_its_embedder_by_export_and_import(tmp_path: Path) -> None:
    """With `reembed` the vectors are those of the new store's embedder; without, those of the file, which it then refuses to ask."""
    with make_memory(tmp_path / "old", embedder=HashEmbedder(16)) as old:
        old.add([Memory("a", "tea"), Memory("b", "coffee")])
        old.search("tea", record_usage=True)
        old.export(tmp_path / "all.jsonl")
    with make_memory(tmp_path / "new", embedder=HashEmbedder(32)) as new:
        assert new.import_(tmp_path / "all.jsonl", reembed=True) == 2
        assert new.search("tea").hits[0].memory.id == "a"
        assert new.get("a", embeddings=True)[0].embedding == HashEmbedder(32).embed_documents(["tea"])[0].tolist()
        assert new.usage()["a"].count == 1
        assert new.verify().ok


def test_a_reranker_that_nobody_would_await_is_refused() -> None:
    """A function and an object, before any search."""

    async def rerank(query: str, texts: list[str]) -> list[float]:
        return [0.0 for _ in texts]

    class Reranking:
        async def __call__(self, query: str, texts: list[str]) -> list[float]:
            return await rerank(query, texts)

    for reranker in (rerank, Reranking()):
        with pytest.raises(ConfigError, match="async"):
            Profile.balanced().with_reranker(reranker)
