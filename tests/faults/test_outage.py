"""A Chroma server that stops while it is used, and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from memhybrid import Memory, StoreError
from tests.faults.outage import connected, run
from tests.faults.server import Server


def test_a_server_that_stops_under_load_and_comes_back(tmp_path: Path) -> None:
    """Meanwhile calls raise a StoreError with the address; afterwards all go on, and every acknowledged write is found in every signal."""
    tally = run(tmp_path, outages=1)
    assert tally.wrong == ()
    assert tally.refused > 0
    assert tally.found > 0


def test_searches_between_two_looks_need_no_server(tmp_path: Path) -> None:
    """Within `staleness` seconds of the last look, what is in memory answers as before; a write says where it failed."""
    with Server(tmp_path / "server") as server, connected(server, staleness=3_600.0) as memory:
        memory.add([Memory("a", "apple"), Memory("b", "banana")])
        before = {p: memory.search("apple", profile=p, now=0.0).ids for p in ("bm25", "semantic", "balanced")}
        server.stop()
        assert {p: memory.search("apple", profile=p, now=0.0).ids for p in before} == before
        for call in (lambda: memory.add(Memory("c", "cherry")), lambda: memory.delete("a"), memory.sync):
            with pytest.raises(StoreError, match=f"127.0.0.1:{server.port}"):
                call()
        server.start()
        memory.add(Memory("c", "cherry"))
        assert memory.search("cherry", profile="bm25").ids == ["c"]
        assert memory.verify().ok
