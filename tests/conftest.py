"""Shared by all tests: nothing may reach the network, and stores are small and in their own folders."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memhybrid import HybridMemory
from memhybrid.embedders import HashEmbedder

os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")
SHARED = Path(os.environ.get("SHARED_FOLDER") or Path(__file__).resolve().parents[2] / "shared")


@pytest.fixture
def shared_data() -> Path:
    """The labelled sets that lie beside the project; a clone without them leaves these tests out, CI does not."""
    folder = SHARED / "data"
    if not folder.is_dir():
        if os.environ.get("CI"):
            pytest.fail("the shared data is missing beside the project")
        pytest.skip("the labelled data lies beside the project only where it is developed")
    return folder


def make_memory(path: Path | None = None, **options: Any) -> HybridMemory:
    """A store with the hash embedder and the rule-based analyzer: quick, and the same everywhere."""
    options.setdefault("embedder", HashEmbedder(64))
    options.setdefault("analyzer", "fast")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return HybridMemory.open(path, **options)


@pytest.fixture
def memory() -> Iterator[HybridMemory]:
    """An empty store in memory."""
    with make_memory() as made:
        yield made


@pytest.fixture
def folder_memory(tmp_path: Path) -> Iterator[HybridMemory]:
    """An empty store in a folder."""
    with make_memory(tmp_path / "store") as made:
        yield made
