"""What the tests of the seven signals share: signal values over memories given as metadata."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from memhybrid import HybridMemory, Profile
from tests.conftest import make_memory

NOW = 1_750_000_000.0
DAY = 86_400.0


def everything(name: str, weight: float = 1.0, **changes: Any) -> Profile:
    """A profile that scores every memory by one signal alone."""
    options: dict[str, Any] = {"sources": ("everything",), "signals": {name: weight}, "allow_query_independent": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Profile(name=name, **{**options, **changes})


def values_in(
    memory: HybridMemory, name: str, query: str = "q", profile: Profile | None = None, **options: Any
) -> dict[str, float | None]:
    """id → the signal's value in [0, 1], None where it does not know."""
    chosen = everything(name) if profile is None else profile
    result = memory.search(query, max(memory.count(), 1), profile=chosen, now=NOW, **{"record_usage": False, **options})
    assert not result.trace.degraded
    return {hit.memory.id or "": hit.signals[name] for hit in result}


Values = Callable[..., list[float | None]]


@pytest.fixture
def values() -> Values:
    """The values of a signal for memories with the given metadata, in their order."""

    def of(
        name: str, metadata: Sequence[Mapping[str, Any]], profile: Profile | None = None, **options: Any
    ) -> list[float | None]:
        with make_memory(None) as memory:
            # A common text and vector: only the metadata differ.
            from memhybrid import Memory

            memory.add([Memory(f"{i:06d}", "text", dict(m), [1.0, 0.0]) for i, m in enumerate(metadata)])
            found = values_in(memory, name, profile=profile, embedding=[1.0, 0.0], **options)
        return [found[f"{i:06d}"] for i in range(len(metadata))]

    return of
