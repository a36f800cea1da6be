"""Many calls at once on one store."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from memhybrid import HybridMemory, Memory, SearchResult
from memhybrid.concurrency import MAX_THREADS
from memhybrid.diagnose.probe import Probe
from tests.conftest import make_memory
from tests.faults.soak import run
from tests.reports.helpers import found, word

SEARCHES = 1_000
MEMORIES = 60
WRITES = 5


def test_every_public_call_from_eight_threads_at_once(tmp_path: Path) -> None:
    """After three seconds of all calls on four tenants, contents, counts, usage and answers are those of a plain model; none hangs."""
    outcome = run(tmp_path, 3.0)
    assert outcome.wrong == []
    assert outcome.acknowledged > 0
    assert outcome.hits > 0


async def test_a_thousand_searches_gathered_while_others_write(tmp_path: Path) -> None:
    """Each answers with all of one write or all of the next, on few threads; afterwards as one search alone."""
    with make_memory(tmp_path) as memory:

        def rows(version: int) -> list[Memory]:
            return [Memory(str(i), f"apple {word(i)} {word(1_000 + version)}") for i in range(MEMORIES)]

        memory.add(rows(0))
        before, most = threading.active_count(), 0
        stop, some_written = threading.Event(), threading.Event()

        def write() -> None:
            version = 0
            while not stop.is_set():
                version += 1
                memory.add(rows(version))
                memory.add(Memory("comes and goes", "apple"))
                memory.delete("comes and goes")
                if version == WRITES:
                    some_written.set()

        async def search(i: int) -> SearchResult:
            nonlocal most
            if i == SEARCHES // 2:
                await asyncio.to_thread(some_written.wait, 60)
            profile = ("bm25", "semantic", "balanced")[i % 3]
            result = await memory.asearch(f"apple {word(i % MEMORIES)}", k=MEMORIES + 1, profile=profile)
            most = max(most, threading.active_count())
            return result

        writer = threading.Thread(target=write)
        writer.start()
        try:
            results = await asyncio.gather(*(search(i) for i in range(SEARCHES)))
        finally:
            stop.set()
            writer.join(60)
        assert some_written.is_set()
        for i, result in enumerate(results):
            seen: dict[Any, str] = {hit.memory.id: hit.memory.text for hit in result.hits}
            assert len(seen) == len(result.hits)
            assert seen.pop("comes and goes", "apple") == "apple"
            assert seen.keys() == {str(n) for n in range(MEMORIES)}
            assert len({text.rsplit(" ", 1)[1] for text in seen.values()}) == 1
            assert all(text.split()[1] == word(int(identifier)) for identifier, text in seen.items())
            assert result.ids[0] == str(i % MEMORIES) or i % 3 == 1
            assert not result.trace.degraded
        # The writer, the one that waits for it, and ours.
        assert most <= before + 2 + MAX_THREADS

        queries = [(f"apple {word(i)}", profile) for i in range(20) for profile in ("bm25", "semantic", "balanced")]
        together = await asyncio.gather(*(memory.asearch(q, k=9, profile=p, now=0.0) for q, p in queries))
        for (query, profile), result in zip(queries, together, strict=True):
            assert found(result) == found(memory.search(query, k=9, profile=profile, now=0.0))
        assert memory.verify().ok


def test_a_diagnosis_keeps_to_the_state_that_it_began_with(memory: HybridMemory) -> None:
    """Its rows are those of one partition, though this is loaded anew between its searches, with fewer rows."""
    memory.add([Memory(str(i), f"apple {word(i)}") for i in range(50)])
    probe = Probe(memory, None, memory.profile, 0.0)
    memory.delete([str(i) for i in range(45)])
    memory.compact()
    assert len(probe.scored("apple", memory.profile).rows) == 50
    assert probe.ask(word(3), 1, memory.profile) == ["3"]
    assert memory.search(word(3), 1, profile="bm25").ids == []
