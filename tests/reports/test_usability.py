"""Installing, starting and configuring: nothing is fetched, nothing is assumed, everything is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memhybrid import DegradedError, EmbedderError, HybridMemory, Memory
from memhybrid.embedders import HashEmbedder
from tests.conftest import make_memory
from tests.reports.test_persistence import run


def test_the_core_is_imported_without_chroma_spacy_or_a_framework() -> None:
    """Report 156: heavy packages are imported when they are used."""
    code = """
import sys, memhybrid
from memhybrid import HybridMemory, Memory, Profile
heavy = {"chromadb", "spacy", "langchain_core", "llama_index", "onnxruntime", "torch"}
print(sorted(heavy & {name.split(".")[0] for name in sys.modules}))
"""
    assert run(code) == "[]"


def test_an_old_sqlite_is_an_error_that_says_what_is_wrong() -> None:
    """Report 156: chromadb raises RuntimeError at import then."""
    code = """
import sys
class Old:
    def find_spec(self, name, path=None, target=None):
        if name == "chromadb": raise RuntimeError("unsupported version of sqlite3")
sys.meta_path.insert(0, Old())
from memhybrid import StoreError
from tests.conftest import make_memory
try: make_memory()
except StoreError as error: print(error)
"""
    assert "unsupported version of sqlite3" in run(code)


def test_nothing_is_downloaded_and_home_is_not_written(tmp_path: Path) -> None:
    """Report 153, 155: no network, an empty home: adding, updating and searching work."""
    code = """
import socket, sys
def refuse(*a, **k): raise AssertionError("network")
socket.socket.connect = refuse; socket.create_connection = refuse
from tests.conftest import make_memory
with make_memory(sys.argv[1]) as memory:
    memory.add("Joanna plays chess")
    memory.update(memory.list()[0].id, "Joanna plays go")
    memory.collection.upsert(ids=["b"], documents=["pear"], embeddings=[[1.0] * 64])
    print(len(memory.search("what does joanna play")))
"""
    home = tmp_path / "home"
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "store")],
        check=True,
        capture_output=True,
        text=True,
        timeout=90,
        cwd=Path(__file__).parents[2],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": "core:.", "ANONYMIZED_TELEMETRY": "False"},
    )
    assert done.stdout.strip() == "2"
    assert list(home.rglob("*")) == []


class Broken(HashEmbedder):
    """Works for memories and not for queries."""

    def embed_query(self, texts: Any) -> Any:
        raise ConnectionError("no route to the model")


def test_a_search_without_its_embedder_goes_on_and_says_so() -> None:
    """Report 161: degraded by default, an error where strict; a write is refused as a whole."""
    with make_memory(embedder=Broken(64)) as memory:
        memory.add([Memory("a", "Joanna plays chess", {"importance": 50}), Memory("b", "pear")])
        for profile in ("balanced", "bm25", "best", "tipsy"):
            result = memory.search("Joanna chess", profile=profile)
            assert "a" in result.ids
            assert profile == "bm25" or any("no route" in text for text in result.trace.degraded)
        with pytest.raises(DegradedError, match="no route"):
            memory.search("Joanna chess", strict=True)


def test_an_embedder_that_is_away_when_the_store_is_opened_is_no_wrong_one(tmp_path: Path) -> None:
    """Report 161: its check is made later; the search goes on by keywords."""

    class Away(HashEmbedder):
        """Cannot even tell its name."""

        @property
        def fingerprint(self) -> Any:
            raise ConnectionError("no route to the model")

        def embed_query(self, texts: Any) -> Any:
            raise ConnectionError("no route to the model")

        def embed_documents(self, texts: Any) -> Any:
            raise ConnectionError("no route to the model")

    with make_memory(tmp_path) as memory:
        memory.add(Memory("a", "apple"))
    with make_memory(tmp_path, embedder=Away(64)) as memory:
        result = memory.search("apple")
        assert result.ids == ["a"]
        assert any("no route" in text for text in result.trace.degraded)
        with pytest.raises(EmbedderError, match="nothing was written"):
            memory.add("pear")
        assert memory.count() == 1


def test_a_store_without_names_or_keywords_still_answers(memory: HybridMemory) -> None:
    """Report 161: an empty keyword index and no entity are no failure."""
    memory.add([Memory("a", "!!!"), Memory("b", "???")])
    for profile in ("balanced", "mem0", "semantic", "best"):
        result = memory.search("Joanna", profile=profile)
        assert result.trace.degraded == ()


def test_what_is_missing_is_told_by_the_store() -> None:
    """Report 154: stats() names missing pieces, and strict searches refuse to go without them."""
    from memhybrid.text import FastAnalyzer

    with make_memory(analyzer=FastAnalyzer(missing=("spacy-pipeline",))) as memory:
        memory.add("apple")
        assert "spacy-pipeline" in memory.stats()["missing"]
        assert memory.search("apple").ids
        with pytest.raises(DegradedError, match="spacy-pipeline"):
            memory.search("apple", strict=True)
