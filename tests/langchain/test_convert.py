from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

import langchain_memhybrid
from langchain_memhybrid._convert import RESERVED, documents_to_memories, hit_to_document, to_document
from memhybrid import Hit, Memory, MetadataError

scalars = st.one_of(st.text(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.booleans())
metadata = st.dictionaries(
    st.text().filter(lambda k: k not in (RESERVED, "_node_content")), scalars | st.lists(scalars)
)


@given(st.text(min_size=1), st.text(), metadata)
def test_a_document_survives_the_way_there_and_back(identifier: str, text: str, data: dict[str, Any]) -> None:
    """Id, text and metadata are the same, and nothing is shared."""
    document = Document(id=identifier, page_content=text, metadata=data)
    (memory,) = documents_to_memories([document], None)
    back = to_document(memory)
    assert back == document
    assert back.metadata is not document.metadata
    assert all(back.metadata[k] is not v for k, v in document.metadata.items() if isinstance(v, list))


@given(st.text(min_size=1), metadata)
def test_a_hit_adds_the_reserved_key_alone(identifier: str, data: dict[str, Any]) -> None:
    """Also where a signal is not known."""
    hit = Hit(Memory(identifier, "text", data), 0.5, {"semantic": 0.25, "bm25": None}, sources=("semantic",))
    document = hit_to_document(hit, include_scores=True)
    expected = {"score": 0.5, "signals": {"semantic": 0.25, "bm25": None}, "sources": ["semantic"]}
    assert document.metadata == {**data, RESERVED: expected}
    assert hit_to_document(hit, include_scores=False).metadata == data


def test_the_reserved_key_is_refused() -> None:
    """The error names the document and what to do."""
    with pytest.raises(MetadataError, match="document 'd1'"):
        documents_to_memories([Document(id="d1", page_content="x", metadata={RESERVED: 1})], None)


def test_public_names_are_sorted_and_there() -> None:
    """What `__all__` says is what there is."""
    expected = ["MemHybridRetriever", "MemHybridVectorStore", "as_reranker"]
    assert sorted(langchain_memhybrid.__all__) == expected
    assert all(hasattr(langchain_memhybrid, name) for name in expected)
    assert (Path(langchain_memhybrid.__file__).parent / "py.typed").exists()


def test_without_langchain_the_error_names_the_extra() -> None:
    """And is an ImportError, so that optional imports work."""
    code = (
        "import sys\nsys.modules['langchain_core'] = None\n"
        "try:\n    import langchain_memhybrid\n"
        "except ImportError as error:\n    print(type(error).__name__, error.extra, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("MissingExtraError langchain "), done.stdout + done.stderr
    assert "pip install 'memhybrid[langchain]'" in done.stdout
