from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhybrid.embedders import HashEmbedder
from memhybrid.errors import ConfigError
from memhybrid.protocols import Embedder

ANY_TEXT = st.text(st.characters(codec=None), max_size=60)
GREEN_TEA_IN_8 = [0.19612, -0.19612, -0.19612, -0.58835, 0.58835, 0.0, 0.39223, 0.19612]


@given(st.lists(ANY_TEXT, max_size=5), st.integers(1, 40))
def test_unit_vectors(texts: list[str], dimension: int) -> None:
    """Any text, lone surrogates included, has a vector of length 1 that does not depend on the others."""
    embedder = HashEmbedder(dimension)
    vectors = embedder.embed_documents(texts)
    assert vectors.shape == (len(texts), dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(embedder.embed_query(text), vector)


def test_same_everywhere() -> None:
    """The vectors are fixed: stores and expectations made with them stay valid."""
    vector = HashEmbedder(8).embed_documents("green tea")
    np.testing.assert_allclose(vector, GREEN_TEA_IN_8, atol=1e-4)


def test_shared_words_are_similar() -> None:
    """Texts with common words or spellings are closer than others, in Chinese too."""
    for one, near, far in [
        ("green tea in the morning", "a green tea", "trains are late"),
        ("organise", "organised", "zebra"),
        ("我喜欢喝绿茶", "绿茶很好喝", "火车晚点了"),
    ]:
        a, b, c = HashEmbedder().embed_documents([one, near, far])
        assert a @ b > a @ c + 0.1


def test_fingerprint() -> None:
    """It is an Embedder for every script, and its fingerprint has the dimension."""
    embedder = HashEmbedder(32)
    assert isinstance(embedder, Embedder)
    assert embedder.covers("你好")
    assert embedder.fingerprint.dimension == 32
    assert embedder.fingerprint == HashEmbedder(32).fingerprint != HashEmbedder(33).fingerprint


def test_dimension_must_be_positive() -> None:
    """A dimension below 1 is refused."""
    with pytest.raises(ConfigError, match="dimension"):
        HashEmbedder(0)
