"""Reranking: what a good answer changes, what a bad one may not, and when nobody is asked."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhybrid import HybridMemory, Profile
from memhybrid.deadline import Deadline, DeadlineError
from memhybrid.errors import ConfigError, DegradedError
from memhybrid.records import SearchResult
from memhybrid.rerank import as_score, rerank, skip_reason
from tests.conftest import make_memory

QUERY = "alpine tunnel survey"
TEXTS = [f"alpine tunnel survey, entry {i}" for i in range(12)]


@pytest.fixture(scope="module")
def store() -> Iterator[HybridMemory]:
    """Twelve memories that are nearly alike, so that no first result leads."""
    with make_memory(None, profile="tipsy") as memory:
        memory.add([(text, {"importance": 50 + i}) for i, text in enumerate(TEXTS)])
        yield memory


def profile(reranker: Any, **changes: Any) -> Profile:
    """tipsy with a reranker that is asked whatever the margin; a slow machine may take its time."""
    return Profile.tipsy().with_reranker(reranker, **{"rerank_margin": None, "deadline_s": 30.0, **changes})


def search(store: HybridMemory, reranker: Any, k: int = 12, **changes: Any) -> SearchResult:
    return store.search(QUERY, k, profile=profile(reranker, **changes), record_usage=False)


def first_stage(store: HybridMemory) -> list[tuple[str, float]]:
    result = store.search(QUERY, 12, profile=Profile.tipsy().replace(rerank="off"), record_usage=False, now=NOW)
    return [(hit.memory.text, hit.score) for hit in result]


NOW = 1_700_000_000.0


def raises(query: str, texts: Sequence[str]) -> list[float]:
    raise RuntimeError("quota exceeded")


BAD: dict[str, Callable[[str, Sequence[str]], Any]] = {
    "raises": raises,
    "nothing": lambda q, t: None,
    "no list": lambda q, t: 0.5,
    "text": lambda q, t: "0" * len(t),
    "a dict": lambda q, t: dict.fromkeys(range(len(t)), 0.5),
    "empty": lambda q, t: [],
    "too few": lambda q, t: [0.9] * (len(t) - 1),
    "too many": lambda q, t: [0.9] * (len(t) + 1),
    "NaN": lambda q, t: [math.nan] + [0.5] * (len(t) - 1),
    "infinite": lambda q, t: [math.inf] * len(t),
    "logits": lambda q, t: [7.3 - i for i in range(len(t))],
    "negative": lambda q, t: [-0.01] * len(t),
    "pairs": lambda q, t: [[0.5, 0.5]] * len(t),
    "words": lambda q, t: ["high"] * len(t),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_answer_leaves_order_and_scores(store: HybridMemory, bad: Callable[..., Any]) -> None:
    """Whatever a reranker does wrong, hits, order and scores are those of the first stage, and the trace says so."""
    result = store.search(QUERY, 12, profile=profile(bad), record_usage=False, now=NOW)
    assert [(h.memory.text, h.score) for h in result] == first_stage(store)
    assert any(text.startswith("rerank") for text in result.trace.degraded)
    with pytest.raises(DegradedError, match="rerank"):
        store.search(QUERY, 12, profile=profile(bad), record_usage=False, strict=True)


def test_a_reranker_that_hangs_is_left_behind(store: HybridMemory) -> None:
    """Past the deadline of the call the first stage stands, k is honoured, and the trace says that it took too long."""
    release = threading.Event()

    def hangs(query: str, texts: Sequence[str]) -> list[float]:
        release.wait(60)
        return [1.0] * len(texts)

    try:
        result = search(store, hangs, k=3, deadline_s=0.5, rerank_min_left_s=0.0)
    finally:
        release.set()
    assert len(result) == 3
    assert any("took too long" in text for text in result.trace.degraded) or any(
        "less than" in text for text in result.trace.notes
    )


def test_hanging_calls_are_bounded() -> None:
    """A service that never answers cannot fill the process with threads: beyond the bound, calls fail at once."""
    release = threading.Event()
    deadline = Deadline("test", most_hanging=2)
    for _ in range(2):
        with pytest.raises(DeadlineError, match="no answer"):
            deadline.call(0.01, release.wait, 60)
    with pytest.raises(DeadlineError, match="2 earlier calls"):
        deadline.call(5.0, lambda: 1)
    release.set()
    for _ in range(500):
        try:
            assert deadline.call(5.0, lambda: 1) == 1
            return
        except DeadlineError:
            time.sleep(0.01)
    pytest.fail("the slots never came back")


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.data())
@settings(max_examples=200, deadline=None)
def test_scores_are_blended(first: list[float], data: st.DataObject) -> None:
    """final = (1 - blend)·first + blend·relevance, element by element; lists, tuples, arrays and generators serve."""
    relevance = data.draw(st.lists(st.floats(0, 1), min_size=len(first), max_size=len(first)))
    blend = data.draw(st.floats(0, 1))
    kind = data.draw(st.sampled_from([list, tuple, np.array, iter]))
    outcome = rerank(
        profile(lambda q, t: kind(relevance), rerank_blend=blend),
        "q",
        [""] * len(first),
        np.array(first),
        elapsed_s=0.0,
    )
    assert outcome.scores is not None
    for got, f, r in zip(outcome.scores, first, relevance, strict=True):
        assert got == pytest.approx((1 - blend) * f + blend * r, abs=1e-12)


def test_only_the_first_eight_are_reranked_and_stay_ahead(store: HybridMemory) -> None:
    """The reranker sees the best eight in their order; its favourite rises, its last one stays before the ninth."""
    seen: list[list[str]] = []

    def backwards(query: str, texts: Sequence[str]) -> list[float]:
        seen.append(list(texts))
        return [i / len(texts) for i in range(len(texts))]

    before = [text for text, _ in first_stage(store)]
    result = search(store, backwards)
    assert seen == [before[:8]]
    texts = [h.memory.text for h in result]
    assert texts[:8] == before[:8][::-1]
    assert texts[8:] == before[8:]
    assert any(note.startswith("reranked 8") for note in result.trace.notes)


def test_equal_blends_keep_the_first_order(store: HybridMemory) -> None:
    """With blend 1 and equal relevance the first stage decides."""
    result = search(store, lambda q, t: [0.5] * len(t), rerank_blend=1.0)
    assert [h.memory.text for h in result] == [text for text, _ in first_stage(store)]
    assert [h.score for h in result][:8] == [0.5] * 8


def test_min_score_is_held_against_the_score_that_is_shown(store: HybridMemory) -> None:
    """A threshold after reranking filters by the blended score; all filtered is an empty result, not an error."""
    chosen = profile(lambda q, t: [0.0] * len(t), rerank_blend=1.0, rerank_top=12)
    result = store.search(QUERY, 12, profile=chosen, min_score=0.1, record_usage=False)
    assert len(result) == 0
    assert {d.reason for d in result.trace.dropped} == {"min_score"}


SKIPS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "off": ({"rerank": "off"}, {}),
    "no reranker": ({"reranker": None}, {}),
    "no query": ({}, {"has_query": False}),
    "embedded": ({}, {"embedding_failed": True}),
    "at most one": ({}, {"scores": np.array([0.4])}),
    "are left": ({}, {"elapsed_s": 0.96}),
    "leads by": ({}, {"scores": np.array([0.58, 0.5])}),
}


@pytest.mark.parametrize("name", SKIPS)
def test_each_skip_rule_names_itself(name: str) -> None:
    """No query, off, no reranker, failed embedding, one candidate, under 0.40 s of 1.35 s, a lead of 0.08: skipped and said."""
    changes, situation = SKIPS[name]
    usual: dict[str, Any] = {
        "has_query": True, "embedding_failed": False, "scores": np.array([0.5, 0.45]), "elapsed_s": 0.9,
    }  # fmt: skip
    base = Profile.tipsy().with_reranker(lambda q, t: [0.0] * len(t))
    assert skip_reason(base, **usual) is None
    reason = skip_reason(base.replace(**changes), **{**usual, **situation})
    assert reason is not None
    assert name.split(maxsplit=1)[0] in reason


def test_the_trace_says_why_it_was_skipped(store: HybridMemory) -> None:
    """tipsy without a reranker says that none was given; an empty query says that there is none."""
    result = store.search(QUERY, 3, profile="tipsy", record_usage=False)
    assert "rerank skipped: no reranker was given" in result.trace.notes
    empty = store.search("", 3, profile=profile(lambda q, t: [0.0] * len(t)), record_usage=False)
    assert "rerank skipped: there is no query" in empty.trace.notes


class CrossEncoder:
    """As sentence-transformers' looks from outside: a callable module with `predict` over pairs."""

    def __init__(self, raw: Callable[[int], Any], activation: str = "") -> None:
        self.raw = raw
        self.pairs: list[tuple[str, str]] = []
        if activation:
            self.activation_fn = type(activation, (), {})()

    def __call__(self, features: Any) -> Any:
        raise AssertionError("a module is not called with texts")

    def predict(self, pairs: list[tuple[str, str]]) -> Any:
        self.pairs = pairs
        return np.array([self.raw(i) for i in range(len(pairs))], dtype=np.float32)


class MyEncoder(CrossEncoder):
    """A user's subclass."""


@pytest.mark.parametrize(
    ("raw", "activation", "expected"),
    [
        (lambda i: [0.25, 0.75][i], "", [0.25, 0.75]),
        (lambda i: [-3.0, 3.0][i], "", [1 / (1 + math.exp(3)), 1 / (1 + math.exp(-3))]),
        (lambda i: [0.25, 0.75][i], "Identity", [1 / (1 + math.exp(-0.25)), 1 / (1 + math.exp(-0.75))]),
        (lambda i: [0.25, 0.75][i], "Sigmoid", [0.25, 0.75]),
        (lambda i: [-2000.0, 2000.0][i], "", [0.0, 1.0]),
    ],
)
def test_a_cross_encoder_gives_probabilities(raw: Any, activation: str, expected: list[float]) -> None:
    """Pairs go to `predict`; logits become probabilities, by the model's activation or, where it has none, by leaving [0, 1]."""
    model = MyEncoder(raw, activation)
    assert list(as_score(model)("q", ["a", "b"])) == pytest.approx(expected, abs=1e-6)
    assert model.pairs == [("q", "a"), ("q", "b")]


def test_a_model_with_two_labels_is_refused(store: HybridMemory) -> None:
    """Two numbers a text are no relevance: the first stage stands."""
    result = search(store, CrossEncoder(lambda i: [0.5, 0.5]))
    assert any("16 scores for 8 texts" in text for text in result.trace.degraded)


class Compressor:
    """As a LangChain document compressor looks from outside."""

    def compress_documents(self) -> None:
        """Not called."""


class Postprocessor:
    """As a LlamaIndex node postprocessor looks from outside."""

    def postprocess_nodes(self) -> None:
        """Not called."""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Compressor(), "langchain_memhybrid.as_reranker"),
        (Postprocessor(), "llamaindex_memhybrid.as_reranker"),
        ("colbert", "late-interaction"),
        (5, "function"),
    ],
)
def test_what_cannot_rerank_is_refused_when_the_profile_is_made(given: Any, message: str) -> None:
    """A wrong reranker is an error of the profile, not a degraded search, and says what to do."""
    with pytest.raises(ConfigError, match=message):
        Profile.tipsy().with_reranker(given)
