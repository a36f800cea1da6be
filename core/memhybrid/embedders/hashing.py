"""An embedder of a few lines and no dependencies, for tests, examples and benchmarks."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

from memhybrid.embedders._common import normalised, text_list
from memhybrid.errors import ConfigError
from memhybrid.protocols import Fingerprint, Float32

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WORD: Final = re.compile(r"\w+")


class HashEmbedder:
    """Words and character n-grams hashed into `dimension` signed buckets: **not a semantic model**.

    Texts that share words or spellings are similar, others are not: "car" and "automobile" have nothing in common.
    Deterministic across processes, machines and Python versions; vectors have length 1; any script, any text.
    Raises ConfigError for a dimension below 1.
    """

    def __init__(self, dimension: int = 256) -> None:
        if dimension < 1:
            raise ConfigError(f"dimension must be at least 1, not {dimension}")
        self.dimension = dimension

    def __repr__(self) -> str:
        return f"HashEmbedder({self.dimension})"

    @property
    def fingerprint(self) -> Fingerprint:
        """`hash-embedder` and the dimension."""
        return Fingerprint("hash-embedder", self.dimension, "1")

    def covers(self, text: str) -> bool:
        """Every text: there is no script that it knows better than another."""
        del text
        return True

    def embed_documents(self, texts: Sequence[str]) -> Float32:
        """Vectors (n, d), float32, of length 1; shape (d,) for a single str."""
        if isinstance(texts, str):
            return self.embed_documents([texts]).reshape(-1)
        checked = text_list(texts)
        vectors = np.zeros((len(checked), self.dimension), dtype=np.float32)
        for row, text in enumerate(checked):
            for feature, weight in _features(text):
                number = _hash(feature)
                vectors[row, (number >> 1) % self.dimension] += weight if number & 1 else -weight
            if not vectors[row].any():  # no words, or all cancelled out
                vectors[row, _hash("") % self.dimension] = 1.0
        return normalised(vectors)

    def embed_query(self, texts: Sequence[str]) -> Float32:
        """The same as `embed_documents`."""
        return self.embed_documents(texts)


def _features(text: str) -> Iterator[tuple[str, float]]:
    """Words with weight 1 and their n-grams with less, so that a shared word counts more than shared letters."""
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        yield f"w {word}", 1.0
        padded = f"<{word}>"
        # Scripts written without spaces come as one long word: their characters and pairs are what texts share.
        sizes = (3, 4) if word.isascii() else (1, 2, 3)
        for size in sizes:
            for start in range(len(padded) - size + 1):
                yield f"{size} {padded[start : start + size]}", 0.25


@lru_cache(maxsize=65536)
def _hash(feature: str) -> int:
    return int.from_bytes(blake2b(feature.encode("utf-8"), digest_size=8).digest(), "little")
