"""The contract of an embedder."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

TEXTS = ["A red fox.", "我喜欢喝榛子拿铁", "", "word " * 3_000, "order ZX-4471"]


class EmbedderContract:
    """Give a fixture `embedder`."""

    def test_shapes_and_numbers(self, embedder: Any) -> None:
        """n texts give (n, dimension) finite float32, for documents and queries, of any length and script."""
        for method in (embedder.embed_documents, embedder.embed_query):
            vectors = method(TEXTS)
            assert vectors.shape == (len(TEXTS), embedder.fingerprint.dimension)
            assert vectors.dtype == np.float32
            assert np.isfinite(vectors).all()

    def test_a_text_has_one_vector(self, embedder: Any) -> None:
        """A text's vector does not depend on what else is in the batch, nor on when it is asked for."""
        together = embedder.embed_documents(TEXTS)
        for i, text in enumerate(TEXTS):
            assert np.allclose(embedder.embed_documents([text])[0], together[i], atol=1e-4)

    def test_the_fingerprint_is_stable(self, embedder: Any) -> None:
        """The fingerprint is the same each time and names something."""
        assert embedder.fingerprint == embedder.fingerprint
        assert embedder.fingerprint.name

    def test_covers_answers_for_any_text(self, embedder: Any) -> None:
        """Whether a text's script is covered is a plain yes or no."""
        assert all(isinstance(embedder.covers(text), bool) for text in TEXTS)

    def test_threads_agree(self, embedder: Any) -> None:
        """Eight threads get what one gets."""
        expected = embedder.embed_documents(TEXTS[:2])
        with ThreadPoolExecutor(8) as pool:
            for got in pool.map(lambda _: embedder.embed_documents(TEXTS[:2]), range(16)):
                assert np.allclose(got, expected, atol=1e-5)
