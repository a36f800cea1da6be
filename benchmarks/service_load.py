"""16 clients against a running service for 20 s: no failing answer, and nobody sees another's memories.

    python benchmarks/service_load.py [--seconds 20] [--clients 16] [--embedder hash] [--memories 400]

Starts the service in a process of its own on loopback, with a key for each of four users. Prints counts by status, the latency and what
was wrong; exits with 1 if anything was.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

USERS = ("ada", "bob", "chen", "dora")
TOPICS = ("harbour", "orchard", "violin", "glacier", "lantern", "saddle", "ferry", "kiln")


@dataclass
class Outcome:
    """What the clients saw."""

    statuses: Counter[int] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    latencies_ms: dict[str, list[float]] = field(default_factory=dict)
    foreign: int = 0
    returned: int = 0
    broken: list[str] = field(default_factory=list)

    @property
    def failures(self) -> int:
        """Answers from 500 up, and calls without an answer."""
        return sum(n for status, n in self.statuses.items() if status >= 500) + len(self.broken)

    def percentile(self, operation: str, share: float) -> float:
        """Milliseconds."""
        values = sorted(self.latencies_ms.get(operation, [0.0]))
        return values[min(int(share * len(values)), len(values) - 1)]

    def __str__(self) -> str:
        lines = [f"requests {sum(self.statuses.values())}  by status {dict(sorted(self.statuses.items()))}"]
        lines += [
            f"{name:9} {count:6}  p50 {self.percentile(name, 0.5):7.1f} ms  p95 {self.percentile(name, 0.95):7.1f} ms  "
            f"max {max(self.latencies_ms[name]):7.1f} ms"
            for name, count in sorted(self.operations.items())
        ]
        lines.append(f"memories returned {self.returned}, of others {self.foreign}; failures {self.failures}")
        return "\n".join([*lines, *self.broken[:5]])


def note(user: str, i: int) -> dict[str, Any]:
    """A memory that says whose it is, about what everybody's are about."""
    topic = TOPICS[i % len(TOPICS)]
    return {
        "text": f"{topic} note {i} kept by {user}",
        "metadata": {
            "owner": user,
            "importance": 40 + i % 60,
            "msg_id": i,
            "type": ("fact", "event", "preference")[i % 3],
        },
    }


def load(base: str, keys: Mapping[str, str], seconds: float, clients: int, seed: int = 1) -> Outcome:
    """Clients that retrieve, and now and then add and delete, until the time is over."""
    outcome, guard = Outcome(), threading.Lock()
    until = time.monotonic() + seconds

    def client(number: int) -> None:
        import httpx

        rng = random.Random(seed * 1000 + number)
        user = USERS[number % len(USERS)]
        mine: list[str] = []
        with httpx.Client(base_url=base, headers={"Authorization": f"Bearer {keys[user]}"}, timeout=60) as http:
            while time.monotonic() < until:
                operation, method, path, content = choose(rng, user, mine)
                started = time.perf_counter()
                try:
                    answer = http.request(method, path, json=content)
                except httpx.HTTPError as error:
                    with guard:
                        outcome.broken.append(f"{operation}: {type(error).__name__}: {error}")
                    continue
                took = (time.perf_counter() - started) * 1000
                data = answer.json()
                with guard:
                    outcome.statuses[answer.status_code] += 1
                    outcome.operations[operation] += 1
                    outcome.latencies_ms.setdefault(operation, []).append(took)
                    for found in data.get("memories", []):
                        outcome.returned += 1
                        meta = found["metadata"]
                        outcome.foreign += (
                            meta.get("user_id") != user or meta.get("owner") != user or user not in found["text"]
                        )
                if operation == "add" and answer.status_code == 201:
                    mine.extend(data["ids"])

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcome


def choose(rng: random.Random, user: str, mine: list[str]) -> tuple[str, str, str, dict[str, Any]]:
    """Eight of ten requests retrieve; some name another user's words, which must not help."""
    kind = rng.random()
    if kind < 0.1:
        return "add", "POST", "/v1/memories", {"memories": [note(user, rng.randrange(10_000))]}
    if kind < 0.2 and mine:
        return "delete", "DELETE", "/v1/memories", {"ids": [mine.pop()]}
    words = f"{rng.choice(TOPICS)} note kept by {rng.choice(USERS)}"
    return (
        "retrieve",
        "POST",
        "/v1/memory/retrieve",
        {"query": words, "limit": rng.choice([3, 10, 20]), "max_tokens": 500},
    )


def run_server(folder: str, port: int, config: dict[str, Any], embedder: str) -> None:
    """What the service's process does."""
    from memhybrid.embedders import HashEmbedder
    from memhybrid.service import serve

    serve(
        folder,
        port=port,
        config=config,
        embedder=HashEmbedder(64) if embedder == "hash" else embedder,
        analyzer="fast" if embedder == "hash" else "auto",
        log_level="warning",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The whole run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--memories", type=int, default=400, help="for each user")
    parser.add_argument("--embedder", default="hash", help="hash, local or local-multilingual")
    options = parser.parse_args(arguments)
    import httpx

    keys = {user: f"key-of-{user}-{random.getrandbits(64):016x}" for user in USERS}
    config = {"keys": [{"name": u, "key": k, "scope": {"user_id": u}} for u, k in keys.items()]}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        work = (str(Path(folder) / "store"), port, config, options.embedder)
        server = multiprocessing.get_context("spawn").Process(target=run_server, args=work)
        server.start()
        try:
            with httpx.Client(base_url=base, timeout=120) as http:
                wait_ready(http, server)
                for user, key in keys.items():
                    for start in range(0, options.memories, 100):
                        rows = [note(user, i) for i in range(start, min(start + 100, options.memories))]
                        http.post(
                            "/v1/memories", json={"memories": rows}, headers={"X-API-Key": key}
                        ).raise_for_status()
            outcome = load(base, keys, options.seconds, options.clients)
        finally:
            server.terminate()
            server.join(30)
    print(json.dumps({"seconds": options.seconds, "clients": options.clients, "embedder": options.embedder}))
    print(outcome)
    rate = sum(outcome.statuses.values()) / options.seconds
    print(f"{rate:.0f} requests a second; mean {statistics.mean(outcome.latencies_ms['retrieve']):.1f} ms a retrieval")
    return int(outcome.failures > 0 or outcome.foreign > 0)


def wait_ready(http: Any, server: Any) -> None:
    """Until the service answers, or its process has ended."""
    import httpx

    while server.is_alive():
        try:
            if http.get("/readyz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError("the service did not start")


if __name__ == "__main__":
    sys.exit(main())
