"""Step 10 and the ledger: exact, durable, following deletes, and written by nobody who did not ask."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memhybrid import HybridMemory, Memory, Profile
from memhybrid.state.ledger import Ledger, UsageEntry
from tests.conftest import make_memory
from tests.tipsy.conftest import NOW

IDS = [f"m{i}" for i in range(5)]
THREADS, PROCESSES, ROUNDS = 8, 4, 60


def ledger_of(folder: Path) -> Path:
    """The ledger's file in a store's folder."""
    return next(iter(folder.glob("memhybrid/*/ledger.sqlite3")))


def count_up(folder: str, worker: int, rounds: int) -> None:
    """What one process does: its own connection, every memory once a round."""
    ledger = Ledger(Path(folder))
    for i in range(rounds):
        ledger.record(IDS, NOW + worker * rounds + i)
    ledger.close()


def search_on(folder: str, rounds: int) -> None:
    """What another process does that may not write memories: it searches and counts."""
    with make_memory(Path(folder), profile="tipsy", read_only=True) as memory:
        for _ in range(rounds):
            assert len(memory.search("apple", 5)) == 5


def together(work: Callable[..., None], arguments: list[tuple[Any, ...]]) -> None:
    """Real processes, started afresh, all at once; a failing one fails the test."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=a) for a in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0


@pytest.mark.parametrize("in_memory", [False, True])
def test_eight_threads_lose_no_increment(tmp_path: Path, in_memory: bool) -> None:
    """Eight threads increment the same memories at the same time: every count is exact, and `last` is the latest moment."""
    ledger = Ledger(None if in_memory else tmp_path)
    barrier = threading.Barrier(THREADS)

    def work(worker: int) -> None:
        barrier.wait()
        for i in range(ROUNDS):
            ledger.record(IDS, NOW + worker * ROUNDS + i)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    assert ledger.export() == {i: UsageEntry(THREADS * ROUNDS, NOW + THREADS * ROUNDS - 1) for i in IDS}


def test_four_processes_lose_no_increment(tmp_path: Path) -> None:
    """Four processes that open a ledger which is not there yet increment the same memories: every count is exact."""
    together(count_up, [(str(tmp_path), worker, ROUNDS) for worker in range(PROCESSES)])
    assert Ledger(tmp_path).export() == {i: UsageEntry(PROCESSES * ROUNDS, NOW + PROCESSES * ROUNDS - 1) for i in IDS}


def test_searches_in_several_processes_are_all_counted(tmp_path: Path) -> None:
    """A writer and two readers of one store search and count at the same time; the sum is exact, in the writer at once."""
    with make_memory(tmp_path, profile="tipsy") as memory:
        memory.add([Memory(i, f"apple {i}") for i in IDS])
        together(search_on, [(str(tmp_path), 20), (str(tmp_path), 20)])
        for _ in range(20):
            memory.search("apple", 5)
        assert {i: e.count for i, e in memory.usage().items()} == dict.fromkeys(IDS, 60)


def test_an_older_moment_does_not_set_the_last_back() -> None:
    """Two processes' clocks differ: the count grows, the latest moment stays."""
    ledger = Ledger(None)
    ledger.record(["a"], NOW)
    ledger.record(["a"], NOW - 500)
    ledger.set({"b": UsageEntry(3, None)})
    ledger.record(["b"], -5.0)
    assert ledger.export() == {"a": UsageEntry(2, NOW), "b": UsageEntry(4, -5.0)}


def test_counts_work_on_the_next_query() -> None:
    """A memory that was returned alone overtakes its equal in the very next search."""
    with make_memory(None, profile="tipsy") as memory:
        memory.add([Memory("a", "text", {"session_id": "s"}), Memory("b", "text")])
        assert memory.search("text", 2, record_usage=False).ids == ["b", "a"]
        memory.search("text", 2, where={"session_id": "s"})
        after = memory.search("text", 2, record_usage=False)
    assert after.ids == ["a", "b"]
    assert after[0].signals["usage"] == pytest.approx(0.8 + 0.2 * 0.2276702, abs=1e-4)
    assert after[1].signals["usage"] == 0.0


def test_only_what_was_returned_is_counted_and_with_the_calls_time() -> None:
    """k of many are counted, once each, at the moment of the call."""
    with make_memory(None, profile="tipsy") as memory:
        memory.add([f"apple {i}" for i in range(20)])
        found = memory.search("apple", 3, now=NOW)
        assert memory.usage() == {i: UsageEntry(1, NOW) for i in sorted(found.ids)}


@pytest.mark.parametrize("profile", ["balanced", "mem0", "semantic", "bm25", "best"])
def test_searching_writes_nothing_unless_asked(tmp_path: Path, profile: str) -> None:
    """Only `tipsy` counts by itself: other profiles make no ledger, and count where a call says so."""
    with make_memory(tmp_path, profile=profile) as memory:
        memory.add(["apple"])
        memory.search("apple", 1)
        assert memory.usage() == {}
        assert not list(tmp_path.glob("memhybrid/*/ledger.sqlite3"))
        memory.search("apple", 1, record_usage=True)
        assert [e.count for e in memory.usage().values()] == [1]


def test_tipsy_can_be_told_to_count_nothing(tmp_path: Path) -> None:
    """`record_usage=False` leaves no trace, not even a file."""
    with make_memory(tmp_path, profile="tipsy") as memory:
        memory.add(["apple"])
        memory.search("apple", 1, record_usage=False)
        assert not list(tmp_path.glob("memhybrid/*/ledger.sqlite3"))


def test_counts_survive_a_restart_and_an_update(tmp_path: Path) -> None:
    """Closing and opening keeps counts; a changed text is the same memory."""
    with make_memory(tmp_path, profile="tipsy") as memory:
        memory.add([Memory("a", "apple"), Memory("b", "banana")])
        memory.search("apple", 2, now=NOW)
        memory.update("a", text="apple pie")
    with make_memory(tmp_path, profile="tipsy") as memory:
        assert memory.usage(["a"]) == {"a": UsageEntry(1, NOW)}
        memory.search("apple", 2, now=NOW + 1)
        assert memory.usage("a") == {"a": UsageEntry(2, NOW + 1)}


def test_deletes_take_their_counts_along(tmp_path: Path) -> None:
    """A deleted memory's count is gone, also from the file's bytes after compaction; the same id added again starts at nothing."""
    with make_memory(tmp_path, profile="tipsy") as memory:
        memory.add([Memory("gone-for-good", "apple"), Memory("kept", "apple")])
        memory.search("apple", 2)
        memory.delete("gone-for-good")
        assert set(memory.usage()) == {"kept"}
        memory.add([Memory("gone-for-good", "apple")])
        assert memory.usage("gone-for-good") == {}
        assert memory.verify().ok


def test_deletes_by_others_take_their_counts_along() -> None:
    """What somebody deletes from the collection itself is forgotten when the store follows."""
    with make_memory(None, profile="tipsy") as memory:
        memory.add([Memory("a", "apple"), Memory("b", "apple")])
        memory.search("apple", 2)
        memory.collection.delete(ids=["a"])
        memory.sync()
        assert set(memory.usage()) == {"b"}


def test_reading_and_resetting(folder_memory: HybridMemory) -> None:
    """Some or all counts can be read, put back, and forgotten; unknown ids are not there."""
    folder_memory.add([Memory(i, "apple") for i in IDS])
    for _ in range(3):
        folder_memory.search("apple", 5, record_usage=True, now=NOW)
    assert folder_memory.usage(["m1", "nobody"]) == {"m1": UsageEntry(3, NOW)}
    everything = folder_memory.usage()
    assert everything == dict.fromkeys(IDS, UsageEntry(3, NOW))
    folder_memory.reset_usage(["m0", "m1"])
    assert set(folder_memory.usage()) == {"m2", "m3", "m4"}
    folder_memory.reset_usage()
    assert folder_memory.usage() == {}


def test_a_damaged_ledger_does_not_fail_a_search(tmp_path: Path) -> None:
    """Counts are no memories: the search answers without them, and the trace says what is wrong."""
    with make_memory(tmp_path, profile="tipsy") as memory:
        memory.add(["apple"])
        memory.search("apple", 1)
    path = ledger_of(tmp_path)
    for extra in path.parent.glob("ledger.sqlite3-*"):
        extra.unlink()
    path.write_bytes(b"this is not a database" * 300)
    with make_memory(tmp_path, profile="tipsy") as memory:
        result = memory.search("apple", 1)
    assert len(result) == 1
    assert any("usage" in text for text in result.trace.degraded)
    with pytest.raises(sqlite3.DatabaseError):
        sqlite3.connect(path).execute("SELECT 1 FROM usage")


def test_a_failed_write_leaves_the_ledger_usable(tmp_path: Path) -> None:
    """An exception inside a transaction rolls back all of it; the next one works."""
    ledger = Ledger(tmp_path)
    ledger.record(["a"], NOW)
    with pytest.raises(Exception, match=r"ledger|type|bind"):
        ledger.record(["a", object()], NOW)  # type: ignore[list-item]
    ledger.record(["a"], NOW)
    assert ledger.export() == {"a": UsageEntry(2, NOW)}


def test_a_hundred_thousand_returns_move_a_score_by_the_weight_at_most() -> None:
    """The signal is bounded: what was returned very often gains the weight of usage and no more."""
    profile = Profile.tipsy()
    with make_memory(None, profile=profile) as memory:
        memory.add([Memory("old", "apple"), Memory("new", "apple")])
        memory._store.ledger.set({"old": UsageEntry(100_000, NOW)})
        result = memory.search("apple", 2, now=NOW, record_usage=False)
    assert result[0].score - result[1].score == pytest.approx(profile.signals["usage"])
