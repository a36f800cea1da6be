"""A running service on loopback, with keys for two users, a reader, and a backend that may speak for anybody."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from memhybrid import HybridMemory
from tests.conftest import make_memory

pytest.importorskip("fastapi")
uvicorn = pytest.importorskip("uvicorn")
httpx = pytest.importorskip("httpx")

U1, U2, READER, BACKEND = "key-of-u1-0123456789", "key-of-u2-0123456789", "reader-of-u1-0123456", "backend-0123456789ab"
CONFIG: dict[str, Any] = {
    "keys": [
        {"name": "u1", "sha256": hashlib.sha256(U1.encode()).hexdigest(), "scope": {"user_id": "u1"}},
        {"name": "u2", "key": U2, "scope": {"user_id": "u2"}},
        {"name": "reader", "key": READER, "scope": {"user_id": "u1"}, "write": False},
        {"name": "backend", "key": BACKEND, "scope": {}},
    ],
    "limits": {"max_body_bytes": 20_000, "max_limit": 50, "max_memories": 5, "timeout_s": 20},
}


@contextmanager
def running(memory: HybridMemory, config: Any) -> Iterator[str]:
    """The base address of a service over the store, in a thread of this process."""
    from memhybrid.service import create_app

    options = uvicorn.Config(create_app(memory, config), host="127.0.0.1", port=0, log_level="critical")
    server = uvicorn.Server(options)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)


@pytest.fixture(scope="module")
def store() -> Iterator[HybridMemory]:
    """A store of tenants in memory."""
    with make_memory(None, profile="tipsy", scope_key="user_id") as memory:
        yield memory


@pytest.fixture(scope="module")
def base(store: HybridMemory) -> Iterator[str]:
    """The address of a service with keys."""
    with running(store, CONFIG) as address:
        yield address


class Client:
    """Sends a key along."""

    def __init__(self, base: str, key: str | None) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.http = httpx.Client(base_url=base, headers=headers, timeout=60)

    def retrieve(self, **body: Any) -> Any:
        return self.http.post("/v1/memory/retrieve", json=body)

    def add(self, *memories: Any, **body: Any) -> Any:
        items = [{"text": m} if isinstance(m, str) else m for m in memories]
        return self.http.post("/v1/memories", json={**body, "memories": items})

    def delete(self, **body: Any) -> Any:
        return self.http.request("DELETE", "/v1/memories", json=body)


@pytest.fixture
def u1(base: str, store: HybridMemory) -> Iterator[Client]:
    """A client with u1's key; both users' memories are fresh."""
    for user in ("u1", "u2", "u3"):
        store.scoped(user_id=user).delete(all=True)
    client = Client(base, U1)
    yield client
    client.http.close()


@pytest.fixture
def u2(base: str) -> Iterator[Client]:
    """A client with u2's key."""
    client = Client(base, U2)
    yield client
    client.http.close()
