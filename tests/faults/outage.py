"""Stop a Chroma server under load, start it again, and compare with what was acknowledged."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memhybrid import HybridMemory, Memory, StoreError
from memhybrid.embedders import HashEmbedder
from tests.faults.server import PATIENCE_S, Server
from tests.reports.helpers import word

WRITERS = 3
READERS = 2
NAMES = 40


@dataclass
class Tally:
    """What the clients saw, and everything that was wrong."""

    outages: int = 0
    acknowledged: int = 0
    searches: int = 0
    refused: int = 0
    found: int = 0
    wrong: tuple[str, ...] = ()


def connected(server: Server, state: Path | None = None, staleness: float = 0.0) -> HybridMemory:
    """A store on the server."""
    return HybridMemory.connect(
        "127.0.0.1",
        server.port,
        "notes",
        embedder=HashEmbedder(32),
        analyzer="fast",
        state_path=state,
        staleness=staleness,
    )


class Client:
    """One thread that goes on whatever happens; counts what went well and keeps every error."""

    def __init__(self, call: Callable[[int], None]) -> None:
        self.done, self.failed, self.wrong = 0, 0, ""
        self._call = call
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            try:
                self._call(number)
                self.done += 1
            except StoreError as error:
                self.failed += 1
                if "http://127.0.0.1:" not in str(error):
                    self.wrong = str(error)
                time.sleep(0.01)
            except BaseException:  # noqa: BLE001 - reported by the test
                self.wrong = traceback.format_exc()
                return

    def stop(self) -> None:
        """Ask it to end, and wait."""
        self._stop.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


def wait_for(condition: Callable[[], bool], clients: list[Client]) -> None:
    """Until it holds; what went wrong in a client is reported at once."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert [c.wrong for c in clients if c.wrong] == []
        assert time.monotonic() < until
        time.sleep(0.01)


def run(folder: Path, outages: int, *, calls: int = 5) -> Tally:
    """Writers and readers go on while the server stops and comes back; each gets so many calls done, and some refused, in between."""
    with Server(folder / "server") as server, connected(server, folder / "state") as memory:
        acknowledged: dict[str, str] = {}
        tried: dict[str, set[str | None]] = {}

        def write(writer: int, number: int) -> None:
            name = f"w{writer}-{number % NAMES}"
            text = f"{word(writer * 100 + number % NAMES)} apple {word(10_000 * writer + number)}"
            open_ones = tried.setdefault(name, set())
            open_ones.add(text)
            memory.add(Memory(name, text))
            acknowledged[name] = text
            open_ones.clear()
            if number % 5 == 0:
                open_ones.add(None)
                memory.delete(name)
                del acknowledged[name]
                open_ones.clear()

        def read(number: int) -> None:
            profile = ("bm25", "semantic", "balanced")[number % 3]
            result = memory.search(f"apple {word(number % NAMES)}", k=5, profile=profile)
            assert all("apple" in hit.memory.text for hit in result.hits)

        clients = [Client(lambda n, w=w: write(w, n)) for w in range(WRITERS)]
        clients += [Client(read) for _ in range(READERS)]

        def all_have(count: Callable[[Client], int], more: int) -> None:
            before = [count(c) for c in clients]
            wait_for(lambda: all(count(c) >= b + more for c, b in zip(clients, before, strict=True)), clients)

        try:
            all_have(lambda c: c.done, calls)
            for _ in range(outages):
                server.stop()
                all_have(lambda c: c.failed, 3)
                server.start()
                all_have(lambda c: c.done, calls)
        finally:
            for client in clients:
                client.stop()
        wrong = [c.wrong for c in clients if c.wrong]
        wrong += memory.verify().problems
        present = {m.id or "": m.text for m in memory.list()}
        for name in acknowledged.keys() | present.keys():
            # A call that failed may have come through all the same.
            if present.get(name) not in {acknowledged.get(name), *tried.get(name, ())}:
                wrong.append(f"{name}: acknowledged {acknowledged.get(name)!r}, found {present.get(name)!r}")
        found = 0
        for name, text in present.items():
            for profile in ("bm25", "semantic", "balanced"):
                if name in memory.search(text, k=5, profile=profile).ids:
                    found += 1
                else:
                    wrong.append(f"{name} is not found by its own text in {profile}")
        return Tally(
            outages,
            sum(c.done for c in clients[:WRITERS]),
            sum(c.done for c in clients[WRITERS:]),
            sum(c.failed for c in clients),
            found,
            tuple(wrong),
        )
