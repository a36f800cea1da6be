"""Synthetic memories: a Zipf vocabulary, real-looking lengths, random unit vectors around topics; all from one seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memhybrid.protocols import Fingerprint, Float32
from memhybrid.records import Memory

VOCABULARY = 30_000
_SYLLABLES = (
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ha",
    "je",
    "ki",
    "lo",
    "mu",
    "na",
    "pe",
    "qui",
    "ro",
    "su",
    "ta",
    "ve",
    "wi",
    "xo",
    "zu",
)


def _word(number: int) -> str:
    """A pronounceable word for each number, so that tokenisers and stemmers do what they do with words."""
    parts: list[str] = []
    number += len(_SYLLABLES)
    while number:
        number, digit = divmod(number, len(_SYLLABLES))
        parts.append(_SYLLABLES[digit])
    return "".join(parts)


@dataclass(frozen=True)
class Corpus:
    """Texts, metadata and vectors (n, d) of n memories, dealt to tenants at random."""

    texts: list[str]
    metadatas: list[dict[str, str | int]]
    vectors: Float32
    tenants: list[str]

    def memories(self) -> list[Memory]:
        """As the store takes them."""
        return [
            Memory(f"m{i}", text, metadata, vector)
            for i, (text, metadata, vector) in enumerate(zip(self.texts, self.metadatas, self.vectors, strict=True))
        ]


@dataclass(frozen=True)
class Question:
    """Six terms of a random memory, its vector with noise, and its tenant."""

    text: str
    vector: Float32
    tenant: str


def make_corpus(size: int, tenants: int, *, dimension: int = 384, seed: int = 7) -> Corpus:
    """`size` memories with 4 to 120 words (log-normal, median 22)."""
    rng = np.random.default_rng(seed)
    words = np.array([_word(i) for i in range(VOCABULARY)])
    weights = 1.0 / np.arange(1, VOCABULARY + 1) ** 1.05
    lengths = np.clip(rng.lognormal(3.1, 0.5, size).astype(int), 4, 120)
    drawn = words[rng.choice(VOCABULARY, size=int(lengths.sum()), p=weights / weights.sum())]
    texts = [" ".join(part) for part in np.split(drawn, np.cumsum(lengths)[:-1])]
    topics = rng.normal(size=(max(size // 200, 10), dimension)).astype(np.float32)
    vectors = topics[rng.integers(0, len(topics), size)] + rng.normal(scale=0.8, size=(size, dimension)).astype(
        np.float32
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    owner = rng.integers(0, tenants, size)
    seen = np.zeros(tenants, dtype=int)
    metadatas: list[dict[str, str | int]] = []
    for who in owner.tolist():
        number = int(seen[who])
        seen[who] += 1
        metadatas.append(
            {
                "user_id": f"u{who}",
                "session_id": f"u{who}/s{number // 25}",
                "msg_id": number,
                "created_at": f"2025-{1 + number // 25 % 12:02d}-{1 + number % 28:02d}T08:00:00+00:00",
                "type": ("fact", "event", "preference")[number % 3],
            }
        )
    return Corpus(texts, metadatas, vectors.astype(np.float32), [f"u{who}" for who in owner.tolist()])


def make_questions(corpus: Corpus, n: int, *, seed: int = 11) -> list[Question]:
    """`n` questions about random memories."""
    rng = np.random.default_rng(seed)
    out: list[Question] = []
    for i in rng.integers(0, len(corpus.texts), n).tolist():
        terms = corpus.texts[i].split()
        chosen = rng.choice(terms, size=min(6, len(terms)), replace=False)
        noise = np.asarray(rng.normal(scale=0.02, size=corpus.vectors.shape[1]), dtype=np.float32)
        out.append(Question(" ".join(chosen), corpus.vectors[i] + noise, corpus.tenants[i]))
    return out


class GivenVectors:
    """An embedder that knows all vectors beforehand, so that no model is timed."""

    def __init__(self, corpus: Corpus, questions: list[Question]) -> None:
        self._known = {**dict(zip(corpus.texts, corpus.vectors, strict=True)), **{q.text: q.vector for q in questions}}
        self.fingerprint = Fingerprint("given-vectors", corpus.vectors.shape[1])

    def covers(self, text: str) -> bool:  # noqa: ARG002 - every script
        """Always."""
        return True

    def embed_documents(self, texts: list[str]) -> Float32:
        """The known vectors, zeros for other texts."""
        return np.stack([self._known.get(t, np.zeros(self.fingerprint.dimension, dtype=np.float32)) for t in texts])

    def embed_query(self, texts: list[str]) -> Float32:
        """The same."""
        return self.embed_documents(texts)
