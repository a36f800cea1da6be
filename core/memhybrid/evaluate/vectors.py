"""One embedding of every text for all systems of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from memhybrid.protocols import Embedder, Fingerprint, Float32, TokenEmbedder, TokenVectors


class Cached:
    """An embedder that embeds each text once. Queries are kept with their token vectors, memories without."""

    def __init__(self, inner: Embedder) -> None:
        self.inner = inner
        self.documents: dict[str, Float32] = {}
        self.queries: dict[str, Float32] = {}

    @property
    def fingerprint(self) -> Fingerprint:
        """The embedder's own."""
        return self.inner.fingerprint

    def covers(self, text: str) -> bool:
        """As the embedder says."""
        return self.inner.covers(text)

    def embed_documents(self, texts: Sequence[str]) -> Float32:
        """Vectors (n, d), from the cache where they are in it."""
        missing = list(dict.fromkeys(t for t in texts if t not in self.documents))
        if missing:
            self.documents.update(zip(missing, self.inner.embed_documents(missing), strict=True))
        return np.stack([self.documents[t] for t in texts])

    def embed_query(self, texts: Sequence[str]) -> Float32:
        """The same for queries, which are embedded one by one, as a search does."""
        for text in texts:
            if text not in self.queries:
                self.queries[text] = self.inner.embed_query([text])[0]
        return np.stack([self.queries[t] for t in texts])


class CachedTokens(Cached):
    """The same for an embedder with token vectors. A text that was seen among the queries is taken from them."""

    inner: Any

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self._tokens: dict[str, TokenVectors] = {}

    def encode(self, texts: Sequence[str]) -> tuple[Float32, list[TokenVectors]]:
        """Vectors and token vectors."""
        if len(texts) and all(t in self._tokens for t in texts):
            return np.stack([self.queries[t] for t in texts]), [self._tokens[t] for t in texts]
        vectors, tokens = self.inner.encode(list(texts))
        self.documents.update(zip(texts, vectors, strict=True))
        return vectors, list(tokens)

    def embed_query(self, texts: Sequence[str]) -> Float32:
        """Vectors of queries; their token vectors are kept for `encode`."""
        for text in texts:
            if text not in self._tokens:
                vectors, tokens = self.inner.encode([text])
                self.queries[text], self._tokens[text] = vectors[0], tokens[0]
        return np.stack([self.queries[t] for t in texts])


def cached(embedder: Embedder) -> Cached:
    """The embedder behind a cache, with token vectors where it has them."""
    return CachedTokens(embedder) if isinstance(embedder, TokenEmbedder) else Cached(embedder)


def warm(embedder: Cached, queries: Sequence[str], progress: Callable[[int, int], None] | None = None) -> None:
    """Embed the queries, so that no system pays for it."""
    for done, text in enumerate(queries, 1):
        embedder.embed_query([text])
        if progress is not None:
            progress(done, len(queries))
