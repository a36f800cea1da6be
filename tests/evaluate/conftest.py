"""Small labelled sets, and a stage that shows nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.evaluate.sets import write_set


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two users with sessions."""
    return write_set(tmp_path_factory.mktemp("sets") / "small")


@contextmanager
def quiet(label: str) -> Iterator[Callable[[int, int], None]]:
    """A stage without a display."""
    del label
    yield lambda done, total: None
