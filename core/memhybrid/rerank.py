"""Reranking the best candidates by a model that reads query and text together, under a deadline, failing open.

Accepted as reranker: a function (query, texts) → scores in [0, 1]; a sentence-transformers CrossEncoder; "late-interaction", which
needs no further model (`memhybrid.late_rerank`). A LangChain document compressor and a LlamaIndex node postprocessor go through
`langchain_memhybrid.as_reranker` and `llamaindex_memhybrid.as_reranker`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from memhybrid.deadline import Deadline, DeadlineError
from memhybrid.errors import ConfigError
from memhybrid.protocols import Float64

if TYPE_CHECKING:
    from memhybrid.profiles import Profile

Score = Callable[[str, Sequence[str]], Sequence[float]]
LATE_INTERACTION = "late-interaction"
_deadline = Deadline("rerank")


class NotForThisError(Exception):
    """A reranker says that it is not meant for this query or these texts: the first stage stands, and nothing has failed."""


@dataclass(frozen=True)
class Reranked:
    """Blended scores of the reranked positions (None: first-stage order stays), and what happened, in a sentence."""

    scores: Float64 | None
    note: str
    failed: bool = False


def check_reranker(reranker: Any) -> None:
    """ConfigError for what cannot be a reranker."""
    if isinstance(reranker, str):
        if reranker != LATE_INTERACTION:
            raise ConfigError(f"reranker: the only one with a name is {LATE_INTERACTION!r}, got {reranker!r}")
        return
    for method, adapter in (
        ("compress_documents", "langchain_memhybrid"),
        ("postprocess_nodes", "llamaindex_memhybrid"),
    ):
        if hasattr(reranker, method):
            raise ConfigError(f"reranker: wrap the {type(reranker).__name__} as {adapter}.as_reranker(…)")
    if not callable(reranker) and not hasattr(reranker, "predict"):
        raise ConfigError(f"reranker: expected a function (query, texts) → scores, got {type(reranker).__name__}")


def as_score(reranker: Any, embedder: Any = None) -> Score:
    """The function behind whatever was given. `embedder` is the store's: late interaction uses it where it has token vectors."""
    check_reranker(reranker)
    if isinstance(reranker, str):
        from memhybrid.late_rerank import late_interaction

        return late_interaction(embedder)
    crosses = any(kind.__name__ == "CrossEncoder" for kind in type(reranker).__mro__)
    # A CrossEncoder is a torch module: it can be called, with tensors.
    if crosses or not callable(reranker):
        return _cross_encoder(reranker)
    score: Any = reranker
    return score


def _cross_encoder(model: Any) -> Score:
    def score(query: str, texts: Sequence[str]) -> Sequence[float]:
        raw = np.asarray(model.predict([(query, text) for text in texts]), dtype=np.float64).ravel()
        return _sigmoid(raw).tolist() if _gives_logits(model, raw) else raw.tolist()

    return score


def _gives_logits(model: Any, raw: Float64) -> bool:
    """Models with one label give logits or probabilities, by their activation; where it cannot be seen, logits leave [0, 1]."""
    for attribute in ("activation_fn", "default_activation_function"):
        kind = type(getattr(model, attribute, None)).__name__
        if kind in ("Identity", "Sigmoid"):
            return kind == "Identity"
    return bool(((raw < 0) | (raw > 1)).any())


def _sigmoid(raw: Float64) -> Float64:
    return 1.0 / (1.0 + np.exp(-np.clip(raw, -500.0, 500.0)))


def skip_reason(
    profile: Profile, *, has_query: bool, embedding_failed: bool, scores: Float64, elapsed_s: float
) -> str | None:
    """Why not to rerank, or None (spec section 2, step 8)."""
    if profile.rerank == "off":
        return "rerank is off"
    if profile.reranker is None:
        return "no reranker was given"
    if not has_query:
        return "there is no query"
    if embedding_failed:
        return "the query could not be embedded"
    if len(scores) <= 1:
        return "at most one candidate"
    if profile.deadline_s - elapsed_s < profile.rerank_min_left_s:
        return f"less than {profile.rerank_min_left_s:.2f} s of {profile.deadline_s:.2f} s are left"
    if profile.rerank_margin is not None and scores[0] - scores[1] >= profile.rerank_margin - 1e-12:
        return f"the first result leads by {scores[0] - scores[1]:.3f}, at least {profile.rerank_margin}"
    return None


def rerank(
    profile: Profile, query: str, texts: Sequence[str], scores: Float64, *, elapsed_s: float, embedder: Any = None
) -> Reranked:
    """Blend first-stage scores (best first) with the reranker's. Whatever goes wrong leaves them as they were."""
    left = profile.deadline_s - elapsed_s
    started = time.perf_counter()

    def ask() -> Any:
        return as_score(profile.reranker, embedder)(query, list(texts))

    try:
        outcome = _deadline.call(left, ask)
    except DeadlineError as error:
        return Reranked(None, f"rerank took too long: {error}", failed=True)
    except NotForThisError as error:
        return Reranked(None, f"rerank skipped: {error}")
    except Exception as error:  # noqa: BLE001 - the first stage stands, and the trace says so
        return Reranked(None, f"rerank failed: {type(error).__name__}: {error}", failed=True)
    took = time.perf_counter() - started
    problem = _problem(outcome, len(texts))
    if isinstance(problem, str):
        return Reranked(None, f"rerank ignored: {problem}", failed=True)
    blend = profile.rerank_blend
    return Reranked((1.0 - blend) * scores + blend * problem, f"reranked {len(texts)} in {took * 1000:.0f} ms")


def _problem(outcome: Any, expected: int) -> str | Float64:
    """What is wrong with a reranker's answer, or the answer as an array."""
    if outcome is None or isinstance(outcome, str | bytes | Mapping):
        return "its answer is not a list of numbers"
    try:
        values = [float(v) for v in outcome]
    except (TypeError, ValueError):
        return "its answer is not a list of numbers"
    if len(values) != expected:
        return f"it gave {len(values)} scores for {expected} texts"
    if any(not math.isfinite(v) for v in values):
        return "it gave NaN or infinite scores"
    if any(v < 0 or v > 1 for v in values):
        return "it gave scores outside [0, 1]; wrap it so that they are probabilities"
    return np.array(values, dtype=np.float64)
