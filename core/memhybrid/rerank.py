"""Reranking the best candidates by a model that reads query and text together, under a deadline, failing open.

Accepted as reranker: a function (query, texts) → scores in [0, 1]; a sentence-transformers CrossEncoder; a LangChain document
compressor; a LlamaIndex node postprocessor. The last two go through their adapters' `as_reranker`.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from memhybrid.errors import ConfigError
from memhybrid.profiles import Profile
from memhybrid.protocols import Float64

Score = Callable[[str, Sequence[str]], Sequence[float]]


@dataclass(frozen=True)
class Reranked:
    """Blended scores of the reranked positions (None: first-stage order stays), and what happened, in a sentence."""

    scores: Float64 | None
    note: str
    failed: bool = False


def as_score(reranker: Any) -> Score:
    """The function behind whatever was given."""
    if hasattr(reranker, "predict") and not callable(reranker):
        return _cross_encoder(reranker)
    if hasattr(reranker, "predict") and type(reranker).__name__ == "CrossEncoder":
        return _cross_encoder(reranker)
    if callable(reranker):
        return cast("Score", reranker)
    raise ConfigError(f"reranker: expected a function (query, texts) → scores, got {type(reranker).__name__}")


def _cross_encoder(model: Any) -> Score:
    def score(query: str, texts: Sequence[str]) -> Sequence[float]:
        raw = np.asarray(model.predict([(query, text) for text in texts]), dtype=np.float64).ravel()
        # Models with one label give logits or probabilities, by their activation; logits leave [0, 1].
        return (1.0 / (1.0 + np.exp(-raw))).tolist() if ((raw < 0) | (raw > 1)).any() else raw.tolist()

    return score


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
    if profile.rerank_margin is not None and scores[0] - scores[1] >= profile.rerank_margin:
        return f"the first result leads by {scores[0] - scores[1]:.3f}, at least {profile.rerank_margin}"
    return None


def rerank(profile: Profile, query: str, texts: Sequence[str], scores: Float64, *, elapsed_s: float) -> Reranked:
    """Blend first-stage scores (best first) with the reranker's. Whatever goes wrong leaves them as they were."""
    left = profile.deadline_s - elapsed_s
    started = time.perf_counter()
    outcome = _with_deadline(as_score(profile.reranker), query, list(texts), left)
    took = time.perf_counter() - started
    if isinstance(outcome, BaseException):
        return Reranked(None, f"rerank failed: {type(outcome).__name__}: {outcome}", failed=True)
    if outcome is None:
        return Reranked(None, f"rerank took longer than the {left:.2f} s left", failed=True)
    problem = _problem(outcome, len(texts))
    if problem:
        return Reranked(None, f"rerank ignored: {problem}", failed=True)
    relevance = np.asarray(outcome, dtype=np.float64)
    blend = profile.rerank_blend
    return Reranked((1.0 - blend) * scores + blend * relevance, f"reranked {len(texts)} in {took * 1000:.0f} ms")


def _problem(outcome: Any, expected: int) -> str | None:
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
    return None


_MOST_HANGING = 8
_slots = threading.BoundedSemaphore(_MOST_HANGING)


def _with_deadline(score: Score, query: str, texts: list[str], seconds: float) -> Any:
    """The reranker's answer, the exception that it raised, or None when the time is over (its thread is left to end by itself)."""
    box: list[Any] = []
    done = threading.Event()
    if not _slots.acquire(blocking=False):
        return RuntimeError(f"{_MOST_HANGING} earlier calls have not come back")

    def run() -> None:
        try:
            box.append(score(query, texts))
        except BaseException as error:  # noqa: BLE001 - handed to the caller, who reports it
            box.append(error)
        finally:
            _slots.release()
            done.set()

    threading.Thread(target=run, name="memhybrid-rerank", daemon=True).start()
    return box[0] if done.wait(max(seconds, 0.0)) else None
