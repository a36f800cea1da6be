"""The running service against its own schema: whatever a fuzzer sends, no 5xx and no answer that the schema does not promise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from memhybrid.service import create_app
from tests.conftest import make_memory
from tests.service.conftest import CONFIG, U1, running

schemathesis = pytest.importorskip("schemathesis")
EXAMPLES = 100


def the_schema() -> Any:
    """What the service describes; the same as over HTTP, without one running yet."""
    with make_memory(None, profile="tipsy", scope_key="user_id") as memory:
        return schemathesis.openapi.from_dict(create_app(memory, CONFIG).openapi())


schema = the_schema()
seen: Counter[int] = Counter()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A service with a few memories of two users."""
    with make_memory(None, profile="tipsy", scope_key="user_id") as memory:
        for user in ("u1", "u2"):
            memory.scoped(user_id=user).add(
                [(f"note {i} of {user}", {"msg_id": i, "importance": i}) for i in range(20)]
            )
        with running(memory, CONFIG) as base:
            yield base
        assert memory.scoped(user_id="u2").count() == 20
        assert memory.verify().ok


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_the_service_keeps_what_its_schema_promises(case: Any, address: str) -> None:
    """Valid, invalid and example requests: no 5xx, only documented statuses, content types and bodies, and nothing of another user."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    answer = case.call(base_url=address, headers={"Authorization": f"Bearer {U1}"})
    seen[answer.status_code] += 1
    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    case.validate_response(answer, checks=checks)
    assert "of u2" not in answer.text


def test_the_fuzzer_reached_the_service() -> None:
    """Some requests were served and some refused: the fuzzer did not stop at the door."""
    assert seen[200] > 10
    assert seen[422] > 10
    assert not [status for status in seen if status >= 500 or status == 401]
