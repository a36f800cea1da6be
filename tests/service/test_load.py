"""Many clients at once, as benchmarks/service_load.py runs them for longer."""

from __future__ import annotations

import pytest

from benchmarks.service_load import USERS, load, note
from tests.conftest import make_memory
from tests.service.conftest import running


@pytest.mark.slow
def test_sixteen_clients_at_once_see_their_own_memories_alone() -> None:
    """Retrieving, adding and deleting side by side: no 5xx, no broken connection, no memory of another user, nothing lost."""
    keys = {user: f"key-of-{user}-0123456789" for user in USERS}
    config = {"keys": [{"key": key, "scope": {"user_id": user}} for user, key in keys.items()]}
    with make_memory(None, profile="tipsy", scope_key="user_id") as memory:
        for user in USERS:
            memory.scoped(user_id=user).add([(n["text"], n["metadata"]) for n in (note(user, i) for i in range(100))])
        with running(memory, config) as base:
            outcome = load(base, keys, seconds=3.0, clients=16)
        assert memory.verify().ok
    assert outcome.failures == 0
    assert outcome.foreign == 0
    assert outcome.returned > 0
    assert set(outcome.statuses) <= {200, 201}
