"""Late interaction: token vectors kept small at write time, and MaxSim over them.

MaxSim (Khattab and Zaharia 2020, ColBERT): for each token of the query the best cosine among the memory's tokens. Token vectors
are the packaged English model's last hidden states, centred, projected to 128 principal directions and quantised to 4 bits
(two directions a byte, 64 bytes a token). The basis was fitted on generated and documentation sentences, see docs/quality.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from memhybrid.protocols import Float32, Float64, TokenVectors

DIMENSIONS = 128
TOKEN_BYTES = DIMENSIONS // 2
MAX_TOKENS = 256
"""Longer memories have neighbouring tokens averaged until this many are left."""
UNKNOWN = "[UNK]"
FLOOR_COSINE = 0.2
"""Cosines up to here are no match; unrelated tokens often reach it."""
_BLAS_SINGLE = 200_000
"""Multiplications up to which OpenBLAS stays on one thread (its bound is 262,144)."""
_STEP = 0.335
"""Width of a level in standard deviations: the best uniform 4-bit quantiser of a Gaussian (Max 1960)."""


@dataclass(frozen=True)
class QueryTokens:
    """A query's token vectors: unit rows (tokens, 128), and each one's weight in [0, 1]."""

    vectors: Float32
    weights: Float32


@lru_cache(maxsize=1)
def _basis() -> tuple[Float32, Float32]:
    with resources.files("memhybrid.data").joinpath("token_basis.npz").open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        return archive["mean"].astype(np.float32), archive["proj"].astype(np.float32)


@lru_cache(maxsize=1)
def _levels() -> NDArray[np.float64]:
    """For each byte its two float32 levels, seen as one 8-byte item, so that decoding is one look-up a byte."""
    levels = np.arange(16, dtype=np.float32) - 7.5
    byte = np.arange(256)
    pairs = np.stack([levels[byte >> 4], levels[byte & 15]], axis=1)
    return np.ascontiguousarray(pairs).view(np.float64).ravel()


def is_word(token: str) -> bool:
    """Whether a word piece has a letter or digit; what the model does not know is none, or all unknown would be alike."""
    return token != UNKNOWN and any(character.isalnum() for character in token)


def project(vectors: Float32) -> Float32:
    """Hidden states (n, 384) as unit vectors (n, 128)."""
    mean, basis = _basis()
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    projected = (vectors / np.maximum(lengths, 1e-6) - mean) @ basis
    return projected / np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), 1e-6)


def pack_tokens(tokens: TokenVectors) -> bytes | None:
    """A memory's tokens as 64 bytes each, without punctuation; None where it has none."""
    words = [i for i, token in enumerate(tokens.tokens) if is_word(token)]
    if not words:
        return None
    vectors = tokens.vectors[words]
    if len(vectors) > MAX_TOKENS:
        edges = np.linspace(0, len(vectors), MAX_TOKENS + 1).astype(np.intp)[:-1]
        sizes = np.diff(np.append(edges, len(vectors)))[:, None]
        vectors = (np.add.reduceat(vectors, edges, axis=0) / sizes).astype(np.float32)
    projected = project(vectors)
    step = np.maximum(_STEP * projected.std(axis=1, keepdims=True), 1e-9)
    codes = (np.clip(np.floor(projected / step), -8, 7) + 8).astype(np.uint8)
    return ((codes[:, 0::2] << 4) | codes[:, 1::2]).tobytes()


def _product(rows: Float32, query: Float32) -> Float32:
    """rows @ query.T in blocks that BLAS does not spread over threads: on busy cores their waiting cost ten times the work."""
    block = max(_BLAS_SINGLE // (query.shape[0] * query.shape[1]), 1)
    whole = len(rows) // block * block
    columns = np.ascontiguousarray(query.T)
    out = np.empty((len(rows), len(query)), dtype=np.float32)
    if whole:
        np.matmul(
            rows[:whole].reshape(-1, block, rows.shape[1]), columns, out=out[:whole].reshape(-1, block, len(query))
        )
    out[whole:] = rows[whole:] @ columns
    return out


def maxsim(query: QueryTokens, memories: Sequence[bytes | None]) -> Float64:
    """Weighted mean of max(0, (best cosine - 0.2) / 0.8) over the query's tokens; NaN where a memory has no tokens."""
    out = np.full(len(memories), np.nan)
    total = float(query.weights.sum())
    sizes = np.array([0 if m is None else len(m) // TOKEN_BYTES for m in memories], dtype=np.intp)
    known = np.flatnonzero(sizes)
    if not len(known) or total <= 0:
        return out
    codes = np.frombuffer(b"".join(m for m in memories if m), dtype=np.uint8).reshape(-1, TOKEN_BYTES)
    decoded = np.take(_levels(), codes, mode="clip").view(np.float32)
    scale = 1.0 / np.sqrt(np.einsum("ij,ij->i", decoded, decoded))
    similarity = _product(decoded, query.vectors) * scale[:, None]
    starts = np.concatenate([[0], np.cumsum(sizes[known])[:-1]])
    best = np.maximum.reduceat(similarity, starts, axis=0).astype(np.float64)
    matched = np.maximum(0.0, (best - FLOOR_COSINE) / (1.0 - FLOOR_COSINE))
    out[known] = (matched * query.weights).sum(axis=1) / total
    # Six digits: a matrix product rounds by its shape, and a score must not depend on what else is scored.
    return np.round(np.minimum(out, 1.0), 6).astype(np.float64)
