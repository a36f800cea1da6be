"""The shipped parts against the contract suites that are shipped with them."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memhybrid.backends import chroma
from memhybrid.embedders import HashEmbedder, LocalEmbedder, MultilingualEmbedder
from memhybrid.indexes.bm25 import Bm25Index
from memhybrid.indexes.rank_bm25 import RankBm25Index
from memhybrid.testing import AnalyzerContract, BackendContract, EmbedderContract, LexicalIndexContract
from memhybrid.text import default_analyzer


class TestChromaFolder(BackendContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Iterator[Any]:
        made = chroma.open_folder(tmp_path / "store", "notes")
        yield made
        made.close()


class TestChromaMemory(BackendContract):
    @pytest.fixture
    def backend(self) -> Any:
        return chroma.open_memory("notes")


@pytest.fixture(scope="module")
def server_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A Chroma server on a free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    chroma_command = Path(sys.executable).with_name("chroma")
    folder = tmp_path_factory.mktemp("server")
    process = subprocess.Popen(
        [str(chroma_command), "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    yield port
    process.terminate()
    process.wait()


class TestChromaServer(BackendContract):
    @pytest.fixture
    def backend(self, server_port: int, request: pytest.FixtureRequest) -> Any:
        name = f"notes-{abs(hash(request.node.name))}"
        return chroma.connect_server(
            "127.0.0.1", server_port, name, tenant=None, database=None, headers=None, ssl=False
        )


@pytest.mark.parametrize("space", ["l2", "ip"])
class TestChromaSpaces(BackendContract):
    """Unit vectors are nearest by cosine in every space."""

    @pytest.fixture
    def backend(self, tmp_path: Path, space: str) -> Iterator[Any]:
        from memhybrid.backends.chroma.clients import recreate_collection

        made = recreate_collection(tmp_path / "store", "notes", {}, space)
        assert made.space == space
        yield made
        made.close()


class TestOwnBm25(LexicalIndexContract):
    @pytest.fixture
    def index(self) -> Any:
        return Bm25Index()


class TestRankBm25(LexicalIndexContract):
    @pytest.fixture
    def index(self) -> Any:
        return RankBm25Index()


class TestHashEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> Any:
        return HashEmbedder(32)


class TestLocalEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> Any:
        return LocalEmbedder()


class TestMultilingualEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> Any:
        return MultilingualEmbedder()


class TestFastAnalyzer(AnalyzerContract):
    @pytest.fixture
    def analyzer(self) -> Any:
        return default_analyzer("fast")


class TestSpacyAnalyzer(AnalyzerContract):
    @pytest.fixture(scope="class")
    def analyzer(self) -> Any:
        return default_analyzer("spacy")
